//! Tests of what scripts say of themselves.

use serde_json::{Value, json};

use super::*;

fn raw(value: &Value) -> RawJson {
    RawJson::write(value)
}

const SCRIPT: &str = r#"// kept by ops
/**
 * Issues that nobody has touched
 * for some days.
 *
 * @param {string} repo - as in "owner/name"
 * @param {integer} [days=30] - how many,
 *   counted from today
 * @param {"open" | 'closed'} [input.state=open]
 * @param {string[]=} labels – all of them
 * @param {{a: number}} [filter]
 * @param anything
 * @returns {object[]} the issues
 */
const x = 1; /** @param {no} thing */
"#;

#[test]
fn a_comment_is_read() {
    let about = about(SCRIPT).unwrap();
    assert_eq!(about.description, "Issues that nobody has touched for some days.");
    assert_eq!(
        about.signature(),
        "(repo: string, days?: integer = 30, state?: \"open\" | \"closed\" = \"open\", \
         labels?: string[], filter?: object, anything: any)"
    );
    let docs: Vec<_> = about.params.iter().map(|param| param.doc.as_str()).collect();
    let expected =
        ["as in \"owner/name\"", "how many, counted from today", "", "all of them", "", ""];
    assert_eq!(docs, expected);
    let schema: Value = about.schema().read().unwrap();
    assert_eq!(schema["required"], json!(["repo", "anything"]));
    assert_eq!(schema["properties"]["days"]["default"], 30);
    assert_eq!(schema["properties"]["state"]["enum"], json!(["open", "closed"]));
    assert_eq!(
        schema["properties"]["labels"],
        json!({ "type": "array", "items": { "type": "string" },
        "description": "all of them" })
    );
}

#[test]
fn short_comments_and_none() {
    let one = about("#!/usr/bin/env mcpx\n\n/** Says hello. */\nreturn 1").unwrap();
    assert_eq!((one.description.as_str(), one.signature().as_str()), ("Says hello.", "(…)"));
    for none in
        ["", "return 1", "/* no */ return 1", "let a = 1; /** @param {string} b */", "/** open"]
    {
        assert_eq!(about(none), Ok(About::default()), "{none}");
    }
    let same_line = about("/** @param {number} n - one */ return input.n").unwrap();
    assert_eq!(same_line.signature(), "(n: number)");
    let union = about("/** @param {string | number | undefined} a @b */").unwrap();
    assert_eq!(union.signature(), "(a?: string | number)");
}

/// Mistakes name their line.
#[test]
fn comments_that_cannot_be_understood() {
    for (comment, line, words) in [
        ("/**\n * @param {strin} a\n */", 2, "`strin` is no type"),
        ("\n/** @param {string} */", 2, "names no parameter"),
        ("/**\n * @param {string} a\n * @param a\n */", 3, "two parameters `a`"),
        ("/** @param {string a */", 1, "no `}`"),
        ("/** @param {string} [a */", 1, "no `]`"),
        ("/** @param {number} [a=x] */", 1, "takes number"),
        ("/** @param {string} 1a */", 1, "names no parameter"),
    ] {
        let wrong = about(comment).unwrap_err();
        assert_eq!(wrong.line, line, "{comment}: {wrong}");
        assert!(wrong.why.contains(words), "{comment}: {wrong}");
    }
}

#[test]
fn arguments_are_checked_and_completed() {
    let about = about(SCRIPT).unwrap();
    let input = |value: Value| about.input(Some(&raw(&value)));
    let whole = input(json!({ "repo": "a/b", "anything": null, "labels": ["x"] })).unwrap();
    let expected =
        json!({ "repo": "a/b", "anything": null, "labels": ["x"], "days": 30, "state": "open" });
    assert_eq!(whole.read::<Value>().unwrap(), expected);
    let left_out =
        input(json!({ "repo": "a", "anything": 1, "days": null, "filter": null })).unwrap();
    assert_eq!(left_out.read::<Value>().unwrap()["days"], 30);
    assert!(left_out.member("filter").is_none());
    for (value, words) in [
        (json!({}), "`repo` is missing; `anything` is missing. It takes (repo: string"),
        (json!({ "repo": 7, "anything": 1 }), "`repo` is to be string"),
        (json!({ "repo": "a", "anything": 1, "days": 1.5 }), "`days` is to be integer"),
        (
            json!({ "repo": "a", "anything": 1, "state": "x" }),
            "`state` is to be \"open\" | \"closed\"",
        ),
        (json!({ "repo": "a", "anything": 1, "labels": [1] }), "`labels` is to be string[]"),
        (json!({ "repo": "a", "anything": 1, "rep": 1 }), "there is no parameter `rep`"),
        (json!([]), "one JSON object"),
    ] {
        let error = input(value.clone()).unwrap_err();
        assert!(error.contains(words), "{value}: {error}");
    }
}

/// Promise 5: numbers arrive as they were written.
#[test]
fn numbers_keep_their_text() {
    let about = about("/** @param {integer} n\n@param {number} [e=1e2] */").unwrap();
    let given = RawJson::parse(r#"{"n":12345678901234567890}"#.into()).unwrap();
    let input = about.input(Some(&given)).unwrap();
    assert_eq!(input.as_str(), r#"{"n":12345678901234567890,"e":1e2}"#);
    assert!(about.input(Some(&raw(&json!({ "n": "1" })))).is_err());
    assert!(About::default().input(None).unwrap().is_object());
}
