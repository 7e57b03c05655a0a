//! `mcpx trust` and `mcpx untrust`: whether a project's own `.mcpx.toml` counts. Shows the whole file first.
//! Goes by no op: nothing that a host can reach trusts anything.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use mcpx::control::OpCall;
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
             else. Shows the file and asks. What was shown is remembered: a file that changes is left out \
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
        return list(printer, &trust, setup.load_leniently()?.config.max_project);
    }
    let folder = folder(matches)?;
    let max = setup.load_leniently()?.config.max_project;
    let offered = projects::offered(&folder, max).map_err(Ended::Refused)?;
    if !matches.get_flag("yes") {
        if !printer.json {
            output::line(&shown(&folder, &offered))?;
        }
        if agreed("Trust it, as it is now?") != Some(true) {
            output::remark("nothing was trusted; --yes trusts it without asking");
            return Err(Ended::Told);
        }
    }
    trust.folders.insert(folder.clone(), offered.digest.clone());
    keep(setup, &trust)?;
    let told = take_effect(setup, printer)?;
    let servers: Vec<_> = offered.servers.iter().map(|def| def.key.as_str()).collect();
    if printer.json {
        let done = json!({
            "project": folder, "trusted": true, "servers": servers, "daemon_reloaded": told,
        });
        return output::as_json(&done);
    }
    let adds =
        if servers.is_empty() { "no servers".to_owned() } else { plain(&servers.join(", ")) };
    let again = "a file that changes is left out until it is trusted again";
    output::line(&format!("{} is trusted and adds {adds}; {again}", named(&folder)))
}

/// Runs `mcpx untrust`.
pub(crate) fn undo(setup: &Setup, printer: Printer, matches: &ArgMatches) -> Outcome {
    let mut trust = remembered(setup)?;
    let folder = folder(matches)?;
    if trust.folders.remove(&folder).is_none() {
        let folder = plain(&folder.display().to_string());
        let text = format!("{folder} is not trusted; `mcpx trust --list` shows which are");
        return Err(Ended::Failed(text));
    }
    keep(setup, &trust)?;
    let told = take_effect(setup, printer)?;
    if printer.json {
        let done = json!({ "project": folder, "trusted": false, "daemon_reloaded": told });
        return output::as_json(&done);
    }
    output::line(&format!("{} is left out from now on", named(&folder)))
}

/// The folder, by the name under which hosts in it are known.
fn folder(matches: &ArgMatches) -> Result<PathBuf, Ended> {
    let given = matches.get_one::<PathBuf>("dir");
    // The file itself is as good a name.
    let given = given.map(|given| match given.parent() {
        Some(folder) if given.ends_with(FILE) => {
            setup::absolute(given).parent().unwrap_or(folder).to_owned()
        }
        _ => given.clone(),
    });
    let folder = setup::project(given.as_ref());
    folder.map(PathBuf::from).ok_or_else(|| {
        Ended::Failed("there is no working directory; name the project's folder".to_owned())
    })
}

fn remembered(setup: &Setup) -> Result<Trust, Ended> {
    let file = setup.places.trust();
    let wrong = |why: String| Ended::Failed(format!("{}: {why}", file.display()));
    match statefile::read(&file).map_err(|error| wrong(error.to_string()))? {
        Some(text) => Trust::read(&text).map_err(|why| {
            wrong(format!("{why}; remove it, and every project is asked about anew"))
        }),
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

/// What would be trusted: the whole file, since any line of it may name a program, or send something away.
fn shown(folder: &Path, offered: &Offered) -> String {
    let mut text = format!("{}:\n", plain(&folder.join(FILE).display().to_string()));
    for line in offered.text.lines() {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {}", plain(line));
    }
    text.push('\n');
    text
}

fn named(folder: &Path) -> String {
    plain(&folder.join(FILE).display().to_string())
}

fn list(printer: Printer, trust: &Trust, max: usize) -> Outcome {
    let standing = |folder: &Path| match trust.standing(folder, max) {
        Standing::Trusted => "in force",
        Standing::Changed => "changed since; not in force",
        Standing::Unusable(_) => "not read; not in force",
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
    let lines: Vec<_> = all
        .map(|(folder, standing)| format!("{}  {standing}", plain(&folder.display().to_string())))
        .collect();
    output::line(&lines.join("\n"))
}
