//! `mcpx exec` by hand: with the demonstration server, as the page `docs/scripts.md` has it.

use serde_json::{Value, json};

use crate::setup;
use crate::support::daemon::Daemon;
use crate::support::raw_host::text_of;

/// A daemon with the built-in server alone.
fn demo() -> Daemon {
    let mut daemon = setup::prepare();
    daemon.write_config(&[], &setup::quick(""));
    daemon.launch();
    daemon
}

fn script(daemon: &Daemon, text: &str) -> String {
    let file = daemon.path("script.ts");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[tokio::test]
async fn a_script_by_hand() {
    let daemon = demo();
    let code = "console.log('at', 'work');
        const sum = await tools.demo.add({ a: input.n, b: 2 });
        return { sum, said: await tools.demo.echo({ text: 'hello' }) };";
    let file = script(&daemon, code);
    let done = daemon.cli(&["exec", &file, "--input", r#"{"n":40}"#]).await.expect_code(0);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(value["said"], "hello", "{}", done.stdout);
    assert!(value["sum"].to_string().contains("42"), "{}", done.stdout);
    assert_eq!(done.stderr, "at work\n");

    let done = daemon.cli(&["--json", "exec", &file, "--input", r#"{"n":1}"#]).await.expect_code(0);
    let result = done.json();
    assert_eq!(result["structuredContent"]["said"], "hello", "{result}");

    let file = script(&daemon, "await tools.demo.echo({ text: 'x' });\nthrow new Error('no more')");
    let done = daemon.cli(&["exec", &file]).await.expect_code(1);
    assert_eq!(done.stdout, "");
    assert!(done.stderr.contains("Error: no more (line 2"), "{}", done.stderr);
    assert!(done.stderr.contains("1 call (demo.echo)"), "{}", done.stderr);

    let file = script(&daemon, "return input");
    let done = daemon.cli(&["exec", &file, "--input", "null"]).await.expect_code(0);
    assert_eq!(done.stdout, "null\n");

    let done = daemon.cli(&["exec", "/no/such/file.ts"]).await.expect_code(2);
    assert!(done.stderr.contains("/no/such/file.ts"), "{}", done.stderr);
    let done = daemon.cli(&["exec", &file, "--input", "{"]).await.expect_code(2);
    assert!(done.stderr.contains("--input is JSON"), "{}", done.stderr);
}

/// The daemon's own routes: a plain answer has the console in it.
#[tokio::test]
async fn a_script_over_the_control_api() {
    let daemon = demo();
    let body = json!({ "code": "console.warn('careful'); return input", "input": [1, "a"] });
    let answer = daemon.http("POST", "/v1/exec", Some(&body)).await.json();
    let result = json!({ "result": answer });
    assert_eq!(text_of(&result), "[1,\"a\"]\nconsole:\n[warn] careful");
    let body = json!({ "code": "return typeof input", "input": null });
    let answer = daemon.http("POST", "/v1/exec", Some(&body)).await.json();
    assert_eq!(text_of(&json!({ "result": answer })), "object");
    let body = json!({ "code": "1", "timeout": 0 });
    let answer = daemon.http("POST", "/v1/exec", Some(&body)).await;
    assert_eq!(answer.status, 400, "{}", answer.json());
}

/// F02, C-10: values that are indented, or stand on several lines, reach a script whole.
#[tokio::test]
async fn f02_indented_values_reach_a_script() {
    let daemon = demo();
    let code = r#"const { n } = await tools.demo.echo({ text: '{\n  "n": [\r\n 1 ]\n}' });
        return [n[0], input.a]"#;
    let file = script(&daemon, code);
    let done = daemon.cli(&["exec", &file, "--input", "{\n  \"a\": 2\n}"]).await.expect_code(0);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(value, json!([1, 2]));
}
