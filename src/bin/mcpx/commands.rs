//! Commands that ask the daemon, or that need none.

use clap::ArgMatches;
use mcpx::control::types as t;
use mcpx::control::views::mistake_lines;
use mcpx::control::{OpCall, OpName};
use mcpx::transport::socket;
use serde_json::{Map, Value as Json, json};

use crate::call::{self, is_event_stream};
use crate::ended::{Ended, Outcome};
use crate::output::{self, Printer};
use crate::reach::{Reach, failed, understood};
use crate::setup::{self, Setup};
use crate::stream::Events;
use crate::waiting::Waiting;
use crate::{cli, doctor, elicit, exec, inside, offers, questions, scripts, search, tables};

/// Runs a command of the tree, by its name.
pub(crate) fn run(setup: &Setup, json: bool, name: &str, matches: &ArgMatches) -> Outcome {
    let printer = Printer::new(json, setup.plain);
    let (words, matches) = match matches.subcommand() {
        Some((inner, matches)) => (vec![name, inner], matches),
        None => (vec![name], matches),
    };
    match words.as_slice() {
        ["config", "check"] => return config_check(setup, printer),
        ["config", "path"] => return config_path(setup, printer),
        _ => {}
    }
    let reach = Reach::new(setup, printer)?;
    runtime()?.block_on(async {
        match words.as_slice() {
            ["call"] => call::run(&reach, matches).await,
            ["exec"] => exec::run(&reach, matches).await,
            ["read"] => offers::read(&reach, matches).await,
            ["prompt"] => offers::prompt(&reach, matches).await,
            ["config", "show"] => config_show(&reach).await,
            ["version"] => version(&reach).await,
            ["elicit", "answer"] => elicit::answer(&reach, matches).await,
            ["elicit", "watch"] => elicit::watch(&reach).await,
            ["doctor"] => doctor::run(&reach, optional(matches, "server")).await,
            ["stop"] if matches.get_flag("daemon") => stop_daemon(&reach).await,
            ["status"] if matches.get_flag("http") => perform(&reach, &OpCall::Http).await,
            ["status"] if matches.get_flag("tree") => perform(&reach, &OpCall::Tree).await,
            ["scripts"] => perform(&reach, &OpCall::Scripts).await,
            ["scripts", "run"] => scripts::run(&reach, matches).await,
            ["scripts", "save"] => perform(&reach, &scripts::save(matches)?).await,
            ["tasks"] => perform(&reach, &OpCall::Tasks).await,
            ["settings"] => perform(&reach, &OpCall::SettingsGet { key: None }).await,
            words => {
                let op = cli::op_of(words)
                    .ok_or_else(|| Ended::Usage(format!("no command {}", words.join(" "))))?;
                perform(&reach, &op_call(op, matches, &reach)?).await
            }
        }
    })
}

/// A runtime as small as a command needs.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Ended> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Ended::Failed(format!("no runtime: {error}")))
}

fn optional(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.try_get_one::<String>(name).ok().flatten().cloned()
}

