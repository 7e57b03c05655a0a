//! `mcpx connect` and `mcpx disconnect`: our entry in a host's configuration.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use mcpx::settings::hosts::connect::{Held, KEY, Way};
use mcpx::settings::hosts::{Host, Reach};
use mcpx::settings::references::{self, Reference};
use mcpx::transport::store::connection::{self, Change, Wish};
use mcpx::transport::store::hostfile::Undone;
use mcpx::transport::store::statefile;
use serde_json::json;

use crate::ended::{Ended, Outcome};
use crate::hosts::{Desk, agreed, list, plain, reach, reach_arguments, short};
use crate::output;

fn host_argument() -> Arg {
    Arg::new("host").value_name("HOST").help("The host; without it: which ones there are")
}

fn dry_run() -> Arg {
    Arg::new("dry-run").long("dry-run").action(ArgAction::SetTrue).help("Show it and write nothing")
}

/// `mcpx connect`.
pub(crate) fn command() -> Command {
    let command = Command::new("connect")
        .about("Write mcpx into a host's configuration")
        .long_about(
            "Write an entry for mcpx into the configuration of a host. Shows the change and asks; comments, \
             order and format stay, and `mcpx disconnect` undoes it to the byte.",
        )
        .arg(host_argument())
        .arg(
            Arg::new("key")
                .long("key")
                .value_name("NAME")
                .default_value(KEY)
                .help("The key of the entry; hosts put it in front of the names of tools"),
        )
        .arg(
            Arg::new("profile")
                .long("profile")
                .value_name("PROFILE")
                .help("The profile that this host is to see"),
        )
        .arg(
            Arg::new("http")
                .long("http")
                .action(ArgAction::SetTrue)
                .help("By the address of the daemon, in place of a program that the host starts"),
        )
        .arg(
            Arg::new("v2")
                .long("v2")
                .action(ArgAction::SetTrue)
                .help("The layout of opencode 2.x, where no file shows which one it is"),
        )
        .arg(dry_run())
        .arg(Arg::new("yes").long("yes").short('y').action(ArgAction::SetTrue).help("Do not ask"));
    reach_arguments(command)
}

/// `mcpx disconnect`.
pub(crate) fn disconnect_command() -> Command {
    let command = Command::new("disconnect")
        .about("Take mcpx out of a host's configuration")
        .long_about(
            "Take the entry for mcpx out of the configuration of a host: to the byte where the file is as \
             `mcpx connect` left it, otherwise that entry alone.",
        )
        .arg(host_argument())
        .arg(dry_run());
    reach_arguments(command)
}

/// Runs `mcpx connect`.
pub(crate) fn run(desk: &Desk<'_>, matches: &ArgMatches) -> Outcome {
    let Some(name) = matches.get_one::<String>("host") else { return list(desk) };
    let host = crate::hosts::host(name)?;
    let reach = reach(matches).unwrap_or(Reach::User);
    let key = matches.get_one::<String>("key").map_or(KEY, String::as_str);
    let profile = matches.get_one::<String>("profile").map(String::as_str);
    let mut notes = Vec::new();
    let way = if matches.get_flag("http") {
        over_http(desk, profile)?
    } else {
        shim(desk, reach, profile, &mut notes)
    };
    let wish = Wish { host, reach, key, way: &way, second: matches.get_flag("v2") };
    let journal = desk.journal();
    let change = desk.around(|around| connection::prepare(&journal, &wish, around, &desk.own()));
    let mut change = change.map_err(Ended::Failed)?;
    change.notes.extend(notes);
    let (dry, yes) = (matches.get_flag("dry-run"), matches.get_flag("yes"));
    let nothing = change.difference.is_empty();
    if desk.printer.json {
        let write = yes && !dry && !nothing;
        let shown = json!({
            "host": host.name, "file": change.file, "reach": reach.as_str(), "key": key, "new": change.new,
            "difference": change.difference, "notes": change.notes, "written": write,
        });
        if write {
            change.make(&journal).map_err(Ended::Failed)?;
        }
        return output::as_json(&shown);
    }
    show(desk, host, &change)?;
    if nothing {
        return output::line("it is there already; nothing to write");
    }
    if dry {
        return output::line("nothing was written");
    }
    let file = change.file.clone();
    match yes.then_some(true).or_else(|| agreed(&format!("Write {}?", short(desk, &file)))) {
        Some(true) => change.make(&journal).map_err(Ended::Failed)?,
        Some(false) => return output::line("nothing was written"),
        None => {
            let text = "nothing was written: nobody can be asked here; --yes writes it";
            return Err(Ended::Usage(text.to_owned()));
        }
    }
    let tool = host.names.replace("KEY", key).replace("TOOL", "mcpx_call");
    output::line(&format!(
        "written; start {} anew. Its tools are named like {tool}. `mcpx disconnect {}` undoes it",
        host.title, host.name
    ))
}

