//! `mcpx_read`: a resource, or the part of it that is asked for, as a result a model can use.

use std::fmt::Display;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::arguments::{object_of, only_known};
use super::artifacts::{self, Piece};
use super::excerpt::{Excerpt, Part, excerpt};
use super::resources::{Wanted, read_address};
use super::{Context, Request};
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::model::tool_result::{text_block, text_result};
use crate::protocol::model::{answers, questions};
use crate::protocol::session::Outcome;
use crate::protocol::uri;

pub(super) async fn answer(context: &Context, request: Request) -> Outcome {
    match read(context, request).await {
        Ok(blocks) => {
            let mut result = Object::new();
            result.set("content", RawJson::array(&blocks));
            Ok(result.write())
        }
        Err(refusal) => refusal,
    }
}

/// The blocks of the answer, or a result that says why there is none, or none yet.
async fn read(context: &Context, request: Request) -> Result<Vec<RawJson>, Outcome> {
    let told = |text: String| Ok(text_result(&text, true));
    let (address, part) = wanted(request.params.member("arguments").as_ref()).map_err(told)?;
    if let Some(id) = uri::artifact_id(&address) {
        let blocks = artifact(context, &address, id, part).await;
        return blocks.map_err(|why| told(format!("`{address}` cannot be read: {why}.")));
    }
    let mut params = Object::new();
    params.set("uri", RawJson::write(&address));
    questions::copy_answers(&request.params, &mut params);
    let wanted = Wanted {
        address: &address,
        params: &params.write(),
        caller: request.caller,
        progress: request.progress,
    };
    let result = match read_address(context, wanted).await {
        // A tool may ask just as a resource may.
        Ok(Ok(result)) if questions::is_asking(&result) => return Err(Ok(result)),
        Ok(Ok(result)) => result,
        Ok(Err(error)) if answers::is_for_host(&error) => return Err(Err(error)),
        Ok(Err(error)) => {
            let text = format!(
                "`{address}` cannot be read: {} ({}). mcpx_resources lists what there is.",
                error.message, error.code
            );
            return Err(told(text));
        }
        Err(refused) => return Err(Ok(refused.as_tool_result())),
    };
    let limit = context.settings().expose.read_limit;
    let contents = result.member("contents").and_then(|list| list.elements()).unwrap_or_default();
    let mut blocks = Vec::new();
    for item in &contents {
        if contents.len() > 1 {
            let address = item.member_str("uri").unwrap_or_default();
            blocks.push(text_block(&format!("## {address}")));
        }
        blocks.extend(content(item, &part, limit).map_err(told)?);
    }
    if blocks.is_empty() {
        blocks.push(text_block("It is empty."));
    }
    Ok(blocks)
}

/// A part of an artifact, which is read no further than that takes.
async fn artifact(
    context: &Context,
    address: &str,
    id: &str,
    part: Part,
) -> Result<Vec<RawJson>, String> {
    let settings = context.settings();
    let limits = (settings.expose.read_limit, settings.call.media_limit);
    let whole = part == Part::Head;
    Ok(match artifacts::part(context, id, part, limits).await? {
        Piece::Text(excerpt) => texts(excerpt),
        Piece::Bytes { blob, from, given, kind, all } => {
            let mut item = Object::new();
            item.set("uri", RawJson::write(address));
            item.set("mimeType", RawJson::write(&kind));
            item.set("blob", RawJson::write(&blob));
            let item = item.write();
            if whole {
                vec![block(&item, &blob, &kind)]
            } else {
                vec![embedded(&item), text_block(&bytes_note(given, from, all))]
            }
        }
    })
}

fn texts(excerpt: Excerpt) -> Vec<RawJson> {
    let mut blocks = Vec::new();
    if !excerpt.text.is_empty() {
        blocks.push(text_block(&excerpt.text));
    }
    blocks.extend(excerpt.note.map(|note| text_block(&format!("[{note}]"))));
    if blocks.is_empty() {
        blocks.push(text_block("It is empty."));
    }
    blocks
}

fn bytes_note(given: usize, from: impl Display, all: impl Display) -> String {
    format!("[{given} bytes from {from} on, of {all}.]")
}

fn wanted(arguments: Option<&RawJson>) -> Result<(String, Part), String> {
    let given = object_of(arguments)?;
    only_known("mcpx_read", &given, &["uri", "lines", "bytes", "pattern"])?;
    let text = |key: &str| given.get_str(key).filter(|text| !text.is_empty());
    let address = text("uri").ok_or_else(|| {
        "mcpx_read needs a `uri`, as mcpx_resources and links in results give it".to_owned()
    })?;
    let part = match (range_of(&given, "lines")?, range_of(&given, "bytes")?, pattern_of(&given)?) {
        (None, None, None) => Part::Head,
        (Some(lines), None, None) => {
            let (from, to) = Part::range("lines", &lines)?;
            Part::Lines(from, to)
        }
        (None, Some(bytes), None) => {
            let (from, to) = Part::range("bytes", &bytes)?;
            Part::Bytes(from, to)
        }
        (None, None, Some(pattern)) => Part::Matches(pattern),
        _ => return Err("mcpx_read takes one of `lines`, `bytes` and `pattern`".to_owned()),
    };
    Ok((address, part))
}

