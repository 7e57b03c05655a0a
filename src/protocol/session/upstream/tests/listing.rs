//! tools/list: F38, F39, F40, U-29.

use super::*;

fn reading(revision: Revision) -> Rig {
    let mut rig = Rig::settled(revision);
    rig.session.read_list(rig.now, ListKind::Tools);
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
    let changed =
        rig.events.iter().filter(|e| matches!(e, UpstreamEvent::Changed(ListKind::Tools))).count();
    assert_eq!(changed, 2);
}

/// Asked for before the opening has settled: read then; and told when that never comes.
#[test]
fn a_list_wanted_early_is_read_once_open() {
    let mut rig = Rig::new(config(Preference::ForceDiscover));
    rig.session.read_list(rig.now, ListKind::Tools);
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    assert_eq!(rig.new_frames(), ["server/discover", "tools/list"]);
    rig.closes("exited", 2);
    assert!(rig.list().unwrap_err().contains("exited"));

    let mut rig = Rig::new(config(Preference::ForceDiscover));
    rig.session.read_list(rig.now, ListKind::Tools);
    rig.refuses(rig.last_id("server/discover"), -32601, "null");
    assert!(rig.list().is_err());
    rig.session.read_list(rig.now, ListKind::Tools);
    rig.drain();
    assert!(rig.list().is_err());
}

/// A server that declared no tools has none, and is not asked.
#[test]
fn undeclared_tools_are_not_asked_for() {
    let mut rig = Rig::new(config(Preference::ForceInitialize));
    rig.answers(rig.last_id("initialize"), r#"{"protocolVersion":"2025-06-18","capabilities":{}}"#);
    rig.session.read_list(rig.now, ListKind::Tools);
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

const EVERYTHING: &str = r#"{"protocolVersion":"2025-06-18",
    "capabilities":{"tools":{},"resources":{"subscribe":true},"prompts":{}}}"#;

/// R-02, K6: every list that is declared is read, beside the others; each item by its own key, a
/// template's by `uriTemplate`.
#[test]
fn r02_all_declared_lists_are_read() {
    let mut rig = Rig::new(config(Preference::ForceInitialize));
    rig.session.read_lists(rig.now);
    rig.answers(rig.last_id("initialize"), EVERYTHING);
    let asked = rig.new_frames();
    let methods = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];
    assert_eq!(asked[2..], methods);
    rig.answers(rig.last_id("prompts/list"), r#"{"prompts":[{"name":"p"},{"uri":"x"}]}"#);
    rig.answers(
        rig.last_id("resources/templates/list"),
        r#"{"resourceTemplates":[{"uriTemplate":"db://{t}","name":"t"}]}"#,
    );
    rig.answers(
        rig.last_id("resources/list"),
        r#"{"resources":[{"uri":"a:1","name":"n"},{"uri":"a:1","name":"m"},{"uri":"a:2","name":"n"}]}"#,
    );
    reply(&mut rig, &["t"], None);
    let lists: Vec<_> = rig
        .events
        .iter()
        .filter_map(|event| match event {
            UpstreamEvent::Listed(kind, Ok(list)) => Some((*kind, list.items.len())),
            _ => None,
        })
        .collect();
    let expected = [
        (ListKind::Prompts, 1),
        (ListKind::Templates, 1),
        (ListKind::Resources, 2),
        (ListKind::Tools, 1),
    ];
    assert_eq!(lists, expected);
    assert_eq!(rig.notices.len(), 2, "{:?}", rig.notices);
}

/// A server that has resources and knows nothing of templates has none, which is no failure.
#[test]
fn unknown_templates_are_no_templates() {
    let mut rig = Rig::new(config(Preference::ForceInitialize));
    rig.answers(rig.last_id("initialize"), EVERYTHING);
    for (kind, code) in [(ListKind::Templates, -32601), (ListKind::Resources, -32601)] {
        rig.session.read_list(rig.now, kind);
        rig.drain();
        rig.refuses(rig.last_id(kind.method()), code, "null");
        assert_eq!(rig.list().is_ok(), kind == ListKind::Templates);
    }
}

/// Each list has its own time, and one that hangs does not hold up another.
#[test]
fn a_list_that_hangs_ends_alone() {
    let mut rig = Rig::new(config(Preference::ForceInitialize));
    rig.answers(rig.last_id("initialize"), EVERYTHING);
    rig.session.read_list(rig.now, ListKind::Prompts);
    rig.at(10);
    rig.session.read_list(rig.now, ListKind::Tools);
    rig.drain();
    rig.at(20);
    assert!(rig.list().unwrap_err().contains("prompts/list"));
    reply(&mut rig, &["a"], None);
    assert_eq!(names(&rig.list().unwrap()), ["a"]);
}

/// F38: a change of the resources is one of their templates, too.
#[test]
fn f38_resources_and_templates_change_together() {
    let mut rig = Rig::new(config(Preference::ForceInitialize));
    rig.answers(rig.last_id("initialize"), EVERYTHING);
    rig.new_frames();
    for _ in 0..9 {
        rig.says(r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#);
        rig.says(r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#);
    }
    let methods = ["resources/list", "resources/templates/list", "prompts/list"];
    assert_eq!(rig.new_frames(), methods);
}
