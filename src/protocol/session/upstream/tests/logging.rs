//! Log messages of an upstream: H-41, H-42, U-32.

use super::*;
use crate::protocol::session::LogLevel;

const HOSTS: [u64; 2] = [7, 8];

impl Rig {
    /// A call of `host` that wants to hear of the log from `level` on.
    fn hearing(&mut self, host: u64, level: LogLevel) -> u64 {
        self.log_want = Some(LogWant { level, host: Some(host) });
        let id = self.call();
        self.log_want = None;
        id
    }

    fn logs(&mut self, level: &str) {
        self.says(&log(level));
    }

    fn heard(&self, id: u64) -> usize {
        let heard = |news: &&News| matches!(news, News::Log(text) if text.contains("\"data\":1"));
        self.news(id).iter().filter(heard).count()
    }
}

fn log(level: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":1}}}}"#
    )
}

const DONE: &str = r#"{"content":[]}"#;

/// U-32: a legacy upstream is given the most talkative level that anybody wants, before the call.
#[test]
fn u32_one_level_for_all_callers_of_a_legacy_upstream() {
    let mut rig = Rig::settled(Revision::V2025_06_18);
    rig.call();
    assert_eq!(rig.new_frames(), ["tools/call"]);
    rig.hearing(7, LogLevel::Warning);
    assert_eq!(rig.new_frames(), ["logging/setLevel", "tools/call"]);
    assert_eq!(rig.sent[rig.sent.len() - 2]["params"], serde_json::json!({"level": "warning"}));
    rig.hearing(8, LogLevel::Error);
    assert_eq!(rig.new_frames(), ["tools/call"]);
    rig.hearing(8, LogLevel::Debug);
    assert_eq!(rig.new_frames(), ["logging/setLevel", "tools/call"]);
    let id = rig.last_id("logging/setLevel");
    rig.refuses(id, -32601, "null");
    assert!(rig.notices.is_empty());
}

/// U-32: a modern one hears it with each request, and one that logs nothing is not asked.
#[test]
fn u32_a_modern_upstream_is_asked_by_the_request() {
    let mut rig = Rig::settled(Revision::V2026_07_28);
    rig.hearing(7, LogLevel::Notice);
    let key = "io.modelcontextprotocol/logLevel";
    assert_eq!(rig.last()["params"]["_meta"][key], "notice");
    rig.call();
    assert!(rig.last()["params"]["_meta"].get(key).is_none());
    assert_eq!(rig.new_frames(), ["tools/call", "tools/call"]);

    let mut silent = Rig::new(config(Preference::ForceDiscover));
    let id = silent.last_id("server/discover");
    silent.answers(id, DISCOVERED);
    silent.hearing(7, LogLevel::Notice);
    assert!(silent.last()["params"]["_meta"].get(key).is_none());
}

/// A message that names no call goes once to each host that has one on the wire and wants it.
#[test]
fn h42_each_host_hears_a_message_once() {
    for revision in [Revision::V2024_11_05, Revision::V2026_07_28] {
        let mut rig = Rig::settled(revision);
        let older = rig.hearing(HOSTS[0], LogLevel::Info);
        let newer = rig.hearing(HOSTS[0], LogLevel::Info);
        let other = rig.hearing(HOSTS[1], LogLevel::Error);
        let silent = rig.call();
        rig.logs("info");
        assert_eq!([older, newer, other, silent].map(|id| rig.heard(id)), [0, 1, 0, 0]);
        rig.logs("alert");
        assert_eq!([older, newer, other, silent].map(|id| rig.heard(id)), [0, 2, 1, 0]);
        for id in [older, newer, other] {
            rig.answers(id, DONE);
        }
        // Somebody's, but nobody who asked for it.
        rig.logs("alert");
        assert!(!rig.events.iter().any(|event| matches!(event, UpstreamEvent::Log(_))));
        rig.answers(silent, DONE);
        rig.logs("alert");
        // H-41: a modern server has nothing to say outside of a request.
        let told = rig.events.iter().filter(|event| matches!(event, UpstreamEvent::Log(_))).count();
        assert_eq!(told, usize::from(!revision.is_modern()));
    }
}

/// On the stream that answers a call it is about that call, and a sign that it goes on.
#[test]
fn h42_a_message_on_a_calls_own_stream() {
    let mut rig = Rig::settled(Revision::V2025_11_25);
    let mine = rig.hearing(HOSTS[0], LogLevel::Info);
    let other = rig.hearing(HOSTS[1], LogLevel::Info);
    rig.at(200);
    let frame = Bytes::from(log("info"));
    assert!(matches!(rig.pending.resolve_of(rig.now, Some(mine), frame), Resolved::Taken));
    assert_eq!([mine, other].map(|id| rig.heard(id)), [1, 0]);
    rig.at(400);
    assert!(matches!(rig.outcome(other), Answer::TimedOut(_)));
    assert_eq!(rig.news(mine).len(), 1);
    let late = Bytes::from(log("info"));
    rig.answers(mine, DONE);
    assert!(matches!(rig.pending.resolve_of(rig.now, Some(mine), late), Resolved::Taken));
}
