//! The session over HTTP against scripted exchanges.

mod calls;
mod listen;
mod marks;
mod opening;
mod questions;
mod random;
mod streams;

use ::http::{HeaderName, Method as HttpMethod, StatusCode};

use super::*;
use crate::protocol::http_rules::headers::{
    LAST_EVENT_ID, METHOD, NAME, PROTOCOL_VERSION, SESSION_ID,
};

fn over_http(preference: Preference) -> UpstreamConfig {
    let http = HttpConfig {
        may_be_sse: true,
        reconnect_delay: seconds(1),
        reconnect_attempts: 2,
        poll_interval: seconds(300),
        linger: seconds(5),
    };
    UpstreamConfig { http: Some(http), ..config(preference) }
}

fn initialized(revision: &str) -> String {
    format!(r#"{{"protocolVersion":"{revision}","capabilities":{{"tools":{{}}}}}}"#)
}

/// The method of a POST's message; `GET`, `DELETE`; `answer`.
fn name(exchange: &Exchange) -> String {
    if exchange.method != HttpMethod::POST {
        assert!(exchange.body.is_empty());
        return exchange.method.to_string();
    }
    let body: Value = serde_json::from_slice(&exchange.body).unwrap();
    body["method"].as_str().unwrap_or("answer").to_owned()
}

impl Rig {
    fn names(&self) -> Vec<String> {
        self.exchanges.iter().map(name).collect()
    }

    /// The last exchange of this name.
    fn last_of(&self, wanted: &str) -> Exchange {
        let found = self.exchanges.iter().rev().find(|exchange| name(exchange) == wanted);
        found.unwrap_or_else(|| panic!("no {wanted}: {:?}", self.names())).clone()
    }

    fn count_of(&self, wanted: &str) -> usize {
        self.names().iter().filter(|name| *name == wanted).count()
    }

    fn brings(&mut self, tag: u64, news: ExchangeNews) {
        self.session.handle_exchange(self.now, tag, news);
        self.drain();
    }

    fn head(&mut self, tag: u64, status: u16, session: Option<&str>, stream: bool) {
        let mut headers = ::http::HeaderMap::new();
        if let Some(session) = session {
            headers.insert(SESSION_ID, session.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        self.brings(tag, ExchangeNews::Head { status, headers, stream });
    }

    fn frame(&mut self, tag: u64, text: &str) {
        let frame = Bytes::copy_from_slice(text.replace('\n', " ").as_bytes());
        if let Resolved::Other(frame) = self.pending.resolve(self.now, frame) {
            self.brings(tag, ExchangeNews::Frame(frame));
        }
    }

    fn mark(&mut self, tag: u64, id: &str, retry: Option<u64>) {
        let retry = retry.map(Duration::from_millis);
        self.brings(tag, ExchangeNews::Mark { id: Some(id.to_owned()), retry, bears: false });
    }

    fn ends(&mut self, tag: u64, end: ExchangeEnd) {
        self.brings(tag, ExchangeNews::Ended(end));
    }

    fn http_refuses(&mut self, exchange: &Exchange, status: u16, body: &str) {
        let status = StatusCode::from_u16(status).unwrap();
        let body = Bytes::copy_from_slice(body.as_bytes());
        self.ends(exchange.tag, ExchangeEnd::Refused { status, body });
    }

    fn leads_elsewhere(&mut self, exchange: &Exchange) {
        let why = "a redirects (307) to b".to_owned();
        self.ends(exchange.tag, ExchangeEnd::Elsewhere { why });
    }

    fn fails(&mut self, exchange: &Exchange, sent: bool) {
        self.ends(exchange.tag, ExchangeEnd::Failed { sent, why: "broken".to_owned() });
    }

    /// One JSON body, as an answer to the request in `exchange`.
    fn http_answers(&mut self, exchange: &Exchange, session: Option<&str>, outcome: &str) {
        let id = id_of(exchange);
        self.head(exchange.tag, 200, session, false);
        self.frame(exchange.tag, &format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#));
        self.ends(exchange.tag, ExchangeEnd::Whole);
    }

    fn http_result(&mut self, exchange: &Exchange, result: &str) {
        self.http_answers(exchange, None, &format!(r#""result":{result}"#));
    }

    /// Answers the last `tools/list`.
    fn lists_tools(&mut self, tools: &str) {
        let result = format!(r#"{{"resultType":"complete","tools":{tools}}}"#);
        self.http_result(&self.last_of("tools/list"), &result);
    }

    /// 202.
    fn takes(&mut self, exchange: &Exchange) {
        self.head(exchange.tag, 202, None, false);
        self.ends(exchange.tag, ExchangeEnd::Whole);
    }

    /// A session that has settled on `revision` over HTTP; a legacy one in session `s1`, with its
    /// standalone stream refused.
    fn http_settled(revision: Revision) -> Self {
        let mut rig;
        if revision.is_modern() {
            rig = Self::new(over_http(Preference::ForceDiscover));
            rig.http_result(&rig.last_of("server/discover"), DISCOVERED);
            rig.session.read_list(rig.now, ListKind::Tools);
            rig.drain();
            rig.lists_tools("[]");
            assert!(rig.list().unwrap().items.is_empty());
        } else {
            rig = Self::new(over_http(Preference::ForceInitialize));
            rig.initialize(revision.as_str(), Some("s1"));
            if revision.has_standalone_stream() {
                rig.http_refuses(&rig.last_of("GET"), 405, "");
            }
        }
        assert_eq!(rig.settled_as().revision, revision);
        rig.exchanges.clear();
        rig
    }

    /// Answers the last `initialize`, and takes what follows it.
    fn initialize(&mut self, revision: &str, session: Option<&str>) {
        let result = format!(r#""result":{}"#, initialized(revision));
        self.http_answers(&self.last_of("initialize"), session, &result);
        self.takes(&self.last_of("notifications/initialized"));
    }
}

fn id_of(exchange: &Exchange) -> u64 {
    let body: Value = serde_json::from_slice(&exchange.body).unwrap();
    body["id"].as_u64().unwrap()
}

fn header<'a>(exchange: &'a Exchange, name: &HeaderName) -> Option<&'a str> {
    exchange.headers.get(name).map(|value| value.to_str().unwrap())
}
