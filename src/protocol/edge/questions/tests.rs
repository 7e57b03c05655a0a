//! What is asked and answered, spelled for each revision, by row.

use super::*;
use crate::protocol::model::questions::url_required;
use crate::protocol::revision::Revision::{
    V2024_11_05 as R2411, V2025_03_26 as R2503, V2025_06_18 as R2506, V2025_11_25 as R2511,
    V2026_07_28 as R2607,
};

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned().into()).unwrap()
}

fn question(method: &str, params: &str) -> Question {
    Question::new(method, Some(raw(params))).unwrap()
}

fn elicit(params: &str) -> Question {
    question("elicitation/create", params)
}

fn form(properties: &str) -> Question {
    elicit(&format!(
        r#"{{"mode":"form","message":"m","requestedSchema":{{"type":"object","properties":{properties}}}}}"#
    ))
}

/// The parameters, or what the revision cannot ask for.
fn spelled(revision: Revision, question: &Question) -> String {
    match downgrade_question(revision, question, "7") {
        Ok(params) => params.as_str().to_owned(),
        Err(cannot) => cannot.to_string(),
    }
}

/// The properties of a form as `revision` spells them.
fn properties(revision: Revision, question: &Question) -> String {
    let params = downgrade_question(revision, question, "7").unwrap();
    let schema = params.member("requestedSchema").unwrap();
    schema.member("properties").unwrap().as_str().to_owned()
}

fn said(revision: Revision, question: &Question, reply: &str) -> String {
    lift_reply(revision, question, raw(reply)).as_str().to_owned()
}

