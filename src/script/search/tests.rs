use serde_json::json;

use super::*;

struct Tool {
    namespace: &'static str,
    name: &'static str,
    definition: RawJson,
}

fn tool(namespace: &'static str, name: &'static str, about: &str, parameters: &[&str]) -> Tool {
    let properties: serde_json::Map<String, serde_json::Value> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": properties});
    let definition = json!({"name": name, "description": about, "inputSchema": schema});
    Tool { namespace, name, definition: RawJson::write(&definition) }
}

fn some() -> Vec<Tool> {
    vec![
        tool("files", "delete_file", "Deletes a file.", &["path"]),
        tool("files", "listDirectory", "What is in a directory. See read_file too.", &["path"]),
        tool("files", "read_file", "Reads a file as text.", &["path", "encoding"]),
        tool("hub", "create_issue", "Opens an issue in a repository.", &["title", "labels"]),
        tool("hub", "create_pull_request", "Opens a pull request.", &["head", "base"]),
        tool("hub", "get_issue", "One issue.", &["number"]),
        tool("weather", "forecast", "The weather of the next days. Reads no file.", &["city"]),
    ]
}

fn index(tools: &[Tool]) -> Index {
    Index::new(tools.iter().map(|tool| Document {
        namespace: tool.namespace,
        server: "",
        name: tool.name,
        definition: &tool.definition,
    }))
}

fn query(text: &str) -> Query<'_> {
    Query { text, namespace: None, words: 32, results: 8 }
}

fn found(text: &str) -> Vec<&'static str> {
    let tools = some();
    let hits = search(&[&index(&tools)], &query(text));
    hits.iter().map(|hit| tools[hit.document].name).collect()
}

#[test]
fn what_a_tool_is_called_and_what_it_is_for_come_first() {
    assert_eq!(found("read a file")[0], "read_file");
    assert_eq!(found("directory")[0], "listDirectory");
    assert_eq!(found("encoding"), ["read_file"]);
    assert_eq!(found("the weather in my city"), ["forecast"]);
    assert_eq!(found("pull request")[0], "create_pull_request");
}

#[test]
fn other_words_for_the_same_are_found() {
    assert_eq!(found("remove files")[0], "delete_file");
    assert_eq!(found("folders")[0], "listDirectory");
    assert_eq!(found("open a PR")[0], "create_pull_request");
    assert_eq!(found("file a bug")[0], "get_issue");
}

/// A name that is written whole is meant, whatever else has its words.
#[test]
fn an_exact_name_is_first() {
    for text in ["get_issue", "get issue", "getIssue", "hub.get_issue", "hub get-issue"] {
        assert_eq!(found(text)[0], "get_issue", "{text}");
    }
    assert_eq!(found("listDirectory")[0], "listDirectory");
}

/// Of tools that differ in case and punctuation alone, the one that is written is meant.
#[test]
fn exact_spelling_is_first_of_all() {
    let tools = ["get-issue", "get_issue", "getIssue"].map(|name| tool("hub", name, "", &[]));
    for name in ["get-issue", "get_issue", "getIssue"] {
        for text in
            [name.to_owned(), format!(" {name} "), format!("hub.{name}"), format!("hub {name}")]
        {
            let hits = search(&[&index(&tools)], &query(&text));
            assert_eq!(tools[hits[0].document].name, name, "{text}");
            assert_eq!(hits.len(), 3, "{text}");
        }
    }
}

#[test]
fn unfinished_words_are_found() {
    assert_eq!(found("fore"), ["forecast"]);
    assert_eq!(found("delete fi")[0], "delete_file");
    assert_eq!(found("weath city"), ["forecast"]);
}

#[test]
fn a_namespace_is_a_word_and_a_filter() {
    assert_eq!(found("hub"), ["create_issue", "create_pull_request", "get_issue"]);
    let tools = some();
    let hits = search(&[&index(&tools)], &Query { namespace: Some("weather"), ..query("file") });
    assert_eq!(hits.len(), 1);
    assert_eq!(tools[hits[0].document].namespace, "weather");
}

#[test]
fn bounds_are_kept_and_nothing_is_found_for_nothing() {
    let tools = some();
    let index = index(&tools);
    let one = search(&[&index], &Query { results: 1, ..query("file") });
    assert_eq!(one.len(), 1);
    // Only the first word counts.
    let first = search(&[&index], &Query { words: 1, ..query("forecast delete file") });
    assert_eq!(first.len(), 1);
    for nothing in ["", "?!", "zebra"] {
        assert!(search(&[&index], &query(nothing)).is_empty(), "{nothing}");
    }
    assert!(search(&[&Index::default()], &query("file")).is_empty());
    let long = "file ".repeat(100_000);
    assert!(!search(&[&index], &query(&long)).is_empty());
}

/// Whatever several indexes hold is ranked together, and equals keep their order.
#[test]
fn several_indexes_are_one() {
    let tools = some();
    let saved = [tool("", "weekly_weather", "Sends the weather of the week.", &["city"])];
    let hits = search(&[&index(&tools), &index(&saved)], &query("weather"));
    let found: Vec<_> = hits.iter().map(|hit| (hit.index, hit.document)).collect();
    assert_eq!(found.len(), 2);
    assert!(found.contains(&(1, 0)) && found.contains(&(0, 6)), "{found:?}");
    let same = [tool("a", "x", "", &[]), tool("b", "x", "", &[])];
    let hits = search(&[&index(&same)], &query("x"));
    assert_eq!(hits.iter().map(|hit| hit.document).collect::<Vec<_>>(), [0, 1]);
}

/// What can be chosen is what can be done.
#[test]
fn choices_of_a_parameter_are_words() {
    let schema = json!({"properties": {"event": {"enum": ["APPROVE", "REJECT", 3]}}});
    let definition = RawJson::write(&json!({"name": "review", "inputSchema": schema}));
    let tools = [Tool { namespace: "hub", name: "review", definition }];
    assert_eq!(search(&[&index(&tools)], &query("approve")).len(), 1);
}

/// Definitions come from servers: whatever is wrong in one, the others are found.
#[test]
fn f41_odd_definitions_are_passed_over() {
    let odd = [
        "7",
        "null",
        r#"{"description":7,"inputSchema":[]}"#,
        r#"{"inputSchema":{"properties":7}}"#,
    ];
    let mut tools = some();
    for text in odd {
        let definition = RawJson::parse(text.to_owned().into()).unwrap();
        tools.push(Tool { namespace: "odd", name: "odd_one", definition });
    }
    let index = index(&tools);
    assert_eq!(search(&[&index], &query("odd")).len(), odd.len());
    assert!(!search(&[&index], &query("read file")).is_empty());
}
