//! What `import`, `connect` and `disconnect` share: where we are, which hosts there are, and asking.

use std::ffi::OsStr;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command};
use mcpx::settings::hosts::{Around, HOSTS, Host, Own, Reach, Surveyed, find, survey};
use mcpx::settings::mistake::hint;
use mcpx::settings::{Loaded, Settings};
use mcpx::transport::environment;
use mcpx::transport::stdio::locate::locate;
use mcpx::transport::store::hostfile::Journal;
use serde_json::json;

use crate::ended::{Ended, Outcome};
use crate::output::{self, Printer};
use crate::setup::{self, Setup};
use crate::tables;

/// Where a command of this kind stands.
pub(crate) struct Desk<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) printer: Printer,
    pub(crate) loaded: Loaded,
    pub(crate) project: PathBuf,
    environment: environment::Variables,
}

impl<'a> Desk<'a> {
    /// With the configuration, which must be in order: what is there decides what may be added.
    pub(crate) fn new(setup: &'a Setup, printer: Printer) -> Result<Self, Ended> {
        let loaded = setup.load().map_err(Ended::Refused)?;
        Ok(Self::with(setup, printer, loaded))
    }

    /// With the configuration as far as it can be read.
    pub(crate) fn lenient(setup: &'a Setup, printer: Printer) -> Result<Self, Ended> {
        let loaded = setup.load().or_else(|_| Settings::defaults(&setup.program));
        Ok(Self::with(setup, printer, loaded.map_err(Ended::Refused)?))
    }

    fn with(setup: &'a Setup, printer: Printer, loaded: Loaded) -> Self {
        let project = setup::project(None).map_or_else(|| PathBuf::from("."), PathBuf::from);
        Self { setup, printer, loaded, project, environment: environment::own() }
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.loaded.settings
    }

    /// A variable of our environment.
    pub(crate) fn lookup(&self, name: &str) -> Option<String> {
        self.environment.get(OsStr::new(name))?.clone().into_string().ok()
    }

    /// Calls with where we are.
    pub(crate) fn around<T>(&self, body: impl FnOnce(&Around<'_>) -> T) -> T {
        let lookup = |name: &str| self.lookup(name);
        body(&Around { lookup: &lookup, project: &self.project })
    }

    pub(crate) fn own(&self) -> Own<'_> {
        Own { program: &self.setup.program, listen: self.settings().http.listen }
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::new(&self.setup.places.state)
    }

    /// The file that a program's name means here.
    pub(crate) fn found(&self, program: &str) -> Option<PathBuf> {
        let env: Vec<_> = self.environment.iter().map(|(n, v)| (n.clone(), v.clone())).collect();
        locate(OsStr::new(program), &env, &self.project).ok()
    }
}

/// The host of this name.
pub(crate) fn host(name: &str) -> Result<&'static Host, Ended> {
    find(name).ok_or_else(|| {
        let names = HOSTS.iter().map(|host| host.name);
        Ended::Usage(format!("{name:?} is no host that mcpx knows; {}", hint(name, names)))
    })
}

/// `--user` and `--project`.
pub(crate) fn reach_arguments(command: Command) -> Command {
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    command
        .arg(flag("user").conflicts_with("project").help("The person's own file, for all projects"))
        .arg(flag("project").help("The file of the project around the working directory"))
}

/// Which of them was given.
pub(crate) fn reach(matches: &ArgMatches) -> Option<Reach> {
    if matches.get_flag("project") {
        Some(Reach::Project)
    } else {
        matches.get_flag("user").then_some(Reach::User)
    }
}

/// Every known host with its files.
pub(crate) fn list(desk: &Desk<'_>) -> Outcome {
    let all: Vec<(&Host, Vec<Surveyed>)> = desk.around(|around| {
        HOSTS.iter().map(|host| (host, survey(host, around, &desk.own()))).collect()
    });
    if desk.printer.json {
        let shown = |(host, files): &(&Host, Vec<Surveyed>)| json!({ "host": host.name, "title": host.title, "files": files });
        return output::as_json(&all.iter().map(shown).collect::<Vec<_>>());
    }
    let mut table = tables::table(desk.printer, &["HOST", "SERVERS", "MCPX", "FILE"]);
    for (host, files) in &all {
        if files.is_empty() {
            table.add_row([host.name, "", "", "(no file found)"]);
        }
        for file in files {
            let servers = match &file.broken {
                Some(_) => "?".to_owned(),
                None => file.servers.to_string(),
            };
            let mcpx = plain(&file.mcpx.join(", "));
            let path = file.broken.clone().unwrap_or_else(|| file.file.display().to_string());
            table.add_row([host.name.to_owned(), servers, mcpx, path]);
        }
    }
    output::line(&tables::finish(&table))
}

/// Whether a person says yes; `None` where nobody can be asked.
pub(crate) fn agreed(question: &str) -> Option<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    output::prompt(&format!("{question} [y/N]"));
    let mut line = String::new();
    stdin.lock().read_line(&mut line).ok()?;
    Some(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Text of another program's file for a terminal: what would steer it is shown as a mark.
pub(crate) fn plain(text: &str) -> String {
    // Marks of direction and characters without width make text look like another.
    let hides = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    text.chars().map(|c| if c.is_control() || hides(c) { '\u{fffd}' } else { c }).collect()
}

/// A path under the home folder, shortened.
pub(crate) fn short(desk: &Desk<'_>, path: &Path) -> String {
    let home = desk.lookup("HOME").filter(|home| !home.is_empty());
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}
