//! `mcpx search`.

use crate::setup;

/// The page's command, for people and for programs.
#[tokio::test]
async fn tools_are_searched_by_hand() {
    let daemon = setup::start(
        |daemon| {
            vec![daemon.fake("up").args("--tools echo,add"), daemon.fake("b").args("--tools add")]
        },
        "",
    );
    let shown = daemon.cli(&["search", "echo", "a", "text", "-n", "2"]).await.expect_code(0).stdout;
    assert!(shown.contains("up.echo") && shown.contains("echo(args"), "{shown}");
    let answer = daemon.cli(&["search", "add", "--json"]).await.expect_code(0).json();
    let found = answer["tools"].as_array().unwrap();
    let names: Vec<_> = found.iter().map(|tool| tool["namespace"].as_str().unwrap()).collect();
    assert_eq!(names, ["b", "up"], "{answer}");
    assert_eq!(found[0]["member"], "add", "{answer}");
    let only = daemon.cli(&["search", "add", "--namespace", "up", "--json"]).await.json();
    assert_eq!(only["tools"].as_array().unwrap().len(), 1, "{only}");
    let shown = daemon.cli(&["search", "zebra"]).await.expect_code(0).stdout;
    assert!(shown.starts_with("no tool fits; `mcpx tools` lists all"), "{shown}");
    daemon.cli(&["search"]).await.expect_code(2);
    daemon.cli(&["search", "x", "--namespace", "no"]).await.expect_code(1);
    let refused = daemon.cli(&["search", "x", "-n", "0"]).await.expect_code(2);
    assert!(refused.stderr.contains("search.max_results"), "{refused:?}");
}
