//! `mcpx import`: servers of a host's configuration become servers of mcpx. Shows the plan; `--write`
//! does it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use mcpx::control::views::mistake_lines;
use mcpx::settings::hosts::{self, Becomes, Found, Host, Item, Plan, Reach, Request, find, target};
use mcpx::transport::store::hostfile;
use serde_json::json;

use crate::ended::{Ended, Outcome};
use crate::hosts::{Desk, agreed, list, plain, short};
use crate::output;
use crate::setup::{self, absolute};

/// The command.
pub(crate) fn command() -> Command {
    let command = Command::new("import")
        .about("Take servers over from a host's configuration; shows what it would do")
        .long_about(
            "Take servers over from the configuration of opencode, Claude Code, Cursor, VS Code and others, or \
             from any file with servers in it. Shows each server with what becomes of it; --write writes them \
             into a file of its own in conf.d. Without a host: which ones there are.",
        )
        .arg(Arg::new("host").value_name("HOST | FILE").help("A host, or a file with servers"))
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("This file of that host, in place of those in their usual places"),
        )
        .arg(
            Arg::new("write")
                .long("write")
                .action(ArgAction::SetTrue)
                .help("Write it, without asking"),
        )
        .arg(
            Arg::new("force")
                .long("force")
                .action(ArgAction::SetTrue)
                .help("Replace servers, rules and secrets that are there and differ"),
        );
    crate::hosts::reach_arguments(command)
}

/// Runs it.
pub(crate) fn run(desk: &Desk<'_>, matches: &ArgMatches) -> Outcome {
    let Some(name) = matches.get_one::<String>("host") else { return list(desk) };
    let (host, files) = sources(desk, name, matches)?;
    let folder = desk.setup.sources.user.clone().ok_or_else(|| {
        Ended::Failed("no configuration folder: set XDG_CONFIG_HOME or HOME".to_owned())
    })?;
    let file = files.first().map(|file| file.path.as_path());
    let target = target(&folder, host, file);
    let plan = make(desk, host, &files, &folder, &target, matches.get_flag("force"))?;
    if desk.printer.json {
        return whole(desk, &plan, &files, &target, matches.get_flag("write"));
    }
    output::line(&shown(desk, &plan, &target))?;
    if plan.text.is_some() {
        let write = matches.get_flag("write");
        if write || agreed(&format!("Write {}?", short(desk, &target))) == Some(true) {
            write_all(desk, &plan, &target)?;
            output::line(&format!(
                "written to {}; a daemon that runs takes it in by `mcpx reload`",
                short(desk, &target)
            ))?;
        } else {
            output::line("nothing was written; --write writes it")?;
        }
    }
    ended(&plan)
}

/// A file that could not be read has failed the command, however well the rest went.
fn ended(plan: &Plan) -> Outcome {
    if plan.broken.is_empty() {
        return Ok(());
    }
    Err(Ended::Failed(mistake_lines(&plan.broken).join("\n")))
}

/// The host and its files, as the arguments have it.
fn sources(
    desk: &Desk<'_>,
    name: &str,
    matches: &ArgMatches,
) -> Result<(Option<&'static Host>, Vec<Found>), Ended> {
    let given = |path: &Path| {
        let path = absolute(path);
        let project = path.starts_with(&desk.project)
            && desk.lookup("HOME").is_none_or(|home| Path::new(&home) != desk.project);
        let reach = if project { Reach::Project } else { Reach::User };
        if path.is_file() {
            Ok(vec![Found { path, reach }])
        } else {
            Err(Ended::Failed(format!("{} is no file", path.display())))
        }
    };
    let file = matches.get_one::<PathBuf>("file");
    match (find(name), file) {
        (Some(host), Some(file)) => Ok((Some(host), given(file)?)),
        (Some(host), None) => {
            let mut files = desk.around(|around| host.files(around));
            let reach = crate::hosts::reach(matches);
            files.retain(|file| reach.is_none_or(|reach| file.reach == reach));
            if files.is_empty() {
                return Err(Ended::Failed(format!(
                    "no file of {} is in its usual places; name one: `mcpx import {} FILE`",
                    host.title, host.name
                )));
            }
            Ok((Some(host), files))
        }
        (None, None) if name.contains(['/', '.']) || Path::new(name).exists() => {
            Ok((None, given(Path::new(name))?))
        }
        (None, _) => Err(crate::hosts::host(name).err().unwrap_or(Ended::Told)),
    }
}