/// The op of a command with its arguments.
fn op_call(op: OpName, matches: &ArgMatches, reach: &Reach<'_>) -> Result<OpCall, Ended> {
    let needed = |name: &str| optional(matches, name).unwrap_or_default();
    let follow = || matches.get_flag("follow");
    Ok(match op {
        OpName::Status => OpCall::Status { server: optional(matches, "server") },
        OpName::Restart => OpCall::Restart { server: needed("server") },
        OpName::Stop => OpCall::Stop { server: needed("server") },
        OpName::Start => OpCall::Start { server: needed("server") },
        OpName::Reload => OpCall::Reload,
        OpName::Tools => OpCall::Tools {
            namespace: optional(matches, "namespace"),
            project: setup::project(matches.get_one("project")),
        },
        OpName::Search => search::call(matches),
        OpName::Types => OpCall::Types(t::TypesRequest {
            namespace: optional(matches, "namespace"),
            tools: matches.get_many("tools").into_iter().flatten().cloned().collect(),
            all: matches.get_flag("all"),
            project: setup::project(matches.get_one("project")),
        }),
        OpName::Resources => OpCall::Resources {
            namespace: optional(matches, "namespace"),
            project: setup::project(matches.get_one("project")),
        },
        OpName::Prompts => OpCall::Prompts {
            namespace: optional(matches, "namespace"),
            project: setup::project(matches.get_one("project")),
        },
        OpName::Scripts => OpCall::Scripts,
        OpName::Script => OpCall::Script { name: needed("name") },
        OpName::ScriptRemove => OpCall::ScriptRemove { name: needed("name") },
        OpName::Tasks => OpCall::Tasks,
        OpName::Task => OpCall::Task { task: needed("task") },
        OpName::TaskCancel => OpCall::TaskCancel { task: needed("task") },
        OpName::Logs => {
            let asked = matches.get_one::<usize>("lines").copied();
            let lines = Some(asked.unwrap_or(reach.settings.cli.log_lines));
            OpCall::Logs { server: optional(matches, "server"), lines, follow: follow() }
        }
        OpName::Events | OpName::Audit | OpName::Trace => inside::call(op, matches),
        OpName::Tree => OpCall::Tree,
        OpName::ElicitList => OpCall::Questions { follow: follow() },
        OpName::ElicitShow => OpCall::Question { id: needed("id") },
        OpName::ElicitDecline => OpCall::Decline { id: needed("id") },
        OpName::ElicitCancel => OpCall::Cancel { id: needed("id") },
        OpName::SettingsGet => OpCall::SettingsGet { key: optional(matches, "key") },
        OpName::SettingsSet => OpCall::SettingsSet { changes: changes(matches)? },
        OpName::Protocol => OpCall::Protocol,
        OpName::Http => OpCall::Http,
        OpName::Health => OpCall::Health,
        OpName::Config => OpCall::Config,
        OpName::Version => OpCall::Version,
        OpName::Doctor => OpCall::Doctor { server: optional(matches, "server") },
        OpName::Shutdown => OpCall::Shutdown,
        // Their commands have code of their own.
        OpName::Call
        | OpName::Ask
        | OpName::Exec
        | OpName::Read
        | OpName::Prompt
        | OpName::ScriptRun
        | OpName::ScriptSave
        | OpName::ElicitAnswer => {
            return Err(Ended::Usage(format!("`{}` is no command of this kind", op.row().id)));
        }
    })
}

/// KEY=VALUE words as the changes of `PUT /v1/settings`; the daemon reads the texts by type.
fn changes(matches: &ArgMatches) -> Result<Map<String, Json>, Ended> {
    let mut changes = Map::new();
    for word in matches.get_many::<String>("settings").into_iter().flatten() {
        let (key, text) = word
            .split_once('=')
            .ok_or_else(|| Ended::Usage(format!("{word:?} is not KEY=VALUE")))?;
        let value = if text.is_empty() { Json::Null } else { text.into() };
        changes.insert(key.trim().to_owned(), value);
    }
    Ok(changes)
}

