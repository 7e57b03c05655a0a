//! Asking the daemon: find it, start it where that is allowed, understand its failures.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use mcpx::control::ops::{Needs, Verb};
use mcpx::control::types::{ApiError, FailureCode};
use mcpx::control::{Op, OpCall};
use mcpx::settings::Settings;
use mcpx::transport::http::control_call::{CallFailed, Stream, send};

use crate::ended::Ended;
use crate::output::Printer;
use crate::setup::Setup;
use crate::waiting::Waiting;

/// A way to the daemon.
#[derive(Debug)]
pub(crate) struct Reach<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) settings: Arc<Settings>,
    pub(crate) printer: Printer,
}

impl<'a> Reach<'a> {
    /// With the settings as far as they can be read.
    pub(crate) fn new(setup: &'a Setup, printer: Printer) -> Result<Self, Ended> {
        Ok(Self { setup, settings: setup.load_leniently()?, printer })
    }

    /// Sends an op; its answer is still to be read. Starts a daemon where the op may.
    pub(crate) async fn open(&self, call: &OpCall) -> Result<Stream, Ended> {
        match self.dial(call).await {
            Err(CallFailed::NoDaemon(_)) if call.name().row().needs == Needs::Start => {
                self.start().await?;
                self.dial(call).await.map_err(|failed| Self::unreached(&failed))
            }
            other => other.map_err(|failed| Self::unreached(&failed)),
        }
    }

    async fn dial(&self, call: &OpCall) -> Result<Stream, CallFailed> {
        let parts = call.to_http();
        let method = match parts.verb {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
            Verb::Put => Method::PUT,
        };
        let accept = if call.streams() { "text/event-stream" } else { "application/json" };
        let body = (parts.verb != Verb::Get).then(|| Bytes::from(parts.body.clone()));
        send(&self.setup.socket(), method, &parts.target(), accept, body).await
    }

    /// Starts a daemon and waits for it.
    async fn start(&self) -> Result<(), Ended> {
        if !self.settings.shim.autostart {
            return Err(Ended::NoDaemon(
                "no daemon runs, and shim.autostart is off; start one with `mcpx daemon`"
                    .to_owned(),
            ));
        }
        // Better said here, in full, than quoted from the log of a daemon that did not start.
        self.setup.load().map_err(Ended::Refused)?;
        self.setup.autostart(&self.settings).ensure().await.map_err(|failed| {
            let refused = Ended::RefusedText(String::new()).code();
            match failed.exit_code() {
                Some(code) if std::process::ExitCode::from(code.to_le_bytes()[0]) == refused => {
                    Ended::RefusedText(failed.to_string())
                }
                _ => Ended::NoDaemon(failed.to_string()),
            }
        })
    }

    fn unreached(failed: &CallFailed) -> Ended {
        match failed {
            CallFailed::NoDaemon(socket) => Ended::NoDaemon(format!(
                "no daemon runs (nobody listens on {}); start one with `mcpx daemon`",
                socket.display()
            )),
            other => Ended::Failed(format!("{other}; `mcpx doctor` looks at the socket")),
        }
    }

    /// The whole answer of an op that does not stream.
    pub(crate) async fn ask(&self, call: &OpCall) -> Result<Bytes, Ended> {
        let op = call.name().row();
        let waiting = Waiting::new(self.printer, &self.settings.cli, op.title.to_owned());
        waiting.during(self.ask_quietly(call, op)).await
    }

    async fn ask_quietly(&self, call: &OpCall, op: &'static Op) -> Result<Bytes, Ended> {
        let limit = self.settings.cli.answer;
        let whole = async {
            let stream = self.open(call).await?;
            self.read(stream).await
        };
        // Calls and what starts servers end by the daemon's own limits, which say more.
        if op.effect.open_world {
            return whole.await;
        }
        tokio::time::timeout(limit, whole).await.map_err(|_| {
            Ended::Failed(format!(
                "the daemon did not answer `{}` within {limit:?} (setting cli.answer_timeout); \
                 look at {}",
                op.id,
                self.setup.places.daemon_log().display()
            ))
        })?
    }

    /// The same without a sign of life, and with a typed failure for those who go on from it.
    pub(crate) async fn try_ask(&self, call: &OpCall) -> Result<Result<Bytes, ApiError>, Ended> {
        let stream = self.open(call).await?;
        self.try_read(stream).await
    }

    /// Reads an answer whole; a failure becomes what it means.
    pub(crate) async fn read(&self, stream: Stream) -> Result<Bytes, Ended> {
        self.try_read(stream).await?.map_err(|error| failed(&error))
    }

    async fn try_read(&self, stream: Stream) -> Result<Result<Bytes, ApiError>, Ended> {
        let answer = stream
            .read(self.settings.link.max_frame)
            .await
            .map_err(|failed| Ended::Failed(failed.to_string()))?;
        if answer.status == StatusCode::OK {
            return Ok(Ok(answer.body));
        }
        serde_json::from_slice::<ApiError>(&answer.body)
            .map(Err)
            .map_err(|_| Ended::Failed(format!("the daemon answered {}", answer.status)))
    }
}

/// What a typed failure of the daemon means for a command (D-20).
pub(crate) fn failed(error: &ApiError) -> Ended {
    let text = match &error.error.hint {
        Some(hint) => format!("{}\n{hint}", error.error.message),
        None => error.error.message.clone(),
    };
    let text = match &error.error.audit {
        Some(id) => format!("{text}\n`mcpx audit --id {id}` shows the call"),
        None => text,
    };
    match error.error.code {
        FailureCode::Refused => Ended::RefusedText(text),
        FailureCode::BadRequest => Ended::Usage(text),
        _ => Ended::Failed(text),
    }
}

/// An answer as its type; a daemon of another version may have changed it.
pub(crate) fn understood<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Ended> {
    serde_json::from_slice(body).map_err(|error| {
        Ended::Failed(format!(
            "the daemon's answer is not understood ({error}); is it of another version? \
             `mcpx version` shows both, `--json` shows the answer as it is"
        ))
    })
}
