//! JSON in lines, for readers: each value keeps its text, numbers and escapes as they were written.

use super::RawJson;
use super::tokens::tokens;

/// Beyond this depth lines are not indented further.
const DEEPEST: usize = 24;

/// `value` with a line for each member and element; none where that takes more than `limit` bytes.
pub fn pretty(value: &RawJson, limit: usize) -> Option<String> {
    let text = value.as_str();
    let mut out = String::with_capacity(text.len().min(limit));
    let mut depth = 0_usize;
    let mut rest = tokens(text.trim_start()).map(|(token, _)| token).peekable();
    while let Some(token) = rest.next() {
        match token {
            "{" | "[" => {
                out.push_str(token);
                if !matches!(rest.peek(), Some(&("}" | "]"))) {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            "}" | "]" => {
                if !out.ends_with(['{', '[']) {
                    depth = depth.saturating_sub(1);
                    new_line(&mut out, depth);
                }
                out.push_str(token);
            }
            "," => {
                out.push_str(token);
                new_line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            _ => out.push_str(token),
        }
        if out.len() > limit {
            return None;
        }
    }
    Some(out)
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(DEEPEST)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let value = RawJson::parse(bytes::Bytes::copy_from_slice(text.as_bytes())).unwrap();
        pretty(&value, 1000).unwrap()
    }

    #[test]
    fn values_keep_their_text() {
        let text = r#"{"big":12345678901234567890,"e":1e2,"z":-0.10,"s":"a\"{,[\u00e9\\","n":null,"o":{},"l":[ ],"m":[1,[true]]}"#;
        let expected = r#"{
  "big": 12345678901234567890,
  "e": 1e2,
  "z": -0.10,
  "s": "a\"{,[\u00e9\\",
  "n": null,
  "o": {},
  "l": [],
  "m": [
    1,
    [
      true
    ]
  ]
}"#;
        assert_eq!(shown(text), expected);
        assert_eq!(shown(expected), expected, "what has lines keeps them");
        assert_eq!(shown("7"), "7");
        assert_eq!(shown(r#""a b""#), r#""a b""#);
    }

    #[test]
    fn it_ends_at_its_limit() {
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        let value = RawJson::parse(deep.into()).unwrap();
        assert!(pretty(&value, 500).is_none());
        assert!(pretty(&value, 100_000).is_some());
    }
}
