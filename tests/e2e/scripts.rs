//! Saved scripts by hand: saved, listed, shown, edited, run and removed (docs/saved-scripts.md).

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::setup;
use crate::support::daemon::{Daemon, Output};

const SUM: &str = r#"/**
 * Adds some numbers by a tool.
 * @param {number} a - the first
 * @param {number} [b=40] - the second
 * @param {"sum" | "text"} [as=sum]
 */
type Sum = { sum?: number };
const answer: unknown = await tools.up.add({ a: input.a, b: input.b });
console.log("added");
return input.as === "text" ? `is ${String(answer)}` : answer;
"#;

fn daemon(more: &str) -> Daemon {
    setup::start(|daemon| vec![daemon.fake("up")], more)
}

/// Saves `code` as `name` from a file.
async fn save(daemon: &Daemon, name: &str, code: &str) -> Output {
    let file = daemon.path("given.ts");
    std::fs::write(&file, code).unwrap();
    daemon.cli(&["scripts", "save", name, &file.display().to_string()]).await
}

#[tokio::test]
async fn scripts_are_saved_listed_shown_and_removed() {
    let daemon = daemon("");
    let none = daemon.cli(&["scripts", "list", "--json"]).await.expect_code(0).json();
    assert_eq!(none, json!({ "scripts": [] }));
    let saved = save(&daemon, "sum", SUM).await.expect_code(0).stdout;
    assert!(
        saved.contains("sum(a: number, b?: number = 40") && saved.contains("is saved: "),
        "{saved}"
    );
    let again = save(&daemon, "sum", SUM).await.expect_code(0).stdout;
    assert!(again.contains("in the place of the one before"), "{again}");
    let file = daemon.path("state/scripts/sum.ts");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let listed = daemon.cli(&["scripts"]).await.expect_code(0).stdout;
    assert!(
        listed.contains("sum(a: number") && listed.contains("Adds some numbers by a tool."),
        "{listed}"
    );
    let shown = daemon.cli(&["scripts", "show", "sum"]).await.expect_code(0).stdout;
    assert_eq!(shown.trim_end(), SUM.trim_end());
    let typed = daemon.http("GET", "/v1/scripts/sum", None).await.json();
    assert_eq!(typed["schema"]["required"], json!(["a"]), "{typed}");
    let removed = daemon.cli(&["scripts", "remove", "sum"]).await.expect_code(0).stdout;
    assert!(removed.contains("sum is removed") && !file.exists(), "{removed}");
    let fenced =
        save(&daemon, "fenced", "```ts\n/** In a fence. */\nreturn 7\n```").await.expect_code(0);
    assert!(fenced.stdout.contains("fenced(…) is saved"), "{}", fenced.stdout);
    let shown = daemon.cli(&["scripts", "show", "fenced"]).await.expect_code(0).stdout;
    assert!(!shown.contains("```") && shown.contains("/** In a fence. */"), "{shown}");
    assert_eq!(daemon.cli(&["scripts", "run", "fenced"]).await.expect_code(0).stdout, "7\n");
    let missing = daemon.cli(&["scripts", "show", "sum"]).await.expect_code(1);
    assert!(missing.stderr.contains("no saved script `sum`"), "{}", missing.stderr);
}

/// What cannot run is refused with its place; nothing of it is left.
#[tokio::test]
async fn what_cannot_run_is_not_saved() {
    let daemon = daemon("scripts.max = 1\nscripts.max_size = \"1KiB\"");
    for (name, code, words) in [
        ("bad", "const a = 1;\nlet = ;\n", "line 2, column "),
        ("bad", "/**\n * @param {strin} a\n */\nreturn 1", "line 2: `strin`"),
        ("bad", "import fs from 'fs';\nreturn fs.name", "cannot import"),
        ("bad", &" ".repeat(2000), "scripts.max_size"),
        ("../bad", "return 1", "small letters"),
        ("Bad", "return 1", "small letters"),
    ] {
        let refused = save(&daemon, name, code).await.expect_code(2);
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
    assert!(!daemon.path("state/scripts").exists());
    let unnamed = save(&daemon, "", "return 1").await.expect_code(2);
    assert!(unnamed.stderr.contains("<NAME>"), "{}", unnamed.stderr);
    save(&daemon, "one", "return 1").await.expect_code(0);
    let full = save(&daemon, "two", "return 2").await.expect_code(1);
    assert!(full.stderr.contains("scripts.max"), "{}", full.stderr);
    save(&daemon, "one", "return 3").await.expect_code(0);
}

/// Values get the types of the parameters; what does not fit is told at once, before anything runs.
#[tokio::test]
async fn scripts_are_run_with_checked_arguments() {
    let daemon = daemon("");
    save(&daemon, "sum", SUM).await.expect_code(0);
    let run = daemon.cli(&["scripts", "run", "sum", "a=2"]).await.expect_code(0);
    assert!(run.stdout.contains("42"), "{}", run.stdout);
    let run =
        daemon.cli(&["scripts", "run", "sum", r#"{"a":1,"b":2,"as":"text"}"#]).await.expect_code(0);
    assert!(run.stdout.contains("is "), "{}", run.stdout);
    for (words, told) in [
        (&["b=2"][..], "`a` is missing. It takes (a: number"),
        (&[r#"{"a":"1"}"#], "`a` is to be number"),
        (&["a=1", "c=2"], "there is no parameter `c`"),
        (
            &["a=x", "as=odd", "c=2"],
            "`a` is to be number; `as` is to be \"sum\" | \"text\"; there is no parameter `c`",
        ),
        (&["a:=x", "a=2"], "\"x\" is no JSON; `a` is given twice"),
        (&["a=1", "--timeout", "0"], "`timeout` is a number of seconds"),
    ] {
        let arguments: Vec<&str> = ["scripts", "run", "sum"].iter().chain(words).copied().collect();
        let refused = daemon.cli(&arguments).await.expect_code(2);
        assert!(refused.stderr.contains(told), "{told}: {}", refused.stderr);
    }
}

/// People edit their files: what lies there is what runs, and what cannot be used is listed with why.
#[tokio::test]
async fn edited_files_are_read_when_they_are_used() {
    let daemon = daemon("");
    save(&daemon, "one", "return 1").await.expect_code(0);
    let file = |name: &str| daemon.path("state/scripts").join(name);
    std::fs::write(file("one.ts"), "return 'edited'").unwrap();
    std::fs::write(file("broken.ts"), "return (").unwrap();
    let run = daemon.cli(&["scripts", "run", "one"]).await.expect_code(0);
    assert!(run.stdout.contains("edited"), "{}", run.stdout);
    let listed = daemon.cli(&["scripts", "list"]).await.expect_code(0).stdout;
    assert!(listed.contains("cannot be used: line 1, column "), "{listed}");
    let broken = daemon.cli(&["scripts", "run", "broken"]).await.expect_code(2);
    assert!(broken.stderr.contains("cannot run: line 1, column "), "{}", broken.stderr);
}
