//! The environment: the daemon's own and the one a login shell would give (F34).
//!
//! The only reader of environment variables. The login environment is captured once, in the
//! background, by running the user's login shell with a limit; a daemon under systemd has a bare
//! PATH, and `npx` lives in `~/.nvm`.
//!
//! A child gets a clean environment: the variables of [`PASSED`] and [`PASSED_PREFIXES`], each from
//! the login environment, else from the daemon's, and what its definition adds. What tells the
//! daemon about its own supervision (`NOTIFY_SOCKET` and the like) never reaches a child.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::{Uid, User};
use tokio::sync::watch;

use super::clock;
use super::link::LinkLimits;
use super::stdio::child::SpawnSpec;
use super::stdio::ring::RingLimits;
use super::stdio::run::{self, RunFailed};

/// Variables by name.
pub type Variables = BTreeMap<OsString, OsString>;

/// What a child gets of our environment, beside [`PASSED_PREFIXES`]: who and where it is, how to
/// talk to the user's desktop, and how to reach the network. Nothing that is a secret as a rule.
pub const PASSED: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
];

/// Beginnings of further names that a child gets.
pub const PASSED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Beginnings of names that speak about this daemon's own supervision, sockets and folders: a shell
/// or a daemon that we start must not take them for its own.
const OURS: &[&str] = &["NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_", "MCPX_"];

/// Set for the login shell, so that a user's start files can tell and be quick.
const HINT: &str = "MCPX_RESOLVING_ENVIRONMENT";

/// Longest environment that is read from the login shell, in bytes: as much as Linux lets a process
/// have with the usual stack limit of 8 MiB.
const LONGEST_ENVIRONMENT: usize = 2 << 20;

/// Longest output of a command in a reference, in bytes: the longest single variable or argument
/// that Linux passes to a program.
const LONGEST_VALUE: usize = 128 << 10;

/// The environment of this process, as it is now.
pub fn own() -> Variables {
    std::env::vars_os().collect()
}

