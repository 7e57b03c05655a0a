//! What a body is: by its declared media type, compared without case and parameters, else by its
//! first bytes (F21).

use http::{HeaderMap, header};

/// A declared media type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Media {
    /// `application/json`, or another type that ends in `+json`.
    Json,
    /// `text/event-stream`.
    Events,
    /// A web page.
    Html,
    /// Anything else, in lower case.
    Other(String),
    /// None.
    Missing,
}

impl Media {
    /// As declared by `headers`.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let Some(value) = headers.get(header::CONTENT_TYPE) else { return Self::Missing };
        let text = String::from_utf8_lossy(value.as_bytes());
        let essence = text.split([';', ',']).next().unwrap_or_default().trim();
        match essence.to_ascii_lowercase().as_str() {
            "" => Self::Missing,
            "application/json" => Self::Json,
            "text/event-stream" => Self::Events,
            "text/html" | "application/xhtml+xml" => Self::Html,
            other if other.ends_with("+json") => Self::Json,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// What a body looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sniffed {
    /// The beginning of a JSON object or array.
    Json,
    /// The beginning of an event stream.
    Events,
    /// Neither.
    Neither,
    /// Too little of it to tell.
    Unclear,
}

/// Looks at the first bytes of a body.
pub(super) fn sniff(body: &[u8]) -> Sniffed {
    const FIELDS: [&[u8]; 4] = [b"data:", b"event:", b"id:", b"retry:"];
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body).trim_ascii_start();
    match body.first() {
        None => Sniffed::Unclear,
        Some(b'{' | b'[') => Sniffed::Json,
        Some(b':') => Sniffed::Events,
        Some(_) if FIELDS.iter().any(|field| body.starts_with(field)) => Sniffed::Events,
        Some(_) if FIELDS.iter().any(|field| field.starts_with(body)) => Sniffed::Unclear,
        Some(_) => Sniffed::Neither,
    }
}

/// Longest quotation of a body, in characters: one line of a text for people.
const QUOTED: usize = 120;

/// The beginning of a body as one line for people.
pub(super) fn quoted(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(QUOTED) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

/// The title of a web page, where it has one.
pub(super) fn title(page: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(page);
    // Lower case in ASCII only, so that places stay the same.
    let lower = text.to_ascii_lowercase();
    let tag = lower.find("<title")?;
    let begin = tag + lower.get(tag..)?.find('>')? + 1;
    let end = begin + lower.get(begin..)?.find("</title")?;
    let title = quoted(text.get(begin..end)?.as_bytes());
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f21_types_are_compared_without_case_and_parameters() {
        for (text, expected) in [
            ("application/json; charset=utf-8", Media::Json),
            ("Application/JSON", Media::Json),
            ("application/problem+json", Media::Json),
            ("text/event-stream;charset=UTF-8", Media::Events),
            ("text/html; charset=utf-8", Media::Html),
            ("Text/Plain", Media::Other("text/plain".to_owned())),
            ("", Media::Missing),
        ] {
            let headers = [(header::CONTENT_TYPE, text.parse().unwrap())].into_iter().collect();
            assert_eq!(Media::of(&headers), expected, "{text}");
        }
        assert_eq!(Media::of(&HeaderMap::new()), Media::Missing);
    }

    #[test]
    fn bodies_are_told_by_their_first_bytes() {
        for (body, expected) in [
            ("{\"a\":1}", Sniffed::Json),
            ("\u{feff} \r\n[", Sniffed::Json),
            ("data: {}", Sniffed::Events),
            (": comment", Sniffed::Events),
            ("event:x", Sniffed::Events),
            ("ev", Sniffed::Unclear),
            ("", Sniffed::Unclear),
            (" \n", Sniffed::Unclear),
            ("eva", Sniffed::Neither),
            ("null", Sniffed::Neither),
            ("<html>", Sniffed::Neither),
        ] {
            assert_eq!(sniff(body.as_bytes()), expected, "{body:?}");
        }
    }

    #[test]
    fn a_page_is_named_by_its_title() {
        let page =
            b"<!doctype html><HTML><head><Title lang=en>\n Sign in\xc3\xa4 \t to Acme</TITLE>";
        assert_eq!(title(page).as_deref(), Some("Sign inä to Acme"));
        assert_eq!(title(b"<title></title>"), None);
        assert_eq!(title(b"<title>cut off"), None);
        assert_eq!(title(b"no page"), None);
        assert_eq!(quoted("x".repeat(500).as_bytes()).chars().count(), QUOTED + 1);
    }
}
