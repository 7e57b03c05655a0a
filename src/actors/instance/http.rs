//! An instance that is reached over HTTP: no process, no link, but exchanges; and the way from there
//! to a server of 2024-11-05's HTTP+SSE, which has a link again.

use std::sync::Arc;
use std::time::Instant;

use super::noise::NoiseGate;
use super::remote::{Remote, take_leave};
use super::state::InstanceState;
use super::{EndKind, Fault, InstanceArgs, InstanceMsg, Reach, spec};
use crate::actors::pool::PoolMsg;
use crate::actors::support::task::{self, TaskGuard};
use crate::protocol::era_record::EraRecord;
use crate::protocol::session::Limit;
use crate::protocol::session::upstream::{
    Exchange, ExchangeNews, HttpConfig, Settled, UpstreamSession,
};
use crate::settings::RemoteTransport;
use crate::transport::http::address::shown;
use crate::transport::http::client::HttpClient;
use crate::transport::http::legacy_sse::{self, LegacySse};
use crate::transport::link::Link;
use crate::transport::stdio::ring::{RingLimits, StderrRing};

/// What the era cache calls the older transport, and what status pages do.
pub(super) const HTTP_SSE: &str = "http+sse";
const HTTP: &str = "http";

/// A connection over HTTP+SSE. Its link and its stream end one after the other, and only the stream
/// knows why.
#[derive(Debug, Default)]
pub(super) struct Sse {
    /// Waits for the end of the stream, and ends it when it falls.
    _waiting: Option<TaskGuard>,
    why: Option<String>,
    read: bool,
}

impl InstanceState {
    /// The client is made; nothing has been sent yet.
    pub(super) fn reached(&mut self, now: Instant, client: HttpClient) {
        self.mask = client.spec().mask.clone();
        let sse = match self.args.def.transport {
            Some(transport) => transport == RemoteTransport::Sse,
            None => self.remembers_sse(),
        };
        if sse {
            self.open_sse(client);
        } else {
            self.open_http(now, client, self.args.def.transport.is_none());
        }
    }

    fn remembers_sse(&self) -> bool {
        let remembered = self.remembered();
        remembered.is_some_and(|record| record.transport.as_deref() == Some(HTTP_SSE))
    }

    fn tell_reach(&self, client: &HttpClient, transport: &'static str) -> StderrRing {
        let process = &self.args.settings.process;
        // It prints nothing; readers of its log find it empty.
        let stderr = StderrRing::new(RingLimits {
            lines: process.stderr_lines,
            line_bytes: process.stderr_line_bytes,
            log_rate: process.stderr_log_rate,
            bytes: process.stderr_bytes,
        });
        let reach = Reach { transport, url: Some(shown(&client.spec().url)) };
        let ring = stderr.clone();
        self.tell_pool(PoolMsg::Spawned { id: self.args.id, pid: None, stderr, reach });
        ring
    }

    fn open_http(&mut self, now: Instant, client: HttpClient, may_be_sse: bool) {
        self.tell_reach(&client, HTTP);
        let InstanceArgs { settings, .. } = &self.args;
        let (credits, max_frame) = (settings.link.read_credits, settings.link.max_frame);
        let pending = Arc::clone(&self.pending);
        self.tap.mask = self.mask.clone();
        let tap = self.tap.clone();
        self.remote =
            Some(Remote::new(client, pending, self.me.clone(), tap, (credits, max_frame)));
        let upstream = &self.args.settings.upstream;
        let mut config = self.config();
        config.http = Some(HttpConfig {
            may_be_sse,
            reconnect_delay: upstream.sse_reconnect_delay,
            reconnect_attempts: upstream.sse_reconnect_attempts,
            poll_interval: upstream.sse_poll_interval,
            linger: upstream.sse_linger,
        });
        let mut session = UpstreamSession::new(config, Arc::clone(&self.pending));
        session.open(now);
        self.session = Some(session);
        self.run_outputs(now);
    }

    pub(super) fn exchange(&mut self, exchange: Exchange) {
        if let Some(remote) = &mut self.remote {
            remote.start(exchange);
        }
    }

    pub(super) fn drop_exchange(&mut self, tag: u64) {
        if let Some(remote) = &mut self.remote {
            remote.end(tag);
        }
    }

