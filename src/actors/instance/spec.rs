//! From a server's definition to a running process: references, environment, folder (F34).

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use super::connect::Reached;
use super::{Fault, Shop, client};
use crate::protocol::redact;
use crate::protocol::session::Limit;
use crate::settings::references::{Reference, expand, references};
use crate::settings::{AuthDef, Scope, ServerDef, Settings};
use crate::transport::environment::Environment;
use crate::transport::http::client::{ClientSpec, HttpClient};
use crate::transport::http::mask::Mask;
use crate::transport::link::LinkLimits;
use crate::transport::stdio::child::{SpawnError, SpawnSpec};
use crate::transport::stdio::ring::RingLimits;

/// A future of something looked up.
pub type Looking<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where variables, commands and folders are looked up.
pub trait Surroundings: fmt::Debug + Send + Sync + 'static {
    /// The environment every child starts from: clean, with the PATH of a login shell.
    fn base(&self) -> Looking<'_, Vec<(OsString, OsString)>>;
    /// A variable of the daemon's environment, else of the login environment.
    fn variable<'a>(&'a self, name: &'a str) -> Looking<'a, Option<OsString>>;
    /// What a shell command prints, without the line break at its end.
    fn command<'a>(&'a self, text: &'a str) -> Looking<'a, Result<String, String>>;
    /// The user's home: where servers run that have no other folder.
    fn home(&self) -> &Path;
}

impl Surroundings for Environment {
    fn base(&self) -> Looking<'_, Vec<(OsString, OsString)>> {
        Box::pin(Self::base(self))
    }

    fn variable<'a>(&'a self, name: &'a str) -> Looking<'a, Option<OsString>> {
        Box::pin(Self::variable(self, name))
    }

    fn command<'a>(&'a self, text: &'a str) -> Looking<'a, Result<String, String>> {
        Box::pin(Self::command(self, text))
    }

    fn home(&self) -> &Path {
        Self::home(self)
    }
}

/// Why there is no connection.
#[derive(Debug, Clone)]
pub struct NotStarted {
    /// One sentence without a full stop.
    pub text: String,
    /// What trying again is worth.
    pub fault: Fault,
}

impl NotStarted {
    /// A mistake in the configuration, or something it refers to that is missing.
    pub(super) fn mistake(text: impl Into<String>) -> Self {
        Self { text: text.into(), fault: Fault::Everybodys }
    }
}

/// Starts what `def` says for a caller in `project`, within `process.spawn_timeout`.
pub(super) async fn start(
    shop: &Shop,
    def: &ServerDef,
    project: Option<&Path>,
    settings: &Settings,
) -> Result<Reached, NotStarted> {
    let limit = settings.process.spawn;
    let prepared = tokio::time::timeout(limit, async {
        let around = &*shop.around;
        if def.is_remote() {
            client::prepare(around, &shop.net, def, settings).await.map(Prepared::Client)
        } else {
            let prepared = prepare(around, def, project, settings).await;
            prepared.map(|(spec, secrets)| Prepared::Process(spec, Mask::of(secrets)))
        }
    });
    let prepared = prepared.await.map_err(|_| {
        let limit = Limit::time("process.spawn_timeout", limit);
        NotStarted {
            text: format!(
                "its start was not prepared within {} (setting {}): a `${{cmd:…}}` or the login \
                 shell took too long",
                limit.value, limit.setting,
            ),
            fault: Fault::Passing,
        }
    })??;
    match prepared {
        Prepared::Process(spec, mask) => {
            shop.connect.connect(&spec).map(|connected| Reached::Process(connected, mask)).map_err(
                |error| NotStarted { fault: fault(&error, &spec), text: error.to_string() },
            )
        }
        Prepared::Client(spec) => HttpClient::new(spec)
            .map(Reached::Http)
            .map_err(|error| NotStarted::mistake(error.to_string())),
    }
}

/// What a definition comes to once its references are replaced.
enum Prepared {
    Process(SpawnSpec, Mask),
    Client(ClientSpec),
}

/// The limits of an upstream's link.
pub(super) fn link_limits(settings: &Settings) -> LinkLimits {
    LinkLimits {
        max_frame: settings.link.max_frame,
        // A permit always finds room: a call and its cancellation, and what the session itself has
        // to say.
        write_queue: settings.link.write_queue.max(settings.pool.in_flight.saturating_mul(2)),
        write_queue_bytes: settings.link.write_queue_bytes,
    }
}

