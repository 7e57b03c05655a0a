//! Which parts of a long result stay in the answer, and what becomes of the others. Pure.
//!
//! Pictures and sounds stay: hosts show them to a model as such, which costs it nothing like their length
//! in base64. What is short stays as long as there is room. Texts are stored as one text, so that lines and
//! patterns find what is in them; structured content as JSON in lines; what has a type of its own with
//! that type.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::actors::dispatch::excerpt;
use crate::protocol::jsonrpc::{Object, RawJson, pretty};

/// Files of one result at most; what is beyond them is stored together, as the blocks that it is.
const FILES: usize = 16;
/// By how much JSON in lines may be longer than it came, before it is stored as it came.
const GROWTH: usize = 4;

/// Limits in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// `call.result_limit`.
    pub(super) whole: usize,
    /// `call.result_head`.
    pub(super) head: usize,
    /// `call.media_limit`.
    pub(super) media: usize,
}

/// A result in parts.
#[derive(Debug)]
pub(super) struct Parts {
    /// The result without what is to be stored.
    pub(super) rest: Object,
    /// What is to be stored, at least one.
    pub(super) pieces: Vec<Piece>,
    /// The beginning of the first piece, where that is text.
    pub(super) head: Option<Head>,
}

/// One file.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) bytes: Bytes,
}

/// The beginning of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) text: String,
    /// So many whole lines; none where not even one fits.
    pub(super) lines: Option<usize>,
}

/// The parts of a result of more than `limits.whole` bytes; none where all of it stays.
pub(super) fn split(result: &RawJson, name: &str, limits: Limits) -> Option<Parts> {
    let mut rest = Object::read(result).ok()?;
    let blocks = rest.get("content").and_then(RawJson::elements).unwrap_or_default();
    let shown: usize =
        blocks.iter().filter(|block| stays_media(block, limits)).map(RawJson::len).sum();
    if result.len() - shown <= limits.whole {
        return None;
    }
    let mut sorted = Sorted::new(name, limits);
    let structured = rest.get("structuredContent").filter(|value| !sorted.fits(value)).cloned();
    if structured.is_some() {
        rest.remove("structuredContent");
    }
    let is_copy = |block: &RawJson| match &structured {
        Some(value) => {
            block.member_str("text").is_some_and(|text| is_same_json(&text, value.as_str()))
        }
        None => false,
    };
    blocks.into_iter().filter(|block| !is_copy(block)).for_each(|block| sorted.sort(block));
    let (stays, pieces) = sorted.finish(structured);
    let head = pieces.first().and_then(|piece| head(&piece.bytes, limits.head));
    rest.set("content", RawJson::array(&stays));
    (!pieces.is_empty()).then_some(Parts { rest, pieces, head })
}

fn head(bytes: &[u8], limit: usize) -> Option<Head> {
    let text = excerpt::head(std::str::from_utf8(bytes).ok()?, limit);
    let whole = text.ends_with('\n') || text.len() == bytes.len();
    Some(Head { text: text.to_owned(), lines: whole.then(|| text.lines().count()) })
}

/// Blocks by what becomes of them.
struct Sorted {
    name: String,
    limits: Limits,
    /// Bytes that may still stay.
    room: usize,
    stays: Vec<RawJson>,
    texts: Vec<String>,
    files: Vec<Piece>,
    others: Vec<RawJson>,
}

impl Sorted {
    fn new(name: &str, limits: Limits) -> Self {
        let (stays, texts, files, others) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { name: name.to_owned(), limits, room: limits.head, stays, texts, files, others }
    }

    /// Whether there is room for it; then that is taken.
    fn fits(&mut self, value: &RawJson) -> bool {
        let fits = value.len() <= self.room;
        if fits {
            self.room -= value.len();
        }
        fits
    }

