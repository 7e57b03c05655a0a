//! Reading artifacts: whole, as `resources/read` gives a resource, or in parts for `mcpx_read`.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Context;
use super::excerpt::{Excerpt, Part, Whole, excerpt_of};
use crate::actors::artifacts::Record;
use crate::protocol::jsonrpc::{Code, Object, RawJson, RpcError};
use crate::protocol::model::answers;
use crate::protocol::session::Outcome;
use crate::protocol::uri;
use crate::settings::value::size_text;

/// A result of `resources/read`; an error says what there is instead of it.
pub(super) async fn whole(context: &Context, address: &str, id: &str) -> Outcome {
    let record = context.artifacts.find(id);
    let record =
        record.ok_or_else(|| answers::no_resource(address, context.artifacts.missing()))?;
    let limit = context.settings().link.max_frame;
    let too_long = |size: u64| {
        let limit = size_text(u64::try_from(limit).unwrap_or(u64::MAX));
        let text = format!(
            "`{address}` has {size} bytes, which is more than one message can carry ({limit}, setting \
             link.max_frame); read it in parts with mcpx_read"
        );
        answers::at_address(address, RpcError::new(Code::InvalidParams, text))
    };
    if usize::try_from(record.size).unwrap_or(usize::MAX) > limit {
        return Err(too_long(record.size));
    }
    let own = Arc::clone(&record);
    let read = at_file(context, &record, move |file| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut item = Object::new();
        item.set("uri", RawJson::write(&uri::artifact(&own.id)));
        item.set("mimeType", RawJson::write(&own.kind));
        match own.lines {
            Some(_) => item.set("text", RawJson::write(&*String::from_utf8_lossy(&bytes))),
            None => item.set("blob", RawJson::write(&STANDARD.encode(&bytes))),
        }
        Ok(item.write())
    });
    let item = read.await.map_err(|why| answers::no_resource(address, why))?;
    if item.len() > limit {
        return Err(too_long(record.size));
    }
    let mut result = Object::new();
    result.set("contents", RawJson::array(&[item]));
    Ok(result.write())
}

/// A part of an artifact.
#[derive(Debug)]
pub(super) enum Piece {
    /// Of a text.
    Text(Excerpt),
    /// Of something else: the bytes as base64 from the first one on, its media type, and how many bytes
    /// there are in all.
    Bytes { blob: String, from: u64, given: usize, kind: String, all: u64 },
}

/// As much of a part as `limit` (`expose.read_limit`) admits, of a picture or a sound `media` (both
/// bytes). An error is text for the model.
pub(super) async fn part(
    context: &Context,
    id: &str,
    part: Part,
    (limit, media): (usize, usize),
) -> Result<Piece, String> {
    let Some(record) = context.artifacts.find(id) else {
        return Err(context.artifacts.missing());
    };
    let Some(lines) = record.lines else {
        return binary(context, record, part, limit, media).await;
    };
    let whole = Whole { bytes: record.size, lines };
    let read = at_file(context, &record, move |file| {
        Ok(excerpt_of(&mut BufReader::new(file), whole, &part, limit))
    });
    read.await?.map(Piece::Text)
}

async fn binary(
    context: &Context,
    record: Arc<Record>,
    part: Part,
    limit: usize,
    media: usize,
) -> Result<Piece, String> {
    let kind = record.kind.clone();
    let is_media = kind.starts_with("image/") || kind.starts_with("audio/");
    let (from, most) = match part {
        // Of what is shown as such the base64 counts, as in an answer.
        Part::Head if is_media && record.size.div_ceil(3) * 4 <= number(media) => (0, media),
        Part::Head if record.size <= number(limit) => (0, limit),
        Part::Head => {
            return Err(format!(
                "it is binary ({kind}, {} bytes): more than is given at once (setting \
                 expose.read_limit). Ask for parts with `bytes`, for example \"0-999\"",
                record.size
            ));
        }
        Part::Bytes(from, to) => {
            (number(from), to.saturating_sub(from).saturating_add(1).min(limit))
        }
        Part::Lines(..) | Part::Matches(_) => {
            return Err(format!("it is binary ({kind}): ask for `bytes`, or for the whole"));
        }
    };
    let bytes = at_file(context, &record, move |file| {
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(number(most)).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let bytes = bytes.await?;
    let blob = STANDARD.encode(&bytes);
    Ok(Piece::Bytes { blob, from, given: bytes.len(), kind, all: record.size })
}

fn number(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// What `read` makes of an artifact's file, on a thread that may block; an error says that it cannot be
/// read.
async fn at_file<T: Send + 'static>(
    context: &Context,
    record: &Arc<Record>,
    read: impl FnOnce(&mut File) -> io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let (artifacts, record) = (context.artifacts.clone(), Arc::clone(record));
    let done = tokio::task::spawn_blocking(move || read(&mut artifacts.open(&record)?)).await;
    let error = match done {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    Err(format!("its file in the state folder of mcpx cannot be read: {error}"))
}
