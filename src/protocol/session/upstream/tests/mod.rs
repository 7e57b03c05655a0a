//! The upstream session against scripts, in virtual time. Every scenario ends with the link closed,
//! no call left in the table, and exactly one outcome for each call that was not cancelled.

mod calls;
mod http;
mod inbound;
mod listen;
mod listing;
mod logging;
mod opening;
mod page;
mod questions;
mod random;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;

use super::*;
use crate::protocol::era_record::EraRecord;
use crate::protocol::model::logging::LogMessage;
use crate::protocol::model::questions::Question;
use crate::protocol::session::Answer;
use crate::protocol::session::pending::{CallLimits, LogWant, Resolved};
use crate::protocol::session::probe::Preference;

/// What a call's sink heard.
#[derive(Debug, Clone)]
enum News {
    Progress(String),
    Log(String),
    Asked(u64, Question),
    Withdrawn(u64),
    Done(Answer),
}

struct Sink {
    id: u64,
    log: Arc<Mutex<Vec<(u64, News)>>>,
}

impl CallSink for Sink {
    fn progress(&mut self, params: RawJson) {
        self.log.lock().unwrap().push((self.id, News::Progress(params.as_str().to_owned())));
    }

    fn log(&mut self, message: LogMessage) {
        let text = message.params.as_str().to_owned();
        self.log.lock().unwrap().push((self.id, News::Log(text)));
    }

    fn ask(&mut self, number: u64, question: Question) {
        self.log.lock().unwrap().push((self.id, News::Asked(number, question)));
    }

    fn withdraw(&mut self, number: u64) {
        self.log.lock().unwrap().push((self.id, News::Withdrawn(number)));
    }

