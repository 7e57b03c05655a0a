//! What an answer says of a result that was stored. For models: where it is and how to read on.

use std::fmt::Write as _;

use super::parts::Head;
use crate::actors::artifacts::Stored;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::tool_result::text_block;
use crate::settings::Settings;
use crate::settings::value::{duration_text, size_text};

/// The beginning of the first part, what there is in all, and a link to each part. The addresses stand
/// in the text, too: some hosts drop links (C-15).
pub(super) fn blocks(stored: &[Stored], head: Option<Head>, settings: &Settings) -> Vec<RawJson> {
    let limit = size_text(u64::try_from(settings.call.result_limit).unwrap_or(u64::MAX));
    let keep = duration_text(settings.artifacts.keep);
    let mut note = format!(
        "[The result is longer than is given at once ({limit}, setting call.result_limit). It is kept \
         for {keep}:"
    );
    for part in stored {
        let lines = part.lines.map(|lines| format!(", {lines} lines")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(
            note,
            "\n{} ({}, {}, {} bytes{lines})",
            part.uri, part.name, part.kind, part.size
        );
    }
    if let (Some(head), Some(first)) = (&head, stored.first()) {
        let _ = write!(note, "\n{}", how_to_go_on(head, first));
    }
    note.push(']');
    let links = stored.iter().map(|part| part.link("A part of a result, stored by mcpx"));
    let head = head.map(|head| text_block(&head.text));
    head.into_iter().chain([text_block(&note)]).chain(links).collect()
}

fn how_to_go_on(head: &Head, first: &Stored) -> String {
    const NEXT_LINES: usize = 200;
    const NEXT_BYTES: usize = 8000;
    let shown = head.text.len();
    let (above, key, next) = match head.lines {
        Some(lines) => (
            format!("its first {lines} lines"),
            "lines",
            format!("{}-{}", lines + 1, lines + NEXT_LINES),
        ),
        None => (
            format!("its first {shown} bytes"),
            "bytes",
            format!("{shown}-{}", shown + NEXT_BYTES - 1),
        ),
    };
    let call = format!(r#"{{"uri":"{}","{key}":"{next}"}}"#, first.uri);
    format!(
        "Above: {above}. More with mcpx_read, like {call}; or with \"pattern\", a regular expression, \
         for the lines that match."
    )
}
