//! Arguments that are repeated in headers, by a session that lists and calls (U-24 to U-26).

use super::*;

const REGION: HeaderName = HeaderName::from_static("mcp-param-region");
const ZONE: HeaderName = HeaderName::from_static("mcp-param-zone");

/// A tool `t` whose argument `n` is an integer and repeated as `name`.
fn marked(name: &str) -> String {
    format!(
        r#"[{{"name":"t","inputSchema":{{"type":"object","properties":{{
            "n":{{"type":"integer","x-mcp-header":"{name}"}}}}}}}}]"#
    )
}

const MISMATCH: &str = r#""error":{"code":-32020,"message":"header mismatch"}"#;

/// A modern session that has listed nothing.
fn unlisted() -> Rig {
    let mut rig = Rig::new(over_http(Preference::ForceDiscover));
    rig.http_result(&rig.last_of("server/discover"), DISCOVERED);
    rig.exchanges.clear();
    rig
}

impl Rig {
    /// The last call was refused for its headers.
    fn mismatched(&mut self) {
        let posted = self.last_of("tools/call");
        let id = id_of(&posted);
        self.http_refuses(&posted, 400, &format!(r#"{{"jsonrpc":"2.0","id":{id},{MISMATCH}}}"#));
    }

    fn completes(&mut self) {
        let posted = self.last_of("tools/call");
        self.http_result(&posted, r#"{"resultType":"complete","content":[]}"#);
    }
}

/// U-26: the first call waits for the list, which is read once however many wait; then it says in
/// headers what its arguments say.
#[test]
fn u26_the_list_is_read_before_the_first_call() {
    let mut rig = unlisted();
    let calls = [rig.call(), rig.call()];
    // The owner wants the list at the same time: one reading serves both.
    rig.session.read_list(rig.now, ListKind::Tools);
    rig.drain();
    assert_eq!(rig.names(), ["tools/list"]);
    rig.lists_tools(&marked("Region"));
    assert_eq!(rig.names(), ["tools/list", "tools/call", "tools/call"]);
    assert_eq!(header(&rig.last_of("tools/call"), &REGION), Some("100"), "1e2 is an integer");
    for exchange in rig.exchanges.clone().iter().filter(|it| name(it) == "tools/call") {
        rig.http_result(exchange, r#"{"resultType":"complete","content":[]}"#);
    }
    for call in calls {
        assert!(matches!(rig.outcome(call), Answer::Complete(_)));
    }
    rig.call();
    assert_eq!(rig.count_of("tools/list"), 1);
    rig.completes();
}

/// U-26: a list that cannot be read holds up no call for ever; nor do a caller who gives up and a
/// server without tools.
#[test]
fn u26_a_list_that_fails_holds_up_nothing() {
    let mut rig = unlisted();
    let (kept, given_up) = (rig.call(), rig.call());
    rig.cancel(given_up);
    rig.http_refuses(&rig.last_of("tools/list"), 500, "");
    assert_eq!(rig.names(), ["tools/list", "tools/call"]);
    rig.completes();
    assert!(matches!(rig.outcome(kept), Answer::Complete(_)));

    let mut rig = Rig::new(over_http(Preference::ForceDiscover));
    let early = rig.call();
    rig.http_result(
        &rig.last_of("server/discover"),
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#,
    );
    assert_eq!(rig.names(), ["server/discover", "tools/call"]);
    rig.completes();
    assert!(matches!(rig.outcome(early), Answer::Complete(_)));
}

/// U-26: -32020 says that the schema has changed: the list is read again and the call made once more,
/// with what it says now. A second -32020 is the answer.
#[test]
fn u26_a_mismatch_reads_the_list_again() {
    let mut rig = unlisted();
    let call = rig.call();
    rig.lists_tools(&marked("Region"));
    rig.mismatched();
    assert_eq!(rig.names(), ["tools/list", "tools/call", "tools/list"]);
    // Who comes meanwhile waits as well: what is known is wrong.
    let other = rig.call();
    assert_eq!(rig.count_of("tools/call"), 1);
    rig.lists_tools(&marked("Zone"));
    assert_eq!(rig.count_of("tools/call"), 3);
    let again = rig.exchanges.iter().rev().find(|it| name(it) == "tools/call" && id_of(it) == call);
    let again = again.unwrap().clone();
    assert_eq!((header(&again, &REGION), header(&again, &ZONE)), (None, Some("100")));
    rig.http_refuses(&again, 400, &format!(r#"{{"jsonrpc":"2.0","id":{call},{MISMATCH}}}"#));
    assert!(matches!(rig.outcome(call), Answer::Error(error) if error.code == -32020));
    assert_eq!(rig.count_of("tools/list"), 2);
    let posted = rig.exchanges.iter().find(|it| name(it) == "tools/call" && id_of(it) == other);
    rig.http_result(&posted.unwrap().clone(), r#"{"resultType":"complete","content":[]}"#);
    assert!(matches!(rig.outcome(other), Answer::Complete(_)));
}

/// U-26: a list that was being read when the mismatch came may be the old one: another reading
/// decides.
#[test]
fn u26_a_reading_under_way_is_repeated() {
    let mut rig = unlisted();
    let call = rig.call();
    rig.lists_tools(&marked("Region"));
    rig.session.read_list(rig.now, ListKind::Tools);
    rig.drain();
    rig.mismatched();
    rig.lists_tools(&marked("Region"));
    assert_eq!((rig.count_of("tools/call"), rig.count_of("tools/list")), (1, 3));
    rig.lists_tools(&marked("Zone"));
    assert_eq!(header(&rig.last_of("tools/call"), &ZONE), Some("100"));
    rig.completes();
    assert!(matches!(rig.outcome(call), Answer::Complete(_)));
}

/// U-24: a tool with a bad mark is left out of what is listed, with a warning that names it and says
/// why; over stdio and in older revisions nobody looks.
#[test]
fn u24_a_bad_tool_is_left_out() {
    let tools = format!(
        r#"[{{"name":"bad","inputSchema":{{"properties":{{"a":{{"type":"number","x-mcp-header":"A"}}}}}}}},
            {}"#,
        marked("Region").trim_start_matches('[')
    );
    let mut rig = Rig::http_settled(Revision::V2026_07_28);
    rig.notices.clear();
    rig.session.read_list(rig.now, ListKind::Tools);
    rig.drain();
    rig.lists_tools(&tools);
    let names: Vec<_> = rig.list().unwrap().items.iter().map(|it| it.member_str("name")).collect();
    assert_eq!(names, [Some("t".to_owned())]);
    let [notice] = rig.notices.as_slice() else { panic!("{:?}", rig.notices) };
    assert!(notice.text.contains("`bad`") && notice.text.contains("#/properties/a"), "{notice:?}");

    let mut rig = Rig::http_settled(Revision::V2025_11_25);
    rig.session.read_list(rig.now, ListKind::Tools);
    rig.drain();
    rig.lists_tools(&tools);
    assert_eq!(rig.list().unwrap().items.len(), 2);
    rig.call();
    let posted = rig.last_of("tools/call");
    assert!(!posted.headers.keys().any(|name| name.as_str().starts_with("mcp-param-")));
    rig.completes();
}

/// U-25: what cannot be repeated is refused before anything is sent.
#[test]
fn u25_what_cannot_be_repeated_is_not_sent() {
    let mut rig = unlisted();
    let call = rig.call();
    rig.lists_tools(
        r#"[{"name":"t","inputSchema":{"properties":{"n":{"type":"string","x-mcp-header":"N"}}}}]"#,
    );
    assert_eq!(rig.names(), ["tools/list"]);
    let Answer::Error(error) = rig.outcome(call) else { panic!("{:?}", rig.outcome(call)) };
    assert!(error.code == -32602 && error.message.contains("`n`"), "{error:?}");
}
