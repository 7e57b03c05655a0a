//! What a legacy server asks over HTTP: on the answer to a call, or on the stream that belongs to none
//! (U-47, E-05).

use super::*;
use crate::protocol::model::questions::Question;

/// In session `s1`, its standalone stream open, having declared elicitation; with that stream.
fn rig() -> (Rig, Exchange) {
    let mut rig = Rig::new(UpstreamConfig {
        capabilities: raw(r#"{"elicitation":{"form":{}}}"#),
        ..over_http(Preference::ForceInitialize)
    });
    rig.initialize("2025-11-25", Some("s1"));
    let get = rig.last_of("GET");
    rig.head(get.tag, 200, None, true);
    rig.exchanges.clear();
    (rig, get)
}

fn question(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"message":"m"}}}}"#
    )
}

impl Rig {
    /// A call of a host, whose answer is a stream.
    fn streamed(&mut self, host: u64) -> (u64, Exchange) {
        self.host = Some(host);
        let call = self.call();
        let exchange = self.last_of("tools/call");
        self.head(exchange.tag, 200, None, true);
        (call, exchange)
    }

    fn questions(&self, call: u64) -> Vec<u64> {
        let asked = self.news(call).into_iter().filter_map(|news| match news {
            News::Asked(number, Question { .. }) => Some(number),
            _ => None,
        });
        asked.collect()
    }

    /// The answers that were posted, as the id and what was said.
    fn posted(&self) -> Vec<(u64, String)> {
        let answers = self.exchanges.iter().filter(|exchange| name(exchange) == "answer");
        let said = answers.map(|exchange| {
            let body: Value = serde_json::from_slice(&exchange.body).unwrap();
            (body["id"].as_u64().unwrap(), body["result"]["action"].as_str().unwrap().to_owned())
        });
        said.collect()
    }

    fn accept(&mut self, number: u64) {
        self.session.answer_question(self.now, number, Ok(raw(r#"{"action":"accept"}"#)));
        self.drain();
    }
}

/// U-47: what comes on the answer to a call is asked of that call, also with several hosts' in flight;
/// and calls need not take turns for it.
#[test]
fn u47_the_stream_says_whose_it_is() {
    let (mut rig, _get) = rig();
    let ((one, first), (two, second)) = (rig.streamed(1), rig.streamed(2));
    rig.frame(second.tag, &question(1));
    rig.frame(first.tag, &question(2));
    assert_eq!((rig.questions(one), rig.questions(two)), (vec![2], vec![1]));
    let interactive = |event: &UpstreamEvent| matches!(event, UpstreamEvent::Interactive);
    assert!(!rig.events.iter().any(interactive));
    rig.accept(2);
    rig.accept(1);
    let accept = "accept".to_owned();
    assert_eq!(rig.posted(), [(2, accept.clone()), (1, accept)]);
    rig.http_result(&first, "{}");
    rig.http_result(&second, "{}");
}

/// E-05: on the stream that belongs to no request nothing says whose it is: the one host's with calls in
/// flight, else nobody's.
#[test]
fn e05_the_standalone_stream() {
    let (mut rig, get) = rig();
    let (one, first) = rig.streamed(1);
    rig.frame(get.tag, &question(1));
    assert_eq!(rig.questions(one), [1]);
    let (two, second) = rig.streamed(2);
    rig.frame(get.tag, &question(2));
    assert_eq!((rig.questions(one).len(), rig.questions(two).len()), (1, 0));
    assert!(matches!(rig.events.last(), Some(UpstreamEvent::Asked { number: 2, .. })));
    rig.accept(1);
    rig.accept(2);
    assert_eq!(rig.posted().len(), 2);
    rig.http_result(&first, "{}");
    rig.http_result(&second, "{}");
}

/// A question on the stream of a call that is over is answered at once: nobody waits for it.
#[test]
fn a_question_after_its_call() {
    let (mut rig, _get) = rig();
    let (call, exchange) = rig.streamed(1);
    rig.frame(exchange.tag, &format!(r#"{{"jsonrpc":"2.0","id":{call},"result":{{}}}}"#));
    rig.frame(exchange.tag, &question(7));
    assert!(rig.questions(call).is_empty());
    assert_eq!(rig.posted(), [(7, "cancel".to_owned())]);
    rig.ends(exchange.tag, ExchangeEnd::Whole);
}

/// U-40: a session that is given up takes its questions with it, and nothing is said to them.
#[test]
fn u40_a_renewed_session_has_no_questions() {
    let (mut rig, _get) = rig();
    let (call, exchange) = rig.streamed(1);
    rig.frame(exchange.tag, &question(1));
    let lost = rig.call();
    rig.http_refuses(&rig.last_of("tools/call"), 404, "");
    assert!(matches!(rig.news(call).last(), Some(News::Withdrawn(1))));
    rig.accept(1);
    assert!(rig.posted().is_empty());
    rig.initialize("2025-11-25", Some("s2"));
    let again = rig.last_of("tools/call");
    assert_eq!(id_of(&again), lost);
    rig.http_result(&again, "{}");
    rig.http_result(&exchange, "{}");
}