    fn done(self, answer: Answer) {
        self.log.lock().unwrap().push((self.id, News::Done(answer)));
    }
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn config(preference: Preference) -> UpstreamConfig {
    UpstreamConfig {
        preference,
        pin: None,
        remembered: None,
        info: raw(r#"{"name":"mcpx","version":"1"}"#),
        capabilities: raw("{}"),
        most_questions: 8,
        timings: OpeningTimings {
            probe_patience: seconds(2),
            handshake: seconds(30),
            list: seconds(20),
            list_max_pages: 5,
            list_max_items: 100,
            listen_reopen: Duration::from_secs(1),
            version_attempts: 2,
            ping: seconds(5),
        },
        http: None,
    }
}

fn remembered(era: &str, revision: &str) -> EraRecord {
    EraRecord {
        era: era.into(),
        revision: revision.into(),
        learned_at: 1_790_000_000,
        source: crate::protocol::era_record::EraSource::Probe,
        transport: None,
    }
}

/// The session, a clock, and everything that came out.
struct Rig {
    session: UpstreamSession<Sink>,
    pending: Arc<Pending<Sink>>,
    start: Instant,
    now: Instant,
    log: Arc<Mutex<Vec<(u64, News)>>>,
    sent: Vec<Value>,
    taken: usize,
    events: Vec<UpstreamEvent>,
    notices: Vec<Notice>,
    closes: Vec<String>,
    /// Exchanges put out, all of them.
    exchanges: Vec<Exchange>,
    /// Tags of those that were dropped.
    dropped: Vec<u64>,
    calls: Vec<u64>,
    cancelled: Vec<u64>,
    /// What the next calls want to hear of the log.
    log_want: Option<LogWant>,
    /// The host of the next calls.
    host: Option<u64>,
    /// Whose each call is: its host, or a number of its own.
    hosts: Vec<(u64, u64)>,
    /// What the hosts of the next calls declared.
    declared: Option<RawJson>,
    /// That they may be answered by a task.
    task: Option<TaskWant>,
}

impl Rig {
    fn new(config: UpstreamConfig) -> Self {
        let pending = Arc::new(Pending::new());
        let now = crate::protocol::session::some_instant();
        let mut rig = Self {
            session: UpstreamSession::new(config, Arc::clone(&pending)),
            pending,
            start: now,
            now,
            log: Arc::default(),
            sent: Vec::new(),
            taken: 0,
            events: Vec::new(),
            notices: Vec::new(),
            closes: Vec::new(),
            exchanges: Vec::new(),
            dropped: Vec::new(),
            calls: Vec::new(),
            cancelled: Vec::new(),
            log_want: None,
            host: None,
            hosts: Vec::new(),
            declared: None,
            task: None,
        };
        rig.session.open(now);
        rig.drain();
        rig
    }

    /// A session that has settled on `revision`, its opening's frames taken.
    fn settled(revision: Revision) -> Self {
        Self::settled_with(revision, "{}")
    }

    /// The same, having declared something.
    fn settled_with(revision: Revision, capabilities: &str) -> Self {
        let text = revision.as_str();
        let config =
            |preference| UpstreamConfig { capabilities: raw(capabilities), ..config(preference) };
        let mut rig;
        if revision.is_modern() {
            rig = Self::new(config(Preference::ForceDiscover));
            let id = rig.last_id("server/discover");
            rig.says(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",
                "supportedVersions":["{text}"],"capabilities":{{"tools":{{}},"logging":{{}}}}}}}}"#
            ));
        } else {
            rig = Self::new(config(Preference::ForceInitialize));
            let id = rig.last_id("initialize");
            rig.says(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{text}",
                "capabilities":{{"tools":{{}},"logging":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
            ));
        }
        assert_eq!(rig.settled_as().revision, revision);
        rig.new_frames();
        rig
    }

    fn drain(&mut self) {
        while let Some(output) = self.session.poll_output() {
            match output {
                UpstreamOutput::Send(frame) => {
                    let frame = frame.to_bytes();
                    assert!(!frame.contains(&b'\n'));
                    self.sent.push(serde_json::from_slice(&frame).unwrap());
                }
                UpstreamOutput::Exchange(exchange) => self.exchanges.push(exchange),
                UpstreamOutput::Drop { tag } => self.dropped.push(tag),
                UpstreamOutput::Event(event) => self.events.push(event),
                UpstreamOutput::Notice(notice) => self.notices.push(notice),
                UpstreamOutput::Close(why) => self.closes.push(why),
            }
        }
    }

    /// The upstream writes a line.
    fn says_bytes(&mut self, line: &[u8]) {
        if let Resolved::Other(frame) = self.pending.resolve(self.now, Bytes::copy_from_slice(line))
        {
            self.session.handle_frame(self.now, &frame);
        }
        self.drain();
    }

    fn says(&mut self, line: &str) {
        self.says_bytes(line.replace('\n', " ").as_bytes());
    }

    fn answers(&mut self, id: u64, result: &str) {
        self.says(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }

    fn refuses(&mut self, id: u64, code: i64, data: &str) {
        self.says(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no","data":{data}}}}}"#
        ));
    }

    /// Lets time pass, firing what is due on the way.
    fn at(&mut self, secs: u64) {
        let target = self.start + seconds(secs);
        while let Some(due) = self.session.poll_deadline().filter(|due| *due <= target) {
            self.now = due.max(self.now);
            self.session.handle_timeout(self.now);
            self.drain();
        }
        self.now = target;
    }

    fn call_with(&mut self, wants_progress: bool, limits: CallLimits) -> u64 {
        let id = self.pending.take_id();
        self.calls.push(id);
        self.hosts.push((id, self.host.unwrap_or(1000 + id)));
        let call = Call {
            id,
            method: Method::known("tools/call"),
            params: raw(r#"{"name":"t","arguments":{"n":1e2}}"#),
            wants_progress,
            log: self.log_want,
            host: self.host,
            declared: self.declared.clone(),
            task: self.task,
            limits,
            sink: Sink { id, log: Arc::clone(&self.log) },
        };
        self.session.start_call(self.now, call);
        self.drain();
        id
    }

    fn call(&mut self) -> u64 {
        self.call_with(false, CallLimits { idle: seconds(300), total: seconds(3600) })
    }

    fn cancel(&mut self, id: u64) {
        self.cancelled.push(id);
        self.session.cancel(self.now, id, "changed my mind");
        self.drain();
    }

    fn closes(&mut self, why: &str, frames_begun: u64) {
        self.session.handle_closed(self.now, &Closed { why: why.into(), frames_begun });
        self.drain();
    }

    /// Frames sent since the last time, by method (or `answer`).
    fn new_frames(&mut self) -> Vec<String> {
        let new = self.sent.get(self.taken..).unwrap();
        let names = new
            .iter()
            .map(|frame| frame["method"].as_str().unwrap_or("answer").to_owned())
            .collect();
        self.taken = self.sent.len();
        names
    }

    fn last(&self) -> &Value {
        self.sent.last().unwrap()
    }

    fn last_id(&self, method: &str) -> u64 {
        let frame = self.sent.iter().rev().find(|frame| frame["method"] == method);
        frame.unwrap_or_else(|| panic!("no {method}"))["id"].as_u64().unwrap()
    }

    fn settled_as(&self) -> Settled {
        let settled = self.events.iter().find_map(|event| match event {
            UpstreamEvent::Settled(settled) => Some(settled.clone()),
            _ => None,
        });
        settled.unwrap_or_else(|| panic!("not settled: {:?}", self.events))
    }

    fn failed_as(&self) -> OpenError {
        let failed = self.events.iter().find_map(|event| match event {
            UpstreamEvent::OpenFailed(error) => Some(error.clone()),
            _ => None,
        });
        failed.unwrap_or_else(|| panic!("not failed: {:?}", self.events))
    }

    fn list(&mut self) -> Result<ListRead, String> {
        let at = self.events.iter().position(|event| matches!(event, UpstreamEvent::Listed(..)));
        match self.events.remove(at.unwrap_or_else(|| panic!("no list: {:?}", self.events))) {
            UpstreamEvent::Listed(_, list) => list,
            other => panic!("{other:?}"),
        }
    }

    fn news(&self, id: u64) -> Vec<News> {
        let log = self.log.lock().unwrap();
        log.iter().filter(|(of, _)| *of == id).map(|(_, news)| news.clone()).collect()
    }

    /// The outcome of a call that had no progress.
    fn outcome(&self, id: u64) -> Answer {
        match self.news(id).as_slice() {
            [News::Done(answer)] => answer.clone(),
            other => panic!("not one outcome: {other:?}"),
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.closes("end of test", u64::MAX);
        assert!(self.pending.is_empty(), "calls are left in the table");
        assert_eq!(self.session.open_questions(), 0, "questions are left in the table");
        assert_eq!(self.session.poll_deadline(), None, "a timer is left");
        for id in std::mem::take(&mut self.calls) {
            let done = self.news(id).iter().filter(|n| matches!(n, News::Done(_))).count();
            let wanted = usize::from(!self.cancelled.contains(&id));
            assert!(done <= 1 && done >= wanted, "call {id} has {done} outcomes");
        }
    }
}

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],
    "capabilities":{"tools":{}},"instructions":"hi","ttlMs":0,"cacheScope":"public",
    "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"2"}}}"#;

const INITIALIZED: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},
    "serverInfo":{"name":"l","version":"3"},"instructions":"ho"}"#;
