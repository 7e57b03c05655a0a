//! Finds the top-level members of a frame without checking the rest of it.
//!
//! For the shim, which forwards frames as they are and needs no more than id and method to know
//! what is in flight, and for a look at one member of a payload that has been parsed already. The
//! daemon validates; this only skips, at memory speed (see `skim`). On text that is no JSON it finds
//! what stands before the fault, and it always ends.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::skim::{Elements, Members};

/// What the top level of a frame says. Every slice is raw JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head<'a> {
    /// The id as written; the first, where there are two (such a request is answered to that one).
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

/// The top level of one object. What a frame that is cut off or broken says before that point counts.
pub fn head(frame: &[u8]) -> Head<'_> {
    let mut head = Head::default();
    for (key, value) in members(frame) {
        match key {
            b"\"id\"" => head.id = head.id.or(Some(value)),
            b"\"method\"" => head.method = Some(value),
            b"\"params\"" => head.params = Some(value),
            b"\"result\"" => head.has_result = true,
            b"\"error\"" => head.has_error = true,
            _ => {}
        }
    }
    head
}

/// The last member `key` of an object, raw. `key` is compared as it is written, escapes and all.
pub fn member<'a>(object: &'a [u8], key: &str) -> Option<&'a [u8]> {
    members(object).filter(|(name, _)| unquoted(name) == key.as_bytes()).last().map(|(_, raw)| raw)
}

/// The elements of an array, raw.
pub fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = without_mark(array);
    Elements::new(text).filter_map(|(start, end)| text.get(start..end))
}

/// Whether the frame is an array, which only a batch is.
pub fn is_batch(frame: &[u8]) -> bool {
    without_mark(frame).trim_ascii_start().first() == Some(&b'[')
}

/// Built once, as in the shim.
static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"jsonrpc\""));

/// Whether the mark of every JSON-RPC message stands in it. One fast search; in what prints without
/// end, everything else is not worth a look.
pub fn may_be_message(frame: &[u8]) -> bool {
    MARK.find(frame).is_some()
}

/// Keys with their quotes, and raw values.
fn members(object: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let text = without_mark(object);
    Members::new(text).filter_map(|found| {
        Some((text.get(found.key.0..found.key.1)?, text.get(found.value.0..found.value.1)?))
    })
}

fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text)
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
        assert_eq!(head(br#"{"id":1,"id":2,"method":"x"}"#).id, Some(b"1".as_slice()));
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
