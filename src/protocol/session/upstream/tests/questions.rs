//! What a legacy upstream asks: whose it is, and that it is always answered (U-36, U-44, E-04, E-13, F44).

use super::random::Dice;
use super::*;
use crate::protocol::model::questions::{Kind, cancelled};
use crate::protocol::session::Limit;

const DECLARED: &str =
    r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true}}"#;

const FORM: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}"#;

fn rig() -> Rig {
    Rig::settled_with(Revision::V2025_11_25, DECLARED)
}

impl Rig {
    fn asks(&mut self, id: &str, method: &str, params: &str) {
        self.says(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
    }

    fn asks_form(&mut self, id: &str) {
        self.asks(id, "elicitation/create", FORM);
    }

    fn reply(&mut self, number: u64, result: &str) {
        self.session.answer_question(self.now, number, Ok(raw(result)));
        self.drain();
    }

    /// What call `id` was asked and has not been answered or withdrawn as far as it was told.
    fn asked(&self, id: u64) -> Vec<(u64, Kind)> {
        let asked = self.news(id).into_iter().filter_map(|news| match news {
            News::Asked(number, question) => Some((number, question.kind())),
            _ => None,
        });
        asked.collect()
    }

    fn withdrawn(&self, id: u64) -> Vec<u64> {
        let withdrawn = self.news(id).into_iter().filter_map(|news| match news {
            News::Withdrawn(number) => Some(number),
            _ => None,
        });
        withdrawn.collect()
    }

    /// What was asked that belongs to no call.
    fn unowned(&self) -> Vec<u64> {
        let asked = self.events.iter().filter_map(|event| match event {
            UpstreamEvent::Asked { number, .. } => Some(*number),
            _ => None,
        });
        asked.collect()
    }

    fn is_interactive(&self) -> bool {
        self.events.iter().any(|event| matches!(event, UpstreamEvent::Interactive))
    }

    fn call_of(&mut self, host: Option<u64>) -> u64 {
        self.host = host;
        self.call()
    }

    /// Results and error codes of all answers sent, by the id's text.
    fn said(&self) -> Vec<(String, String)> {
        let answers = self.sent.iter().filter(|frame| frame["method"].is_null());
        let said = answers.map(|frame| {
            let code = &frame["error"]["code"];
            let outcome = if code.is_null() { &frame["result"] } else { code };
            (frame["id"].to_string(), outcome.to_string())
        });
        said.collect()
    }
}

const CANCEL: &str = r#"{"action":"cancel"}"#;

/// U-44, E-13: the call in flight hears it, and the answer carries the id as it was written.
#[test]
fn u44_ids_of_questions_are_kept() {
    for id in ["0", "\"a\\u0041 b\"", "9007199254740993", "-1", "\"1\"", "1"] {
        let mut rig = rig();
        let call = rig.call();
        rig.asks_form(id);
        let [(number, Kind::Form)] = rig.asked(call)[..] else { panic!("not asked") };
        rig.reply(number, r#"{"action":"accept","content":{"n":1}}"#);
        let said = serde_json::from_str::<Value>(id).unwrap().to_string();
        let content = r#"{"action":"accept","content":{"n":1}}"#.to_owned();
        assert_eq!(rig.said(), [(said, content)]);
        // A second answer, and one to what was never asked, are ignored.
        rig.reply(number, CANCEL);
        rig.reply(77, CANCEL);
        assert_eq!(rig.said().len(), 1);
        rig.answers(call, "{}");
    }
}

/// U-36, E-04: what was not declared for the revision in use is refused with its page's code.
#[test]
fn u36_undeclared_modes_are_refused() {
    let url = r#"{"mode":"url","message":"m","url":"https://x.test","elicitationId":"e"}"#;
    let tools = r#"{"messages":[],"maxTokens":1,"tools":[]}"#;
    for (revision, declared, method, params, code) in [
        (Revision::V2025_06_18, DECLARED, "elicitation/create", url, -32602),
        (Revision::V2025_11_25, r#"{"elicitation":{}}"#, "elicitation/create", url, -32602),
        (Revision::V2025_03_26, DECLARED, "elicitation/create", FORM, -32602),
        (Revision::V2025_11_25, DECLARED, "sampling/createMessage", tools, -32602),
        (Revision::V2025_11_25, r#"{"roots":{}}"#, "sampling/createMessage", "{}", -32601),
        (Revision::V2025_11_25, r#"{"sampling":{}}"#, "roots/list", "{}", -32601),
        (Revision::V2026_07_28, DECLARED, "roots/list", "{}", -32601),
        (Revision::V2026_07_28, DECLARED, "elicitation/create", FORM, -32602),
    ] {
        let mut rig = Rig::settled_with(revision, declared);
        let call = rig.call();
        rig.asks("1", method, params);
        assert_eq!(rig.last()["error"]["code"], code, "{revision} {method}");
        assert!(rig.asked(call).is_empty() && rig.unowned().is_empty());
        rig.answers(call, r#"{"resultType":"complete"}"#);
    }
    // And what was is not.
    let mut rig = Rig::settled_with(Revision::V2024_11_05, DECLARED);
    let call = rig.call();
    rig.asks("1", "sampling/createMessage", r#"{"messages":[],"maxTokens":1}"#);
    rig.asks("2", "roots/list", "{}");
    assert_eq!(rig.asked(call), [(1, Kind::Sampling), (2, Kind::Roots)]);
    rig.answers(call, "{}");
    rig.cancel_over(call);
    assert_eq!(rig.said().len(), 2);
}

impl Rig {
    /// The task of a call whose outcome it has heard goes.
    fn cancel_over(&mut self, call: u64) {
        self.session.cancel(self.now, call, "over");
        self.drain();
    }
}

/// The upstream takes a question back: who was asked hears it, and nothing is answered.
#[test]
fn a_withdrawn_question_is_not_answered() {
    let mut rig = rig();
    rig.asks_form("\"early\"");
    assert_eq!(rig.unowned(), [1]);
    let call = rig.call();
    rig.asks_form("7");
    let cancel = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    rig.says(&cancel("\"7\""));
    assert!(rig.withdrawn(call).is_empty());
    rig.says(&cancel("7"));
    rig.says(&cancel("7"));
    assert_eq!(rig.withdrawn(call), [2]);
    rig.says(&cancel("\"early\""));
    let withdrawn = |event: &UpstreamEvent| matches!(event, UpstreamEvent::Withdrawn { number: 1 });
    assert!(rig.events.iter().any(withdrawn));
    rig.reply(2, CANCEL);
    rig.reply(1, CANCEL);
    assert!(rig.said().is_empty());
    assert_eq!(rig.session.open_questions(), 0);
    rig.answers(call, "{}");
}

/// A question that is sent again before its answer is one question.
#[test]
fn a_repeated_id_is_asked_once() {
    let mut rig = rig();
    let call = rig.call();
    for _ in 0..5 {
        rig.asks_form("\"x\"");
    }
    assert_eq!(rig.asked(call).len(), 1);
    assert_eq!(rig.notices.len(), 1, "{:?}", rig.notices);
    rig.reply(1, CANCEL);
    assert_eq!(rig.said().len(), 1);
    // Its id may be used again after that.
    rig.asks_form("\"x\"");
    assert_eq!(rig.asked(call).len(), 2);
    rig.reply(2, CANCEL);
    rig.answers(call, "{}");
}

/// A question before any call, or after the last, belongs to none: it goes up, and is no reason to
/// make calls one after the other.
#[test]
fn a_question_without_a_call_goes_up() {
    let mut rig = rig();
    rig.asks("1", "roots/list", "{}");
    let call = rig.call();
    rig.answers(call, "{}");
    rig.asks_form("2");
    assert_eq!(rig.unowned(), [1, 2]);
    assert!(!rig.is_interactive());
    rig.session.answer_question(
        rig.now,
        1,
        Err(RpcError::new(crate::protocol::jsonrpc::Code::InternalError, "no")),
    );
    rig.reply(2, CANCEL);
    assert_eq!(
        rig.said(),
        [("1".to_owned(), "-32603".to_owned()), ("2".to_owned(), CANCEL.to_owned())]
    );
}

/// `elicit.max_open`: of a thousand questions eight wait, and the others are told why they do not.
#[test]
fn a_thousand_questions_are_bounded() {
    let mut rig = rig();
    let call = rig.call();
    for id in 0..1000 {
        rig.asks_form(&id.to_string());
    }
    assert_eq!(rig.asked(call).len(), 8);
    assert_eq!(rig.said().len(), 992);
    assert!(rig.last()["error"]["message"].as_str().unwrap().contains("elicit.max_open"));
    // The call ends without them: each is answered, by the word of its task.
    rig.answers(call, "{}");
    rig.cancel_over(call);
    assert_eq!(rig.said().len(), 1000);
    assert_eq!(rig.said()[992..].iter().filter(|(_, said)| said == CANCEL).count(), 8);
    assert!(!rig.new_frames().contains(&"notifications/cancelled".to_owned()));
}

/// F36: who gives a call up has not answered what was asked in its course; mcpx does.
#[test]
fn f36_a_call_given_up_answers_its_questions() {
    let mut rig = rig();
    let (one, other) = (rig.call_of(Some(1)), rig.call_of(Some(1)));
    rig.asks_form("1");
    rig.asks("2", "sampling/createMessage", r#"{"messages":[],"maxTokens":1}"#);
    assert_eq!(rig.asked(one).len(), 2);
    rig.new_frames();
    rig.cancel(one);
    assert_eq!(rig.new_frames(), ["answer", "answer", "notifications/cancelled"]);
    let said = rig.said();
    assert_eq!(said, [("1".to_owned(), CANCEL.to_owned()), ("2".to_owned(), "-32603".to_owned())]);
    rig.answers(other, "{}");
}

/// While a question is open the silence of its call has no limit; its whole time has.
#[test]
fn the_idle_limit_rests_while_a_question_is_open() {
    let mut rig = rig();
    rig.host = Some(1);
    let call = rig.call_with(false, CallLimits { idle: seconds(10), total: seconds(100) });
    rig.at(5);
    rig.asks_form("1");
    rig.asks_form("2");
    rig.at(50);
    rig.reply(1, CANCEL);
    rig.at(70);
    assert!(!rig.news(call).iter().any(|news| matches!(news, News::Done(_))));
    rig.reply(2, CANCEL);
    rig.at(79);
    assert!(!rig.news(call).iter().any(|news| matches!(news, News::Done(_))));
    rig.at(81);
    let idle = Limit::time("call.idle_timeout", seconds(10));
    assert!(matches!(rig.news(call).last(), Some(News::Done(Answer::TimedOut(it))) if *it == idle));

    let call = rig.call_with(false, CallLimits { idle: seconds(10), total: seconds(100) });
    rig.asks_form("3");
    rig.at(182);
    let total = Limit::time("call.total_timeout", seconds(100));
    assert!(
        matches!(rig.news(call).last(), Some(News::Done(Answer::TimedOut(it))) if *it == total)
    );
    assert_eq!(rig.said().last().unwrap(), &("3".to_owned(), CANCEL.to_owned()));
}

/// product.md 8: calls of one host: the oldest that can answer; of several hosts: never guessed.
#[test]
fn e13_a_question_is_never_put_to_a_guess() {
    let mut rig = rig();
    let mute = rig.call_of(Some(1));
    rig.declared = Some(raw(r#"{"elicitation":{}}"#));
    let (old, young) = (rig.call_of(Some(1)), rig.call_of(Some(1)));
    rig.asks_form("1");
    assert_eq!((rig.asked(old).len(), rig.asked(young).len()), (1, 0));
    rig.asks("2", "roots/list", "{}");
    assert_eq!(rig.asked(mute).len(), 1);
    assert!(rig.is_interactive());
    let stranger = rig.call_of(Some(2));
    rig.asks_form("3");
    assert_eq!(rig.unowned(), [3]);
    rig.answers(stranger, "{}");
    rig.asks_form("4");
    assert_eq!(rig.asked(old).len(), 2);
    // Who has no connection is a host of its own each time.
    for id in [mute, old, young] {
        rig.answers(id, "{}");
        rig.cancel_over(id);
    }
    let alone = rig.call_of(None);
    rig.asks_form("5");
    assert_eq!(rig.asked(alone).len(), 1);
    let another = rig.call_of(None);
    rig.asks_form("6");
    assert_eq!(rig.unowned(), [3, 6]);
    for number in [3, 5, 6] {
        rig.reply(number, CANCEL);
    }
    rig.answers(alone, "{}");
    rig.answers(another, "{}");
}

/// F44: what a server asks for a call that was given up is put to no other host: until it answers that
/// call, or a silent one would be over.
#[test]
fn f44_calls_that_were_given_up_haunt() {
    let mut rig = rig();
    let (gone, here) = (rig.call_of(Some(1)), rig.call_of(Some(2)));
    rig.cancel(gone);
    rig.asks_form("1");
    assert_eq!(rig.unowned(), [1]);
    rig.answers(gone, "{}");
    rig.asks_form("2");
    assert_eq!(rig.asked(here).len(), 1);
    let silent = rig.call_of(Some(1));
    rig.cancel(silent);
    rig.at(299);
    rig.asks_form("3");
    assert_eq!(rig.unowned(), [1, 3]);
    rig.at(301);
    rig.asks_form("4");
    assert_eq!(rig.asked(here).len(), 2);
    // The same host's own are no strangers; and more than are kept are anybody's.
    let mine = rig.call_of(Some(2));
    rig.cancel(mine);
    rig.asks_form("5");
    assert_eq!(rig.asked(here).len(), 3);
    for _ in 0..20 {
        let mine = rig.call_of(Some(2));
        rig.cancel(mine);
    }
    rig.asks_form("6");
    assert_eq!(rig.unowned(), [1, 3, 6]);
    for number in 1..=6 {
        rig.reply(number, CANCEL);
    }
    rig.answers(here, "{}");
}

/// F44: hosts without a connection are all alike: a call of one that was given up counts until its
/// server has read so, and no longer; else nobody of them could be asked for minutes.
#[test]
fn f44_without_connections_a_call_haunts_until_the_server_has_read() {
    let mut rig = rig();
    let gone = rig.call_of(None);
    rig.new_frames();
    rig.cancel(gone);
    assert_eq!(rig.new_frames(), ["notifications/cancelled", "ping"]);
    let fence = rig.last()["id"].clone();
    let here = rig.call_of(None);
    // Asked before it has read that the other call is over.
    rig.asks_form("1");
    assert_eq!(rig.unowned(), [1]);
    // Given up while the ping is under way: one behind it follows.
    let too = rig.call_of(None);
    rig.cancel(too);
    rig.new_frames();
    rig.says(&format!(r#"{{"jsonrpc":"2.0","id":{fence},"result":{{}}}}"#));
    assert_eq!(rig.new_frames(), ["ping"]);
    let fence = rig.last()["id"].clone();
    rig.asks_form("2");
    assert_eq!(rig.unowned(), [1, 2]);
    rig.says(&format!(r#"{{"jsonrpc":"2.0","id":{fence},"result":{{}}}}"#));
    rig.asks_form("3");
    assert_eq!(rig.asked(here).len(), 1);
    // Of a host that can be told apart it is remembered, whatever the server has read.
    let known = rig.call_of(Some(1));
    rig.cancel(known);
    assert!(!rig.new_frames().contains(&"ping".to_owned()));
    rig.asks_form("4");
    assert_eq!(rig.unowned(), [1, 2, 4]);
    for number in 1..=4 {
        rig.reply(number, CANCEL);
    }
    rig.answers(here, "{}");
}

/// E-13, F44: two hosts and some without connection, a thousand rounds in any order, a server that
/// also asks for calls that were given up: whoever is asked is the one for whom it was asked, and in
/// the end all is answered.
#[test]
fn f44_never_the_wrong_host() {
    let heard: usize = (1..=10).map(thousand_rounds).sum();
    assert!(heard > 200, "only {heard} questions were put to anybody");
}

/// How many were put to anybody.
fn thousand_rounds(seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let mut rig = rig();
    // Calls that the server works on, with their host and until when it may ask for them.
    let mut working: Vec<(u64, Option<u64>, Option<Instant>)> = Vec::new();
    let (mut asked, mut heard, mut secs) = (0_u64, 0, 0);
    for _ in 0..1000 {
        working.retain(|(_, _, until)| until.is_none_or(|until| until > rig.now));
        match dice.roll(8) {
            0 | 1 if working.len() < 4 => {
                let host = [Some(1), Some(2), None][dice.roll(3)];
                let call = rig.call_of(host);
                working.push((call, host, None));
            }
            2..=4 if !working.is_empty() => {
                let (call, ..) = working[dice.roll(working.len())];
                asked += 1;
                let params = format!(r#"{{"message":"{call}","requestedSchema":{{}}}}"#);
                rig.asks(&asked.to_string(), "elicitation/create", &params);
            }
            5 if !working.is_empty() => {
                let (call, ..) = working.remove(dice.roll(working.len()));
                rig.answers(call, "{}");
                rig.cancel_over(call);
            }
            6 if !working.is_empty() => {
                let at = dice.roll(working.len());
                if working[at].2.is_none() {
                    working[at].2 = Some(rig.now + seconds(300));
                    rig.cancel(working[at].0);
                }
            }
            _ => {
                secs += 7;
                rig.at(secs);
            }
        }
        for _ in 0..2 {
            let number = asked.saturating_sub(dice.roll(10) as u64);
            rig.reply(number, CANCEL);
        }
    }
    let hosts: std::collections::HashMap<u64, u64> = rig.hosts.iter().copied().collect();
    for (to, news) in rig.log.lock().unwrap().iter() {
        if let News::Asked(_, question) = news {
            heard += 1;
            let of: u64 = question.params.member_str("message").unwrap().parse().unwrap();
            assert_eq!(hosts[to], hosts[&of], "seed {seed}: {to} was asked for {of}");
        }
    }
    for (call, _, gone) in working {
        if gone.is_none() {
            rig.answers(call, "{}");
            rig.cancel_over(call);
        }
    }
    for number in rig.unowned() {
        rig.reply(number, CANCEL);
    }
    assert_eq!(rig.session.open_questions(), 0);
    let said: std::collections::HashSet<String> =
        rig.said().into_iter().map(|(id, _)| id).collect();
    assert_eq!(said.len() as u64, asked, "seed {seed}: not all was answered");
    heard
}

/// E-02: that something is done at a url goes up with the id that its server gave; for hosts that know
/// ids a question keeps it.
#[test]
fn e02_completions_go_up() {
    let mut rig = rig();
    let call = rig.call();
    rig.asks(
        "1",
        "elicitation/create",
        r#"{"mode":"url","message":"m","url":"https://x.test","elicitationId":"e\u0041"}"#,
    );
    let [News::Asked(1, question)] = &rig.news(call)[..] else { panic!("not asked") };
    assert_eq!(question.kind(), Kind::Url);
    assert_eq!(question.params.member("elicitationId").unwrap().as_str(), r#""e\u0041""#);
    rig.reply(1, r#"{"action":"accept"}"#);
    rig.answers(call, "{}");
    rig.says(
        r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e\u0041"}}"#,
    );
    let completed = rig.events.iter().any(
        |event| matches!(event, UpstreamEvent::Completed { id } if id.as_str() == r#""e\u0041""#),
    );
    assert!(completed);
    assert_eq!(cancelled().as_str(), CANCEL);
}

/// E-12: a legacy upstream hears that roots changed where it was told that it would.
#[test]
fn e12_changes_of_roots() {
    for (revision, declared, told) in [
        (Revision::V2025_11_25, DECLARED, true),
        (Revision::V2024_11_05, DECLARED, true),
        (Revision::V2025_06_18, r#"{"roots":{}}"#, false),
        (Revision::V2025_06_18, r#"{"elicitation":{}}"#, false),
        (Revision::V2026_07_28, DECLARED, false),
    ] {
        let mut rig = Rig::settled_with(revision, declared);
        rig.session.roots_changed();
        rig.drain();
        let sent = if told { vec!["notifications/roots/list_changed"] } else { Vec::new() };
        assert_eq!(rig.new_frames(), sent, "{revision} {declared}");
    }
}
