//! Parameters: a host's to newest shape with the envelope taken out, newest shape to an upstream's
//! revision with the envelope put in.

use bytes::{BufMut, BytesMut};

use super::fields::{Shape, is_foreign, spell_open};
use super::keys::{
    CLIENT_CAPABILITIES, CLIENT_INFO, ENVELOPE, LOG_LEVEL, PROGRESS_TOKEN, PROTOCOL_VERSION,
    SUBSCRIPTION_ID,
};
use super::{Envelope, Lifted, LogLevel};
use crate::protocol::jsonrpc::skim::has_member;
use crate::protocol::jsonrpc::{Code, Object, RawJson, RpcError};
use crate::protocol::revision::Revision;

/// See [`super::lift_params`].
pub(super) fn lift(params: Option<&RawJson>) -> Result<Lifted, RpcError> {
    let Some(params) = params.filter(|params| !params.is_null()) else {
        return Ok(Lifted::plain(RawJson::empty_object()));
    };
    if !params.is_object() {
        return Err(RpcError::new(Code::InvalidParams, "`params` must be an object"));
    }
    if !has_meta(params) {
        return Ok(Lifted::plain(params.clone()));
    }
    let mut object = Object::read_or_empty(Some(params));
    let Some(Ok(mut meta)) = object.get("_meta").map(Object::read) else {
        return Ok(Lifted::plain(params.clone()));
    };
    let envelope = envelope(&meta)?;
    let progress_token = meta.remove(PROGRESS_TOKEN).filter(is_token);
    if envelope.is_some() {
        meta.retain(|key, _| !ENVELOPE.contains(&key));
    }
    if meta.is_empty() {
        object.remove("_meta");
    } else {
        object.set("_meta", meta.write());
    }
    Ok(Lifted { params: object.write(), envelope, progress_token })
}

/// See [`super::read_envelope`].
pub(super) fn read_envelope(params: Option<&RawJson>) -> Result<Option<Envelope>, RpcError> {
    let Some(params) = params.filter(|params| has_meta(params)) else {
        return Ok(None);
    };
    match params.member("_meta").as_ref().map(Object::read) {
        Some(Ok(meta)) => envelope(&meta),
        _ => Ok(None),
    }
}

/// Whether it may have a `_meta`.
fn has_meta(params: &RawJson) -> bool {
    has_member(params.as_bytes(), |name, _| name == b"_meta")
}

fn envelope(meta: &Object) -> Result<Option<Envelope>, RpcError> {
    if !ENVELOPE.iter().any(|key| meta.contains(key)) {
        return Ok(None);
    }
    // The revision comes first: what else an unknown revision requires cannot be known (H-11).
    let Some(requested) = meta.get_str(PROTOCOL_VERSION) else {
        return Err(lacks(PROTOCOL_VERSION, "a string, the protocol revision of the request"));
    };
    let revision = match Revision::parse(&requested) {
        Some(revision) if revision.is_modern() => revision,
        _ => return Err(unsupported(&requested)),
    };
    let capabilities = match meta.get(CLIENT_CAPABILITIES) {
        Some(capabilities) if capabilities.is_object() => capabilities.clone(),
        _ => return Err(lacks(CLIENT_CAPABILITIES, "an object, `{}` where there are none")),
    };
    let log_level = match meta.get(LOG_LEVEL) {
        None => None,
        Some(level) => Some(log_level(level, &format!("`_meta[\"{LOG_LEVEL}\"]`"))?),
    };
    let info = meta.get(CLIENT_INFO).filter(|info| info.is_object()).cloned();
    Ok(Some(Envelope { revision, capabilities, info, log_level }))
}

/// H-14: a level that does not exist is refused with the list of those that do.
pub(super) fn log_level(level: &RawJson, place: &str) -> Result<LogLevel, RpcError> {
    level.text().as_deref().and_then(LogLevel::parse).ok_or_else(|| {
        let known = LogLevel::ALL.map(LogLevel::as_str).join(", ");
        RpcError::new(Code::InvalidParams, format!("{place} must be one of {known}"))
    })
}

pub(super) fn lacks(key: &str, wanted: &str) -> RpcError {
    RpcError::new(
        Code::InvalidParams,
        format!("the request's `_meta` must hold \"{key}\": {wanted}"),
    )
}