/// Whom a failed start concerns: what is looked for in the folder where it runs depends on whose
/// folder that is.
fn fault(error: &SpawnError, spec: &SpawnSpec) -> Fault {
    let relative =
        spec.program.as_encoded_bytes().contains(&b'/') && !Path::new(&spec.program).is_absolute();
    match error {
        _ if !error.is_permanent() => Fault::Passing,
        SpawnError::NoDirectory(_) => Fault::Keys,
        _ if relative => Fault::Keys,
        _ => Fault::Everybodys,
    }
}

/// The process that `def` describes, and what of its values is secret.
async fn prepare(
    around: &dyn Surroundings,
    def: &ServerDef,
    project: Option<&Path>,
    settings: &Settings,
) -> Result<(SpawnSpec, Vec<String>), NotStarted> {
    let mut secrets = Vec::new();
    let mut command = Vec::with_capacity(def.command.len());
    for (index, part) in def.command.iter().enumerate() {
        let what = format!("command[{index}]");
        command.push(noted(around, &what, part, &mut secrets).await?.into());
    }
    if command.is_empty() {
        return Err(NotStarted::mistake("its `command` is empty"));
    }
    let program = command.remove(0);
    let mut env = around.base().await;
    for (name, text) in &def.env {
        let value = noted(around, &format!("env.{name}"), text, &mut secrets).await?;
        if redact::is_secret_name(name) {
            secrets.push(value.clone());
        }
        set(&mut env, name, value);
    }
    if let Some(AuthDef::Env { name, value }) = &def.auth {
        let value = expanded(around, "auth.value", value).await?;
        secrets.push(value.clone());
        set(&mut env, name, value);
    }
    let cwd = match &def.cwd {
        Some(text) => Some(expanded(around, "cwd", text).await?),
        None => None,
    };
    let spec = SpawnSpec {
        label: def.key.clone(),
        program,
        args: command,
        env,
        cwd: folder(def, project, cwd.as_deref(), around.home()),
        link: link_limits(settings),
        stderr: RingLimits {
            lines: settings.process.stderr_lines,
            line_bytes: settings.process.stderr_line_bytes,
            log_rate: settings.process.stderr_log_rate,
            bytes: settings.process.stderr_bytes,
        },
        grace: settings.process.term,
    };
    Ok((spec, secrets))
}

fn set(env: &mut Vec<(OsString, OsString)>, name: &str, value: String) {
    env.retain(|(known, _)| known != name);
    env.push((name.into(), value.into()));
}

/// Where it runs: relative to the project of its caller; what everybody shares, to the folder of the
/// file that defines it; what has neither, at home.
fn folder(def: &ServerDef, project: Option<&Path>, cwd: Option<&str>, home: &Path) -> PathBuf {
    let base = match (def.scope, project) {
        (Scope::Global, _) | (_, None) => None,
        (_, Some(project)) => Some(project),
    };
    let defined =
        Some(def.base.as_path()).filter(|base| !def.builtin && !base.as_os_str().is_empty());
    let base = base.or(defined).unwrap_or(home);
    cwd.map_or_else(|| base.to_owned(), |cwd| base.join(cwd))
}

/// The text with its references replaced, in one pass.
pub(crate) async fn expanded(
    around: &dyn Surroundings,
    what: &str,
    text: &str,
) -> Result<String, NotStarted> {
    noted(around, what, text, &mut Vec::new()).await
}

/// The same, noting the values that are secret: what a file or a command gives, and variables by their
/// names.
async fn noted(
    around: &dyn Surroundings,
    what: &str,
    text: &str,
    secrets: &mut Vec<String>,
) -> Result<String, NotStarted> {
    let mut values = Vec::new();
    for reference in references(text) {
        let plain = matches!(reference, Reference::Env(name) if !redact::is_secret_name(name));
        let value = looked_up(around, reference).await;
        if let (false, Ok(Some(value))) = (plain, &value) {
            secrets.push(value.clone());
        }
        values.push(value);
    }
    let mut values = values.into_iter();
    // Looked up in the order in which they stand.
    expand(text, |_| values.next().unwrap_or(Ok(None)))
        .map_err(|why| NotStarted::mistake(format!("`{what}`: {why}")))
}

async fn looked_up(
    around: &dyn Surroundings,
    reference: Reference<'_>,
) -> Result<Option<String>, String> {
    match reference {
        Reference::Env(name) => match around.variable(name).await {
            Some(value) => value
                .into_string()
                .map(Some)
                .map_err(|_| format!("environment variable {name} is not valid UTF-8")),
            None => Ok(None),
        },
        Reference::File(path) => tokio::fs::read_to_string(path)
            .await
            .map(|text| Some(text.trim_end_matches(['\r', '\n']).to_owned()))
            .map_err(|error| format!("file {path}: {error}")),
        Reference::Command(text) => {
            around.command(text).await.map(Some).map_err(|why| format!("command `{text}`: {why}"))
        }
    }
}
