//! Finds the top-level members of a frame without checking the rest of it.
//!
//! For the shim, which forwards frames as they are and needs no more than id and method to know
//! what is in flight, and for a look at one member of a payload that has been parsed already. The
//! daemon validates; this only skips, at memory speed: a string by looking for its end, a container
//! by counting its own kind of bracket outside of strings. On text that is no JSON it finds
//! something or nothing, but it always ends, and never reads beyond the text.

use memchr::{memchr2, memchr3};

/// What the top level of a frame says. Every slice is raw JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head<'a> {
    /// The id as written.
    pub id: Option<&'a [u8]>,
    /// The method, with its quotes.
    pub method: Option<&'a [u8]>,
    /// Parameters.
    pub params: Option<&'a [u8]>,
    /// Whether there is a result.
    pub has_result: bool,
    /// Whether there is an error.
    pub has_error: bool,
}

impl Head<'_> {
    /// A request: method and id.
    pub fn is_request(&self) -> bool {
        self.method.is_some() && self.id.is_some()
    }

    /// A response: an id, and a result or an error.
    pub fn is_response(&self) -> bool {
        self.method.is_none() && self.id.is_some() && (self.has_result || self.has_error)
    }

    /// Whether the method is `name`. Escapes in method names are not looked through: no method that
    /// is asked for here needs one.
    pub fn method_is(&self, name: &str) -> bool {
        self.method.is_some_and(|raw| unquoted(raw) == name.as_bytes())
    }
}

/// The inside of a string's raw text; empty for anything else.
pub fn unquoted(raw: &[u8]) -> &[u8] {
    raw.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or_default()
}

/// The top level of one object.
pub fn head(frame: &[u8]) -> Head<'_> {
    let mut head = Head::default();
    for (key, value) in members(frame) {
        match key {
            b"id" => head.id = Some(value),
            b"method" => head.method = Some(value),
            b"params" => head.params = Some(value),
            b"result" => head.has_result = true,
            b"error" => head.has_error = true,
            _ => {}
        }
    }
    head
}

/// The last member `key` of an object.
pub fn member<'a>(object: &'a [u8], key: &str) -> Option<&'a [u8]> {
    members(object).filter(|(name, _)| *name == key.as_bytes()).last().map(|(_, value)| value)
}

/// The members of an object: key without quotes (escapes left as they are) and raw value.
pub fn members(object: &[u8]) -> Members<'_> {
    Members { rest: open(object, b'{') }
}

/// The elements of an array, raw.
pub fn elements(array: &[u8]) -> Elements<'_> {
    Elements { rest: open(array, b'[') }
}

/// What follows the opening bracket; empty where the text starts with something else.
fn open(text: &[u8], bracket: u8) -> &[u8] {
    const BOM: &[u8] = b"\xEF\xBB\xBF";
    let text = text.strip_prefix(BOM).unwrap_or(text).trim_ascii_start();
    text.strip_prefix(&[bracket]).unwrap_or_default()
}

/// See [`members`].
#[derive(Debug, Clone)]
pub struct Members<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = skip_separators(self.rest);
        // Whatever goes wrong below ends the walk.
        self.rest = &[];
        let (key, rest) = split_value(rest)?;
        let key = key.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        let rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let (value, rest) = split_value(rest)?;
        self.rest = rest;
        Some((key, value))
    }
}

/// See [`elements`].
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let rest = skip_separators(self.rest);
        self.rest = &[];
        let (value, rest) = split_value(rest)?;
        self.rest = rest;
        Some(value)
    }
}

fn skip_separators(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_start();
    text.strip_prefix(b",").unwrap_or(text).trim_ascii_start()
}

/// One value at the very start of `text`, and what follows it; `None` where it does not end.
fn split_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = match text.first()? {
        b'"' => string_end(text)?,
        b'{' => container_end(text, b'{', b'}')?,
        b'[' => container_end(text, b'[', b']')?,
        b'}' | b']' => return None,
        _ => text
            .iter()
            .position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace())?,
    };
    text.split_at_checked(end)
}

/// The length of the string that `text` starts with.
fn string_end(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let found = at + memchr2(b'"', b'\\', text.get(at..)?)?;
        match text.get(found)? {
            b'"' => return Some(found + 1),
            // The escaped character can be no end; `\uXXXX` needs no more care than that.
            _ => at = found + 2,
        }
    }
}

/// The length of the container that `text` starts with. Brackets of the other kind balance by
/// themselves inside it, so only its own kind is counted.
fn container_end(text: &[u8], open: u8, close: u8) -> Option<usize> {
    let mut at = 1;
    let mut depth = 1_usize;
    loop {
        let found = at + memchr3(b'"', open, close, text.get(at..)?)?;
        let byte = *text.get(found)?;
        if byte == b'"' {
            at = found + string_end(text.get(found..)?)?;
            continue;
        }
        at = found + 1;
        depth = if byte == close { depth - 1 } else { depth + 1 };
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_top_level_counts() {
        let text = br#" {"params":{"id":9,"method":"no","s":"}\"]{\\"},
            "jsonrpc" : "2.0" , "id" : "a\"b","method":"tools/call"} "#;
        let head = head(text);
        assert_eq!(head.id, Some(br#""a\"b""#.as_slice()));
        assert!(head.method_is("tools/call") && head.is_request() && !head.is_response());
        assert_eq!(head.params, Some(br#"{"id":9,"method":"no","s":"}\"]{\\"}"#.as_slice()));
    }

    #[test]
    fn responses_and_numbers() {
        let found = head(br#"{"result":[1,{"a":[]}],"id":12}"#);
        assert_eq!(found.id, Some(b"12".as_slice()));
        assert!(found.is_response() && found.has_result && !found.has_error);
        assert!(head(br#"{"error":{},"id":null}"#).has_error);
        assert_eq!(member(br#"{"a":1,"b":[2],"a":{"a":3}}"#, "a"), Some(br#"{"a":3}"#.as_slice()));
    }

    #[test]
    fn elements_of_a_batch() {
        let parts: Vec<_> = elements(br#"[ {"id":1,"x":"]"}, 3 ,[4,[5]],"s"]"#).collect();
        let wanted = [br#"{"id":1,"x":"]"}"#.as_slice(), b"3", b"[4,[5]]", br#""s""#];
        assert_eq!(parts, wanted);
    }

    /// F08: the head of a frame that was cut off still gives its id.
    #[test]
    fn f08_cut_off_frames_give_what_they_have() {
        let cut = br#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"te"#;
        assert_eq!(head(cut).id, Some(b"7".as_slice()));
    }

    #[test]
    fn rubbish_ends() {
        let texts: [&[u8]; 9] = [
            b"",
            b"{",
            b"[1",
            b"{\"a\"",
            b"{\"a\":",
            b"{a:1}",
            b"[INFO] x {\"id\":1}",
            b"}",
            b"{]",
        ];
        for text in texts {
            assert_eq!(head(text), Head::default(), "{text:?}");
            assert!(elements(text).count() <= 2);
        }
    }
}
