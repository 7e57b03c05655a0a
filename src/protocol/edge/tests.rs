//! Results through the edge, by revision.

mod page;

use super::*;

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned().into()).unwrap()
}

fn info() -> RawJson {
    raw(r#"{"name":"mcpx","version":"1"}"#)
}

fn spelled(revision: Revision, method: &'static str, text: &str) -> String {
    let result = raw(text);
    let out = downgrade_result(revision, &Method::known(method), &result, &info());
    assert_eq!(result.as_str(), text, "the stored result changed");
    serde_json::from_slice::<serde_json::Value>(out.as_bytes()).expect("still JSON");
    out.as_str().to_owned()
}

fn call(revision: Revision, text: &str) -> String {
    spelled(revision, "tools/call", text)
}

const STAMP: &str =
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mcpx","version":"1"}}"#;

fn legacy() -> impl Iterator<Item = Revision> {
    Revision::ALL.into_iter().filter(|revision| !revision.is_modern())
}

#[test]
fn h17_h18_modern_results_are_stamped() {
    assert_eq!(
        call(Revision::NEWEST, r#"{"content":[],"n":1e2}"#),
        format!(r#"{{"resultType":"complete",{STAMP},"content":[],"n":1e2}}"#)
    );
    assert_eq!(call(Revision::NEWEST, "{}"), format!(r#"{{"resultType":"complete",{STAMP}}}"#));
    // Merged with what is there; an upstream's identity gives way to ours.
    assert_eq!(
        call(
            Revision::NEWEST,
            r#"{"resultType":"complete","_meta":{"k":[1e2],"io.modelcontextprotocol/serverInfo":{"name":"up"}},"content":[]}"#
        ),
        r#"{"resultType":"complete","_meta":{"k":[1e2],"io.modelcontextprotocol/serverInfo":{"name":"mcpx","version":"1"}},"content":[]}"#
    );
    for kind in ["input_required", "task"] {
        let out =
            call(Revision::NEWEST, &format!(r#"{{"resultType":"{kind}","requestState":"s"}}"#));
        assert_eq!(out, format!(r#"{{"resultType":"{kind}","requestState":"s",{STAMP}}}"#));
    }
}

#[test]
fn h17_h18_legacy_results_have_neither() {
    for revision in legacy() {
        let modern = r#"{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up"}}}"#;
        assert_eq!(call(revision, modern), r#"{"content":[]}"#, "{revision}");
        let other = r#"{"resultType":"complete","_meta":{"dev.mcpx/reason":"busy"},"content":[]}"#;
        assert_eq!(call(revision, other), r#"{"_meta":{"dev.mcpx/reason":"busy"},"content":[]}"#);
        assert_eq!(spelled(revision, "ping", "{}"), "{}");
    }
}

#[test]
fn h21_cache_hints() {
    for method in [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "server/discover",
    ] {
        let out = spelled(Revision::NEWEST, method, r#"{"x":[]}"#);
        assert!(out.contains(r#""ttlMs":0,"cacheScope":"private""#), "{method}: {out}");
        let kept = spelled(Revision::NEWEST, method, r#"{"ttlMs":-1,"cacheScope":""}"#);
        assert!(kept.starts_with(r#"{"ttlMs":-1,"cacheScope":"","#), "{method}: {kept}");
        let open = spelled(Revision::NEWEST, method, r#"{"resultType":"input_required"}"#);
        assert!(!open.contains("ttlMs"), "{method}: {open}");
        for revision in legacy() {
            assert_eq!(
                spelled(revision, method, r#"{"x":[],"ttlMs":5,"cacheScope":"public"}"#),
                r#"{"x":[]}"#
            );
        }
    }
    assert!(!call(Revision::NEWEST, "{}").contains("ttlMs"));
    // A tool's own member of that name is its own.
    assert!(call(Revision::V2025_06_18, r#"{"content":[],"ttlMs":5}"#).contains("ttlMs"));
}

/// H-17, H-21: questions get our identity and nothing else; a state keeps its bytes.
#[test]
fn questions_are_not_stamped_complete() {
    let text = r#"{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"a\u0041\/"}"#;
    for method in ["tools/call", "prompts/get", "resources/read"] {
        assert_eq!(
            spelled(Revision::NEWEST, method, text),
            format!("{},{STAMP}}}", text.strip_suffix('}').unwrap())
        );
    }
}

#[test]
fn h54_structured_content_becomes_text() {
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
        for value in [r#"{"a":1e2}"#, "null", "[1]", "\"x\"", "false"] {
            let out = call(
                revision,
                &format!(
                    r#"{{"content":[{{"type":"text","text":"t"}}],"structuredContent":{value}}}"#
                ),
            );
            let text = serde_json::to_string(value).unwrap();
            assert_eq!(
                out,
                format!(
                    r#"{{"content":[{{"type":"text","text":"t"}},{{"type":"text","text":{text}}}]}}"#
                )
            );
        }
        assert_eq!(call(revision, r#"{"content":[]}"#), r#"{"content":[]}"#);
        // The copy that servers are asked to send is not sent twice.
        let copied =
            r#"{"content":[{"type":"text","text":"{ \"a\": 1 }"}],"structuredContent":{"a":1}}"#;
        assert_eq!(
            call(revision, copied),
            r#"{"content":[{"type":"text","text":"{ \"a\": 1 }"}]}"#
        );
        for lacking in ["", r#""content":null,"#] {
            let out = call(revision, &format!(r#"{{{lacking}"structuredContent":{{"a":1}}}}"#));
            assert_eq!(out, r#"{"content":[{"type":"text","text":"{\"a\":1}"}]}"#);
        }
    }
}

#[test]
fn h53_only_objects_until_2025_11_25() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let object = r#"{"content":[],"structuredContent": {"a":1}}"#;
        assert_eq!(call(revision, object), object);
        for value in ["[1]", "null", "7"] {
            let out = call(revision, &format!(r#"{{"content":[],"structuredContent" : {value}}}"#));
            assert_eq!(out, format!(r#"{{"content":[{{"type":"text","text":"{value}"}}]}}"#));
        }
        let list =
            |schema: &str| format!(r#"{{"tools":[{{"name":"t","inputSchema":{{}}{schema}}}]}}"#);
        let object = list(r#","outputSchema":{"type":"object"}"#);
        assert_eq!(spelled(revision, "tools/list", &object), object);
        for odd in [r#"{"type":"array"}"#, r#"{"oneOf":[]}"#, "true", "null"] {
            let odd = list(&format!(r#","outputSchema":{odd}"#));
            assert_eq!(spelled(revision, "tools/list", &odd), list(""));
        }
    }
    let array = r#"{"content":[],"structuredContent":[1]}"#;
    assert!(call(Revision::NEWEST, array).ends_with(r#""structuredContent":[1]}"#));
}

#[test]
fn h04_every_list_is_spelled() {
    let cases = [
        (
            "tools/list",
            r#"{"tools":[{"name":"a","title":"A","icons":[],"execution":{}},{"name":"b"}],"nextCursor":"c"}"#,
            r#"{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"c"}"#,
        ),
        (
            "prompts/list",
            r#"{"prompts":[{"name":"a","title":"A","arguments":[{"name":"x","title":"X"}]}]}"#,
            r#"{"prompts":[{"name":"a","arguments":[{"name":"x"}]}]}"#,
        ),
        (
            "resources/list",
            r#"{"resources":[{"uri":"u","name":"a","title":"A","_meta":{}}]}"#,
            r#"{"resources":[{"uri":"u","name":"a"}]}"#,
        ),
        (
            "resources/templates/list",
            r#"{"resourceTemplates":[{"uriTemplate":"u","name":"a","icons":[]}]}"#,
            r#"{"resourceTemplates":[{"uriTemplate":"u","name":"a"}]}"#,
        ),
        (
            "resources/read",
            r#"{"contents":[{"uri":"u","text":"t","_meta":{}}]}"#,
            r#"{"contents":[{"uri":"u","text":"t"}]}"#,
        ),
        (
            "prompts/get",
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"t","_meta":{}}}]}"#,
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"t"}}]}"#,
        ),
    ];
    for (method, newest, oldest) in cases {
        assert_eq!(spelled(Revision::V2024_11_05, method, newest), oldest, "{method}");
        assert_eq!(spelled(Revision::V2025_03_26, method, newest), oldest, "{method}");
    }
}

#[test]
fn h60_blocks_inside_results() {
    let mixed = r#"{"content":[{"type":"text","text":"t","_meta":{}},{"type":"audio","data":"AAAA","mimeType":"audio/wav"},{"type":"resource_link","uri":"u","name":"n"},{"type":"hologram","x":1e2}],"isError":false}"#;
    for revision in Revision::ALL {
        let out = call(revision, mixed);
        assert_eq!(out.contains(r#""type":"audio""#), revision >= Revision::V2025_03_26);
        assert_eq!(out.contains(r#""type":"resource_link""#), revision >= Revision::V2025_06_18);
        assert!(out.contains(r#"{"type":"hologram","x":1e2}"#));
    }
}

/// F42: results of the same era arrive as they came, however odd.
#[test]
fn f42_carried_not_judged() {
    for odd in [
        r#"{"structuredContent":{"a":1}}"#,
        r#"{"content":null,"isError":"yes"}"#,
        r#"{"content":[{"type":"text","annotations":{"audience":["system"]}}],"extra":{"x":-0}}"#,
        r#"{"_meta":{"UPPER key":1,"io.modelcontextprotocol/related-task":{}},"content":[]}"#,
    ] {
        assert_eq!(call(Revision::V2025_11_25, odd), odd);
        assert_eq!(call(Revision::V2025_06_18, odd), odd);
    }
    assert_eq!(call(Revision::V2025_06_18, "[1]"), "[1]");
}

#[test]
fn unchanged_results_are_the_same_bytes() {
    let result = raw(r#"{"content":[{"type":"text","text":"\"structuredContent\" é \u00e9"}]}"#);
    for revision in legacy() {
        let out = downgrade_result(revision, &Method::known("tools/call"), &result, &info());
        assert_eq!(out.as_bytes().as_ptr(), result.as_bytes().as_ptr(), "{revision}");
    }
}

#[test]
fn escaped_keys_are_seen() {
    let hidden = r#"{"content":[],"\u0072esultType":"complete"}"#;
    assert_eq!(call(Revision::V2025_06_18, hidden), r#"{"content":[]}"#);
}

#[test]
fn legacy_results_have_no_result_type_of_ours() {
    let method = Method::known("tools/call");
    let own = raw(r#"{"resultType":"input_required","content":[]}"#);
    assert_eq!(
        lift_result(Revision::V2025_06_18, &method, own.clone()).as_str(),
        r#"{"content":[]}"#
    );
    assert_eq!(lift_result(Revision::NEWEST, &method, own.clone()), own);
    // A modern one that lacks it is complete, and loses its identity towards legacy hosts like any.
    let sloppy =
        raw(r#"{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up"}}}"#);
    let lifted = lift_result(Revision::NEWEST, &method, sloppy);
    assert!(lifted.as_str().ends_with(r#","resultType":"complete"}"#), "{lifted:?}");
    for revision in legacy() {
        let out = downgrade_result(revision, &method, &lifted, &info());
        assert_eq!(out.as_str(), r#"{"content":[]}"#);
    }
}