/// Asks, and shows the answer.
async fn perform(reach: &Reach<'_>, call: &OpCall) -> Outcome {
    if call.streams() {
        return follow(reach, call).await;
    }
    let body = reach.ask(call).await?;
    if reach.printer.json {
        return output::bytes(&body);
    }
    let printer = reach.printer;
    let text = match call.name() {
        OpName::Status => tables::status(printer, &understood(&body)?),
        OpName::Restart | OpName::Stop | OpName::Start => tables::changed(&understood(&body)?),
        OpName::Reload => tables::reload(&understood(&body)?),
        OpName::Tools => tables::tools(printer, &understood(&body)?),
        OpName::Search => search::table(printer, &understood(&body)?),
        OpName::Types => tables::types(&understood(&body)?),
        OpName::Resources => tables::resources(printer, &understood(&body)?),
        OpName::Prompts => tables::prompts(printer, &understood(&body)?),
        OpName::Scripts => scripts::list(printer, &understood(&body)?),
        OpName::Script => scripts::shown(&understood(&body)?),
        OpName::ScriptSave => scripts::saved(&understood(&body)?),
        OpName::ScriptRemove => scripts::removed(&understood(&body)?),
        OpName::Tasks => tables::tasks(printer, &understood(&body)?),
        OpName::Task => tables::task(&understood(&body)?),
        OpName::TaskCancel => tables::task_cancelled(&understood(&body)?),
        OpName::Logs => tables::logs(&understood(&body)?),
        OpName::Events => tables::events(&understood(&body)?),
        OpName::Audit => inside::audit(printer, &understood(&body)?),
        OpName::Trace => inside::trace(&understood(&body)?),
        OpName::Tree => inside::tree(printer, &understood(&body)?),
        OpName::ElicitList => questions::list(&understood(&body)?),
        OpName::ElicitShow => questions::shown(&understood(&body)?),
        OpName::ElicitAnswer | OpName::ElicitDecline | OpName::ElicitCancel => {
            questions::answered(&understood(&body)?)
        }
        OpName::SettingsGet => {
            tables::settings(printer, &understood::<t::SettingsAnswer>(&body)?.settings)
        }
        OpName::SettingsSet => tables::settings_changed(printer, &understood(&body)?),
        OpName::Protocol => tables::protocol(printer, &understood(&body)?),
        OpName::Http => tables::http(&understood(&body)?),
        OpName::Health => return health(&understood(&body)?),
        OpName::Shutdown
        | OpName::Call
        | OpName::Ask
        | OpName::Exec
        | OpName::ScriptRun
        | OpName::Read
        | OpName::Prompt
        | OpName::Config
        | OpName::Version
        | OpName::Doctor => String::from_utf8_lossy(&body).into_owned(),
    };
    if text.is_empty() { Ok(()) } else { output::line(&text) }
}

/// Asks the daemon to end and waits until it has: whoever comes next finds its place free.
async fn stop_daemon(reach: &Reach<'_>) -> Outcome {
    let body = reach.ask(&OpCall::Shutdown).await?;
    let pid = understood::<t::ShutdownAnswer>(&body)?.pid;
    let limit = reach.settings.daemon.stop + reach.settings.shim.start;
    let gone = async {
        while socket::is_held_by(&reach.setup.places.runtime, pid) {
            tokio::time::sleep(reach.settings.shim.redial_step).await;
        }
    };
    let text = format!("the daemon (pid {pid}) is ending");
    let waiting = Waiting::new(reach.printer, &reach.settings.cli, text);
    waiting.during(tokio::time::timeout(limit, gone)).await.map_err(|_| {
        Ended::Failed(format!(
            "the daemon (pid {pid}) was asked to end and is still there after {limit:?}; look at \
             {}, or end it with `kill -9 {pid}`",
            reach.setup.places.daemon_log().display()
        ))
    })?;
    if reach.printer.json {
        return output::bytes(&body);
    }
    output::line(&format!("the daemon (pid {pid}) has ended"))
}

/// Lines or events as they come, until the daemon ends or we are interrupted.
async fn follow(reach: &Reach<'_>, call: &OpCall) -> Outcome {
    let mut stream = reach.open(call).await?;
    if !is_event_stream(&stream.headers) {
        let body = reach.read(stream).await?;
        return output::bytes(&body);
    }
    let mut events = Events::default();
    let broken = |error: &dyn std::fmt::Display| Ended::Failed(error.to_string());
    while let Some(event) = events.next(&mut stream).await.map_err(|error| broken(&error))? {
        let data = event.data.as_bytes();
        let text = match event.name.as_str() {
            t::stream::ERROR => return Err(failed(&understood(data)?)),
            _ if reach.printer.json => event.data,
            t::stream::LINE => tables::log_line(&understood(data)?),
            t::stream::EVENT => tables::event(&understood(data)?),
            t::stream::CALL => inside::record(&understood(data)?),
            t::stream::FRAME => inside::frame(&understood(data)?),
            t::stream::QUESTION | t::stream::CLOSED => match elicit::line(&event)? {
                Some(text) => text,
                None => continue,
            },
            t::stream::MISSED => {
                format!("… {} missed: too fast for us", understood::<t::Missed>(data)?.missed)
            }
            _ => continue,
        };
        output::line(&text)?;
    }
    output::remark("the daemon has ended the stream");
    Ok(())
}