    pub(super) fn exchange_news(&mut self, now: Instant, tag: u64, news: ExchangeNews) {
        if let (ExchangeNews::Ended(_), Some(remote)) = (&news, &mut self.remote) {
            remote.end(tag);
        }
        self.with_session(|session| session.handle_exchange(now, tag, news));
    }

    /// The server had given its session up, and has another (U-40). What it offers may have changed.
    pub(super) fn renewed(&mut self, now: Instant, settled: Settled) {
        let id = self.args.id;
        self.tell_pool(PoolMsg::Renewed { id, settled: Arc::new(settled) });
        for kind in self.args.read_lists.clone() {
            self.read_list(now, kind);
        }
    }

    /// Neither opening is known at the address.
    pub(super) fn try_sse(&mut self) {
        // With it falls what it had still to say.
        self.session = None;
        if let Some(remote) = self.remote.take() {
            self.open_sse(remote.client);
        }
    }

    /// Opens the event stream of 2024-11-05 within `upstream.handshake_timeout`.
    fn open_sse(&mut self, client: HttpClient) {
        let settings = &self.args.settings;
        let (limit, limits) = (settings.upstream.handshake, spec::link_limits(settings));
        let me = self.me.clone();
        let opening = task::spawn_guarded(async move {
            let opened = tokio::time::timeout(limit, legacy_sse::connect(&client, limits)).await;
            let outcome = match opened {
                Ok(Ok((link, stream))) => Ok(Box::new((link, stream))),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => {
                    let limit = Limit::time("upstream.handshake_timeout", limit);
                    let (value, setting) = (limit.value, limit.setting);
                    Err(format!("no event stream within {value} (setting {setting})"))
                }
            };
            // With a dead instance the connection falls.
            let _ = me.cast(InstanceMsg::SseOpened { client, outcome });
        });
        self.tasks = vec![opening];
    }

    pub(super) fn sse_opened(
        &mut self,
        now: Instant,
        client: HttpClient,
        outcome: Result<Box<(Link, LegacySse)>, String>,
    ) {
        if self.end.is_some() {
            return;
        }
        let (link, mut stream) = match outcome {
            Ok(opened) => *opened,
            // It was one once: a server that has moved on is asked like any other (U-17).
            Err(_) if self.args.def.transport.is_none() && self.remembers_sse() => {
                return self.open_http(now, client, false);
            }
            Err(why) => {
                let fault = Fault::Passing;
                return self.finish(EndKind::StartFailed { fault }, why);
            }
        };
        let ring = self.tell_reach(&client, HTTP_SSE);
        let me = self.me.clone();
        let waiting = task::spawn_guarded(async move {
            let why = stream.ended().await;
            let _ = me.cast(InstanceMsg::SseEnded { why });
        });
        self.sse = Some(Sse { _waiting: Some(waiting), ..Sse::default() });
        let mut config = self.config();
        // Only a server of the handshake speaks like this.
        let known = config.remembered.take().filter(|record| record.transport.is_some());
        config.remembered = Some(known.unwrap_or_else(EraRecord::ended_on_probe));
        let gate = NoiseGate::new(&self.args.settings.process, ring);
        self.attach(now, link, gate, config);
    }

    pub(super) fn sse_ended(&mut self, why: String) {
        if let Some(sse) = &mut self.sse {
            sse.why = Some(why);
        }
        self.sse_over();
    }

    /// The link was read to its end; whether it was one over HTTP+SSE.
    pub(super) fn sse_read(&mut self) -> bool {
        let Some(sse) = &mut self.sse else { return false };
        sse.read = true;
        self.sse_over();
        true
    }

    fn sse_over(&mut self) {
        if let Some(Sse { why: Some(why), read: true, .. }) = &self.sse {
            let why = why.clone();
            self.over(why);
        }
    }

    /// What the era cache is to remember of the transport.
    pub(super) fn transport(&self) -> Option<String> {
        self.sse.is_some().then(|| HTTP_SSE.to_owned())
    }

    /// The connection is of no more use: its session is ended at the server, where it has one, and
    /// then the pool told. Whether there is any connection.
    pub(super) fn leave_remote(&mut self) -> bool {
        let Some(remote) = self.remote.take() else { return false };
        let exchange = self.session.as_mut().and_then(UpstreamSession::take_leave);
        let limit = self.args.settings.upstream.end;
        take_leave(&remote.client, exchange, limit, &self.args.shop.alive, self.me.clone());
        true
    }
}