fn unsupported(requested: &str) -> RpcError {
    let how = match Revision::parse(requested) {
        Some(_) => "is opened with `initialize`, not declared per request",
        None => "is not served",
    };
    let data = RawJson::write(&serde_json::json!({
        "supported": super::supported(),
        "requested": requested,
    }));
    let message = format!("protocol revision {requested:?} {how}");
    RpcError::new(Code::UnsupportedRevision, message).with_data(data)
}

/// Progress tokens are strings or integers; anything else opts into nothing.
fn is_token(token: &RawJson) -> bool {
    crate::protocol::jsonrpc::Id::from_raw(token.as_str()).is_ok()
}

fn shape(method: &str) -> Option<Shape> {
    match method {
        "tools/call" => Some(Shape::CallParams),
        "prompts/get" | "resources/read" => Some(Shape::InputParams),
        "completion/complete" => Some(Shape::CompleteParams),
        "notifications/progress" => Some(Shape::ProgressParams),
        _ => None,
    }
}

/// See [`super::downgrade_params`].
pub(super) fn downgrade(
    revision: Revision,
    method: &str,
    params: &RawJson,
    meta: &[(&'static str, RawJson)],
) -> RawJson {
    let text = params.as_bytes();
    let shape = shape(method);
    let may_change = has_member(text, |name, _| {
        (!meta.is_empty() && name == b"_meta")
            || shape.is_some_and(|shape| is_foreign(shape, revision, name))
    });
    if !may_change && meta.is_empty() {
        return params.clone();
    }
    if !may_change && params.is_object() {
        return splice_meta(text, meta);
    }
    let mut object = Object::read_or_empty(Some(params));
    if let Some(shape) = shape {
        spell_open(shape, revision, &mut object);
    }
    if !meta.is_empty() {
        let mut whole = Object::read_or_empty(object.get("_meta"));
        for (key, value) in meta {
            whole.set(*key, value.clone());
        }
        object.set("_meta", whole.write());
    }
    object.write()
}

/// See [`super::downgrade_progress`].
pub(super) fn progress(revision: Revision, params: &RawJson, token: &RawJson) -> RawJson {
    let mut object = Object::read_or_empty(Some(params));
    object.set(PROGRESS_TOKEN, token.clone());
    spell_open(Shape::ProgressParams, revision, &mut object);
    object.write()
}

/// See [`super::downgrade_log`].
pub(super) fn log(params: &RawJson) -> RawJson {
    if !has_meta(params) {
        return params.clone();
    }
    let mut object = Object::read_or_empty(Some(params));
    let Some(Ok(mut meta)) = object.get("_meta").map(Object::read) else { return params.clone() };
    meta.retain(|key, _| key != SUBSCRIPTION_ID && !ENVELOPE.contains(&key));
    if meta.is_empty() {
        object.remove("_meta");
    } else {
        object.set("_meta", meta.write());
    }
    object.write()
}

/// Puts `_meta` before the members of an object that has none.
fn splice_meta(text: &[u8], meta: &[(&'static str, RawJson)]) -> RawJson {
    let rest = text.get(1..).unwrap_or_default();
    let size: usize = meta.iter().map(|(key, value)| key.len() + value.len() + 4).sum();
    let mut out = BytesMut::with_capacity(text.len() + size + 16);
    out.extend_from_slice(b"{\"_meta\":{");
    for (index, (key, value)) in meta.iter().enumerate() {
        out.extend_from_slice(if index > 0 { b",\"" } else { b"\"" });
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(value.as_bytes());
    }
    out.put_u8(b'}');
    if rest.trim_ascii_start().first() != Some(&b'}') {
        out.put_u8(b',');
    }
    out.extend_from_slice(rest);
    RawJson::trusted(out.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    fn modern(more: &str) -> RawJson {
        raw(&format!(
            r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"roots":{{}}}}{more}}},"name":"t","n":1e2}}"#
        ))
    }

    #[test]
    fn f37_tokens_are_taken_out_as_written() {
        for token in ["1", "0", "\"abc\"", "\"1\"", "9007199254740993"] {
            let params =
                raw(&format!(r#"{{"name":"t","_meta":{{"progressToken":{token},"k":[1e2]}}}}"#));
            let lifted = lift(Some(&params)).unwrap();
            assert_eq!(lifted.progress_token.unwrap().as_str(), token);
            assert_eq!(lifted.params.as_str(), r#"{"name":"t","_meta":{"k":[1e2]}}"#);
            assert!(lifted.envelope.is_none());
        }
        for odd in ["null", "{}", "1.5", "true"] {
            let params = raw(&format!(r#"{{"name":"t","_meta":{{"progressToken":{odd}}}}}"#));
            let lifted = lift(Some(&params)).unwrap();
            assert!(lifted.progress_token.is_none(), "{odd}");
            assert_eq!(lifted.params.as_str(), r#"{"name":"t"}"#);
        }
    }

    #[test]
    fn params_without_meta_are_the_same_bytes() {
        let params = raw(r#"{"name":"t","arguments":{"s":"\"_meta\""}}"#);
        let lifted = lift(Some(&params)).unwrap();
        assert_eq!(lifted.params.as_bytes().as_ptr(), params.as_bytes().as_ptr());
        assert_eq!(lift(None).unwrap().params.as_str(), "{}");
        assert_eq!(lift(Some(&RawJson::null())).unwrap().params.as_str(), "{}");
        assert_eq!(lift(Some(&raw("[1]"))).unwrap_err().code, -32602);
    }

    #[test]
    fn h13_envelopes() {
        let lifted = lift(Some(&modern(""))).unwrap();
        let envelope = lifted.envelope.unwrap();
        assert_eq!(envelope.capabilities.as_str(), r#"{"roots":{}}"#);
        assert!(envelope.info.is_none() && envelope.log_level.is_none());
        assert_eq!(lifted.params.as_str(), r#"{"name":"t","n":1e2}"#);
        // No modern key at all is legacy; one without the others is a broken modern request.
        let legacy =
            raw(r#"{"_meta":{"traceparent":"x","io.modelcontextprotocol/related-task":{}}}"#);
        assert!(read_envelope(Some(&legacy)).unwrap().is_none());
        for broken in [
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7,"io.modelcontextprotocol/clientCapabilities":{}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":null}}"#,
        ] {
            assert_eq!(lift(Some(&raw(broken))).unwrap_err().code, -32602, "{broken}");
        }
    }

    #[test]
    fn h11_unserved_revisions() {
        for asked in ["2099-01-01", "1900-01-01", "", "2025-11-25"] {
            let params = raw(&format!(
                r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{asked}"}}}}"#
            ));
            let error = read_envelope(Some(&params)).unwrap_err();
            assert_eq!(error.code, -32022, "{asked}");
            let data = error.data.unwrap();
            assert_eq!(data.member_str("requested").unwrap(), asked);
            let supported: Vec<String> = data.member("supported").unwrap().read().unwrap();
            assert_eq!(supported[0], "2026-07-28");
        }
    }

    #[test]
    fn h14_log_levels() {
        let good = lift(Some(&modern(r#","io.modelcontextprotocol/logLevel":"warning""#))).unwrap();
        assert_eq!(good.envelope.unwrap().log_level, Some(LogLevel::Warning));
        for bad in ["\"warn\"", "3", "null", "\"INFO\""] {
            let params = modern(&format!(r#","io.modelcontextprotocol/logLevel":{bad}"#));
            assert_eq!(lift(Some(&params)).unwrap_err().code, -32602, "{bad}");
        }
    }

    #[test]
    fn params_for_an_upstream() {
        let meta = [(PROGRESS_TOKEN, raw("7"))];
        let spell = |revision, params: &str, meta: &[(&'static str, RawJson)]| {
            downgrade(revision, "tools/call", &raw(params), meta).as_str().to_owned()
        };
        let legacy = Revision::V2025_06_18;
        assert_eq!(spell(legacy, r#"{"name":"t","n":1e2}"#, &[]), r#"{"name":"t","n":1e2}"#);
        assert_eq!(spell(legacy, "{}", &meta), r#"{"_meta":{"progressToken":7}}"#);
        assert_eq!(
            spell(legacy, r#"{"name":"t","n":1e2}"#, &meta),
            r#"{"_meta":{"progressToken":7},"name":"t","n":1e2}"#
        );
        assert_eq!(
            spell(legacy, r#"{"name":"t","_meta":{"k":1}}"#, &meta),
            r#"{"name":"t","_meta":{"k":1,"progressToken":7}}"#
        );
        let mrtr = r#"{"name":"t","requestState":"s","inputResponses":{},"task":{}}"#;
        assert_eq!(spell(legacy, mrtr, &[]), r#"{"name":"t"}"#);
        assert_eq!(
            spell(Revision::NEWEST, mrtr, &[]),
            r#"{"name":"t","requestState":"s","inputResponses":{}}"#
        );
        // Arguments of those names are the tool's, not ours.
        let own = r#"{"name":"t","arguments":{"task":1,"requestState":2}}"#;
        assert_eq!(spell(legacy, own, &[]), own);
    }
}
