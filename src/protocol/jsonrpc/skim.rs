//! Finds where values end in text that has been checked already.
//!
//! A [`super::RawJson`] is valid JSON, so opening one needs no second check of every byte: strings
//! are skipped with `memchr`, containers by counting brackets. On text that is *not* valid the
//! functions return `None` at the latest at its end, which is what reading the id of a broken frame
//! relies on.

use std::sync::LazyLock;

use memchr::{memchr2, memmem};

/// One member of an object: where its key stands (with quotes) and where its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    /// Start and end of the key, quotes included.
    pub(crate) key: (usize, usize),
    /// Start and end of the value.
    pub(crate) value: (usize, usize),
}

/// Walks the members of the object that `text` is, white space around it allowed.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    text: &'a [u8],
    at: usize,
    state: State,
}

/// Walks the elements of the array that `text` is; yields start and end of each.
#[derive(Debug)]
pub(crate) struct Elements<'a> {
    text: &'a [u8],
    at: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was read yet.
    Start,
    /// Directly before a member or element.
    AtItem,
    /// Behind a member or element.
    Inside,
    /// The closing bracket was read.
    Done,
    /// The text is not what it should be.
    Broken,
}

impl<'a> Members<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, state: State::Start }
    }

    /// Starts at the key of a member, somewhere inside an object.
    pub(crate) fn inside(text: &'a [u8]) -> Self {
        Self { text, at: 0, state: State::AtItem }
    }

    /// Whether the object was read to its end.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// What stands behind the object, once it was read to its end.
    pub(crate) fn rest(&self) -> Option<&'a [u8]> {
        let closed = blanks(self.text, self.at) + 1;
        self.is_done().then(|| self.text.get(closed..).unwrap_or_default())
    }

    fn step(&mut self) -> Option<Member> {
        let at = separator(self.text, self.at, &mut self.state, b'{', b'}')?;
        let key_end = string_end(self.text, at)?;
        let colon = blanks(self.text, key_end);
        if self.text.get(colon) != Some(&b':') {
            return None;
        }
        let start = blanks(self.text, colon + 1);
        self.at = value_end(self.text, start)?;
        Some(Member { key: (at, key_end), value: (start, self.at) })
    }
}

impl Iterator for Members<'_> {
    type Item = Member;

    fn next(&mut self) -> Option<Member> {
        if matches!(self.state, State::Done | State::Broken) {
            return None;
        }
        let item = self.step();
        if item.is_none() && self.state != State::Done {
            self.state = State::Broken;
        }
        item
    }
}

impl<'a> Elements<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, state: State::Start }
    }

    /// Whether the array was read to its end.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    fn step(&mut self) -> Option<(usize, usize)> {
        let at = separator(self.text, self.at, &mut self.state, b'[', b']')?;
        self.at = value_end(self.text, at)?;
        Some((at, self.at))
    }
}

impl Iterator for Elements<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        if matches!(self.state, State::Done | State::Broken) {
            return None;
        }
        let item = self.step();
        if item.is_none() && self.state != State::Done {
            self.state = State::Broken;
        }
        item
    }
}

/// Passes the opening bracket or a comma; `None` at the closing bracket, with the state saying so,
/// and where neither stands.
fn separator(text: &[u8], at: usize, state: &mut State, open: u8, close: u8) -> Option<usize> {
    let mut at = blanks(text, at);
    let done = match (*state, *text.get(at)?) {
        (State::Start, byte) if byte == open => {
            at = blanks(text, at + 1);
            text.get(at) == Some(&close)
        }
        (State::AtItem, _) => false,
        (State::Inside, b',') => {
            at = blanks(text, at + 1);
            false
        }
        (State::Inside, byte) if byte == close => true,
        _ => return None,
    };
    *state = if done { State::Done } else { State::Inside };
    (!done).then_some(at)
}

fn blanks(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Words of eight bytes that are looked at before a call of `memchr` pays: nearly all keys, and most
/// values, end within them.
const NEAR: usize = 4;
const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
const SLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);

/// The high bit of the lowest byte that is zero, and perhaps of higher ones.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// The position after the string that starts, with its quote, at `at`.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    for _ in 0..NEAR {
        let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) else { break };
        let word = u64::from_le_bytes(*word);
        let found = zeros(word ^ QUOTES) | zeros(word ^ SLASHES);
        if found != 0 {
            at += found.trailing_zeros() as usize / 8;
            break;
        }
        at += 8;
    }
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += memchr2(b'"', b'\\', text.get(at..)?)?,
        }
    }
}

/// The position after the value that starts at `at`.
fn value_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => string_end(text, at),
        b'{' | b'[' => container_end(text, at),
        b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
            let rest = text.get(at..)?;
            let length = rest
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
                .unwrap_or(rest.len());
            Some(at + length)
        }
        _ => None,
    }
}

