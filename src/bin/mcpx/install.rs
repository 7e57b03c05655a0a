//! `mcpx install` and `mcpx uninstall`: units of systemd, written and enabled, or taken away (D-21).

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use mcpx::settings::units::{HTTP, Owner, SERVICE, SOCKET, Unit, Wanted, folder};
use mcpx::transport::environment;
use mcpx::transport::http::control_call;
use mcpx::transport::socket;
use mcpx::transport::store::statefile;

use crate::commands;
use crate::ended::{Ended, Outcome};
use crate::output;
use crate::setup::Setup;

/// Both commands.
pub(crate) fn tree() -> [Command; 2] {
    let both = |command: Command| {
        let switch = |name: &'static str, help: &'static str| {
            Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
        };
        command
            .arg(switch("user", "In your own service manager"))
            .arg(switch("system", "In the system's service manager; as root"))
            .group(ArgGroup::new("where").args(["user", "system"]).required(true))
            .arg(switch("dry-run", "Show what would be done, and do nothing"))
    };
    let install = both(Command::new("install").about("Let systemd run the daemon")).arg(
        Arg::new("run-as")
            .long("run-as")
            .value_name("USER")
            .requires("system")
            .help("Whose hosts the system's service serves; whoever called sudo, unless said"),
    );
    let uninstall = both(Command::new("uninstall").about("Let systemd no longer run the daemon"));
    [install, uninstall]
}

/// What is done, one after the other: shown, and done unless it is only to be shown.
struct Steps {
    dry: bool,
    user: bool,
}

impl Steps {
    fn of(arguments: &ArgMatches) -> Self {
        Self { dry: arguments.get_flag("dry-run"), user: arguments.get_flag("user") }
    }

    fn say(&self, text: &str) {
        output::remark(&format!("{}{text}", if self.dry { "would " } else { "" }));
    }

    fn write(&self, path: &Path, unit: &Unit) -> Outcome {
        self.say(&format!("write {}", path.display()));
        if self.dry {
            output::remark(&unit.text);
            return Ok(());
        }
        let write = || {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
            statefile::write(path, unit.text.as_bytes())?;
            // No secrets are in it, and systemd complains of less.
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
        };
        write().map_err(|error| Ended::Failed(format!("{}: {error}", path.display())))
    }

    #[expect(clippy::disallowed_methods, reason = "a program of the system, not an upstream")]
    fn systemctl(&self, words: &[&str]) -> Outcome {
        let user = self.user.then_some("--user");
        let words: Vec<&str> = user.into_iter().chain(words.iter().copied()).collect();
        let line = format!("systemctl {}", words.join(" "));
        self.say(&format!("run {line}"));
        if self.dry {
            return Ok(());
        }
        let failed = |why: String| {
            let hint = "is systemd the service manager here, and does it run for this user?";
            Ended::Failed(format!("`{line}` failed: {why}; {hint}"))
        };
        let out = Process::new("systemctl").args(&words).output();
        let out = out.map_err(|error| failed(error.to_string()))?;
        if out.status.success() {
            return Ok(());
        }
        Err(failed(String::from_utf8_lossy(&out.stderr).trim().to_owned()))
    }
}