fn health(answer: &t::HealthAnswer) -> Outcome {
    output::line(&tables::health(answer))?;
    if answer.ready && answer.configuration.is_empty() { Ok(()) } else { Err(Ended::Told) }
}

async fn version(reach: &Reach<'_>) -> Outcome {
    let own = env!("CARGO_PKG_VERSION");
    let daemon = match reach.ask(&OpCall::Version).await {
        Ok(body) => Some(understood::<t::VersionAnswer>(&body)?),
        Err(Ended::NoDaemon(_)) => None,
        Err(other) => return Err(other),
    };
    if reach.printer.json {
        return output::as_json(&json!({"version": own, "daemon": daemon}));
    }
    output::line(&match daemon {
        Some(daemon) => format!(
            "mcpx {own}\ndaemon {}, MCP revisions {}",
            daemon.version,
            daemon.revisions.join(", ")
        ),
        None => format!("mcpx {own}\nno daemon runs"),
    })
}

/// What the daemon has in force; without one, what the next would have.
async fn config_show(reach: &Reach<'_>) -> Outcome {
    let answer = match reach.ask(&OpCall::Config).await {
        Ok(body) => understood(&body)?,
        Err(Ended::NoDaemon(_)) => {
            output::remark("no daemon runs; this is what the next one would read");
            t::ConfigAnswer::of(&reach.setup.load().map_err(Ended::Refused)?)
        }
        Err(other) => return Err(other),
    };
    if reach.printer.json {
        return output::as_json(&answer);
    }
    let files: Vec<_> = answer.files.iter().map(|file| format!("# from {file}\n")).collect();
    let text = if answer.toml.is_empty() {
        "# nothing is configured: built-in values, and the built-in server `demo`".to_owned()
    } else {
        answer.toml.trim_end().to_owned()
    };
    output::line(&format!("{}{text}", files.concat()))
}

fn config_check(setup: &Setup, printer: Printer) -> Outcome {
    let loaded = match setup.load() {
        Ok(loaded) => loaded,
        Err(mistakes) if printer.json => {
            output::as_json(&json!({"ok": false, "mistakes": mistake_lines(&mistakes)}))?;
            // Said already; the code is that of a refused configuration.
            return Err(Ended::Refused(Vec::new()));
        }
        Err(mistakes) => return Err(Ended::Refused(mistakes)),
    };
    let warnings = mistake_lines(&loaded.warnings);
    if printer.json {
        return output::as_json(&json!({"ok": true, "mistakes": [], "warnings": warnings}));
    }
    for warning in &warnings {
        output::remark(warning);
    }
    let servers = loaded.settings.servers.iter().filter(|def| !def.builtin).count();
    let changed =
        loaded.resolved.all.iter().filter(|value| value.origin.to_string() != "default").count();
    output::line(&format!(
        "in order: {} files, {servers} servers, {changed} settings",
        loaded.files.len()
    ))
}

fn config_path(setup: &Setup, printer: Printer) -> Outcome {
    let places = setup.sources.places();
    if printer.json {
        let places: Vec<_> =
            places.iter().map(|path| json!({"path": path, "exists": path.exists()})).collect();
        return output::as_json(&places);
    }
    let lines: Vec<_> = places
        .iter()
        .map(|path| {
            let note = if path.exists() { "" } else { "  (not there)" };
            format!("{}{note}", path.display())
        })
        .collect();
    output::line(&lines.join("\n"))
}

/// The completion script of a shell.
pub(crate) fn completions(matches: &ArgMatches) -> Outcome {
    let Some(shell) = matches.get_one::<clap_complete::Shell>("shell").copied() else {
        return Err(Ended::Usage("name a shell".to_owned()));
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::tree(), "mcpx", &mut script);
    output::bytes(&script)
}
