//! What exchanges bring: heads, frames, marks.

use std::time::Instant;

use http::{HeaderMap, StatusCode};

use super::super::exchange::{ExchangeEnd, ExchangeNews};
use super::super::{Asked, UpstreamSession};
use super::{Live, What};
use crate::protocol::http_rules::headers::SESSION_ID;
use crate::protocol::session::pending::CallSink;
use crate::protocol::session::timers::{Timer, after};

impl<S: CallSink> UpstreamSession<S> {
    /// Something came of an exchange that the session asked for. What is said of one that was
    /// dropped is ignored.
    pub fn handle_exchange(&mut self, now: Instant, tag: u64, news: ExchangeNews) {
        let Some(live) = self.http.as_mut().and_then(|http| http.live.get_mut(&tag)) else {
            return;
        };
        match news {
            ExchangeNews::Head { status, headers, stream } => {
                live.streams = stream;
                live.since = Some(now);
                live.accepted = status == StatusCode::ACCEPTED;
                let what = live.what;
                self.accepted_as(now, tag, what, &headers, stream);
            }
            ExchangeNews::Mark { id, retry, bears } => live.trail.mark(id, retry, bears),
            // F20: what follows a 2xx to a notification is of no interest.
            ExchangeNews::Frame(_) if matches!(live.what, What::Greeting | What::Note) => {}
            ExchangeNews::Frame(frame) => {
                live.trail.heard();
                // U-47: what comes on a request's answer belongs to that request.
                self.inbound.about = live.what.request();
                self.inbound.odd = None;
                self.handle_frame(now, &frame);
                self.inbound.about = None;
                let odd = self.inbound.odd.take();
                let live = self.http.as_mut().and_then(|http| http.live.get_mut(&tag));
                if let (Some(odd), Some(live)) = (odd, live) {
                    live.odd = Some(odd);
                }
            }
            ExchangeNews::Ended(end) => {
                let live = self.http.as_mut().and_then(|http| http.live.remove(&tag));
                if let Some(live) = live {
                    self.ended(now, live, end);
                }
            }
        }
    }

    fn accepted_as(
        &mut self,
        now: Instant,
        tag: u64,
        what: What,
        headers: &HeaderMap,
        stream: bool,
    ) {
        match what {
            What::Request(id) => {
                let initialize = self.asked.contains(&(id, Asked::Initialize));
                if let (true, Some(http)) = (initialize, &mut self.http) {
                    http.session = headers.get(SESSION_ID).filter(|id| !id.is_empty()).cloned();
                }
                if let (true, Some(linger)) = (stream && !self.is_listening(id), self.linger()) {
                    self.timers.set_earlier(Timer::Streams, after(now, linger));
                }
            }
            // F20: any 2xx will do, whatever follows; a body that ends leaves its connection usable.
            What::Greeting | What::Note => {
                if let (true, Some(http)) = (stream, &mut self.http) {
                    http.drop_exchange(&mut self.out, tag);
                } else if let Some(linger) = self.linger() {
                    self.timers.set_earlier(Timer::Streams, after(now, linger));
                }
                if what == What::Greeting {
                    self.greeted(now);
                }
            }
            // F19 d: "use POST", with status 200.
            What::Standalone if !stream => {
                if let Some(http) = &mut self.http {
                    http.drop_exchange(&mut self.out, tag);
                }
            }
            What::Standalone => {}
        }
    }

    fn ended(&mut self, now: Instant, live: Live, end: ExchangeEnd) {
        match live.what {
            What::Request(id) => self.request_ended(now, id, live, end),
            What::Greeting | What::Note => self.note_ended(now, &live, end),
            What::Standalone => self.standalone_ended(now, live, &end),
        }
    }

    /// The server has taken `notifications/initialized`, or refused it, which is its own affair (F20).
    pub(super) fn greeted(&mut self, now: Instant) {
        let greeting = self.http.as_mut().and_then(|http| http.greeting.take());
        if let Some(greeting) = greeting {
            self.settle(now, greeting.revision, greeting.info, &greeting.result);
        }
    }
}
