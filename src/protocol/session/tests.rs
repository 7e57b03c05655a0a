//! mcpx in front of mcpx: an upstream session against a host session, in virtual time, once for each
//! revision. Two halves that are wrong in the same way agree, so each has its scripts besides.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::host::{HostConfig, HostEvent, HostOutput, HostSession, ProgressPace};
use super::pending::{CallLimits, CallSink, Pending, Resolved};
use super::probe::Preference;
use super::upstream::{
    Call, ListKind, OpeningTimings, Settled, UpstreamConfig, UpstreamEvent, UpstreamOutput,
    UpstreamSession,
};
use super::*;
use crate::protocol::Notice;
use crate::protocol::jsonrpc::Code;
use crate::protocol::model::logging::LogMessage;
use crate::protocol::model::questions::Question;

#[test]
fn limits_read_as_people_write_them() {
    for (millis, text) in
        [(300_000, "5m"), (3_600_000, "1h"), (90_000, "90s"), (250, "250ms"), (0, "0s")]
    {
        assert_eq!(Limit::time("x", Duration::from_millis(millis)).value, text);
    }
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

type Log = Arc<Mutex<Vec<(u64, Result<Answer, RawJson>)>>>;

struct Sink {
    id: u64,
    log: Log,
}

impl CallSink for Sink {
    fn progress(&mut self, params: RawJson) {
        self.log.lock().unwrap().push((self.id, Err(params)));
    }

    fn log(&mut self, _message: LogMessage) {}

    fn ask(&mut self, _number: u64, _question: Question) {}

    fn withdraw(&mut self, _number: u64) {}

    fn done(self, answer: Answer) {
        self.log.lock().unwrap().push((self.id, Ok(answer)));
    }
}

/// Both ends of one link, and all that they told their owners.
struct Pair {
    now: Instant,
    upstream: UpstreamSession<Sink>,
    pending: Arc<Pending<Sink>>,
    host: HostSession,
    log: Log,
    requests: Vec<HostRequest>,
    cancelled: Vec<CallKey>,
    events: Vec<UpstreamEvent>,
    notices: Vec<Notice>,
    frames: u64,
}

impl Pair {
    fn new(preference: Preference, pin: Option<Revision>) -> Self {
        let now = some_instant();
        let wait = Duration::from_secs(10);
        let timings = OpeningTimings {
            probe_patience: wait,
            handshake: wait,
            list: wait,
            list_max_pages: 10,
            list_max_items: 100,
            listen_reopen: Duration::from_secs(1),
            version_attempts: 2,
            ping: wait,
        };
        let info = raw(r#"{"name":"mcpx","title":"mcpx","version":"1"}"#);
        let pending = Arc::new(Pending::new());
        let config = UpstreamConfig {
            preference,
            pin,
            remembered: None,
            info: info.clone(),
            capabilities: RawJson::empty_object(),
            most_questions: 8,
            timings,
            http: None,
        };
        let host = HostConfig {
            info,
            capabilities: raw(r#"{"tools":{"listChanged":true}}"#),
            instructions: "be brief".into(),
            max_in_flight: 10,
            max_listens: 2,
            progress_pace: ProgressPace::FREE,
            log_rate: 100,
            max_open_questions: 4,
            over_stdio: true,
        };
        let mut pair = Self {
            now,
            upstream: UpstreamSession::new(config, Arc::clone(&pending)),
            pending,
            host: HostSession::new(Arc::new(host)),
            log: Log::default(),
            requests: Vec::new(),
            cancelled: Vec::new(),
            events: Vec::new(),
            notices: Vec::new(),
            frames: 0,
        };
        pair.upstream.open(now);
        pair.pump();
        pair
    }

    /// Carries frames until both ends are silent.
    fn pump(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(output) = self.upstream.poll_output() {
                quiet = false;
                match output {
                    UpstreamOutput::Send(frame) => {
                        self.frames += 1;
                        self.host.handle_frame(self.now, &frame.to_bytes());
                    }
                    UpstreamOutput::Exchange(_) | UpstreamOutput::Drop { .. } => {
                        panic!("no HTTP here")
                    }
                    UpstreamOutput::Event(event) => self.events.push(event),
                    UpstreamOutput::Notice(notice) => self.notices.push(notice),
                    UpstreamOutput::Close(why) => panic!("closed: {why}"),
                }
            }
            while let Some(output) = self.host.poll_output() {
                quiet = false;
                match output {
                    HostOutput::Send { frame, .. } => {
                        if let Resolved::Other(frame) =
                            self.pending.resolve(self.now, frame.to_bytes())
                        {
                            self.upstream.handle_frame(self.now, &frame);
                        }
                    }
                    HostOutput::Event(HostEvent::Request(request)) => self.requests.push(request),
                    HostOutput::Event(HostEvent::Cancelled { key }) => self.cancelled.push(key),
                    HostOutput::Event(_) | HostOutput::PostDone(_) => {}
                    HostOutput::Notice(notice) => self.notices.push(notice),
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn settled(&self) -> Settled {
        match self.events.first() {
            Some(UpstreamEvent::Settled(settled)) => settled.clone(),
            other => panic!("not settled: {other:?}"),
        }
    }

    fn call(&mut self, method: &'static str, params: &str, wants_progress: bool) -> u64 {
        let id = self.pending.take_id();
        let limits = CallLimits { idle: Duration::from_mins(1), total: Duration::from_mins(10) };
        let sink = Sink { id, log: Arc::clone(&self.log) };
        let (method, params) = (Method::known(method), raw(params));
        let call = Call {
            id,
            method,
            params,
            wants_progress,
            log: None,
            host: None,
            declared: None,
            task: None,
            limits,
            sink,
        };
        self.upstream.start_call(self.now, call);
        self.pump();
        id
    }

    /// The one request that has arrived at the far end.
    fn request(&mut self) -> HostRequest {
        assert_eq!(self.requests.len(), 1);
        self.requests.remove(0)
    }

    fn finish(&mut self, key: CallKey, outcome: Outcome) {
        self.host.finish(self.now, key, outcome);
        self.pump();
    }

    fn news(&self, id: u64) -> Vec<Result<Answer, RawJson>> {
        let log = self.log.lock().unwrap();
        log.iter().filter(|(of, _)| *of == id).map(|(_, news)| news.clone()).collect()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let closed = Closed { why: "end of test".into(), frames_begun: self.frames };
        self.upstream.handle_closed(self.now, &closed);
        self.host.handle_closed(self.now);
        assert!(self.pending.is_empty() && self.host.in_flight() == 0);
        assert!(self.notices.is_empty(), "{:?}", self.notices);
    }
}

/// One pair for each revision: four pinned, the newest by the default preference.
fn pairs() -> impl Iterator<Item = (Revision, Pair)> {
    Revision::ALL.into_iter().map(|revision| {
        let pin = (!revision.is_modern()).then_some(revision);
        let pair = Pair::new(Preference::PreferDiscover, pin);
        let settled = pair.settled();
        assert_eq!(settled.revision, revision);
        assert_eq!(settled.instructions.as_deref(), Some("be brief"));
        assert_eq!(settled.info.unwrap().member_str("name").as_deref(), Some("mcpx"));
        assert!(settled.capabilities.member("tools").is_some());
        (revision, pair)
    })
}

/// U-01: a call and its result in every revision; parameters and result keep their text.
#[test]
fn u01_a_call_in_every_revision() {
    for (revision, mut pair) in pairs() {
        let params = r#"{"name":"t","arguments":{"n":1e2,"s":"a\udcafb"},"_meta":{"a/b":1}}"#;
        let id = pair.call("tools/call", params, false);
        let request = pair.request();
        assert_eq!(request.peer.revision, revision);
        assert_eq!(request.params.as_str(), params);
        assert!(!request.wants_progress);
        let result = r#"{"content":[{"type":"text","text":"x"}],"isError":false,"x":-0}"#;
        pair.finish(request.key, Ok(raw(result)));
        let news = pair.news(id);
        let [Ok(Answer::Complete(got))] = news.as_slice() else { panic!("{revision}: {news:?}") };
        for key in ["content", "isError", "x"] {
            assert_eq!(got.member(key), raw(result).member(key), "{revision} {key}");
        }
    }
}

/// F37: progress runs back to the call that wanted it, in every revision.
#[test]
fn f37_progress_in_every_revision() {
    for (revision, mut pair) in pairs() {
        let id = pair.call("tools/call", r#"{"name":"t"}"#, true);
        let request = pair.request();
        assert!(request.wants_progress);
        let progress = raw(r#"{"progressToken":"other","progress":0.5,"total":1}"#);
        pair.host.progress(pair.now, request.key, &progress);
        pair.pump();
        pair.finish(request.key, Ok(raw(r#"{"content":[]}"#)));
        pair.host.progress(pair.now, request.key, &progress);
        pair.pump();
        let news = pair.news(id);
        let [Err(got), Ok(Answer::Complete(_))] = news.as_slice() else {
            panic!("{revision}: {news:?}")
        };
        assert_eq!(got.member("progress").unwrap().as_str(), "0.5");
    }
}

/// F36, U-31: a cancelled call is reported as such at the far end, and nothing comes back.
#[test]
fn f36_cancel_in_every_revision() {
    for (_, mut pair) in pairs() {
        let id = pair.call("tools/call", r#"{"name":"slow"}"#, false);
        let request = pair.request();
        pair.upstream.cancel(pair.now, id, "no longer wanted");
        pair.pump();
        assert_eq!(pair.cancelled, [request.key]);
        pair.finish(request.key, Ok(raw(r#"{"content":[]}"#)));
        assert!(pair.news(id).is_empty());
    }
}

/// Errors, and methods that only one of the eras has.
#[test]
fn errors_in_every_revision() {
    for (revision, mut pair) in pairs() {
        let id = pair.call("tools/call", r#"{"name":"t"}"#, false);
        let key = pair.request().key;
        pair.finish(key, Err(RpcError::new(Code::InvalidParams, "which t?")));
        let news = pair.news(id);
        let [Ok(Answer::Error(error))] = news.as_slice() else { panic!("{revision}: {news:?}") };
        assert_eq!((error.code, error.message.as_str()), (-32602, "which t?"));
    }
}

/// tools/list, and once more when the far end says that it changed (F38).
#[test]
fn f38_lists_in_every_revision() {
    for (revision, mut pair) in pairs() {
        pair.upstream.read_list(pair.now, ListKind::Tools);
        pair.pump();
        let first = pair.request();
        assert_eq!(first.method.as_str(), "tools/list");
        let page = r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"c"}"#;
        pair.finish(first.key, Ok(raw(page)));
        let second = pair.request();
        assert_eq!(second.params.member_str("cursor").as_deref(), Some("c"));
        pair.finish(second.key, Ok(raw(r#"{"tools":[]}"#)));
        let Some(UpstreamEvent::Listed(_, Ok(list))) = pair.events.pop() else { panic!("no list") };
        assert_eq!((list.items.len(), list.incomplete), (1, None));

        pair.host.host_note(pair.now, host::HostNote::Changed(ListKind::Tools));
        pair.pump();
        // A modern host hears of it on a listen stream only.
        assert_eq!(pair.requests.is_empty(), revision.is_modern());
    }
}

/// U-32: a sign of life is asked for and given in both eras.
#[test]
fn u32_liveness_in_every_revision() {
    for (_, mut pair) in pairs() {
        pair.upstream.check_alive(pair.now);
        pair.pump();
        assert_eq!(pair.upstream.poll_deadline(), None);
        assert!(pair.requests.is_empty());
    }
}
