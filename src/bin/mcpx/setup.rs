//! What every command begins with: the environment, the folders, the configuration.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcpx::settings::places::Places;
use mcpx::settings::typed::ShimSettings;
use mcpx::settings::{Loaded, Mistake, Settings, Sources, runtime, units};
use mcpx::transport::autostart::Autostart;
use mcpx::transport::store::statefile;
use mcpx::transport::{environment, socket};

use crate::ended::Ended;

/// See the module.
#[derive(Debug)]
pub(crate) struct Setup {
    /// This program's own file.
    pub(crate) program: PathBuf,
    /// State and runtime folder.
    pub(crate) places: Places,
    /// Where the configuration is read from.
    pub(crate) sources: Sources,
    /// `NO_COLOR` is set.
    pub(crate) plain: bool,
    /// `--config` or `MCPX_CONFIG`, absolute.
    pub(crate) file: Option<PathBuf>,
}

impl Setup {
    /// Finds everything and reads nothing but what was set at run time.
    pub(crate) fn find(file: Option<PathBuf>) -> Result<Self, Ended> {
        let program = std::env::current_exe()
            .map_err(|error| Ended::Failed(format!("mcpx does not find itself: {error}")))?;
        let own = environment::own();
        let lookup = |name: &str| own.get(OsStr::new(name))?.clone().into_string().ok();
        // A daemon that we start works in another folder: what is relative here is made absolute.
        let file =
            file.or_else(|| lookup("MCPX_CONFIG").filter(|text| !text.is_empty()).map(Into::into));
        let file = file.map(|file: PathBuf| absolute(&file));
        let places = Places::usual(&lookup).map_err(|error| Ended::Failed(error.to_string()))?;
        let places = Places { state: absolute(&places.state), runtime: absolute(&places.runtime) };
        let mut sources = Sources::usual(&lookup, file.clone());
        let kept = statefile::read(&places.runtime_settings()).ok().flatten().unwrap_or_default();
        sources.runtime = runtime::read(&kept).into_iter().collect();
        sources.trusted = Some(places.trust());
        let plain = lookup("NO_COLOR").is_some_and(|text| !text.is_empty());
        Ok(Self { program, places, sources, plain, file })
    }

    /// The configuration, or every mistake in it.
    pub(crate) fn load(&self) -> Result<Loaded, Vec<Mistake>> {
        Settings::load(&self.sources, &self.program)
    }

    /// The configuration, or the built-in values where it has mistakes: commands that only ask a
    /// running daemon must work beside a broken file.
    pub(crate) fn load_leniently(&self) -> Result<Arc<Settings>, Ended> {
        let loaded = self.load().or_else(|_| Settings::defaults(&self.program));
        loaded.map(|loaded| loaded.settings).map_err(Ended::Refused)
    }

    /// The control socket.
    pub(crate) fn socket(&self) -> PathBuf {
        socket::path(&self.places.runtime)
    }

    /// How a daemon is started from here.
    pub(crate) fn autostart(&self, settings: &Settings) -> Autostart {
        autostart(&self.program, &self.places, self.file.as_deref(), &settings.shim)
    }
}

/// The command that starts a daemon and leaves it; see [`crate::daemon::launch`].
pub(crate) const LAUNCH: &str = "__launch";

/// `--config FILE`, where there is one.
pub(crate) fn config_flag(file: Option<&Path>) -> impl Iterator<Item = OsString> {
    file.into_iter().flat_map(|file| ["--config".into(), file.into()])
}

/// How this program is started as a daemon; `file` is `--config`.
pub(crate) fn autostart(
    program: &Path,
    places: &Places,
    file: Option<&Path>,
    settings: &ShimSettings,
) -> Autostart {
    let mut args: Vec<OsString> = vec![LAUNCH.into()];
    args.extend(config_flag(file));
    Autostart {
        program: program.to_owned(),
        args,
        variables: vec![
            ("MCPX_STATE_DIR", places.state.clone()),
            ("MCPX_RUNTIME_DIR", places.runtime.clone()),
        ],
        socket: socket::path(&places.runtime),
        runtime: places.runtime.clone(),
        log: places.daemon_log(),
        timeout: settings.start,
        step: settings.redial_step,
        service: service(places),
    }
}

/// The command that starts the user's service, where `mcpx install --user` was used and it is the
/// daemon of this runtime folder.
fn service(places: &Places) -> Option<Vec<&'static str>> {
    let own = environment::own();
    let folder = |name: &str| own.get(OsStr::new(name)).map(PathBuf::from);
    let ours = folder("XDG_RUNTIME_DIR").is_some_and(|run| run.join("mcpx") == places.runtime);
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    let unit = units::folder(&units::Owner::User, &config).join(units::SERVICE);
    let command = vec!["systemctl", "--user", "start", units::SOCKET, units::SERVICE];
    (ours && unit.exists()).then_some(command)
}

/// Relative to our working directory; unchanged where there is none.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The project: as given, else the one around the working directory (product.md 3).
pub(crate) fn project(given: Option<&PathBuf>) -> Option<String> {
    let folder = match given {
        // By the name that it has for those who work in it.
        Some(folder) => folder.canonicalize().unwrap_or_else(|_| absolute(folder)),
        None => mcpx::settings::places::project_of(&std::env::current_dir().ok()?),
    };
    Some(folder.to_string_lossy().into_owned())
}
