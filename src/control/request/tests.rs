//! Tests of requests: each way to ask gives the same op.

use super::*;
use crate::control::OPS;
use crate::control::types::RunRequest;

/// One call of each op with every parameter set.
pub(in crate::control) fn samples() -> Vec<OpCall> {
    let server = || Some("a b/ü".to_owned());
    let call = CallRequest {
        namespace: "n".to_owned(),
        tool: "t".to_owned(),
        arguments: Some(RawJson::parse("{\"big\":1e2,\"n\":12345678901234567890}".into()).unwrap()),
        project: Some("/p".to_owned()),
        progress: true,
        questions: Some(WhoAnswers::Elsewhere),
    };
    let answer = AnswerRequest {
        id: "k3fp".to_owned(),
        content: call.arguments.clone(),
        value: Some("x".to_owned()),
    };
    let run = RunRequest {
        timeout: Some(3),
        project: server(),
        progress: true,
        questions: Some(WhoAnswers::Here),
    };
    let changes = json!({"call.idle_timeout": "2m", "x": null}).as_object().unwrap().clone();
    vec![
        OpCall::Status { server: server() },
        OpCall::Restart { server: "a b/ü".to_owned() },
        OpCall::Stop { server: "%41&".to_owned() },
        OpCall::Start { server: "x?y#z".to_owned() },
        OpCall::Reload,
        OpCall::Tools { namespace: server(), project: server() },
        OpCall::Search(SearchRequest {
            query: "a b".to_owned(),
            namespace: server(),
            limit: Some(3),
            project: server(),
        }),
        OpCall::Types(TypesRequest {
            namespace: server(),
            tools: vec!["a,b".to_owned(), "ü".to_owned()],
            all: true,
            project: server(),
        }),
        OpCall::Resources { namespace: server(), project: server() },
        OpCall::Read { uri: "mcpx://n/a:b?c#d".to_owned(), project: server() },
        OpCall::Prompts { namespace: server(), project: server() },
        OpCall::Prompt(PromptRequest {
            namespace: "n".to_owned(),
            prompt: "p".to_owned(),
            arguments: call.arguments.clone(),
            project: server(),
        }),
        OpCall::Call(call.clone()),
        OpCall::Ask(call),
        OpCall::Exec(ExecRequest {
            code: "return input".to_owned(),
            input: Some(RawJson::parse("[12345678901234567890]".into()).unwrap()),
            run: run.clone(),
        }),
        OpCall::Questions { follow: true },
        OpCall::Question { id: "a/b".to_owned() },
        OpCall::Answer(answer),
        OpCall::Decline { id: "k3fp".to_owned() },
        OpCall::Cancel { id: "k3fp".to_owned() },
        OpCall::Scripts,
        OpCall::Script { name: "a/b".to_owned() },
        OpCall::ScriptRun(ScriptRunRequest {
            name: "n".to_owned(),
            arguments: Some(RawJson::empty_object()),
            run,
        }),
        OpCall::ScriptSave { name: "n".to_owned(), code: "return 1".to_owned() },
        OpCall::ScriptRemove { name: "n".to_owned() },
        OpCall::Tasks,
        OpCall::Task { task: "0a1b".to_owned() },
        OpCall::TaskCancel { task: "0a/1b".to_owned() },
        OpCall::Logs { server: server(), lines: Some(3), follow: true },
        OpCall::Events(EventsRequest { follow: false, server: server(), kind: server() }),
        OpCall::Audit(AuditRequest {
            since: server(),
            server: server(),
            outcome: server(),
            id: server(),
            limit: Some(7),
            follow: true,
        }),
        OpCall::Trace(TraceRequest { server: "a b/ü".to_owned(), frames: Some(3), follow: true }),
        OpCall::Tree,
        OpCall::SettingsGet { key: Some("call.idle_timeout".to_owned()) },
        OpCall::SettingsSet { changes },
        OpCall::Config,
        OpCall::Protocol,
        OpCall::Http,
        OpCall::Health,
        OpCall::Doctor { server: None },
        OpCall::Version,
        OpCall::Shutdown,
    ]
}

#[test]
fn every_op_survives_http() {
    let samples = samples();
    assert_eq!(samples.len(), OPS.len());
    for call in samples {
        let http = call.to_http();
        let back = route::resolve(http.verb.as_str(), &http.path, http.query(), &http.body);
        assert_eq!(back, Ok(call));
    }
}

#[test]
fn arguments_pass_as_written() {
    let body = br#"{"namespace":"n","tool":"t","arguments":{"a":1.0,"a":2e1,"b":"\ud800"}}"#;
    let call = route::resolve("POST", "/v1/call", None, body).unwrap();
    let OpCall::Call(call) = call else { panic!("{call:?}") };
    assert_eq!(call.arguments.unwrap().as_str(), r#"{"a":1.0,"a":2e1,"b":"\ud800"}"#);
}

#[test]
fn wrong_parameters_are_refused_by_name() {
    let refuse = |verb: &str, path: &str, query: Option<&str>, body: &str| {
        let error = route::resolve(verb, path, query, body.as_bytes()).unwrap_err();
        assert_eq!(error.error.code, FailureCode::BadRequest);
        error.error.message
    };
    let message = refuse("GET", "/v1/logs", Some("sever=a"), "");
    assert_eq!(message, "unknown parameter `sever` of logs; did you mean `server`?");
    assert!(refuse("GET", "/v1/logs", Some("lines=x"), "").contains("whole number"));
    assert!(refuse("GET", "/v1/logs", Some("lines=1&lines=2"), "").contains("twice"));
    assert!(refuse("POST", "/v1/call", None, "{\"tool\":\"t\"}").contains("`namespace`"));
    assert!(refuse("POST", "/v1/call", None, "[]").contains("object"));
    assert!(refuse("POST", "/v1/call", None, "{").contains("not JSON"));
    let message =
        refuse("POST", "/v1/call", None, "{\"namespace\":\"n\",\"tool\":\"t\",\"arguments\":[]}");
    assert_eq!(message, "`arguments` is an object");
    assert!(refuse("POST", "/v1/reload", None, "{\"x\":1}").contains("none is taken"));
}

#[test]
fn an_op_tool_takes_the_same_parameters_and_never_streams() {
    let op = OpName::Logs.row();
    let arguments = RawJson::parse("{\"server\":\"a\",\"lines\":2}".into()).unwrap();
    assert_eq!(
        OpCall::of_arguments(op, &arguments),
        Ok(OpCall::Logs { server: Some("a".to_owned()), lines: Some(2), follow: false })
    );
    let events = OpCall::of_arguments(OpName::Events.row(), &RawJson::empty_object()).unwrap();
    assert!(!events.streams());
    assert_eq!(
        input_schema(OpName::Health.row()),
        json!({"type": "object", "additionalProperties": false})
    );
    assert_eq!(input_schema(op)["properties"].as_object().unwrap().len(), 2);
    assert_eq!(input_schema(OpName::Call.row())["required"], json!(["namespace", "tool"]));
}
