//! `mcpx daemon`: reads the configuration, takes the lock, runs the daemon to its end.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::ArgMatches;
use mcpx::actors::daemon::{self, DaemonArgs, DaemonFailed};
use mcpx::settings::Settings;
use mcpx::settings::layers::FlagValue;
use mcpx::transport::autostart::{self, StartLock};
use mcpx::transport::clock;
use mcpx::transport::environment;
use mcpx::transport::http::control_call::{self, CallFailed};
use mcpx::transport::process;
use mcpx::transport::socket::{self, RuntimeLock, SocketError};
use mcpx::transport::systemd::Activation;

use crate::commands;
use crate::ended::{Ended, Outcome};
use crate::log;
use crate::output;
use crate::setup::{Setup, config_flag};

/// See the module.
pub(crate) fn run(mut setup: Setup, arguments: &ArgMatches) -> Outcome {
    if !process::gives_memory_back() {
        let args: Vec<_> = std::env::args_os().skip(1).collect();
        let error = process::become_again(&setup.program, &args);
        output::remark(&format!("mcpx: large blocks of memory will not be given back: {error}"));
    }
    setup.sources.flags = flags(arguments)?;
    let loaded = setup.load().map_err(Ended::Refused)?;
    if arguments.get_flag("detached") {
        // Fails where we lead a session already, which is as good.
        let _ = process::own_session();
    }
    // Before a second thread begins.
    let taken = Activation::take(&environment::own());
    let activation = taken.map_err(|error| Ended::Failed(error.to_string()))?;
    log::init();
    let settings = std::sync::Arc::clone(&loaded.settings);
    let runtime = runtime(settings.daemon.workers)?;
    let mut held = None;
    let ended = runtime.block_on(async {
        let (lock, turn) = lock(&setup, &settings, arguments).await?;
        held = Some(lock.hold().map_err(|error| Ended::Failed(error.to_string()))?);
        let (sources, program) = (setup.sources, setup.program);
        let args =
            DaemonArgs { places: setup.places, lock, turn, sources, program, loaded, activation };
        daemon::run(args).await.map_err(|failed: DaemonFailed| Ended::Failed(failed.to_string()))
    });
    // The last tasks, and with them the store, end here; only then may the next daemon begin.
    drop(runtime);
    drop(held);
    ended
}

/// Starts a daemon and ends once it listens, or as it has ended. So it is no child of the shim or command
/// that asked for it, and no descendant of that one's host: a host may end whatever descends from it, as
/// opencode does, and the daemon is there for others too.
pub(crate) fn launch(setup: &Setup) -> Outcome {
    let settings = setup.load_leniently()?;
    let (limit, step) = (settings.shim.start, settings.shim.redial_step);
    let args = ["daemon".into(), "--detached".into()].into_iter();
    let args: Vec<OsString> = args.chain(config_flag(setup.file.as_deref())).collect();
    commands::runtime()?.block_on(async {
        let mut daemon = process::start_again(&setup.program, &args)
            .map_err(|error| Ended::Failed(format!("the daemon cannot be started: {error}")))?;
        let deadline = clock::now() + limit;
        // One that is late is nobody's fault here: its starter says so, and it may listen yet.
        while clock::now() < deadline && !socket::answers(&setup.socket()).await {
            match tokio::time::timeout(step, daemon.wait()).await {
                Ok(Ok(status)) if status.success() => return Ok(()),
                Ok(Ok(status)) => {
                    let code = status.code().and_then(|code| u8::try_from(code).ok());
                    return Err(Ended::As(code.unwrap_or(1)));
                }
                Ok(Err(error)) => return Err(Ended::Failed(error.to_string())),
                Err(_) => {}
            }
        }
        Ok(())
    })
}

/// `--set KEY=VALUE` and the flags that stand for one setting.
fn flags(arguments: &ArgMatches) -> Result<Vec<FlagValue>, Ended> {
    let mut flags = Vec::new();
    for given in arguments.get_many::<String>("set").unwrap_or_default() {
        let (key, text) = given
            .split_once('=')
            .ok_or_else(|| Ended::Usage(format!("--set takes KEY=VALUE, not `{given}`")))?;
        let (key, text) = (key.to_owned(), text.to_owned());
        flags.push(FlagValue { flag: format!("--set {key}"), key, text });
    }
    if let Some(text) = arguments.get_one::<String>("upstream-protocol") {
        flags.push(FlagValue {
            flag: "--upstream-protocol".to_owned(),
            key: "upstream.protocol".to_owned(),
            text: text.clone(),
        });
    }
    Ok(flags)
}

