//! `mcpx_types`: tools as TypeScript, for models (C-03).

use serde_json::{Value, json};

use crate::setup::{failed, host, start};
use crate::support::raw_host::{RawHost, text_of};

async fn types(host: &mut RawHost, arguments: Value) -> String {
    let answer = host.call("mcpx_types", arguments).await;
    assert!(!failed(&answer), "{answer}");
    text_of(&answer)
}

crate::for_revisions! { all_real;
    /// C-03, C-09: what a script can write of a server's tools, and of some of them; a server that nobody has
    /// asked for its tools yet is asked first.
    async fn c03_a_servers_tools_are_declared(revision) {
        let tool = json!({
            "name": "get-tree",
            "description": "Gets */ it.",
            "inputSchema": { "type": "object", "properties": { "of": { "$ref": "#/$defs/Id" } },
                "required": ["of"], "$defs": { "Id": { "type": "string", "minLength": 1 } } },
            "outputSchema": { "type": "object", "properties": { "kids": { "type": "array", "items": { "$ref": "#" } } } },
        });
        let fakes = |daemon: &crate::support::daemon::Daemon| {
            vec![daemon.fake("my-up").args("--tools add --tool").arg(tool.to_string())]
        };
        let daemon = start(fakes, "");
        let mut host = host(&daemon, revision).await;
        let text = types(&mut host, json!({ "namespace": "my-up" })).await;
        assert!(text.contains("\n  my_up: {\n") && text.contains("add(args: { a: number; b: number })"), "{text}");
        assert!(text.contains("`get-tree`: Gets *\\/ it.") && text.contains("get_tree(args: {"), "{text}");
        // Output schemas came with 2025-06-18; the upstream speaks the newest revision.
        assert!(text.contains("Promise<my_up_get_tree_result>"), "{text}");
        for wanted in [json!(["get-tree"]), json!(["get_tree"]), json!("get-tree")] {
            let text = types(&mut host, json!({ "namespace": "my_up", "tools": wanted })).await;
            assert!(text.contains("get_tree(") && !text.contains("add("), "{text}");
        }
        let rest = types(&mut host, json!({})).await;
        for words in ["declare class ToolError", "declare const input", "// Namespaces: my_up."] {
            assert!(rest.contains(words), "{rest}");
        }
    }
}

/// C-03: what is denied is not there; unknown names get the nearest; nothing that is asked for is passed over.
#[tokio::test]
async fn c03_names_that_are_none_and_tools_that_are_hidden() {
    let daemon = start(
        |daemon| {
            vec![daemon.fake("up").args("--tools echo,add").line("tools = { deny = [\"add\"] }")]
        },
        "",
    );
    let mut host = host(&daemon, "2025-11-25").await;
    let text = types(&mut host, json!({ "namespace": "up" })).await;
    assert!(text.contains("echo(") && !text.contains("add("), "{text}");
    for (arguments, words) in [
        (json!({ "namespace": "up", "tools": ["add"] }), "`up` has no tool `add`."),
        (json!({ "namespace": "up", "tools": ["ehco"] }), "Did you mean echo?"),
        (json!({ "namespace": "upp" }), "Did you mean up?"),
        (json!({ "tools": ["echo"] }), "`namespace`"),
        (json!({ "namespace": "up", "names": ["echo"] }), "no argument `names`"),
        (json!({ "namespace": "up", "tools": 5 }), "`tools` is a list"),
    ] {
        let answer = host.call("mcpx_types", arguments.clone()).await;
        assert!(failed(&answer) && text_of(&answer).contains(words), "{arguments}: {answer}");
    }
}

/// An answer has a size, and says what it left out.
#[tokio::test]
async fn what_has_no_room_is_named() {
    let daemon = start(|daemon| vec![daemon.fake("up")], "types.size = \"1KiB\"");
    let mut host = host(&daemon, "2025-11-25").await;
    let text = types(&mut host, json!({ "namespace": "up" })).await;
    assert!(text.contains("more tools, no room here (setting types.size): "), "{text}");
    assert!(text.len() < 4096, "{}", text.len());
    let (_, left_out) = text.split_once("types.size): ").unwrap();
    let name = left_out.split([',', '.']).next().unwrap();
    let one = types(&mut host, json!({ "namespace": "up", "tools": [name] })).await;
    assert!(one.contains(&format!("    {name}(")), "{one}");
}
