//! Parts of a text or of bytes, as `mcpx_read` is asked for them.

use std::io::{self, BufRead, Cursor, Read as _, Seek, SeekFrom};
use std::ops::Range;

use regex::{Regex, RegexBuilder};

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
        if name == "lines" && from == 0 {
            return Err(format!("`lines` count from 1, so that `{text}` is none of them"));
        }
        if from <= to { Ok((from, to)) } else { Err(wrong()) }
    }
}

/// A part of a text, and what is to be said of it; nothing where it is the whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub(super) text: String,
    pub(super) note: Option<String>,
}

/// How much there is of a text in all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    pub(super) bytes: u64,
    pub(super) lines: u64,
}

/// A part of `whole`, at most `limit` bytes of it. An error is text for the model.
pub(super) fn excerpt(whole: &str, part: &Part, limit: usize) -> Result<Excerpt, String> {
    let size = Whole { bytes: number(whole.len()), lines: number(whole.lines().count()) };
    excerpt_of(&mut Cursor::new(whole), size, part, limit)
}

/// The same of a text that is read as far as it is needed, from its beginning. It is taken for UTF-8:
/// what is not becomes U+FFFD.
pub(super) fn excerpt_of(
    source: &mut (impl BufRead + Seek),
    whole: Whole,
    part: &Part,
    limit: usize,
) -> Result<Excerpt, String> {
    let read = match part {
        Part::Head => lines(source, whole, 1, usize::MAX, limit),
        Part::Lines(from, to) => lines(source, whole, (*from).max(1), *to, limit),
        Part::Bytes(from, to) => bytes(source, whole, *from, *to, limit),
        Part::Matches(pattern) => matches(source, whole, &compiled(pattern)?, limit),
    };
    read.map_err(|error| format!("it could not be read to its end: {error}"))
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// As many of the lines as fit; of a first one that does not, as much as fits.
fn lines(
    source: &mut impl BufRead,
    whole: Whole,
    from: usize,
    to: usize,
    limit: usize,
) -> io::Result<Excerpt> {
    let mut offset = 0;
    for _ in 1..from {
        let skipped = source.skip_until(b'\n')?;
        offset += skipped;
        if skipped == 0 {
            let note = Some(format!("There is no line {from}: it has {} lines.", whole.lines));
            return Ok(Excerpt { text: String::new(), note });
        }
    }
    let wanted = to.saturating_sub(from).saturating_add(1);
    // One byte more than there is room for tells that there is more.
    let mut room = source.take(number(limit).saturating_add(1));
    let (mut taken, mut count, mut cut) = (Vec::new(), 0, false);
    while count < wanted {
        let before = taken.len();
        if room.read_until(b'\n', &mut taken)? == 0 {
            break;
        }
        if taken.len() > limit {
            cut = true;
            taken.truncate(if count == 0 { limit } else { before });
            break;
        }
        count += 1;
    }
    let text = whole_characters(taken);
    let note = if text.is_empty() && whole.lines > 0 && !cut {
        Some(format!("There is no line {from}: it has {} lines.", whole.lines))
    } else if cut && count == 0 {
        Some(format!(
            "The beginning of line {from} of {}: bytes {offset} to {} of {}, as much as is given at once \
             (setting expose.read_limit); ask for more with `bytes` or `pattern`.",
            whole.lines,
            offset + text.len().saturating_sub(1),
            whole.bytes
        ))
    } else if cut {
        Some(format!(
            "Lines {from} to {} of {}; {} bytes are given at once (setting expose.read_limit). Ask \
             for more with `lines`, `bytes` or `pattern`.",
            from + count - 1,
            whole.lines,
            text.len()
        ))
    } else if number(text.len()) < whole.bytes {
        Some(format!("Lines {from} to {} of {}.", from + count.max(1) - 1, whole.lines))
    } else {
        None
    };
    Ok(Excerpt { text, note })
}

/// The characters that begin among the bytes asked for, so that ranges which follow on each other lose none.
fn bytes(
    source: &mut (impl BufRead + Seek),
    whole: Whole,
    from: usize,
    to: usize,
    limit: usize,
) -> io::Result<Excerpt> {
    source.seek(SeekFrom::Start(number(from)))?;
    let wanted = to.saturating_sub(from).saturating_add(1).min(limit);
    let mut taken = Vec::new();
    source.take(number(wanted.saturating_add(REST))).read_to_end(&mut taken)?;
    let rest = taken.iter().skip(wanted).take_while(|byte| is_inside_character(**byte)).count();
    taken.truncate(wanted.saturating_add(rest));
    let halves = taken.iter().take_while(|byte| is_inside_character(**byte)).count();
    if halves > 0 && halves == taken.len() {
        let note = format!("No character begins there: it has {} bytes.", whole.bytes);
        return Ok(Excerpt { text: String::new(), note: Some(note) });
    }
    let text = whole_characters(taken.split_off(halves));
    let start = from + halves;
    let note = if text.is_empty() {
        format!("There is nothing there: it has {} bytes.", whole.bytes)
    } else {
        format!("Bytes {start} to {} of {}.", start + text.len() - 1, whole.bytes)
    };
    Ok(Excerpt { text, note: Some(note) })
}

/// What a character has behind its first byte, at most.
const REST: usize = 3;

const fn is_inside_character(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Text without the beginning of a character at its end.
fn whole_characters(mut bytes: Vec<u8>) -> String {
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn compiled(pattern: &str) -> Result<Regex, String> {
    // What a compiled pattern may weigh; the crate's own limit is ten times that.
    const WEIGHT: usize = 1 << 20;
    let built = RegexBuilder::new(pattern).size_limit(WEIGHT).build();
    built.map_err(|error| format!("`pattern` is no regular expression: {error}"))
}

fn matches(
    source: &mut impl BufRead,
    whole: Whole,
    pattern: &Regex,
    limit: usize,
) -> io::Result<Excerpt> {
    let (mut text, mut shown, mut found) = (String::new(), 0_usize, 0_usize);
    let (mut line, mut at, mut offset, mut full) = (Vec::new(), 0_usize, 0_usize, false);
    while source.read_until(b'\n', &mut line)? > 0 {
        at += 1;
        let content = String::from_utf8_lossy(&line);
        let content = content.trim_end_matches('\n').trim_end_matches('\r');
        if let Some(place) = pattern.find(content) {
            found += 1;
            let told = around(content, at, offset, place.range());
            full |= text.len() + told.len() > limit && found > 1;
            if !full {
                text.push_str(&told);
                shown += 1;
            }
        }
        offset += line.len();
        line.clear();
    }
    let note = match found {
        0 => Some(format!("None of {} lines matches.", whole.lines)),
        _ if full => Some(format!(
            "{shown} of {found} matching lines are shown (setting expose.read_limit)."
        )),
        _ => None,
    };
    Ok(Excerpt { text: head(&text, limit).to_owned(), note })
}

/// A line that matches with its number; of a long one what is around the match, and where that begins.
fn around(line: &str, number: usize, offset: usize, place: Range<usize>) -> String {
    const WIDE: usize = 1000;
    const BEFORE: usize = 200;
    if line.len() <= WIDE {
        return format!("{number}: {line}\n");
    }
    let start = line.floor_char_boundary(place.start.saturating_sub(BEFORE));
    let end = line.floor_char_boundary(start.saturating_add(WIDE));
    let window = line.get(start..end).unwrap_or_default();
    let (before, after) =
        (if start > 0 { "…" } else { "" }, if end < line.len() { "…" } else { "" });
    format!("{number}, from byte {}: {before}{window}{after}\n", offset + start)
}

/// As many whole lines as fit; of a single line that does not, as much as fits.
pub(super) fn head(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let cut = text.get(..text.floor_char_boundary(limit)).unwrap_or_default();
    cut.rfind('\n').and_then(|at| cut.get(..=at)).unwrap_or(cut)
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
        assert!(note.starts_with("Lines 1 to 1 of 3;") && note.contains("expose.read_limit"));
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
        assert_eq!(cut(&Part::Bytes(4, 8), 99).0, "two ä");
        assert_eq!(cut(&Part::Bytes(9, usize::MAX), 4).0, "\nth");
        assert!(cut(&Part::Bytes(99, 100), 99).1.contains("17 bytes"));
    }

    /// Ranges that follow on each other hold every character once, wherever they meet.
    #[test]
    fn ranges_of_bytes_lose_nothing() {
        let whole = "aé😀b".repeat(40);
        for size in 1..9 {
            let ranges = (0..whole.len()).step_by(size);
            let parts = ranges.map(|from| excerpt(&whole, &Part::Bytes(from, from + size - 1), 99));
            let joined: String = parts.map(|part| part.unwrap().text).collect();
            assert_eq!(joined, whole, "{size}");
        }
        let inside = excerpt("é", &Part::Bytes(1, 1), 99).unwrap();
        assert!(inside.note.unwrap().starts_with("No character begins there"), "{}", inside.text);
    }

    #[test]
    fn patterns_give_lines_with_numbers() {
        assert_eq!(cut(&Part::Matches("^t".into()), 99).0, "2: two ä\n3: three\n");
        assert!(cut(&Part::Matches("zzz".into()), 99).1.contains("3 lines"));
        assert!(cut(&Part::Matches("t".into()), 12).1.starts_with("1 of 2"));
        assert!(excerpt(TEXT, &Part::Matches("(".into()), 9).is_err());
    }

    /// A line may be the whole of a text: JSON often is.
    #[test]
    fn long_lines_are_given_in_parts() {
        let long = format!("a\n{}needle ä{}\n", "x".repeat(5000), "y".repeat(5000));
        let cut = |part: Part, limit| excerpt(&long, &part, limit).unwrap();
        let found = cut(Part::Matches("needle".into()), 9000);
        assert!(found.text.starts_with("2, from byte 4802: …xxx"), "{}", &found.text[..60]);
        assert!(found.text.contains("needle ä") && found.text.len() < 1100);
        let line = cut(Part::Lines(2, 2), 100);
        assert_eq!(line.text.len(), 100);
        assert!(line.note.unwrap().contains("line 2 of 2: bytes 2 to 101 of 10012"));
        assert_eq!(cut(Part::Bytes(5008, 5009), 100).text, " ä");
        assert_eq!(cut(Part::Bytes(5010, 5010), 100).text, "");
    }

    #[test]
    fn ranges_are_read_strictly() {
        assert_eq!(Part::range("lines", "2-5"), Ok((2, 5)));
        assert_eq!(Part::range("lines", "7"), Ok((7, 7)));
        assert_eq!(Part::range("lines", "7-"), Ok((7, usize::MAX)));
        let none = Part::range("lines", "0-9").unwrap_err();
        assert!(none.contains("count from 1"), "{none}");
        for odd in ["", "5-2", "a-b", "-3"] {
            assert!(Part::range("lines", odd).unwrap_err().contains("lines"), "{odd}");
        }
    }
}