    fn sort(&mut self, block: RawJson) {
        if stays_media(&block, self.limits) {
            return self.stays.push(block);
        }
        let text = (block.member_str("type").as_deref() == Some("text"))
            .then(|| block.member_str("text"))
            .flatten();
        match text {
            // A text behind one that is stored is stored with it: their order says something.
            Some(text) if !self.texts.is_empty() => self.texts.push(text),
            _ if self.fits(&block) => self.stays.push(block),
            Some(text) => self.texts.push(text),
            None if self.files.len() < FILES => match self.file(&block) {
                Some(file) => self.files.push(file),
                None => self.others.push(block),
            },
            None => self.others.push(block),
        }
    }

    /// What a block holds that has a type of its own.
    fn file(&self, block: &RawJson) -> Option<Piece> {
        if let Some(data) = block.member_str("data") {
            let kind = block.member_str("mimeType").unwrap_or_default();
            let bytes = STANDARD.decode(data).ok()?.into();
            return Some(Piece { name: self.numbered(&kind), kind, bytes });
        }
        let resource = block.member("resource")?;
        let kind = resource.member_str("mimeType").unwrap_or_default();
        let name = resource.member_str("uri").unwrap_or_else(|| self.numbered(&kind));
        let bytes = match resource.member_str("text") {
            Some(text) => Bytes::from(text),
            None => STANDARD.decode(resource.member_str("blob")?).ok()?.into(),
        };
        Some(Piece { name, kind, bytes })
    }

