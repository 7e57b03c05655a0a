//! Golden files: expected text too long for a test. `UPDATE_GOLDEN=1` writes what is there now.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Compares text with `tests/golden/<name>`.
///
/// # Panics
/// Where they differ, showing the first line that does, or where there is no such file.
pub fn check(name: &str, actual: &str) {
    let path = path(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|want| want == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|why| {
        panic!("no golden file {}: {why}; UPDATE_GOLDEN=1 writes it", path.display())
    });
    if let Some(difference) = difference(&expected, actual) {
        panic!("{name} differs {difference}\nUPDATE_GOLDEN=1 takes the new text over");
    }
}

/// As [`check`], for JSON: laid out with two spaces, keys sorted.
pub fn check_json(name: &str, actual: &Value) {
    let mut text = serde_json::to_string_pretty(actual).unwrap();
    text.push('\n');
    check(name, &text);
}

/// Where two texts differ first.
pub fn difference(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let (mut left, mut right) = (expected.lines(), actual.lines());
    let mut number = 1;
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Some("in its line ends".to_owned()),
            (one, other) if one != other => {
                let (one, other) = (one.unwrap_or("(end)"), other.unwrap_or("(end)"));
                return Some(format!("at line {number}\n  golden: {one}\n  now:    {other}"));
            }
            _ => number += 1,
        }
    }
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}