fn make(
    desk: &Desk<'_>,
    host: Option<&'static Host>,
    files: &[Found],
    folder: &Path,
    target: &Path,
    force: bool,
) -> Result<Plan, Ended> {
    let present = match std::fs::read_to_string(target) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Ended::Failed(format!("{}: {error}", target.display()))),
    };
    Ok(desk.around(|around| {
        hosts::plan(&Request {
            host,
            files,
            around,
            target,
            present: present.as_deref(),
            secrets: &folder.join("secrets"),
            loaded: &desk.loaded,
            program: &desk.setup.program,
            runs: &|program| desk.found(program).is_some(),
            force,
        })
    }))
}

fn write_all(desk: &Desk<'_>, plan: &Plan, target: &Path) -> Outcome {
    if let Some(file) = &desk.setup.file {
        return Err(Ended::Failed(format!(
            "nothing was written: with --config (or MCPX_CONFIG) only {} is read, and imports go into {}",
            file.display(),
            target.display()
        )));
    }
    let failed = |path: &Path, error: &std::io::Error| {
        Ended::Failed(format!("{} cannot be written: {error}", path.display()))
    };
    for secret in &plan.secrets {
        hostfile::write_secret(&secret.path, &secret.value)
            .map_err(|error| failed(&secret.path, &error))?;
    }
    if let Some(text) = &plan.text {
        hostfile::write_own(target, text.as_bytes()).map_err(|error| failed(target, &error))?;
    }
    // As the next daemon will read it; what is wrong with it now was wrong before, or is ours to mend.
    let setup = setup::Setup::find(None)?;
    setup.load().map(|_| ()).map_err(Ended::Refused)
}

fn word(becomes: &Becomes) -> &'static str {
    match becomes {
        Becomes::Imported => "import",
        Becomes::Replaced => "replace",
        Becomes::Off => "off",
        Becomes::Same => "there",
        Becomes::Skipped(_) => "skip",
    }
}

/// The plan for people.
fn shown(desk: &Desk<'_>, plan: &Plan, target: &Path) -> String {
    let mut text = String::new();
    if plan.servers.is_empty() && plan.broken.is_empty() {
        text.push_str("no servers are in it\n");
    }
    for item in &plan.servers {
        server(&mut text, item);
    }
    for line in &plan.policy {
        let _ = writeln!(text, "rule     {} = {}", plain(&line.pattern), line.rule.as_str());
    }
    for note in &plan.notes {
        let _ = writeln!(text, "note     {}", plain(note));
    }
    for secret in &plan.secrets {
        let _ = writeln!(text, "secret   {} (mode 0600)", short(desk, &secret.path));
    }
    if plan.text.is_some() {
        let _ = writeln!(text, "file     {}", short(desk, target));
    } else if !plan.servers.is_empty() {
        let _ = writeln!(text, "nothing is new; nothing to write");
    }
    text.trim_end().to_owned()
}

fn server(text: &mut String, item: &Item) {
    let reason = match &item.becomes {
        Becomes::Skipped(reason) => plain(reason),
        Becomes::Off => format!("{} (off in its host; written as a comment)", plain(&item.what)),
        _ => plain(&item.what),
    };
    let _ = writeln!(text, "{:<8} {}  {reason}", word(&item.becomes), plain(&item.server));
    if matches!(item.becomes, Becomes::Same | Becomes::Skipped(_)) {
        return;
    }
    let told = &item.told;
    for (kind, lines) in
        [("needs a value", &told.needs), ("warning", &told.warnings), ("note", &told.notes)]
    {
        for line in lines {
            let _ = writeln!(text, "           {kind}: {}", plain(line));
        }
    }
}

fn whole(desk: &Desk<'_>, plan: &Plan, files: &[Found], target: &Path, write: bool) -> Outcome {
    let write = write && plan.text.is_some();
    if write {
        write_all(desk, plan, target)?;
    }
    let secrets: Vec<_> = plan.secrets.iter().map(|secret| &secret.path).collect();
    output::as_json(&json!({
        "files": files.iter().map(|file| &file.path).collect::<Vec<_>>(),
        "servers": plan.servers,
        "policy": plan.policy,
        "notes": plan.notes,
        "broken": mistake_lines(&plan.broken),
        "target": target,
        "secrets": secrets,
        "changes": plan.text.is_some(),
        "written": write,
    }))?;
    if plan.broken.is_empty() { Ok(()) } else { Err(Ended::Told) }
}
