//! `mcpx trust` and `mcpx untrust`: whether a project's own `.mcpx.toml` counts. Shows what it adds first.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use mcpx::control::OpCall;
use mcpx::settings::ServerDef;
use mcpx::settings::projects::{self, FILE, Offered, Standing, Trust};
use mcpx::transport::store::statefile;
use serde_json::json;

use crate::commands;
use crate::ended::{Ended, Outcome};
use crate::hosts::{agreed, plain};
use crate::output::{self, Printer};
use crate::reach::Reach;
use crate::setup::{self, Setup};

/// Both commands.
pub(crate) fn tree() -> [Command; 2] {
    let folder = || {
        Arg::new("dir")
            .value_name("DIR")
            .value_parser(value_parser!(PathBuf))
            .help("The project folder, in place of the one around the working directory")
    };
    let trust = Command::new("trust")
        .about("Let a project's .mcpx.toml add servers for hosts in that project")
        .long_about(
            "Let the .mcpx.toml in a project's folder add servers for hosts in that project, and for nobody \
             else. Shows what it adds and asks. What was shown is remembered: a file that changes is left out \
             until it is trusted again.",
        )
        .arg(folder())
        .arg(Arg::new("yes").long("yes").short('y').action(ArgAction::SetTrue).help("Do not ask"))
        .arg(
            Arg::new("list")
                .long("list")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["dir", "yes"])
                .help("Show which projects are trusted"),
        );
    let untrust =
        Command::new("untrust").about("Leave a project's .mcpx.toml out again").arg(folder());
    [trust, untrust]
}

/// Runs `mcpx trust`.
pub(crate) fn run(setup: &Setup, printer: Printer, matches: &ArgMatches) -> Outcome {
    let mut trust = remembered(setup)?;
    if matches.get_flag("list") {
        return list(printer, &trust);
    }
    let folder = folder(matches)?;
    let offered = projects::offered(&folder).map_err(Ended::Refused)?;
    if !printer.json {
        output::line(&shown(&folder, &offered))?;
    }
    let question = "Trust it, as it is now?";
    if !matches.get_flag("yes") && agreed(question) != Some(true) {
        output::remark("nothing was trusted; --yes trusts it without asking");
        return Err(Ended::Told);
    }
    trust.folders.insert(folder.clone(), offered.digest.clone());
    keep(setup, &trust)?;
    let running = take_effect(setup, printer)?;
    if printer.json {
        let servers: Vec<_> = offered.servers.iter().map(|def| def.key.as_str()).collect();
        return output::as_json(
            &json!({ "project": folder, "servers": servers, "in_force": running }),
        );
    }
    let again = "a file that changes is left out until it is trusted again";
    output::line(&format!("{} is trusted; {again}", folder.join(FILE).display()))
}

/// Runs `mcpx untrust`.
pub(crate) fn undo(setup: &Setup, printer: Printer, matches: &ArgMatches) -> Outcome {
    let mut trust = remembered(setup)?;
    let folder = folder(matches)?;
    if trust.folders.remove(&folder).is_none() {
        let text =
            format!("{} is not trusted; `mcpx trust --list` shows which are", folder.display());
        return Err(Ended::Failed(text));
    }
    keep(setup, &trust)?;
    let running = take_effect(setup, printer)?;
    if printer.json {
        return output::as_json(&json!({ "project": folder, "in_force": running }));
    }
    output::line(&format!("{} is left out from now on", folder.join(FILE).display()))
}

/// The folder, by the name under which hosts in it are known.
fn folder(matches: &ArgMatches) -> Result<PathBuf, Ended> {
    let folder = setup::project(matches.get_one::<PathBuf>("dir"));
    folder.map(PathBuf::from).ok_or_else(|| {
        Ended::Failed("there is no working directory; name the project's folder".to_owned())
    })
}

fn remembered(setup: &Setup) -> Result<Trust, Ended> {
    let file = setup.places.trust();
    let wrong = |why: String| Ended::Failed(format!("{}: {why}", file.display()));
    match statefile::read(&file).map_err(|error| wrong(error.to_string()))? {
        Some(text) => Trust::read(&text).map_err(wrong),
        None => Ok(Trust::default()),
    }
}

fn keep(setup: &Setup, trust: &Trust) -> Outcome {
    let file = setup.places.trust();
    let written = statefile::private_folder(&setup.places.state)
        .and_then(|()| statefile::write(&file, &trust.write()));
    written.map_err(|error| Ended::Failed(format!("{}: {error}", file.display())))
}

/// Has a daemon that runs take it in; whether one does.
fn take_effect(setup: &Setup, printer: Printer) -> Result<bool, Ended> {
    let reach = Reach::new(setup, printer)?;
    match commands::runtime()?.block_on(reach.ask(&OpCall::Reload)) {
        Ok(_) => Ok(true),
        Err(Ended::NoDaemon(_)) => Ok(false),
        Err(other) => Err(other),
    }
}

/// What would be trusted: every program that would be run, and every address.
fn shown(folder: &Path, offered: &Offered) -> String {
    let file = folder.join(FILE);
    let mut text = if offered.servers.is_empty() {
        format!("{} adds no servers", file.display())
    } else {
        format!("{} adds for hosts in this project:", file.display())
    };
    let widest =
        offered.servers.iter().map(|def| def.key.chars().count()).max().unwrap_or_default();
    // Writing to a string cannot fail.
    for def in &offered.servers {
        let _ = write!(text, "\n  {:widest$}  {}", plain(&def.key), plain(&about(def)));
        if !def.env.is_empty() {
            let names: Vec<_> =
                def.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let _ = write!(text, "\n  {:widest$}    with {}", "", plain(&names.join(" ")));
        }
    }
    for rule in &offered.policy {
        let _ = write!(text, "\n  policy {} = {}", plain(&rule.pattern()), rule.rule.as_str());
    }
    text
}

fn about(def: &ServerDef) -> String {
    def.url.clone().unwrap_or_else(|| def.command.join(" "))
}

fn list(printer: Printer, trust: &Trust) -> Outcome {
    let standing = |folder: &Path| match trust.standing(folder) {
        Standing::Trusted => "in force",
        Standing::Changed => "changed since; not in force",
        Standing::Absent | Standing::Unknown => "its file is gone",
    };
    let all = trust.folders.keys().map(|folder| (folder, standing(folder)));
    if printer.json {
        let all = all.map(|(folder, standing)| json!({ "project": folder, "standing": standing }));
        return output::as_json(&all.collect::<Vec<_>>());
    }
    if trust.folders.is_empty() {
        return output::line("no project is trusted");
    }
    let lines: Vec<_> =
        all.map(|(folder, standing)| format!("{}  {standing}", folder.display())).collect();
    output::line(&lines.join("\n"))
}
