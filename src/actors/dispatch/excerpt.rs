//! Parts of a text or of bytes, as `mcpx_read` is asked for them. Pure.

use std::fmt::Write as _;

use regex::RegexBuilder;

/// Which part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// As much as there is room for, from the beginning.
    Head,
    /// Lines, from 1; both ends included.
    Lines(usize, usize),
    /// Bytes, from 0; both ends included, as in HTTP.
    Bytes(usize, usize),
    /// The lines that match, with their numbers.
    Matches(String),
}

impl Part {
    /// Reads `from-to` or a single number, of lines or bytes; an open end (`100-`) means the rest.
    pub(super) fn range(name: &str, text: &str) -> Result<(usize, usize), String> {
        let wrong = || {
            format!("`{name}` is a range like \"1-200\", or \"200-\" for the rest, not `{text}`")
        };
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let (from, to) = match text.split_once('-') {
            None => (number(text)?, number(text)?),
            Some((from, "")) => (number(from)?, usize::MAX),
            Some((from, to)) => (number(from)?, number(to)?),
        };
        if from <= to { Ok((from, to)) } else { Err(wrong()) }
    }
}

/// A part of a text, and what is to be said of it; nothing where it is the whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub(super) text: String,
    pub(super) note: Option<String>,
}

/// A part of `whole`, at most `limit` bytes of it. An error is text for the model.
pub(super) fn excerpt(whole: &str, part: &Part, limit: usize) -> Result<Excerpt, String> {
    let (text, first_line) = match part {
        Part::Head => (whole.to_owned(), 1),
        Part::Lines(from, to) => (lines(whole, (*from).max(1), *to), (*from).max(1)),
        Part::Bytes(from, to) => return Ok(bytes(whole, *from, *to, limit)),
        Part::Matches(pattern) => (matches(whole, pattern)?, 1),
    };
    let shown = head(&text, limit);
    let total = whole.lines().count();
    let note = match part {
        Part::Matches(_) if text.is_empty() => Some(format!("None of {total} lines matches.")),
        Part::Matches(_) if shown.len() < text.len() => Some(format!(
            "{} of {} matching lines are shown (setting expose.read_limit).",
            shown.lines().count(),
            text.lines().count(),
        )),
        Part::Lines(from, _) if text.is_empty() => {
            Some(format!("There is no line {from}: it has {total} lines."))
        }
        Part::Head | Part::Lines(..) if shown.len() < whole.len() => {
            let last = first_line + shown.lines().count().max(1) - 1;
            let mut note = format!("Lines {first_line} to {last} of {total}.");
            if shown.len() < text.len() {
                // Writing to a string cannot fail.
                let _ = write!(
                    note,
                    " {} of {} bytes are shown at once (setting expose.read_limit); ask for more \
                     with `lines`, `bytes` or `pattern`.",
                    shown.len(),
                    text.len()
                );
            }
            Some(note)
        }
        _ => None,
    };
    Ok(Excerpt { text: shown.to_owned(), note })
}

fn lines(whole: &str, from: usize, to: usize) -> String {
    let wanted = whole.split_inclusive('\n').skip(from - 1);
    wanted.take(to.saturating_sub(from).saturating_add(1)).collect()
}

/// The bytes asked for, without the halves of characters at the ends.
fn bytes(whole: &str, from: usize, to: usize, limit: usize) -> Excerpt {
    let end = to.saturating_add(1).min(from.saturating_add(limit)).min(whole.len());
    let start = ceil(whole, from.min(end));
    let end = floor(whole, end).max(start);
    let text = whole.get(start..end).unwrap_or_default().to_owned();
    let note = if text.is_empty() {
        format!("There is nothing there: it has {} bytes.", whole.len())
    } else {
        format!("Bytes {start} to {} of {}.", end - 1, whole.len())
    };
    Excerpt { text, note: Some(note) }
}

fn matches(whole: &str, pattern: &str) -> Result<String, String> {
    // What a compiled pattern may weigh; the crate's own limit is ten times that.
    const WEIGHT: usize = 1 << 20;
    let pattern = RegexBuilder::new(pattern)
        .size_limit(WEIGHT)
        .build()
        .map_err(|error| format!("`pattern` is no regular expression: {error}"))?;
    let mut found = String::new();
    for (at, line) in whole.lines().enumerate().filter(|(_, line)| pattern.is_match(line)) {
        // Writing to a string cannot fail.
        let _ = writeln!(found, "{}: {line}", at + 1);
    }
    Ok(found)
}

/// As many whole lines as fit; of a single line that does not, as much as fits.
fn head(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let cut = text.get(..floor(text, limit)).unwrap_or_default();
    cut.rfind('\n').and_then(|at| cut.get(..=at)).unwrap_or(cut)
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "one\ntwo ä\nthree\n";

    fn cut(part: &Part, limit: usize) -> (String, String) {
        let excerpt = excerpt(TEXT, part, limit).unwrap();
        (excerpt.text, excerpt.note.unwrap_or_default())
    }

    #[test]
    fn the_whole_is_given_where_there_is_room() {
        assert_eq!(cut(&Part::Head, 99), (TEXT.to_owned(), String::new()));
        let (text, note) = cut(&Part::Head, 9);
        assert_eq!(text, "one\n");
        assert!(note.starts_with("Lines 1 to 1 of 3.") && note.contains("expose.read_limit"));
        assert_eq!(cut(&Part::Head, 2).0, "on");
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(cut(&Part::Lines(2, 2), 99), ("two ä\n".into(), "Lines 2 to 2 of 3.".into()));
        assert_eq!(cut(&Part::Lines(2, usize::MAX), 99).0, "two ä\nthree\n");
        assert_eq!(cut(&Part::Lines(0, 1), 99).0, "one\n");
        assert!(cut(&Part::Lines(9, 9), 99).1.contains("3 lines"));
    }

    #[test]
    fn bytes_never_cut_a_character() {
        assert_eq!(cut(&Part::Bytes(0, 2), 99), ("one".into(), "Bytes 0 to 2 of 17.".into()));
        assert_eq!(cut(&Part::Bytes(4, 8), 99).0, "two ");
        assert_eq!(cut(&Part::Bytes(9, usize::MAX), 4).0, "\nth");
        assert!(cut(&Part::Bytes(99, 100), 99).1.contains("17 bytes"));
    }

    #[test]
    fn patterns_give_lines_with_numbers() {
        assert_eq!(cut(&Part::Matches("^t".into()), 99).0, "2: two ä\n3: three\n");
        assert!(cut(&Part::Matches("zzz".into()), 99).1.contains("3 lines"));
        assert!(cut(&Part::Matches("t".into()), 12).1.starts_with("1 of 2"));
        assert!(excerpt(TEXT, &Part::Matches("(".into()), 9).is_err());
    }

    #[test]
    fn ranges_are_read_strictly() {
        assert_eq!(Part::range("lines", "2-5"), Ok((2, 5)));
        assert_eq!(Part::range("lines", "7"), Ok((7, 7)));
        assert_eq!(Part::range("lines", "7-"), Ok((7, usize::MAX)));
        for odd in ["", "5-2", "a-b", "-3"] {
            assert!(Part::range("lines", odd).unwrap_err().contains("lines"), "{odd}");
        }
    }
}