fn container_end(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        let rest = text.get(at..)?;
        let found =
            rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'))?;
        at += found;
        match rest.get(found)? {
            b'"' => {
                at = string_end(text, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            _ => depth -= 1,
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Whether the object that `text` is has a member of its own that `wanted` picks by name and value;
/// one whose name has escapes counts as picked. One pass, which skips payloads at memory speed.
pub(crate) fn has_member(text: &[u8], mut wanted: impl FnMut(&[u8], &[u8]) -> bool) -> bool {
    Members::new(text).any(|member| {
        let name = text.get(member.key.0 + 1..member.key.1 - 1).unwrap_or_default();
        let value = text.get(member.value.0..member.value.1).unwrap_or_default();
        name.contains(&b'\\') || wanted(name, value)
    })
}

/// A name that may stand as a key somewhere in some text, looked for without opening the text. Where
/// the key is written with escapes it is not found; callers look for those with
/// [`has_escaped_ascii`]. A wrong `true` only costs an opening.
#[derive(Debug)]
pub(crate) struct KeyFinder(memmem::Finder<'static>);

impl KeyFinder {
    /// `quoted` is the name with its closing quote, `_meta"`: inside a string that quote would be
    /// escaped, so values hardly ever match.
    pub(crate) fn new(quoted: &'static str) -> Self {
        Self(memmem::Finder::new(quoted.as_bytes()))
    }

    /// Whether `text` has the name.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.0.find(text).is_some()
    }
}

/// Whether some printable ASCII character is written as `\u00XX`, as a key's letter may be.
pub(crate) fn has_escaped_ascii(text: &[u8]) -> bool {
    // Built once: building it costs more than most searches.
    static ESCAPE: LazyLock<memmem::Finder<'static>> =
        LazyLock::new(|| memmem::Finder::new(br"\u00"));
    ESCAPE.find_iter(text).any(|at| matches!(text.get(at + 4), Some(b'2'..=b'7')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> (Vec<(&str, &str)>, bool) {
        let mut walk = Members::new(text.as_bytes());
        let found = walk
            .by_ref()
            .map(|member| {
                (&text[member.key.0..member.key.1], &text[member.value.0..member.value.1])
            })
            .collect();
        (found, walk.is_done())
    }

    #[test]
    fn members_of_valid_text() {
        let text = r#" { "a" : 1e2 ,"b\"}":"x\\","c":[{"d":"]}"},[]], "e":{}, "f":-0,"g":null } "#;
        let (found, done) = members(text);
        assert!(done);
        let expected = [
            (r#""a""#, "1e2"),
            (r#""b\"}""#, r#""x\\""#),
            (r#""c""#, r#"[{"d":"]}"},[]]"#),
            (r#""e""#, "{}"),
            (r#""f""#, "-0"),
            (r#""g""#, "null"),
        ];
        assert_eq!(found, expected);
        assert_eq!(members("{ }"), (vec![], true));
    }

    #[test]
    fn broken_text_gives_what_came_before() {
        assert_eq!(
            members(r#"{"id":5,"method":"x","params":{"a":"#).0,
            [(r#""id""#, "5"), (r#""method""#, r#""x""#)]
        );
        for text in
            ["", "[", "{", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":\"", "{\"a\":1 2", "{]", "7"]
        {
            assert!(!members(text).1, "{text}");
        }
    }

    #[test]
    fn elements() {
        let text = r#"[1, "a,b" ,{"x":[2]},[]]"#;
        let mut walk = Elements::new(text.as_bytes());
        let found: Vec<&str> = walk.by_ref().map(|(start, end)| &text[start..end]).collect();
        assert_eq!(found, ["1", r#""a,b""#, r#"{"x":[2]}"#, "[]"]);
        assert!(walk.is_done());
        assert!(!Elements::new(b"[1,").any(|_| false));
    }

    #[test]
    fn keys_are_found_also_when_escaped() {
        let has = |text: &[u8]| has_member(text, |name, _| name == b"_meta");
        assert!(has(br#"{"_meta":{}}"#));
        assert!(has(br#"{"x":1,"\u005fmeta":{}}"#));
        assert!(!has(br#"{"text":"\"_meta\" \u00e9","arguments":{"_meta":{},"\u005f":1}}"#));
        assert!(KeyFinder::new("_meta\"").is_in(br#"{"arguments":{"_meta":{}}}"#));
        assert!(has_escaped_ascii(br#"{"\u005fmeta":{}}"#));
        assert!(!has_escaped_ascii(br#"{"text":"\u00e9"}"#));
    }
}
