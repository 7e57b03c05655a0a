//! Pages of lists (F39, U-29) and odd schemas on the way in (F41).

use std::time::{Duration, Instant};

use serde_json::json;

use crate::front;
use crate::setup::{call, names};
use crate::support::raw_host::text_of;

/// How many tools a host sees of five behind these pages.
async fn seen(args: &str, more: &str) -> Vec<String> {
    let (_daemon, fake, mut host) =
        front(&format!("--tools none --tool-count 5 {args}"), more).await;
    let tools = host.list_tools().await;
    let found = names(&tools).iter().map(|name| (*name).to_owned()).collect();
    fake.transcript().check_frames();
    found
}

const FIVE: [&str; 5] = ["up_t0001", "up_t0002", "up_t0003", "up_t0004", "up_t0005"];

#[tokio::test]
async fn f39_good_pages() {
    assert_eq!(seen("--pages plain:2", "").await, FIVE);
    assert_eq!(seen("--pages null", "").await, FIVE);
    assert_eq!(seen("--pages duplicates:2", "").await, FIVE);
}

/// U-29: `""` is a cursor to a modern server and the end to a legacy one.
#[tokio::test]
async fn f39_u29_the_empty_cursor() {
    assert_eq!(seen("--era modern --pages empty:2", "").await, FIVE);
    assert_eq!(seen("--pages empty:2", "").await, FIVE[..2]);
    // A server that means the end by it starts over: the repeated cursor ends the list.
    assert_eq!(seen("--era modern --pages empty-end", "").await, FIVE);
    assert_eq!(seen("--pages empty-end", "").await, FIVE);
}

/// F39: a repeated cursor ends the list without the page that repeats it.
#[tokio::test]
async fn f39_repeated_cursors() {
    assert_eq!(seen("--pages same:2", "").await, FIVE);
    let cycle = seen("--pages cycle:2", "").await;
    assert!(FIVE.iter().all(|name| cycle.contains(&(*name).to_owned())), "{cycle:?}");
    assert!(cycle.len() <= 6, "{cycle:?}");
}

/// F39: cursors without end: bounded in pages.
#[tokio::test]
async fn f39_endless_cursors() {
    let began = Instant::now();
    let found = seen("--pages endless", "upstream.list_max_pages = 12").await;
    assert_eq!(found.len(), 12, "the good pages are kept: {found:?}");
    assert!(began.elapsed() < Duration::from_secs(5));
    let found = seen("--pages endless", "upstream.list_max_items = 7").await;
    assert_eq!(found.len(), 7, "{found:?}");
}

/// F39: a page that fails or never comes: the good ones are kept, the list is marked incomplete.
#[tokio::test]
async fn f39_a_page_that_fails_or_never_comes() {
    for mode in ["error", "silent"] {
        let args = format!("--tools none --tool-count 5 --pages {mode}:2");
        let more = "expose.mode = \"both\"\nupstream.list_timeout = \"500ms\"";
        let (_daemon, fake, mut host) = front(&args, more).await;
        let tools = host.list_tools().await;
        assert!(names(&tools).contains(&"up_t0002"), "{mode}: {:?}", names(&tools));
        assert!(!names(&tools).contains(&"up_t0003"), "{mode}");
        let text = text_of(&host.call("mcpx_namespaces", json!({})).await);
        assert!(text.contains("incomplete"), "{mode}: {text}");
        // The session lives on.
        let answer = call(&mut host, "up", "t0001", json!({})).await;
        assert!(text_of(&answer).starts_with("called t0001"), "{mode}: {answer}");
        assert_eq!(fake.starts(), 1, "{mode}");
    }
}

/// A list that fails altogether leaves the server usable to say why.
#[tokio::test]
async fn f39_a_list_that_is_refused() {
    let (_daemon, _, mut host) = front("--list-error -32050", "expose.mode = \"core\"").await;
    let answer = call(&mut host, "up", "echo", json!({ "text": "x" })).await;
    assert!(answer.to_string().contains("the list is refused"), "{answer}");
}

/// F41: schemas that are none: none lost that can be used.
#[tokio::test]
async fn f41_schemas_are_kept_raw() {
    let (_daemon, _, mut host) =
        front("--tools none --odd-schemas", "expose.mode = \"both\"").await;
    let tools = host.list_tools().await;
    let deep = crate::setup::find(&tools, "up_ref_deep");
    let reference = &deep["inputSchema"]["properties"]["b"]["$ref"];
    assert_eq!(reference, "#/properties/a/anyOf/1/properties/n");
    let tuple = crate::setup::find(&tools, "up_tuple_items");
    assert!(tuple["inputSchema"]["properties"]["a"]["items"].is_array(), "{tuple}");
}