/// E-04: what a revision does not have, no host of it is asked.
#[test]
fn e04_what_a_revision_cannot_ask() {
    let url = elicit(r#"{"mode":"url","url":"https://x.test/","message":"m"}"#);
    let (any, roots) = (form("{}"), question("roots/list", "{}"));
    let sample = question("sampling/createMessage", r#"{"messages":[],"maxTokens":1}"#);
    let tools = question(
        "sampling/createMessage",
        r#"{"messages":[],"maxTokens":1,"tools":[{"name":"t"}]}"#,
    );
    for (revision, can) in [
        (R2411, [false, false, true, false]),
        (R2503, [false, false, true, false]),
        (R2506, [true, false, true, false]),
        (R2511, [true, true, true, true]),
        (R2607, [true, true, true, true]),
    ] {
        let asked = [&any, &url, &sample, &tools];
        let answers = asked.map(|question| downgrade_question(revision, question, "7").is_ok());
        assert_eq!(answers, can, "{revision}");
        assert_eq!(spelled(revision, &roots), "{}");
    }
    assert_eq!(
        spelled(R2503, &any),
        "protocol revision 2025-03-26 has no way to ask for a form to be filled in"
    );
}

/// H-62: keys that a revision lacks go, those that no revision has stay.
#[test]
fn h62_forms_by_revision() {
    let asked = elicit(
        r#"{"mode":"form","message":"m","x":1e2,"_meta":{"v":1},"requestedSchema":{"$schema":"s","type":"object","properties":{"a":{"type":"string","pattern":"^a","x":2}},"required":["a"]}}"#,
    );
    assert_eq!(
        spelled(R2506, &asked),
        r#"{"message":"m","x":1e2,"_meta":{"v":1},"requestedSchema":{"type":"object","properties":{"a":{"type":"string","pattern":"^a","x":2}},"required":["a"]}}"#
    );
    assert_eq!(spelled(R2511, &asked), asked.params.as_str());
    assert_eq!(spelled(R2607, &asked), asked.params.as_str().replace(r#""_meta":{"v":1},"#, ""));
    // What is no form is carried, and asked as it is.
    let odd = elicit(r#"{"message":"m","requestedSchema":[1]}"#);
    assert_eq!(spelled(R2506, &odd), odd.params.as_str());
}

/// E-03: 2025-11-25 wants an id and may have brought one; 2026-07-28 never sees one.
#[test]
fn e03_ids_of_url_questions() {
    let bare = elicit(r#"{"mode":"url","url":"https://x.test/","message":"m"}"#);
    assert_eq!(
        spelled(R2511, &bare),
        r#"{"mode":"url","url":"https://x.test/","message":"m","elicitationId":"mcpx-7"}"#
    );
    assert_eq!(spelled(R2607, &bare), bare.params.as_str());
    let came = r#"{"mode":"url","elicitationId":"e\u0031","url":"https://x.test/","message":"m"}"#;
    let method = Method::known("elicitation/create");
    let named = lift_question(R2511, method, Some(&raw(came)));
    assert_eq!(spelled(R2511, &named), came);
    assert_eq!(spelled(R2607, &named), bare.params.as_str());
}

/// E-03: the same inside a whole result, whoever made it.
#[test]
fn e03_no_modern_result_has_an_id() {
    let result = raw(
        r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","elicitationId":"e","url":"https://x.test/","message":"m"}},"s":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":[],"_meta":{"k":1}}],"maxTokens":1e2,"_meta":{}}},"r":{"method":"roots/list"}},"requestState":"\u0041"}"#,
    );
    let method = Method::known("tools/call");
    let sent = super::super::downgrade_result(R2607, &method, &result, &raw("{}"));
    assert_eq!(
        sent.as_str(),
        r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","url":"https://x.test/","message":"m"}},"s":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":[],"_meta":{"k":1}}],"maxTokens":1e2}},"r":{"method":"roots/list"}},"requestState":"\u0041","_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#
    );
}

/// A legacy upstream's question: its own bookkeeping stays with mcpx, everything else is carried.
#[test]
fn what_an_upstream_asks_is_lifted() {
    let lifted = |revision, params: &str| {
        let method = Method::known("elicitation/create");
        lift_question(revision, method, Some(&raw(params))).params.as_str().to_owned()
    };
    let meta = r#"{"message":"m","task":{},"_meta":{"progressToken":1,"io.modelcontextprotocol/related-task":{"taskId":"t"},"v":1e2}}"#;
    assert_eq!(lifted(R2511, meta), r#"{"message":"m","_meta":{"v":1e2}}"#);
    assert_eq!(
        lifted(R2506, r#"{"_meta":{"progressToken":1},"message":"m"}"#),
        r#"{"message":"m"}"#
    );
    let named = r#"{"requestedSchema":{"properties":{"c":{"type":"string","enum":["r","g"],"enumNames":["Red","Green"],"title":"C"},"d":{"enum":["a","b"],"enumNames":["A"]}}}}"#;
    assert_eq!(
        lifted(R2506, named),
        r#"{"requestedSchema":{"properties":{"c":{"type":"string","title":"C","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]},"d":{"enum":["a","b"],"enumNames":["A"]}}}}"#
    );
    // 2025-11-25 and 2026-07-28 have both spellings.
    assert_eq!(lifted(R2511, named), named);
    assert_eq!(lifted(R2607, named), named);
    let none = lift_question(R2411, Method::known("roots/list"), None);
    assert_eq!(none.params.as_str(), "{}");
}

/// SEP-1330, SEP-1034: choices and defaults as 2025-06-18 has them.
#[test]
fn u37_choices_and_defaults_for_2025_06_18() {
    for (newest, older) in [
        (r#"{"a":{"type":"string","default":"x"}}"#, r#"{"a":{"type":"string"}}"#),
        (r#"{"a":{"type":"integer","default":5}}"#, r#"{"a":{"type":"integer"}}"#),
        (
            r#"{"a":{"type":"boolean","default":true}}"#,
            r#"{"a":{"type":"boolean","default":true}}"#,
        ),
        (
            r#"{"a":{"type":"string","enum":["r"],"default":"r"}}"#,
            r#"{"a":{"type":"string","enum":["r"]}}"#,
        ),
        (
            r#"{"a":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"G"}],"title":"A"}}"#,
            r#"{"a":{"type":"string","title":"A","enum":["r","g"],"enumNames":["Red","G"]}}"#,
        ),
        (
            r#"{"z":{"type":"string"},"a":{"type":"array","items":{"type":"string","enum":["r","g"]},"default":["g"]},"b":{"type":"string"}}"#,
            r#"{"z":{"type":"string"},"a.1":{"type":"boolean","title":"a: r","default":false},"a.2":{"type":"boolean","title":"a: g","default":true},"b":{"type":"string"}}"#,
        ),
        (
            r#"{"a.1":{"type":"string"},"a":{"type":"array","title":"A","description":"d","items":{"anyOf":[{"const":"r","title":"Red"}]}}}"#,
            r#"{"a.1":{"type":"string"},"a.1_":{"type":"boolean","title":"A: Red","description":"d","default":false}}"#,
        ),
        // What no revision has is carried.
        (
            r#"{"a":{"type":"array","items":{"type":"object"}}}"#,
            r#"{"a":{"type":"array","items":{"type":"object"}}}"#,
        ),
        (r#"{"a":7}"#, r#"{"a":7}"#),
    ] {
        assert_eq!(properties(R2506, &form(newest)), older);
        assert_eq!(properties(R2511, &form(newest)), newest);
    }
    let required = elicit(
        r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"enum":["r"]}},"b":{"type":"string"}},"required":["a","b"]}}"#,
    );
    assert!(spelled(R2506, &required).contains(r#""required":["b"]"#));
}

/// A choice of several comes back as the list that was asked for.
#[test]
fn several_choices_come_back_as_a_list() {
    let asked = form(
        r#"{"a":{"type":"array","items":{"anyOf":[{"const":"r","title":"Red"},{"const":"g","title":"G"}]},"default":["g"]}}"#,
    );
    for (reply, lifted) in [
        (r#"{"a.1":true,"a.2":false}"#, r#"{"a":["r"]}"#),
        (r#"{"a.1":false}"#, r#"{"a":[]}"#),
        (r#"{"a.2":true,"x":1e2,"a.1":true}"#, r#"{"x":1e2,"a":["r","g"]}"#),
        // Nothing was said: the default of the whole.
        ("{}", r#"{"a":["g"]}"#),
    ] {
        let reply = format!(r#"{{"action":"accept","content":{reply}}}"#);
        let expected = format!(r#"{{"action":"accept","content":{lifted}}}"#);
        assert_eq!(said(R2506, &asked, &reply), expected);
    }
    let whole = r#"{"action":"accept","content":{"a":["r"],"a.1":true}}"#;
    assert_eq!(said(R2511, &asked, whole), whole);
}

/// U-37: a missing field gets its default, a set one keeps what was said, whatever that is.
#[test]
fn u37_defaults_fill_what_is_missing() {
    let asked = form(
        r#"{"s":{"type":"string","default":"d"},"n":{"type":"number","default":1.50},"b":{"type":"boolean","default":true},"l":{"type":"array","default":["x"]},"o":{"type":"string"},"z":{"default":null}}"#,
    );
    let filled = r#"{"action":"accept","content":{"s":"d","n":1.50,"b":true,"l":["x"]}}"#;
    for revision in [R2506, R2511, R2607] {
        for reply in [
            r#"{"action":"accept","content":{}}"#,
            r#"{"action":"accept"}"#,
            r#"{"action":"accept","content":null}"#,
            r#"{"action":"accept","content":{},"_meta":{"k":1}}"#,
        ] {
            assert_eq!(said(revision, &asked, reply), filled, "{revision} {reply}");
        }
        let set = r#"{"action":"accept","content":{"s":"","n":0,"b":false,"l":[],"o":"x"}}"#;
        assert_eq!(said(revision, &asked, set), set);
        for reply in [r#"{"action":"decline"}"#, r#"{"action":"cancel"}"#] {
            assert_eq!(said(revision, &asked, reply), reply);
        }
    }
    let url = elicit(r#"{"mode":"url","url":"https://x.test/","message":"m"}"#);
    assert_eq!(
        said(R2511, &url, r#"{"action":"accept","content":null}"#),
        r#"{"action":"accept"}"#
    );
}

/// Messages with several blocks are several messages before 2025-11-25, and models have no tools.
#[test]
fn sampling_by_revision() {
    let sample = |more: &str, messages: &str| {
        let params = format!(r#"{{"messages":[{messages}],"maxTokens":1e2{more}}}"#);
        question("sampling/createMessage", &params)
    };
    let many = sample(
        r#","includeContext":"thisServer","tools":[],"toolChoice":{"mode":"none"},"x":1"#,
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"audio","data":"AAAA","mimeType":"audio/wav"}],"_meta":{}},{"role":"assistant","content":{"type":"text","text":"b"}}"#,
    );
    assert_eq!(
        spelled(R2503, &many),
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"audio","data":"AAAA","mimeType":"audio/wav"}},{"role":"assistant","content":{"type":"text","text":"b"}}],"maxTokens":1e2,"includeContext":"thisServer","x":1}"#
    );
    assert!(spelled(R2411, &many).contains("[audio, audio/wav, about"));
    for revision in [R2511, R2607] {
        assert_eq!(spelled(revision, &many), many.params.as_str());
    }
    let used = sample(
        "",
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"t","input":{}}]}"#,
    );
    assert!(spelled(R2506, &used).ends_with("a message of a model that uses tools"));
    assert_eq!(spelled(R2511, &used), used.params.as_str());
}

#[test]
fn what_a_model_said_by_revision() {
    let asked = question("sampling/createMessage", r#"{"messages":[],"maxTokens":1}"#);
    let reply = |revision, content: &str| {
        let whole = format!(
            r#"{{"role":"assistant","content":{content},"model":"m","stopReason":"endTurn","x":1e2}}"#
        );
        let lifted = lift_reply(R2607, &asked, raw(&whole));
        let spelled = downgrade_reply(revision, &asked, &lifted);
        assert_eq!(spelled.member_str("stopReason").unwrap(), "endTurn");
        assert_eq!(spelled.member("x").unwrap().as_str(), "1e2");
        spelled.member("content").unwrap().as_str().to_owned()
    };
    let one = r#"{"type":"text","text":"a"}"#;
    let two = r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#;
    let mixed = r#"[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"}]"#;
    for revision in [R2411, R2503, R2506] {
        assert_eq!(reply(revision, one), one);
        assert_eq!(reply(revision, &format!("[{one}]")), one);
        assert_eq!(reply(revision, two), r#"{"type":"text","text":"a\nb"}"#);
        assert!(
            reply(revision, mixed).starts_with(r#"{"type":"text","text":"a\n[image: left out"#)
        );
    }
    for content in [one, two, mixed] {
        assert_eq!(reply(R2511, content), content);
        assert_eq!(reply(R2607, content), content);
    }
}

/// E-12: `_meta` of a root is 2025-06-18's; that of the answer is no modern one's.
#[test]
fn e12_roots_by_revision() {
    let asked = question("roots/list", "{}");
    let came =
        r#"{"roots":[{"uri":"file:///a","name":"a","_meta":{"k":1}}],"_meta":{"z":1},"x":1}"#;
    let lifted = lift_reply(R2511, &asked, raw(came));
    assert_eq!(
        lifted.as_str(),
        r#"{"roots":[{"uri":"file:///a","name":"a","_meta":{"k":1}}],"x":1}"#
    );
    let bare = r#"{"roots":[{"uri":"file:///a","name":"a"}],"x":1}"#;
    assert_eq!(downgrade_reply(R2503, &asked, &lifted).as_str(), bare);
    assert_eq!(downgrade_reply(R2506, &asked, &lifted).as_str(), lifted.as_str());
}

#[test]
fn what_is_no_reply_is_told() {
    let sample = question("sampling/createMessage", "{}");
    let roots = question("roots/list", "{}");
    for (question, good, bad) in [
        (form("{}"), r#"{"action":"decline"}"#, &["{}", "7", r#"{"action":"reject"}"#][..]),
        (sample, r#"{"role":"assistant","content":{},"model":"m"}"#, &[r#"{"role":"user"}"#]),
        (roots, r#"{"roots":[]}"#, &["{}", r#"{"roots":{}}"#]),
    ] {
        assert_eq!(check_reply(&question, &raw(good)), Ok(()));
        for bad in bad {
            let error = check_reply(&question, &raw(bad)).unwrap_err();
            // What a person may have typed stays out of it.
            assert!(!error.message.contains("reject"), "{}", error.message);
        }
    }
}

/// E-04: what a revision does not define is not declared by its hosts.
#[test]
fn e04_capabilities_are_lifted() {
    let all = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}"#;
    let lifted = |revision| lift_capabilities(revision, &raw(all)).as_str().to_owned();
    assert_eq!(lifted(R2411), r#"{"sampling":{"context":{}},"roots":{}}"#);
    assert_eq!(lifted(R2506), r#"{"elicitation":{},"sampling":{"context":{}},"roots":{}}"#);
    assert_eq!(lifted(R2511), all.replace(r#""listChanged":true"#, ""));
    // A modern host speaks the newest shape itself.
    assert_eq!(lifted(R2607), all);
}

/// The error of 2025-11-25: read, and as text for a host that does not know it.
#[test]
fn urls_that_an_error_asks_for() {
    let data = r#"{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://x.test/a","message":"Log in"},{"mode":"form"}]}"#;
    let error = RpcError {
        code: -32042,
        message: "first".to_owned(),
        data: Some(raw(data)),
        relayed: true,
    };
    let questions = url_required(&error).unwrap();
    assert_eq!(questions.len(), 1);
    assert_eq!(questions[0].kind(), Kind::Url);
    assert_eq!(url_ids(&error), ["e1"]);
    let other = RpcError { code: -32603, ..error.clone() };
    assert!(url_required(&other).is_none() && url_ids(&other).is_empty());

    let text = as_text(&error);
    assert_eq!(text.code, -32603);
    assert!(text.message.contains("first\nLog in: open https://x.test/a"), "{}", text.message);
}
