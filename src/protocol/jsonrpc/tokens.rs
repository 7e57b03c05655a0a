//! The tokens of JSON text, by its letters: also of the beginning of a message, and of what is none.

/// What a text consists of, in its order: a string with its quotes, one of `{}[],:`, or a run of other
/// letters; each with the blanks behind it. Put together they are the text.
pub(in crate::protocol) fn tokens(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let length = match first {
            '"' => string_end(rest),
            '{' | '[' | '}' | ']' | ',' | ':' => 1,
            // Blanks that begin a text, and whatever else is no token, stand for themselves.
            _ => {
                let end = |letter: char| is_blank(letter) || "\"{}[],:".contains(letter);
                rest.find(end).unwrap_or(rest.len()).max(first.len_utf8())
            }
        };
        let (token, after) = rest.split_at_checked(length)?;
        let (blanks, after) =
            after.split_at(after.len() - after.trim_start_matches(is_blank).len());
        rest = after;
        Some((token, blanks))
    })
}

/// What JSON takes for one.
const fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

/// Behind the closing quote of the string that `text` begins with; its end where there is none.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_put_together_are_the_text() {
        for text in [
            r#" {"a" : [1.0e2, "x\"]y" ,true]} "#,
            "",
            " ",
            "\u{a0}x \"cut off \\",
            r#"text before {"a":1}"b"#,
            "{\"é\":\u{2003}1}",
        ] {
            let all: String = tokens(text).flat_map(|(token, blanks)| [token, blanks]).collect();
            assert_eq!(all, text);
        }
        let all: Vec<&str> = tokens(r#"{"a": [1, "b,c"]}"#).map(|(token, _)| token).collect();
        assert_eq!(all, ["{", "\"a\"", ":", "[", "1", ",", "\"b,c\"", "]", "}"]);
    }
}
