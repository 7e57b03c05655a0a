//! Reads JSON that `serde_json` refuses although the grammar allows it: lone surrogates (F10).

use std::borrow::Cow;

use serde_json::Value;

/// Parses `text`; a lone surrogate escape reads as U+FFFD, everything else is as strict as usual.
pub fn parse(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(text).or_else(|error| match without_lone_surrogates(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(mended) => serde_json::from_slice(&mended),
    })
}

/// The same text with each lone `\ud8xx`/`\udcxx` escape replaced by `\ufffd`.
pub fn without_lone_surrogates(text: &[u8]) -> Cow<'_, [u8]> {
    let mut mended: Option<Vec<u8>> = None;
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            at += 1;
            continue;
        }
        match escape(text, at) {
            None => at += 2,
            Some(0xd800..=0xdbff) if matches!(escape(text, at + 6), Some(low) if low & 0xfc00 == 0xdc00) =>
            {
                at += 12;
            }
            Some(unit) => {
                if unit & 0xf800 == 0xd800 {
                    let copy = mended.get_or_insert_with(|| text.to_vec());
                    copy[at + 2..at + 6].copy_from_slice(b"fffd");
                }
                at += 6;
            }
        }
    }
    mended.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The code unit of a `\uXXXX` that starts at `at`.
fn escape(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