/// A range as text; models write a single number as one.
fn range_of(given: &Object, key: &str) -> Result<Option<String>, String> {
    let Some(range) = given.get(key).filter(|range| !range.is_null()) else { return Ok(None) };
    let number = || range.as_str().parse::<u64>().ok().map(|number| number.to_string());
    let text = range.text().or_else(number);
    let text = text.ok_or_else(|| {
        format!("`{key}` is a range as text, like \"1-200\", not {}", shown(range))
    })?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn pattern_of(given: &Object) -> Result<Option<String>, String> {
    let Some(pattern) = given.get("pattern").filter(|it| !it.is_null()) else { return Ok(None) };
    let text = pattern.text();
    let text = text.ok_or_else(|| format!("`pattern` is text, not {}", shown(pattern)))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// As much of it as tells what it is.
fn shown(value: &RawJson) -> String {
    value.as_str().chars().take(SHOWN).collect()
}

/// Longest part of a wrong argument that is shown, in characters.
const SHOWN: usize = 60;

/// The blocks for one of a resource's contents.
fn content(item: &RawJson, part: &Part, limit: usize) -> Result<Vec<RawJson>, String> {
    if let Some(text) = item.member_str("text") {
        return Ok(texts(excerpt(&text, part, limit)?));
    }
    let Some(blob) = item.member_str("blob") else {
        return Ok(vec![text_block("[It has neither text nor bytes.]")]);
    };
    binary(item, &blob, part, limit)
}

fn binary(item: &RawJson, blob: &str, part: &Part, limit: usize) -> Result<Vec<RawJson>, String> {
    let kind = item.member_str("mimeType").unwrap_or_else(|| "application/octet-stream".to_owned());
    match part {
        Part::Head if blob.len() <= limit => Ok(vec![block(item, blob, &kind)]),
        Part::Head => {
            let bytes = blob.len() / 4 * 3;
            Ok(vec![text_block(&format!(
                "[Binary, {kind}, about {bytes} bytes: more than is given at once (setting \
                 expose.read_limit). Ask for parts with `bytes`, for example \"0-999\".]"
            ))])
        }
        Part::Bytes(from, to) => {
            let all = STANDARD.decode(blob).map_err(|_| {
                "it is said to be binary, but is no base64, so no part of it can be taken"
                    .to_owned()
            })?;
            let end = to.saturating_add(1).min(from.saturating_add(limit)).min(all.len());
            let bytes = all.get(*from..end).unwrap_or_default();
            let note = bytes_note(bytes.len(), from, all.len());
            let mut resource = Object::read_or_empty(Some(item));
            resource.set("blob", RawJson::write(&STANDARD.encode(bytes)));
            Ok(vec![embedded(&resource.write()), text_block(&note)])
        }
        Part::Lines(..) | Part::Matches(_) => {
            Err(format!("it is binary ({kind}): ask for `bytes`, or for the whole"))
        }
    }
}

/// A picture or a sound as such; anything else as the resource that it is.
fn block(item: &RawJson, blob: &str, kind: &str) -> RawJson {
    let media = ["image", "audio"].into_iter().find(|media| kind.starts_with(&format!("{media}/")));
    let Some(media) = media else { return embedded(item) };
    let mut block = Object::new();
    block.set("type", RawJson::write(media));
    block.set("data", RawJson::write(blob));
    block.set("mimeType", RawJson::write(kind));
    block.write()
}

fn embedded(resource: &RawJson) -> RawJson {
    let mut block = Object::new();
    block.set("type", RawJson::write("resource"));
    block.set("resource", resource.clone());
    block.write()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(bytes::Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn arguments_are_understood_or_refused() {
        let read = |text: &str| wanted(Some(&raw(text)));
        assert_eq!(read(r#"{"uri":"a:1"}"#), Ok(("a:1".to_owned(), Part::Head)));
        assert_eq!(read(r#"{"uri":"a:1","lines":"3"}"#).unwrap().1, Part::Lines(3, 3));
        assert_eq!(read(r#"{"uri":"a:1","lines":3}"#).unwrap().1, Part::Lines(3, 3));
        assert_eq!(read(r#"{"uri":"a:1","bytes":null}"#).unwrap().1, Part::Head);
        for (odd, told) in [
            (
                r#"{"uri":"a:1","lines":[1,2]}"#,
                "`lines` is a range as text, like \"1-200\", not [1,2]",
            ),
            (r#"{"uri":"a:1","bytes":1.5}"#, "`bytes` is a range as text"),
            (r#"{"uri":"a:1","pattern":5}"#, "`pattern` is text, not 5"),
        ] {
            assert!(read(odd).unwrap_err().starts_with(told), "{odd}");
        }
        for odd in [
            "{}",
            r#"{"uri":""}"#,
            r#"{"uri":"a:1","lines":"x"}"#,
            r#"{"uri":"a:1","lines":"1","bytes":"1"}"#,
            r#"{"uri":"a:1","page":1}"#,
        ] {
            assert!(read(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn binary_contents() {
        let item = raw(r#"{"uri":"a:1","mimeType":"image/png","blob":"AAECAwQF","_meta":{}}"#);
        let one = |part: Part, limit| content(&item, &part, limit).unwrap();
        let whole = one(Part::Head, 99);
        assert_eq!(
            whole[0].as_str(),
            r#"{"type":"image","data":"AAECAwQF","mimeType":"image/png"}"#
        );
        assert!(one(Part::Head, 4)[0].as_str().contains("about 6 bytes"));
        let part = one(Part::Bytes(1, 2), 99);
        assert!(part[0].as_str().contains(r#""blob":"AQI=""#), "{part:?}");
        assert!(part[1].as_str().contains("2 bytes from 1 on, of 6"));
        assert!(content(&item, &Part::Lines(1, 1), 99).is_err());
        let other = raw(r#"{"uri":"a:1","blob":"AAEC"}"#);
        let block = &content(&other, &Part::Head, 99).unwrap()[0];
        assert_eq!(block.as_str(), r#"{"type":"resource","resource":{"uri":"a:1","blob":"AAEC"}}"#);
    }
}
