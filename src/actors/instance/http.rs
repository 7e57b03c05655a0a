//! An instance that is reached over HTTP: no process, no link, but exchanges; and the way from there
//! to a server of 2024-11-05's HTTP+SSE, which has a link again.

use std::sync::Arc;
use std::time::Instant;

use super::remote::{Remote, take_leave};
use super::state::InstanceState;
use super::{EndKind, Fault, InstanceArgs, Reach};
use crate::actors::pool::PoolMsg;
use crate::protocol::session::upstream::{
    Exchange, ExchangeNews, HttpConfig, Settled, UpstreamSession,
};
use crate::settings::RemoteTransport;
use crate::transport::http::address::shown;
use crate::transport::http::client::HttpClient;
use crate::transport::stdio::ring::{RingLimits, StderrRing};

/// What the era cache calls the older transport, and what status pages do.
pub(super) const HTTP_SSE: &str = "http+sse";
const HTTP: &str = "http";

impl InstanceState {
    /// The client is made; nothing has been sent yet.
    pub(super) fn reached(&mut self, now: Instant, client: HttpClient) {
        let sse = match self.args.def.transport {
            Some(transport) => transport == RemoteTransport::Sse,
            None => self.remembers_sse(),
        };
        self.tell_reach(&client, if sse { HTTP_SSE } else { HTTP });
        self.open_http(now, client);
    }

    fn remembers_sse(&self) -> bool {
        let remembered = self.remembered();
        remembered.is_some_and(|record| record.transport.as_deref() == Some(HTTP_SSE))
    }

    fn tell_reach(&self, client: &HttpClient, transport: &'static str) {
        let process = &self.args.settings.process;
        // It prints nothing; readers of its log find it empty.
        let stderr = StderrRing::new(RingLimits {
            lines: process.stderr_lines,
            line_bytes: process.stderr_line_bytes,
            log_rate: process.stderr_log_rate,
            bytes: process.stderr_bytes,
        });
        let reach = Reach { transport, url: Some(shown(&client.spec().url)) };
        self.tell_pool(PoolMsg::Spawned { id: self.args.id, pid: None, stderr, reach });
    }

    fn open_http(&mut self, now: Instant, client: HttpClient) {
        let InstanceArgs { settings, .. } = &self.args;
        let (credits, max_frame) = (settings.link.read_credits, settings.link.max_frame);
        let pending = Arc::clone(&self.pending);
        self.remote = Some(Remote::new(client, pending, self.me.clone(), credits, max_frame));
        let upstream = &self.args.settings.upstream;
        let mut config = self.config();
        config.http = Some(HttpConfig {
            may_be_sse: self.args.def.transport.is_none(),
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
    pub(super) fn try_sse(&mut self, why: String) {
        self.finish(EndKind::StartFailed { fault: Fault::Passing }, why);
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