/// With one worker there is no other to be woken and nothing is shared between threads, so the tasks
/// of a call run one behind the other on the first thread.
fn runtime(workers: usize) -> Result<tokio::runtime::Runtime, Ended> {
    let mut builder = match workers {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if workers > 1 {
        builder.worker_threads(workers);
    }
    builder
        .enable_all()
        .build()
        .map_err(|error| Ended::Failed(format!("the runtime cannot be started: {error}")))
}

/// The lock on the runtime folder; with `--replace` the running daemon is asked to end first. One
/// that was started because nobody listened waits for the end of a daemon that is on its way out
/// (F47): its starter waits as well, and would take a refusal for a fault.
async fn lock(
    setup: &Setup,
    settings: &Settings,
    arguments: &ArgMatches,
) -> Result<(RuntimeLock, Option<StartLock>), Ended> {
    let folder = &setup.places.runtime;
    match socket::lock(folder) {
        Ok(lock) => Ok((lock, None)),
        Err(SocketError::Taken { pid, .. }) if arguments.get_flag("replace") => {
            if let Some(service) = pid.and_then(socket::service_of) {
                return Err(Ended::Failed(service.to_string()));
            }
            take_over(setup, settings).await
        }
        Err(SocketError::Taken { .. }) if arguments.get_flag("detached") => {
            wait_for_its_end(setup, settings).await.map(|lock| (lock, None))
        }
        Err(error) => Err(Ended::Failed(error.to_string())),
    }
}

/// Asks the running daemon to end and takes its place when it has: its lock falls with it. Nobody
/// else starts one in between, a shim with a call that waits, say.
async fn take_over(
    setup: &Setup,
    settings: &Settings,
) -> Result<(RuntimeLock, Option<StartLock>), Ended> {
    let limit = settings.daemon.stop + settings.shim.start;
    let deadline = clock::now() + limit;
    let turn = loop {
        let turn = autostart::start_lock(&setup.places.runtime);
        match turn.map_err(|error| Ended::Failed(error.to_string()))? {
            None if clock::now() < deadline => pause(settings.shim.redial_step).await,
            None => {
                return Err(Ended::Failed(format!(
                    "another command has been starting or replacing the daemon for {limit:?}; \
                     `mcpx ps` shows which daemon runs"
                )));
            }
            turn => break turn,
        }
    };
    // Anew: the wait for our turn may have been long.
    let deadline = clock::now() + limit;
    let socket = setup.socket();
    loop {
        // Asked again where one listens still: another that was started in the moment between two
        // daemons has taken the lock before us, and nobody has told it yet.
        if socket::answers(&socket).await {
            ask_to_end(&socket, settings).await?;
        }
        match socket::lock(&setup.places.runtime) {
            Ok(lock) => return Ok((lock, turn)),
            Err(error @ SocketError::Taken { .. }) if clock::now() >= deadline => {
                return Err(Ended::Failed(format!("{error}; it was asked to end and did not")));
            }
            Err(SocketError::Taken { .. }) => pause(settings.shim.redial_step).await,
            Err(error) => return Err(Ended::Failed(error.to_string())),
        }
    }
}

/// Asks the daemon that listens to end.
async fn ask_to_end(socket: &Path, settings: &Settings) -> Result<(), Ended> {
    let asked =
        control_call::send(socket, http::Method::POST, "/v1/shutdown", "application/json", None);
    match tokio::time::timeout(settings.shim.start, asked).await {
        // One that is ending already needs no word, and may break off.
        Ok(Ok(_) | Err(CallFailed::NoDaemon(_) | CallFailed::Broken(_))) => Ok(()),
        Ok(Err(error)) => Err(Ended::Failed(error.to_string())),
        Err(_) => {
            let limit = settings.shim.start;
            Err(Ended::Failed(format!(
                "the running daemon was asked to end and did not answer within {limit:?} (setting \
                 shim.start_timeout); `mcpx ps` shows its pid, `kill` ends it"
            )))
        }
    }
}

/// Waits until the lock is free, or another daemon listens, or the starter has given up.
async fn wait_for_its_end(setup: &Setup, settings: &Settings) -> Result<RuntimeLock, Ended> {
    let deadline = clock::now() + settings.shim.start;
    loop {
        pause(settings.shim.redial_step).await;
        match socket::lock(&setup.places.runtime) {
            Ok(lock) => return Ok(lock),
            Err(SocketError::Taken { .. })
                if clock::now() < deadline && !socket::answers(&setup.socket()).await => {}
            Err(error) => return Err(Ended::Failed(error.to_string())),
        }
    }
}

async fn pause(step: Duration) {
    tokio::time::sleep(step).await;
}