/// Our own environment for a daemon that is started from here: without what is said to us alone.
/// `MCPX_` names are kept but for the marker: they are the user's settings.
pub fn for_daemon(own: &Variables) -> Vec<(OsString, OsString)> {
    let keep = |name: &OsStr| {
        let theirs = OURS.iter().all(|prefix| !name.as_bytes().starts_with(prefix.as_bytes()));
        let settings = name.as_bytes().starts_with(b"MCPX_");
        (theirs || settings) && name != super::stdio::census::MARKER && name != HINT
    };
    own.iter()
        .filter(|(name, _)| keep(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Where references and children's environments come from. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Environment {
    own: Arc<Variables>,
    home: PathBuf,
    login: watch::Receiver<Option<Arc<Variables>>>,
    command_limit: Duration,
}

impl Environment {
    /// An environment whose login part is not known yet, and the future that finds it out within
    /// `login_limit` (`process.login_env_timeout`), to be run in the background. Whoever needs the
    /// login environment waits for that future's end. `command_limit` is for `${cmd:…}`.
    pub fn new(
        own: Variables,
        login_limit: Duration,
        command_limit: Duration,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let user = User::from_uid(Uid::effective()).ok().flatten();
        let home = own.get(OsStr::new("HOME")).map(PathBuf::from);
        let home = home.filter(|home| home.is_absolute());
        let home = home.or_else(|| user.as_ref().map(|user| user.dir.clone()));
        let home = home.unwrap_or_else(|| PathBuf::from("/"));
        let own = Arc::new(own);
        let (found, login) = watch::channel(None);
        let capture = {
            let (own, home) = (Arc::clone(&own), home.clone());
            async move {
                let variables = capture(&own, user.as_ref(), &home, login_limit).await;
                found.send_replace(Some(Arc::new(variables)));
            }
        };
        (Self { own, home, login, command_limit }, capture)
    }

    /// The environment every child starts from, in the order of the names.
    pub async fn base(&self) -> Vec<(OsString, OsString)> {
        let login = self.login().await;
        let mut base: Variables = self.own.iter().chain(login.iter()).map(owned).collect();
        base.retain(|name, _| is_passed(name));
        base.entry("HOME".into()).or_insert_with(|| self.home.clone().into());
        base.into_iter().collect()
    }

    /// A variable of the daemon's environment, else of the login environment.
    pub async fn variable(&self, name: &str) -> Option<OsString> {
        match self.own.get(OsStr::new(name)) {
            Some(value) => Some(value.clone()),
            None => self.login().await.get(OsStr::new(name)).cloned(),
        }
    }

    /// What a shell command prints, without the line break at its end.
    pub async fn command(&self, text: &str) -> Result<String, String> {
        let args = vec!["-c".into(), text.into()];
        let spec = helper("sh".into(), args, self.base().await, &self.home, self.command_limit);
        let finished = run::run(&spec, self.command_limit, LONGEST_VALUE).await;
        let finished = finished.map_err(|error| error.to_string())?;
        if finished.exit.code != Some(0) {
            let said = finished.stderr.join("; ");
            let colon = if said.is_empty() { "" } else { ": " };
            return Err(format!("{}{colon}{said}", finished.exit.text));
        }
        let mut value = String::from_utf8(finished.stdout)
            .map_err(|_| "what it printed is not valid UTF-8".to_owned())?;
        let kept = value
            .strip_suffix('\n')
            .map_or(value.len(), |value| value.strip_suffix('\r').unwrap_or(value).len());
        value.truncate(kept);
        Ok(value)
    }

    /// The user's home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The login environment; empty if the shell did not give one.
    async fn login(&self) -> Arc<Variables> {
        let mut login = self.login.clone();
        let found = login.wait_for(Option::is_some).await;
        // Without its future there is none: better a bare PATH than no start.
        found.ok().and_then(|found| found.clone()).unwrap_or_default()
    }
}

fn owned((name, value): (&OsString, &OsString)) -> (OsString, OsString) {
    (name.clone(), value.clone())
}

fn is_passed(name: &OsStr) -> bool {
    let prefixed = |prefix: &&str| name.as_bytes().starts_with(prefix.as_bytes());
    PASSED.iter().any(|passed| name == *passed) || PASSED_PREFIXES.iter().any(prefixed)
}

/// A process of our own, not an upstream.
fn helper(
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: &Path,
    grace: Duration,
) -> SpawnSpec {
    SpawnSpec {
        label: "mcpx".to_owned(),
        program,
        args,
        env,
        cwd: if cwd.is_dir() { cwd.to_owned() } else { PathBuf::from("/") },
        link: LinkLimits { max_frame: 0, write_queue: 0, write_queue_bytes: 0 },
        // Its last words go into the error, and nowhere else.
        stderr: RingLimits { lines: 8, line_bytes: 512, log_rate: 0, bytes: 1 << 20 },
        grace,
    }
}

/// Asks the login shell. An interactive one reads the files in which most tools put themselves
/// (`.zshrc`, `.bashrc`), but may also start things that hang without a terminal: it gets the first
/// half of the time, a plain login shell the rest.
async fn capture(own: &Variables, user: Option<&User>, home: &Path, limit: Duration) -> Variables {
    let configured = own.get(OsStr::new("SHELL")).filter(|shell| !shell.is_empty()).cloned();
    let shell = configured.or_else(|| user.map(|user| user.shell.clone().into_os_string()));
    let shell = shell.unwrap_or_else(|| "/bin/sh".into());
    let mut env: Variables = own.clone();
    env.retain(|name, _| !OURS.iter().any(|ours| name.as_bytes().starts_with(ours.as_bytes())));
    env.entry("HOME".into()).or_insert_with(|| home.into());
    if let Some(user) = user {
        env.entry("USER".into()).or_insert_with(|| user.name.clone().into());
        env.entry("LOGNAME".into()).or_insert_with(|| user.name.clone().into());
    }
    env.insert("SHELL".into(), shell.clone());
    env.insert(HINT.into(), "1".into());

    for flags in [&["-l", "-i", "-c"][..], &["-l", "-c"]] {
        match ask(&shell, flags, &env, home, limit / 2).await {
            Ok(Some(mut variables)) => {
                // Set by the shell about itself, or by us.
                for name in ["_", "PWD", "OLDPWD", "SHLVL", HINT, super::stdio::census::MARKER] {
                    variables.remove(OsStr::new(name));
                }
                return variables;
            }
            Ok(None) => tracing::debug!(?shell, ?flags, "the login shell gave no environment"),
            Err(error) => tracing::debug!(?shell, ?flags, %error, "the login shell failed"),
        }
    }
    tracing::warn!(
        ?shell,
        "the login shell gave no environment within process.login_env_timeout: servers get the \
         daemon's own PATH"
    );
    Variables::new()
}

/// One attempt. Start files may print whatever they like before and after the markers.
async fn ask(
    shell: &OsStr,
    flags: &[&str],
    env: &Variables,
    home: &Path,
    limit: Duration,
) -> Result<Option<Variables>, RunFailed> {
    let marker = format!("mcpx-{:032x}", u128::from_ne_bytes(clock::random()));
    // Understood by sh, bash, zsh and fish alike.
    let script = format!("printf '%s' {marker}; env -0; printf '%s' {marker}");
    let args = flags.iter().map(OsString::from).chain([script.into()]).collect();
    let spec = helper(shell.to_owned(), args, env.iter().map(owned).collect(), home, limit);
    let finished = run::run(&spec, limit, LONGEST_ENVIRONMENT).await?;
    Ok(parse(&finished.stdout, marker.as_bytes()))
}

/// The variables between the two markers.
fn parse(output: &[u8], marker: &[u8]) -> Option<Variables> {
    let begin = memchr::memmem::find(output, marker)? + marker.len();
    let rest = output.get(begin..)?;
    let text = rest.get(..memchr::memmem::rfind(rest, marker)?)?;
    let variable = |text: &[u8]| {
        let at = memchr::memchr(b'=', text).filter(|&at| at > 0)?;
        let (name, value) = (text.get(..at)?, text.get(at + 1..)?);
        Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
    };
    let variables: Variables = text.split(|&byte| byte == 0).filter_map(variable).collect();
    (!variables.is_empty()).then_some(variables)
}

#[cfg(test)]
mod tests;
