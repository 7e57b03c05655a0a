//! tools/list: F38, F39, F40, U-29.

use super::*;

fn reading(revision: Revision) -> Rig {
    let mut rig = Rig::settled(revision);
    rig.session.read_tools(rig.now);
    rig.drain();
    rig
}

fn page(names: &[&str], next: Option<&str>) -> String {
    let tools: Vec<String> =
        names.iter().map(|name| format!(r#"{{"name":"{name}","n":1e2}}"#)).collect();
    let next = next.map(|next| format!(r#","nextCursor":{next}"#)).unwrap_or_default();
    format!(r#"{{"tools":[{}]{next}}}"#, tools.join(","))
}

fn reply(rig: &mut Rig, names: &[&str], next: Option<&str>) {
    rig.answers(rig.last_id("tools/list"), &page(names, next));
}

fn names(list: &ListRead) -> Vec<String> {
    list.items.iter().map(|item| item.member_str("name").unwrap()).collect()
}

const BOTH: [Revision; 2] = [Revision::V2025_06_18, Revision::V2026_07_28];

/// Pages are joined in order, items as they came.
#[test]
fn f39_pages_are_joined() {
    for revision in BOTH {
        let mut rig = reading(revision);
        assert!(rig.last()["params"].get("cursor").is_none());
        assert_eq!(rig.last()["params"].get("_meta").is_some(), revision.is_modern());
        reply(&mut rig, &["b", "a"], Some("\"x\""));
        assert_eq!(rig.last()["params"]["cursor"], "x");
        rig.answers(
            rig.last_id("tools/list"),
            r#"{"tools":[{"name":"c"}],"nextCursor":null,"ttlMs":5}"#,
        );
        let list = rig.list().unwrap();
        assert_eq!(names(&list), ["b", "a", "c"]);
        assert_eq!(list.items[0].as_str(), r#"{"name":"b","n":1e2}"#);
        assert_eq!((list.incomplete, list.ttl_ms), (None, Some(5)));
        assert!(rig.notices.is_empty());
    }
}

/// U-29: an empty cursor ends a legacy list and continues a modern one.
#[test]
fn u29_empty_cursor() {
    let mut rig = reading(Revision::V2025_06_18);
    reply(&mut rig, &["a"], Some("\"\""));
    assert_eq!(names(&rig.list().unwrap()), ["a"]);
    let mut rig = reading(Revision::V2026_07_28);
    reply(&mut rig, &["a"], Some("\"\""));
    assert_eq!(rig.last()["params"]["cursor"], "");
    reply(&mut rig, &["b"], None);
    assert_eq!(names(&rig.list().unwrap()), ["a", "b"]);
    // A server that means the end by it gives its first page again; nothing is missing.
    let mut rig = reading(Revision::V2026_07_28);
    reply(&mut rig, &["a"], Some("\"\""));
    reply(&mut rig, &["a"], Some("\"\""));
    let list = rig.list().unwrap();
    assert_eq!((names(&list), list.incomplete), (vec!["a".to_owned()], None));
    assert!(rig.notices.is_empty());
}

/// F39, U-29: the same cursor for ever, and A, B, A, B.
#[test]
fn f39_repeated_cursors_end_the_list() {
    for revision in BOTH {
        let mut rig = reading(revision);
        reply(&mut rig, &["a"], Some("\"A\""));
        reply(&mut rig, &["b"], Some("\"A\""));
        let list = rig.list().unwrap();
        assert_eq!(names(&list), ["a", "b"]);
        assert!(list.incomplete.unwrap().contains("\"A\""));

        let mut rig = reading(revision);
        for (name, next) in [("a", "\"A\""), ("b", "\"B\""), ("c", "\"A\"")] {
            reply(&mut rig, &[name], Some(next));
        }
        let list = rig.list().unwrap();
        assert_eq!(names(&list), ["a", "b", "c"]);
        assert!(list.incomplete.is_some());
        assert_eq!(rig.new_frames().len(), 3);
    }
}

/// F39: pages without end, items without end, and no time without end.
#[test]
fn f39_pages_items_and_time_are_bounded() {
    let mut rig = reading(Revision::V2025_06_18);
    for number in 0..5 {
        let name = format!("t{number}");
        reply(&mut rig, &[&name], Some(&format!("\"{number}\"")));
    }
    let list = rig.list().unwrap();
    assert_eq!(list.items.len(), 5);
    assert!(list.incomplete.unwrap().contains("upstream.list_max_pages"));

    let mut rig = reading(Revision::V2025_06_18);
    let many: Vec<String> = (0..101).map(|number| format!("t{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    reply(&mut rig, &many, None);
    let list = rig.list().unwrap();
    assert_eq!(list.items.len(), 100);
    assert!(list.incomplete.unwrap().contains("upstream.list_max_items"));

    let mut rig = reading(Revision::V2025_06_18);
    rig.at(19);
    reply(&mut rig, &["a"], Some("\"A\""));
    let second = rig.last_id("tools/list");
    rig.at(20);
    let list = rig.list().unwrap();
    assert_eq!(names(&list), ["a"]);
    assert!(list.incomplete.unwrap().contains("upstream.list_timeout"));
    assert_eq!(rig.last()["params"]["requestId"], second);
    rig.answers(second, &page(&["b"], None));
    assert!(rig.notices.len() == 1 && rig.events.len() == 1);
}

/// F39: a bad page after good ones keeps the good ones; a bad first page is an error.
#[test]
fn f39_a_bad_page_keeps_the_good_ones() {
    let bad = [
        r#""error":{"code":-32602,"message":"bad cursor"}"#,
        r#""result":{"tools":7}"#,
        r#""result":{}"#,
        r#""result":[]"#,
    ];
    for answer in bad {
        let mut rig = reading(Revision::V2025_06_18);
        reply(&mut rig, &["a"], Some("\"A\""));
        let id = rig.last_id("tools/list");
        rig.says(&format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
        let list = rig.list().unwrap();
        assert_eq!(names(&list), ["a"]);
        assert!(list.incomplete.unwrap().contains("page 2"), "{answer}");

        let mut rig = reading(Revision::V2025_06_18);
        let id = rig.last_id("tools/list");
        rig.says(&format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
        assert!(rig.list().unwrap_err().contains("page 1"), "{answer}");
    }
}

/// F40: a name that comes twice, in one page or two, is kept once, with a warning.
#[test]
fn f40_duplicate_names() {
    let mut rig = reading(Revision::V2025_06_18);
    reply(&mut rig, &["a", "a", "\\u0062"], Some("\"A\""));
    rig.answers(rig.last_id("tools/list"), r#"{"tools":[{"name":"b"},{"name":7},3,{"name":"c"}]}"#);
    let list = rig.list().unwrap();
    assert_eq!((names(&list).join(""), list.incomplete), ("abc".to_owned(), None));
    assert_eq!(rig.notices.len(), 2, "{:?}", rig.notices);
    assert!(rig.notices[0].text.contains("\"a\"") && rig.notices[1].text.contains('2'));
}

/// F38: fifty notifications during one reading make one more, and no third.
#[test]
fn f38_changes_are_read_in_single_flight() {
    let mut rig = Rig::settled(Revision::V2025_06_18);
    for _ in 0..50 {
        rig.says(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    }
    assert_eq!(rig.new_frames(), ["tools/list"]);
    reply(&mut rig, &["a"], None);
    assert_eq!(rig.new_frames(), ["tools/list"]);
    reply(&mut rig, &["b"], None);
    assert!(rig.new_frames().is_empty());
    assert_eq!(names(&rig.list().unwrap()), ["a"]);
    assert_eq!(names(&rig.list().unwrap()), ["b"]);
    let changed = rig.events.iter().filter(|e| matches!(e, UpstreamEvent::ToolsChanged)).count();
    assert_eq!(changed, 2);
}

/// Asked for before the opening has settled: read then; and told when that never comes.
#[test]
fn a_list_wanted_early_is_read_once_open() {
    let mut rig = Rig::new(config(Preference::ForceDiscover));
    rig.session.read_tools(rig.now);
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    assert_eq!(rig.new_frames(), ["server/discover", "tools/list"]);
    rig.closes("exited", 2);
    assert!(rig.list().unwrap_err().contains("exited"));

    let mut rig = Rig::new(config(Preference::ForceDiscover));
    rig.session.read_tools(rig.now);
    rig.refuses(rig.last_id("server/discover"), -32601, "null");
    assert!(rig.list().is_err());
    rig.session.read_tools(rig.now);
    rig.drain();
    assert!(rig.list().is_err());
}

/// A server that declared no tools has none, and is not asked.
#[test]
fn undeclared_tools_are_not_asked_for() {
    let mut rig = Rig::new(config(Preference::ForceInitialize));
    rig.answers(rig.last_id("initialize"), r#"{"protocolVersion":"2025-06-18","capabilities":{}}"#);
    rig.session.read_tools(rig.now);
    rig.drain();
    assert!(rig.list().unwrap().items.is_empty());
    assert_eq!(rig.new_frames(), ["initialize", "notifications/initialized"]);
}

/// F08: a list page beyond the link's limit is a bad page.
#[test]
fn f08_a_page_that_is_too_large() {
    let mut rig = reading(Revision::V2025_06_18);
    let head =
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":["#, rig.last_id("tools/list"));
    rig.session.handle_too_large(rig.now, &Bytes::from(head), 65, 64);
    rig.drain();
    assert!(rig.list().unwrap_err().contains("65"));
}