    fn numbered(&self, kind: &str) -> String {
        let ending = kind.split_once('/').map(|(_, ending)| ending);
        let ending = ending.filter(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        format!("{}-{}.{}", self.name, self.files.len() + 1, ending.unwrap_or("bin"))
    }

    /// What stays, and what is stored: texts first, because their beginning is shown.
    fn finish(self, structured: Option<RawJson>) -> (Vec<RawJson>, Vec<Piece>) {
        let name = |ending: &str| format!("{}{ending}", self.name);
        let json = |name: String, value: &RawJson| Piece {
            name,
            kind: "application/json".to_owned(),
            bytes: in_lines(value),
        };
        let mut pieces = Vec::new();
        if !self.texts.is_empty() {
            let text = Bytes::from(self.texts.join("\n"));
            let (ending, kind) = if RawJson::parse(text.clone()).is_ok() {
                (".json", "application/json")
            } else {
                (".txt", "text/plain")
            };
            pieces.push(Piece { name: name(ending), kind: kind.to_owned(), bytes: text });
        }
        if let Some(value) = structured {
            let ending = if pieces.is_empty() { ".json" } else { "-structured.json" };
            pieces.push(json(name(ending), &value));
        }
        let others = &self.others;
        if !others.is_empty() {
            pieces.push(json(name("-blocks.json"), &RawJson::array(others)));
        }
        pieces.extend(self.files);
        (self.stays, pieces)
    }
}

fn in_lines(value: &RawJson) -> Bytes {
    pretty(value, value.len().saturating_mul(GROWTH)).map_or_else(|| value.bytes(), Bytes::from)
}

fn stays_media(block: &RawJson, limits: Limits) -> bool {
    let kind = || block.member_str("type").unwrap_or_default();
    block.len() <= limits.media && matches!(kind().as_str(), "image" | "audio")
}

/// Whether two texts are the same JSON, but for spaces between its tokens.
fn is_same_json(one: &str, other: &str) -> bool {
    fn significant(text: &str) -> impl Iterator<Item = u8> {
        let (mut inside, mut escaped) = (false, false);
        text.bytes().filter(move |byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = inside,
                b'"' => inside = !inside,
                _ => {}
            }
            inside || !byte.is_ascii_whitespace()
        })
    }
    significant(one).eq(significant(other))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const LIMITS: Limits = Limits { whole: 1000, head: 100, media: 5000 };

    fn parts(result: &Value) -> Option<Parts> {
        split(&RawJson::write(result), "list", LIMITS)
    }

    fn text(text: &str) -> Value {
        json!({ "type": "text", "text": text })
    }

    fn kept(parts: &Parts) -> Value {
        parts.rest.write().read().unwrap()
    }

    fn told(parts: &Parts) -> Vec<(&str, &str)> {
        parts.pieces.iter().map(|piece| (piece.name.as_str(), piece.kind.as_str())).collect()
    }

    #[test]
    fn texts_are_stored_as_one_and_the_rest_of_the_result_stays() {
        let long = "line ä\n".repeat(200);
        let result = json!({ "content": [text("intro"), text(&long), text("end")], "isError": true,
            "_meta": { "k": 1 } });
        let parts = parts(&result).unwrap();
        assert_eq!(
            kept(&parts),
            json!({ "content": [text("intro")], "isError": true, "_meta": { "k": 1 } })
        );
        assert_eq!(told(&parts), [("list.txt", "text/plain")]);
        assert_eq!(parts.pieces[0].bytes, format!("{long}\nend"));
        assert_eq!(parts.head, Some(Head { text: "line ä\n".repeat(12), lines: Some(12) }));
    }

    #[test]
    fn structured_content_is_stored_in_lines_without_its_copy() {
        let value = format!(r#"{{"n":[{}1e2]}}"#, "12345678901234567890, ".repeat(60));
        let structured = RawJson::parse(value.clone().into()).unwrap();
        let mut result = Object::new();
        result.set("content", RawJson::write(&[text(&value.replace(' ', ""))]));
        result.set("structuredContent", structured);
        let parts = split(&result.write(), "list", LIMITS).unwrap();
        assert_eq!(kept(&parts), json!({ "content": [] }));
        assert_eq!(told(&parts), [("list.json", "application/json")]);
        let stored = std::str::from_utf8(&parts.pieces[0].bytes).unwrap();
        assert!(stored.starts_with("{\n  \"n\": [\n    12345678901234567890,\n"), "{stored}");
        assert!(stored.ends_with("    1e2\n  ]\n}"));
        assert!(parts.head.unwrap().lines.unwrap() > 2);
    }

    #[test]
    fn another_text_than_the_copy_is_stored_beside_it() {
        let result = json!({ "content": [text(&"x".repeat(2000))],
            "structuredContent": { "y": "z".repeat(2000) } });
        let found = parts(&result).unwrap();
        let names = [("list.txt", "text/plain"), ("list-structured.json", "application/json")];
        assert_eq!(told(&found), names);
        assert_eq!(found.head, Some(Head { text: "x".repeat(100), lines: None }));
        let small =
            json!({ "content": [text(&"x".repeat(2000))], "structuredContent": { "y": 1 } });
        assert_eq!(kept(&parts(&small).unwrap())["structuredContent"]["y"], 1);
    }

    #[test]
    fn pictures_stay_and_files_keep_their_types() {
        let image = |size: usize| json!({ "type": "image", "data": "AAEC".repeat(size / 4), "mimeType": "image/png" });
        assert!(parts(&json!({ "content": [image(4000), text("shown")] })).is_none());
        let blob = json!({ "type": "resource", "resource":
            { "uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": "AAEC".repeat(500) } });
        let odd = json!({ "type": "hologram", "x": "y".repeat(200) });
        let result = json!({ "content": [image(4000), image(8000), blob, odd] });
        let parts = parts(&result).unwrap();
        assert_eq!(kept(&parts)["content"], json!([image(4000)]));
        let expected = [
            ("list-blocks.json", "application/json"),
            ("list-1.png", "image/png"),
            ("file:///a.pdf", "application/pdf"),
        ];
        assert_eq!(told(&parts), expected);
        assert_eq!(parts.pieces[1].bytes.len(), 6000);
    }

    #[test]
    fn however_many_blocks_there_are_few_files_come_of_them() {
        let one =
            json!({ "type": "resource", "resource": { "uri": "u:1", "text": "t".repeat(100) } });
        let parts = parts(&json!({ "content": vec![one; 100] })).unwrap();
        assert_eq!(parts.pieces.len(), FILES + 1);
        assert_eq!(parts.pieces[0].name, "list-blocks.json");
    }

    #[test]
    fn what_is_neither_stays_whole() {
        assert!(parts(&json!({ "content": [], "_meta": { "m": "x".repeat(2000) } })).is_none());
    }
}
