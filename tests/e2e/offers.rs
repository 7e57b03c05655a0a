//! Resources, prompts and types by hand: `mcpx resources`, `read`, `prompts`, `prompt`, `types`.

use serde_json::json;

use crate::setup;
use crate::support::daemon::Daemon;

fn daemon() -> Daemon {
    setup::start(|daemon| vec![daemon.fake("up").args("--offers --name up")], "")
}

/// Lists for people name what `read` and `prompt` take.
#[tokio::test]
async fn lists_for_people() {
    let daemon = daemon();
    let shown = daemon.cli(&["resources", "up"]).await.expect_code(0).stdout;
    for words in ["mcpx://up/fake://rich", "A rich resource: All.", "mcpx://up/db://{table}/{row}"]
    {
        assert!(shown.contains(words), "{shown}");
    }
    let shown = daemon.cli(&["prompts"]).await.expect_code(0).stdout;
    assert!(shown.contains("greet name=…") && shown.contains("Greets."), "{shown}");
    let answer = daemon.cli(&["prompts", "--json"]).await.expect_code(0).json();
    assert_eq!(answer["namespaces"][0]["prompts"][0]["name"], "greet", "{answer}");
    daemon.cli(&["resources", "no"]).await.expect_code(1);
}

/// `read` gives what a resource holds, byte for byte: to a pipe, and to a file.
#[tokio::test]
async fn a_resource_is_read() {
    let daemon = daemon();
    let read = daemon.cli(&["read", "mcpx://up/fake://rich"]).await.expect_code(0);
    assert_eq!(read.stdout, "one\ntwo\nthree\n");
    let blob = daemon.cli(&["read", "mcpx://up/fake://blob"]).await.expect_code(0);
    assert_eq!(blob.stdout, "\u{0}\u{1}\u{2}");
    let file = daemon.path("blob.bin");
    let name = file.display().to_string();
    daemon.cli(&["read", "mcpx://up/fake://blob", "-o", &name]).await.expect_code(0);
    assert_eq!(std::fs::read(&file).unwrap(), [0, 1, 2]);
    let answer = daemon.cli(&["read", "mcpx://up/fake://rich", "--json"]).await.expect_code(0);
    assert_eq!(answer.json()["contents"][0]["uri"], "mcpx://up/fake://rich");
    for uri in ["mcpx://up/fake://nothing", "mcpx://no/x:1", "x:1"] {
        let missing = daemon.cli(&["read", uri]).await.expect_code(1);
        assert!(missing.stderr.contains(uri) && missing.stderr.contains("mcpx resources"));
    }
    // D-20: and typed, for programs.
    let body = json!({ "uri": "mcpx://up/fake://nothing" });
    let answer = daemon.http("POST", "/v1/read", Some(&body)).await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &json!("not_found")));
}

/// `prompt` fills one in.
#[tokio::test]
async fn a_prompt_is_filled_in() {
    let daemon = daemon();
    let shown = daemon.cli(&["prompt", "up", "greet", "name=Ada"]).await.expect_code(0);
    assert_eq!(shown.stdout, "user: Hello, Ada!\n");
    let answer = daemon.cli(&["prompt", "up", "greet", "name=7", "--json"]).await.expect_code(0);
    assert_eq!(answer.json()["messages"][0]["content"]["text"], "Hello, 7!");
    let refused = daemon.cli(&["prompt", "up", "greet"]).await.expect_code(1);
    assert!(refused.stderr.contains("greet needs a name"), "{refused:?}");
    let unknown = daemon.cli(&["prompt", "up", "gret"]).await.expect_code(1);
    assert!(unknown.stderr.contains("`greet`"), "{unknown:?}");
}

/// The built-in server's resource and prompt work on a fresh machine.
#[tokio::test]
async fn the_demo_offers_both() {
    let daemon = setup::start(|_| Vec::new(), "");
    let shown = daemon.cli(&["resources"]).await.expect_code(0).stdout;
    assert!(shown.contains("mcpx://demo/demo://about"), "{shown}");
    let read = daemon.cli(&["read", "mcpx://demo/demo://about"]).await.expect_code(0);
    assert!(read.stdout.contains("built into mcpx"), "{read:?}");
    let prompt = daemon.cli(&["prompt", "demo", "greet", "name=Ada"]).await.expect_code(0);
    assert!(prompt.stdout.starts_with("user: ") && prompt.stdout.contains("Ada"), "{prompt:?}");
}

/// `types` declares tools for scripts and compilers: of a server, some of its tools, or all servers.
#[tokio::test]
async fn tools_are_declared() {
    let fakes = |daemon: &Daemon| {
        vec![daemon.fake("up").args("--tools echo,add"), daemon.fake("b-c").args("--tools echo")]
    };
    let daemon = setup::start(fakes, "");
    let shown = daemon.cli(&["types", "up"]).await.expect_code(0).stdout;
    assert!(shown.starts_with("interface Tools {\n") && shown.contains("add(args: {"), "{shown}");
    let one = daemon.cli(&["types", "up", "echo"]).await.expect_code(0).stdout;
    assert!(one.contains("echo(args?: { text?: string })") && !one.contains("add("), "{one}");
    let rest = daemon.cli(&["types"]).await.expect_code(0).stdout;
    assert!(rest.contains("declare const tools: Tools;") && !rest.contains("echo("), "{rest}");
    let all = daemon.cli(&["types", "--all"]).await.expect_code(0).stdout;
    for words in ["declare class ToolError", "\n  up: {\n", "\n  b_c: {\n"] {
        assert!(all.contains(words), "{all}");
    }
    let answer = daemon.cli(&["types", "up", "--json"]).await.expect_code(0).json();
    assert_eq!(
        (answer["declarations"].as_str(), &answer["unlisted"]),
        (Some(shown.as_str()), &json!([]))
    );
    let missing = daemon.cli(&["types", "up", "ehco"]).await.expect_code(1);
    assert!(missing.stderr.contains("echo"), "{missing:?}");
    let missing = daemon.cli(&["types", "upp"]).await.expect_code(1);
    assert!(missing.stderr.contains("accepted: b-c, up"), "{missing:?}");
    daemon.cli(&["types", "up", "--all"]).await.expect_code(2);
}