/// `mcpx install`.
pub(crate) fn install(setup: &Setup, arguments: &ArgMatches) -> Outcome {
    let steps = Steps::of(arguments);
    let loaded = setup.load().map_err(Ended::Refused)?;
    let settings = &loaded.settings;
    let manager = if steps.user {
        Owner::User
    } else {
        Owner::System(run_as(arguments.get_one::<String>("run-as"))?)
    };
    let wanted = Wanted {
        config: setup.file.clone(),
        program: setup.program.clone(),
        path: variable("PATH"),
        http: settings.http.listen.filter(|address| address.port() != 0),
        stop: settings.daemon.stop + settings.daemon.ask,
        manager,
    };
    let folder = units_folder(&wanted.manager)?;
    let units = wanted.units();
    for unit in &units {
        steps.write(&folder.join(unit.name), unit)?;
    }
    if wanted.http.is_none() {
        take_away(&steps, &folder, &[HTTP])?;
    }
    steps.systemctl(&["daemon-reload"])?;
    if steps.user {
        end_running(setup, &steps)?;
    }
    let sockets = [SOCKET, HTTP].into_iter().take(units.len() - 1);
    let names: Vec<&str> = sockets.chain([SERVICE]).collect();
    steps.systemctl(&[&["enable"], &names[..]].concat())?;
    // Anew, where they run already: what they listen on may be another.
    steps.systemctl(&[&["restart"], &names[..]].concat())?;
    match &wanted.manager {
        Owner::User => output::remark(
            "the daemon runs while you are logged in; `loginctl enable-linger` lets it run always",
        ),
        Owner::System(user) => output::remark(&format!(
            "hosts of {user} find it with MCPX_RUNTIME_DIR=/run/mcpx in their environment"
        )),
    }
    Ok(())
}

/// `mcpx uninstall`.
pub(crate) fn uninstall(arguments: &ArgMatches) -> Outcome {
    let steps = Steps::of(arguments);
    let manager = if steps.user { Owner::User } else { Owner::System(String::new()) };
    let folder = units_folder(&manager)?;
    let all = [HTTP, SOCKET, SERVICE];
    let there: Vec<&str> = all.into_iter().filter(|name| folder.join(name).exists()).collect();
    if there.is_empty() {
        output::remark(&format!("there are no units of mcpx in {}", folder.display()));
        return Ok(());
    }
    steps.systemctl(&[&["disable", "--now"], &there[..]].concat())?;
    take_away(&steps, &folder, &there)?;
    steps.systemctl(&["daemon-reload"])
}

fn take_away(steps: &Steps, folder: &Path, names: &[&str]) -> Outcome {
    for path in names.iter().map(|name| folder.join(name)).filter(|path| path.exists()) {
        steps.say(&format!("remove {}", path.display()));
        if !steps.dry {
            let removed = std::fs::remove_file(&path);
            removed.map_err(|error| Ended::Failed(format!("{}: {error}", path.display())))?;
        }
    }
    Ok(())
}

/// A daemon that no service manager runs has the sockets: it makes room.
fn end_running(setup: &Setup, steps: &Steps) -> Outcome {
    let socket = setup.socket();
    let runs = socket::lock(&setup.places.runtime).is_err();
    if !runs {
        return Ok(());
    }
    steps.say("end the daemon that runs");
    if steps.dry {
        return Ok(());
    }
    let asked =
        control_call::send(&socket, http::Method::POST, "/v1/shutdown", "application/json", None);
    // One that is ending already needs no word; what it does not hear, systemd will say.
    let _ = commands::runtime()?.block_on(asked);
    Ok(())
}

fn units_folder(manager: &Owner) -> Result<PathBuf, Ended> {
    let config =
        variable("XDG_CONFIG_HOME").filter(|path| path.starts_with('/')).map(PathBuf::from);
    let config = config.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")));
    match (manager, config) {
        (Owner::User, None) => {
            Err(Ended::Failed("neither XDG_CONFIG_HOME nor HOME is set".to_owned()))
        }
        (_, config) => Ok(folder(manager, &config.unwrap_or_default())),
    }
}

/// A service that runs everybody's servers as root is nothing to get by accident.
fn run_as(said: Option<&String>) -> Result<String, Ended> {
    let user = said.cloned().or_else(|| variable("SUDO_USER")).filter(|user| !user.is_empty());
    let user = user
        .ok_or_else(|| Ended::Usage("say whose hosts it is to serve: --run-as USER".to_owned()))?;
    match nix::unistd::User::from_name(&user) {
        Ok(Some(_)) => Ok(user),
        _ => Err(Ended::Usage(format!("--run-as {user}: there is no such user"))),
    }
}

fn variable(name: &str) -> Option<String> {
    environment::own().get(std::ffi::OsStr::new(name))?.clone().into_string().ok()
}
