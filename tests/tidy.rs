//! Reads the sources and fails where the house's rules are broken: layers, purity, the edge, sizes,
//! module docs, numbers. What the compiler or clippy can check is left to them.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A source file, cut where its tests begin.
struct Source {
    path: String,
    code: String,
    lines: usize,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    walk(&root.join("src"), &mut found);
    found.sort();
    assert!(found.len() > 20, "the sources are not where they should be");
    found
        .into_iter()
        .map(|file| {
            let text = fs::read_to_string(&file).unwrap();
            let path = file.strip_prefix(root).unwrap().display().to_string();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            Source { path, code, lines: text.lines().count() }
        })
        .collect()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Lines of code that are no comments, with their numbers.
fn code_lines(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    source
        .code
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Fails with every place where `broken` gives a reason.
fn check(rule: &str, broken: impl Fn(&Source, &str) -> bool) {
    let mut report = String::new();
    for source in sources().iter().filter(|source| !is_test_file(&source.path)) {
        for (number, line) in code_lines(source) {
            if broken(source, line) {
                let _ = writeln!(report, "{}:{number}: {}", source.path, line.trim());
            }
        }
    }
    assert!(report.is_empty(), "{rule}\n{report}");
}

#[test]
fn layers_do_not_point_up() {
    const LAYERS: [(&str, &[&str]); 6] = [
        ("src/protocol/", &["settings", "control", "transport", "script", "actors"]),
        ("src/settings/", &["control", "transport", "script", "actors"]),
        ("src/control/", &["transport", "script", "actors"]),
        ("src/transport/", &["control", "script", "actors"]),
        ("src/script/", &["settings", "control", "transport", "actors"]),
        ("src/actors/", &[]),
    ];
    check("a lower layer names a higher one", |source, line| {
        LAYERS.iter().any(|(folder, above)| {
            source.path.starts_with(folder)
                && above.iter().any(|layer| line.contains(&format!("crate::{layer}")))
        })
    });
}

#[test]
fn layers_use_only_their_crates() {
    const BANNED: [(&str, &[&str]); 6] = [
        (
            "src/protocol/",
            &[
                "tokio::",
                "ractor::",
                "hyper",
                "tracing::",
                "std::fs",
                "std::net",
                "std::env",
                "std::process",
                "std::thread",
                "Instant::now",
                "SystemTime",
                "getrandom",
                "rand::",
                "async fn",
                ".await",
            ],
        ),
        ("src/settings/", &["tokio::", "ractor::", "hyper", "async fn", ".await"]),
        ("src/control/", &["tokio::", "ractor::", "hyper", "async fn", ".await"]),
        ("src/transport/", &["ractor::", "Revision::", "tools/"]),
        ("src/script/", &["ractor::", "hyper", "tracing::", "std::fs", "std::net", "std::process"]),
        ("src/actors/", &["hyper::", "hyper_util::", "json!("]),
    ];
    check("a layer uses what it must not", |source, line| {
        BANNED.iter().any(|(folder, words)| {
            source.path.starts_with(folder) && words.iter().any(|word| line.contains(word))
        })
    });
}

#[test]
fn only_the_edge_names_a_concrete_revision() {
    const MAY: [&str; 3] =
        ["src/protocol/edge/", "src/protocol/revision.rs", "src/protocol/session/"];
    check("only the edge, revision.rs and the handshake name a revision", |source, line| {
        line.contains("Revision::V2") && !MAY.iter().any(|place| source.path.starts_with(place))
    });
}

#[test]
fn error_codes_stand_in_one_table() {
    check("an error code outside jsonrpc/code.rs", |source, line| {
        source.path != "src/protocol/jsonrpc/code.rs"
            && !line.contains('"')
            && (line.contains("-320") || line.contains("-326") || line.contains("-327"))
    });
}

#[test]
fn policy_numbers_stand_in_the_settings() {
    check("a duration outside config/defaults.toml", |source, line| {
        line.contains("Duration::from_")
            && !source.path.starts_with("src/settings/")
            // Conversions of a value that came from elsewhere hold no number.
            && line.split("Duration::from_").skip(1).any(|rest| {
                rest.split_once('(').is_some_and(|(_, inner)| {
                    inner.starts_with(|c: char| c.is_ascii_digit())
                })
            })
    });
}

#[test]
fn files_are_small_and_introduced() {
    const HARD_LIMIT: usize = 700;
    let mut report = String::new();
    for source in sources() {
        if source.lines > HARD_LIMIT {
            let _ = writeln!(report, "{}: {} lines", source.path, source.lines);
        }
        if !is_test_file(&source.path) && !source.code.starts_with("//!") {
            let _ = writeln!(report, "{}: does not begin with what it is for", source.path);
        }
    }
    assert!(
        report.is_empty(),
        "files are at most {HARD_LIMIT} lines and say what they are for\n{report}"
    );
}

#[test]
fn nothing_is_left_open() {
    const WORDS: [&str; 5] = ["todo!(", "unimplemented!(", "FIXME", "XXX", "#[ignore"];
    check("unfinished", |_, line| WORDS.iter().any(|word| line.contains(word)));
}

#[test]
fn actors_are_named_by_what_they_are() {
    check("no `Manager`, no suffix `Actor`", |_, line| {
        let declares = ["struct ", "enum ", "trait "].iter().any(|word| line.contains(word));
        declares && (line.contains("Manager") || line.contains("Actor "))
    });
}

#[test]
fn every_kind_of_event_is_documented() {
    const FAMILIES: [&str; 3] = ["daemon.", "host.", "server."];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/events.md")).unwrap();
    let settings = fs::read_to_string(root.join("config/mcpx.example.toml")).unwrap();
    let mut missing = String::new();
    for source in sources() {
        let words = source.code.split('"').skip(1).step_by(2);
        for word in words.filter(|word| FAMILIES.iter().any(|family| word.starts_with(family))) {
            let is_kind = !word.ends_with('.')
                && word.bytes().all(|byte| byte.is_ascii_lowercase() || b"._".contains(&byte));
            let name = word.split_once('.').map_or("", |(_, name)| name);
            let is_setting = settings.contains(&format!("\n# {name} = "));
            let is_file = ["daemon.log", "daemon.lock"].contains(&word);
            if is_kind && !is_setting && !is_file && !page.contains(&format!("`{word}`")) {
                let _ = writeln!(missing, "{}: {word}", source.path);
            }
        }
    }
    assert!(missing.is_empty(), "not in docs/events.md:\n{missing}");
}

/// Faults of mcpx itself, which no test from outside can bring about.
const OWN_FAULTS: [&str; 5] = [
    "daemon.part_failed",
    "daemon.stop_timeout",
    "host.failed",
    "listen.failed",
    "exec.sandbox_lost",
];

/// What `docs/events.md` promises is emitted, and seen by a test.
#[test]
fn every_documented_event_is_emitted_and_tested() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/events.md")).unwrap();
    let kinds = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let kinds: Vec<&str> = kinds.collect();
    assert!(kinds.len() > 30, "the table is not where it should be");
    let mut tests = Vec::new();
    walk(&root.join("tests"), &mut tests);
    let files = tests.iter().filter(|file| !file.ends_with("tidy.rs"));
    let mut tested: String = files.map(|file| fs::read_to_string(file).unwrap()).collect();
    let mut emitted = String::new();
    for source in sources() {
        if is_test_file(&source.path) {
            tested.push_str(&source.code);
        } else {
            emitted.push_str(&source.code);
            let whole = fs::read_to_string(root.join(&source.path)).unwrap();
            tested.push_str(whole.get(source.code.len()..).unwrap_or_default());
        }
    }
    for kind in kinds {
        let quoted = format!("\"{kind}\"");
        assert!(emitted.contains(&quoted), "{kind} is documented, and nothing emits it");
        let seen = tested.contains(&quoted) || OWN_FAULTS.contains(&kind);
        assert!(seen, "{kind} is documented, and no test sees it");
    }
}

/// Texts of errors stand in `docs/troubleshooting.md` as people meet them: each is still said.
#[test]
fn every_text_that_is_explained_is_said() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/troubleshooting.md")).unwrap();
    // String literals go on over line ends with a backslash; the page has them in one line.
    let code: String = sources().into_iter().map(|source| source.code).collect();
    let code = joined(&code);
    let texts: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect();
    assert!(texts.len() > 15, "the texts are not where they should be");
    for text in texts {
        // An ellipsis stands for what differs: names, numbers.
        for part in text.split('…').map(str::trim).filter(|part| !part.is_empty()) {
            assert!(code.contains(part), "nobody says {part:?} any more (of {text:?})");
        }
    }
}

