//! Scripts in a fence of Markdown, as models write them where they are asked for code. Pure.

use std::borrow::Cow;

/// What marks a fence.
const FENCE: &str = "```";

/// The script inside of a fence, every line of which stands where it stood; the text itself where there is no
/// fence around it.
pub fn without(source: &str) -> Cow<'_, str> {
    inside(source).map_or(Cow::Borrowed(source), Cow::Owned)
}

fn inside(source: &str) -> Option<String> {
    let before = source.len() - source.trim_start().len();
    let (opening, rest) = source.get(before..)?.split_once('\n')?;
    let language = opening.trim_end().strip_prefix(FENCE)?;
    let is_language = language.trim().chars().all(|c| c.is_ascii_alphanumeric());
    let inner = rest.trim_end().strip_suffix(FENCE)?;
    // The end of a fence is a line of its own.
    let ends = inner.is_empty() || inner.ends_with('\n');
    (is_language && ends).then(|| format!("{}\n{inner}", source.get(..before).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_taken_out_of_their_fence() {
        for (fenced, script) in [
            ("```ts\nreturn 1\n```", "\nreturn 1\n"),
            ("\n  ```typescript\r\nreturn 1\n```\n\n", "\n  \nreturn 1\n"),
            ("```\n```", "\n"),
            ("``` js\na\nb\n```", "\na\nb\n"),
        ] {
            assert_eq!(without(fenced), script, "{fenced:?}");
        }
        for script in
            ["return 1", "```ts", "```ts\nreturn 1", "return `\n```", "```a b\n1\n```x", ""]
        {
            assert_eq!(without(script), script);
        }
    }
}