fn show(desk: &Desk<'_>, host: &Host, change: &Change) -> Outcome {
    let new = if change.new { " (a new file)" } else { "" };
    let mut text = format!("{}: {}{new}", host.title, short(desk, &change.file));
    for line in &change.difference {
        let _ = write!(text, "\n{}", plain(line));
    }
    for note in &change.notes {
        let _ = write!(text, "\nnote: {note}");
    }
    output::line(&text)
}

/// The shim: this program, under the path that will still be there after an upgrade.
fn shim(desk: &Desk<'_>, reach: Reach, profile: Option<&str>, notes: &mut Vec<String>) -> Way {
    let own = std::fs::canonicalize(&desk.setup.program).ok();
    let on_path = desk.found("mcpx").filter(|found| std::fs::canonicalize(found).ok() == own);
    let program = match (reach, &on_path) {
        // A project's file goes to other machines, where other paths are.
        (Reach::Project, Some(_)) => "mcpx".to_owned(),
        (Reach::Project, None) => {
            notes.push(
                "`mcpx` is not on the PATH, so the file names this machine's path to it; others who use the \
                 project have another"
                    .to_owned(),
            );
            desk.setup.program.display().to_string()
        }
        (Reach::User, found) => found.as_ref().unwrap_or(&desk.setup.program).display().to_string(),
    };
    let mut args = Vec::new();
    if let Some(file) = &desk.setup.file {
        args.extend(["--config".to_owned(), file.display().to_string()]);
    }
    args.push("serve".to_owned());
    if let Some(profile) = profile {
        args.extend(["--profile".to_owned(), profile.to_owned()]);
    }
    Way::Shim { program, args }
}

fn over_http(desk: &Desk<'_>, profile: Option<&str>) -> Result<Way, Ended> {
    let http = &desk.settings().http;
    let Some(listen) = http.listen else {
        return Err(Ended::Failed("http.listen is off: mcpx has no address for hosts".to_owned()));
    };
    if listen.port() == 0 {
        return Err(Ended::Failed(
            "http.listen has port 0, which is another one at each start: give it one that stays"
                .to_owned(),
        ));
    }
    let host =
        if listen.ip().is_unspecified() { "127.0.0.1".to_owned() } else { listen.ip().to_string() };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let path = profile.map_or_else(|| "/mcp".to_owned(), |profile| format!("/mcp/{profile}"));
    let url = format!("http://{host}:{}{path}", listen.port());
    Ok(Way::Http { url, token: (!http.open).then(|| token(desk)) })
}

/// Where the token is: in our own file, or where the setting says.
fn token(desk: &Desk<'_>) -> Held {
    let read = |file: &PathBuf| {
        let bytes = statefile::read(file).ok()??;
        Some(String::from_utf8(bytes).ok()?.trim().to_owned())
    };
    let Some(setting) = &desk.settings().http.token else {
        let file = desk.setup.places.state.join("keys/http-token");
        return Held { text: read(&file), file: Some(file) };
    };
    let written = setting.written();
    match references::references(written).as_slice() {
        [] => Held { file: None, text: references::plain(written).ok() },
        [Reference::File(file)] if references::are_all_of(written) => {
            let file = PathBuf::from(file);
            Held { text: read(&file), file: Some(file) }
        }
        _ => Held { file: None, text: None },
    }
}

/// Runs `mcpx disconnect`.
pub(crate) fn undo(desk: &Desk<'_>, matches: &ArgMatches) -> Outcome {
    let Some(name) = matches.get_one::<String>("host") else { return list(desk) };
    let host = crate::hosts::host(name)?;
    let journal = desk.journal();
    let all = desk
        .around(|around| connection::undoings(&journal, host, reach(matches), around, &desk.own()));
    let all = all.map_err(Ended::Failed)?;
    if all.is_empty() {
        return Err(Ended::Failed(format!("mcpx is not in the configuration of {}", host.title)));
    }
    let dry = matches.get_flag("dry-run");
    let mut shown = Vec::new();
    for undoing in all {
        let (file, difference) = (undoing.file.clone(), undoing.difference.clone());
        if !desk.printer.json {
            let lines: Vec<_> = difference.iter().map(|line| plain(line)).collect();
            output::line(&format!("{}: {}\n{}", host.title, short(desk, &file), lines.join("\n")))?;
        }
        let done = if dry { None } else { Some(undoing.undo(&journal).map_err(Ended::Failed)?) };
        let how = match done {
            None => "nothing was written",
            Some(Undone::Restored) => "restored, to the byte",
            Some(Undone::Removed) => "removed: it was made by mcpx",
            Some(Undone::TakenOut) => {
                "the entry was taken out; the rest has changed since and stays"
            }
            Some(Undone::Gone) => "nothing was left to undo",
        };
        if desk.printer.json {
            shown.push(json!({ "file": file, "difference": difference, "result": how }));
        } else {
            output::line(how)?;
        }
    }
    if desk.printer.json { output::as_json(&shown) } else { Ok(()) }
}