/// The text with its literals in one line each.
fn joined(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(begun) = line.strip_suffix('\\') {
            out.push_str(begun);
            if let Some(next) = lines.peek_mut() {
                *next = next.trim_start();
            }
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// `docs/conformance.md` says what may fail, as `tests/conformance/expected.json` has it.
#[test]
#[expect(clippy::disallowed_methods, reason = "writes into the working copy")]
fn x08_the_page_on_conformance_has_what_is_expected() {
    const BEGIN: &str = "<!-- expected:begin -->\n";
    const END: &str = "<!-- expected:end -->";
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = fs::read_to_string(root.join("tests/conformance/expected.json")).unwrap();
    let entries: Vec<serde_json::Value> = serde_json::from_str(&file).unwrap();
    let mut table = String::from("| scenario | cells | runs | checks | why |\n");
    table.push_str("| --- | --- | --- | --- | --- |\n");
    for entry in entries {
        let list = |key: &str| {
            let words = entry[key].as_array().unwrap().iter();
            words.map(|word| format!("`{}`", word.as_str().unwrap())).collect::<Vec<_>>().join(", ")
        };
        let checks = entry["passes"].as_u64().map(|count| count.to_string()).unwrap_or_default();
        let (scenarios, cells, runs) = (list("scenarios"), list("cells"), list("runs"));
        let why = entry["why"].as_str().unwrap();
        let _ = writeln!(table, "| {scenarios} | {cells} | {runs} | {checks} | {why} |");
    }
    let path = root.join("docs/conformance.md");
    let page = fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let now = format!("{head}{BEGIN}{table}{END}{tail}");
    if page != now {
        fs::write(&path, &now).unwrap();
    }
    assert!(page == now, "docs/conformance.md was stale; it has been written anew, look at it");
    let suite = fs::read_to_string(root.join("tests/conformance/package.json")).unwrap();
    let version = suite.split("/conformance\": \"").nth(1).and_then(|rest| rest.split('"').next());
    assert!(page.contains(version.unwrap()), "the page names another version of the suite");
}
