//! `requestState`: what a modern host brings back with its answers (2026-07-28, basic/patterns/mrtr).
//!
//! A state of ours names a call that waits, and is worthless for anything else: it is signed
//! (HMAC-SHA-256), bound to the method, to the parameters that are asked again, and to whose request
//! it is, and it expires (E-07). It is bound to no session or connection (E-08). That it is used once
//! is for who keeps the call to see (E-09). A state without [`PREFIX`] is an upstream's own.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use std::fmt;
use std::time::Duration;

use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::model::questions::{RESPONSES, STATE};

/// What every state of ours begins with.
pub const PREFIX: &str = "mcpx1.";

/// Structure below this depth of the parameters is compared as text.
const DEPTH: usize = 64;

/// The key of the signatures.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// From this many random bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn mac(&self, text: &str) -> Hmac<Sha256> {
        // To the length of a block with zeros, as HMAC has it (RFC 2104).
        let block: [u8; 64] = std::array::from_fn(|at| self.0.get(at).copied().unwrap_or(0));
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(text.as_bytes());
        mac
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// The request that a state is for.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    /// Its method.
    pub method: &'a str,
    /// The server that it goes to.
    pub server: &'a str,
    /// Its parameters, whole: `_meta`, answers and state are left out of the digest.
    pub params: &'a RawJson,
    /// Whose it is: the principal, or what stands for one; empty where there is none.
    pub owner: &'a str,
}

/// What a state says of its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waits {
    /// The call is open and waits for answers.
    #[serde(rename = "o")]
    Open,
    /// It was not made yet: it waits for a yes.
    #[serde(rename = "c")]
    Confirmation,
    /// It was confirmed, and its upstream asks.
    #[serde(rename = "a")]
    Confirmed,
}

/// A state, opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Its own number, never given again: by this it is used once.
    pub id: u128,
    /// The life of the daemon that gave it.
    pub life: u64,
    /// What its call waits for.
    pub waits: Waits,
    /// The state of the upstream that asks, which ours stands in front of.
    pub upstream: Option<RawJson>,
}

/// Why a state is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Not what was given out.
    #[error(
        "the `requestState` is not one that mcpx gave out, or was changed on its way; bring it \
         back as it came, or make the call anew without it"
    )]
    Tampered,
    /// Of another request.
    #[error(
        "the `requestState` was given for another method than this; bring it back with the request \
         that it was the answer to"
    )]
    OtherMethod,
    /// Of another request.
    #[error(
        "the `requestState` was given for other parameters than these; ask again with the same \
         parameters, or make the call anew without it"
    )]
    OtherParams,
    /// Of somebody else's.
    #[error("the `requestState` was given to somebody else; make the call anew without it")]
    OtherOwner,
    /// Too old.
    #[error(
        "the `requestState` has expired (setting elicit.state_ttl); make the call anew without it"
    )]
    Expired,
}

#[derive(Serialize, Deserialize)]
struct Payload {
    /// The id, in hexadecimal.
    i: String,
    /// The life of the daemon.
    l: u64,
    /// What it waits for.
    w: Waits,
    /// The end, in seconds since 1970.
    e: u64,
    /// The method.
    m: String,
    /// Digest of server and parameters.
    p: String,
    /// Digest of the owner.
    o: String,
    /// The upstream's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    u: Option<RawJson>,
}

/// Whether this is a state of ours, or was one.
pub fn is_ours(state: &str) -> bool {
    state.starts_with(PREFIX)
}

/// The text of a state that is good until `expires`, since 1970.
pub fn seal(key: &Key, bound: Bound<'_>, expires: Duration, state: &State) -> String {
    let payload = Payload {
        i: format!("{:032x}", state.id),
        l: state.life,
        w: state.waits.clone(),
        e: expires.as_secs(),
        m: bound.method.to_owned(),
        p: request_digest(bound),
        o: text_digest(bound.owner),
        u: state.upstream.clone(),
    };
    let body = URL_SAFE_NO_PAD.encode(RawJson::write(&payload).as_bytes());
    let tag = URL_SAFE_NO_PAD.encode(key.mac(&body).finalize().into_bytes());
    format!("{PREFIX}{body}.{tag}")
}

/// Opens a state that came with the request `bound` at `now`, since 1970. The signature is compared in
/// a time that tells nothing, and before anything else is looked at.
pub fn open(key: &Key, bound: Bound<'_>, now: Duration, state: &str) -> Result<State, Unfit> {
    let (body, tag) =
        state.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.')).ok_or(Unfit::Tampered)?;
    let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| Unfit::Tampered)?;
    key.mac(body).verify_slice(&tag).map_err(|_| Unfit::Tampered)?;
    let payload = URL_SAFE_NO_PAD.decode(body).ok();
    let payload = payload.and_then(|bytes| serde_json::from_slice::<Payload>(&bytes).ok());
    // Signed by us, so it can only be of another version's making.
    let payload = payload.ok_or(Unfit::Tampered)?;
    let id = u128::from_str_radix(&payload.i, 16).map_err(|_| Unfit::Tampered)?;
    if payload.m != bound.method {
        return Err(Unfit::OtherMethod);
    }
    if payload.o != text_digest(bound.owner) {
        return Err(Unfit::OtherOwner);
    }
    if payload.p != request_digest(bound) {
        return Err(Unfit::OtherParams);
    }
    if now.as_secs() >= payload.e {
        return Err(Unfit::Expired);
    }
    Ok(State { id, life: payload.l, waits: payload.w, upstream: payload.u })
}

fn text_digest(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes()))
}

/// Of what a request is, apart from what may differ when it is asked again.
fn request_digest(bound: Bound<'_>) -> String {
    let mut hasher = Sha256::new();
    piece(&mut hasher, b's', bound.server.as_bytes());
    let mut params = Object::read_or_empty(Some(bound.params));
    params.retain(|key, _| !matches!(key, "_meta" | RESPONSES | STATE));
    members(&mut hasher, &params, DEPTH);
    URL_SAFE_NO_PAD.encode(hasher.finalize())
}

/// Adds a value in a form that does not depend on the order of members, on spaces or on escapes:
/// hosts write the same request twice. The text of numbers stays as it is.
fn value(hasher: &mut Sha256, raw: &RawJson, depth: usize) {
    let bytes = raw.as_bytes();
    match bytes.first() {
        Some(b'{') if depth > 0 => match Object::read(raw) {
            Ok(object) => members(hasher, &object, depth - 1),
            Err(_) => piece(hasher, b'r', bytes),
        },
        Some(b'[') if depth > 0 => {
            let elements = raw.elements().unwrap_or_default();
            piece(hasher, b'a', &elements.len().to_le_bytes());
            for element in &elements {
                value(hasher, element, depth - 1);
            }
        }
        Some(b'"') => match raw.text() {
            Some(text) => piece(hasher, b't', text.as_bytes()),
            None => piece(hasher, b'r', bytes),
        },
        _ => piece(hasher, b'r', bytes),
    }
}

fn members(hasher: &mut Sha256, object: &Object, depth: usize) {
    let mut members: Vec<_> = object.iter().collect();
    members.sort_by_key(|(key, _)| *key);
    piece(hasher, b'o', &members.len().to_le_bytes());
    for (key, member) in members {
        piece(hasher, b'k', key.as_bytes());
        value(hasher, member, depth);
    }
}

/// Kind and length stand before the bytes, so that no two values are the same to the digest.
fn piece(hasher: &mut Sha256, kind: u8, bytes: &[u8]) {
    hasher.update([kind]);
    hasher.update(bytes.len().to_le_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key::new([7; 32]);
    const NOW: Duration = Duration::from_secs(1_000);
    const LATER: Duration = Duration::from_secs(1_060);

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    fn bound(params: &RawJson) -> Bound<'_> {
        Bound { method: "tools/call", server: "github", params, owner: "/p" }
    }

    fn state() -> State {
        State { id: 42, life: 9, waits: Waits::Open, upstream: Some(raw(r#""a\u0041""#)) }
    }

    /// E-07, E-08: what was sealed is opened by the same request, whoever's connection it comes on and
    /// however it is written.
    #[test]
    fn e07_the_same_request_opens_its_state() {
        let first =
            raw(r#"{"name":"t","arguments":{"a":1,"b":[{"x":1e2,"y":"é"}]},"_meta":{"k":1}}"#);
        let text = seal(&KEY, bound(&first), LATER, &state());
        assert!(is_ours(&text) && !is_ours("eyJ"));
        for again in [
            first.as_str(),
            r#"{"name":"t","arguments":{"a":1,"b":[{"x":1e2,"y":"é"}]},"inputResponses":{"q":{}},"requestState":"s"}"#,
            r#"{"arguments":{"b":[{"y":"\u00e9","x":1e2}],"a":1},"name":"t"}"#,
        ] {
            let again = raw(again);
            assert_eq!(open(&KEY, bound(&again), NOW, &text), Ok(state()), "{again:?}");
        }
    }

    /// E-07: every other request is refused, and told why.
    #[test]
    fn e07_no_other_request_opens_it() {
        let params = raw(r#"{"name":"t","arguments":{"a":1}}"#);
        let text = seal(&KEY, bound(&params), LATER, &state());
        let open = |bound: Bound<'_>, now| open(&KEY, bound, now, &text).unwrap_err();
        for other in [
            r#"{"name":"t","arguments":{"a":2}}"#,
            r#"{"name":"t","arguments":{"a":1.0}}"#,
            r#"{"name":"t","arguments":{"a":"1"}}"#,
            r#"{"name":"t","arguments":{"a":1,"b":null}}"#,
            r#"{"name":"t","arguments":[["a",1]]}"#,
            r#"{"name":"t"}"#,
        ] {
            let other = raw(other);
            assert_eq!(open(bound(&other), NOW), Unfit::OtherParams, "{other:?}");
        }
        assert_eq!(open(Bound { server: "x", ..bound(&params) }, NOW), Unfit::OtherParams);
        assert_eq!(
            open(Bound { method: "prompts/get", ..bound(&params) }, NOW),
            Unfit::OtherMethod
        );
        assert_eq!(open(Bound { owner: "", ..bound(&params) }, NOW), Unfit::OtherOwner);
        assert_eq!(open(bound(&params), LATER), Unfit::Expired);
    }

    /// E-07: no byte of a state can be another, be missing, or be one more; nor is another key's good.
    #[test]
    fn e07_no_byte_of_a_state_can_be_changed() {
        let params = raw(r#"{"name":"t"}"#);
        let text = seal(&KEY, bound(&params), LATER, &state());
        let refused = |text: &str| {
            assert_eq!(open(&KEY, bound(&params), NOW, text), Err(Unfit::Tampered), "{text}");
        };
        for at in 0..text.len() {
            for other in ["A", "B", "_", ".", "0", "", "é"] {
                if text[at..=at] != *other {
                    refused(&format!("{}{other}{}", &text[..at], &text[at + 1..]));
                }
            }
            refused(&text[..at]);
        }
        refused(&format!("{text}-TAMPERED"));
        refused(&format!("{text}A"));
        let other = Key::new([8; 32]);
        assert_eq!(open(&other, bound(&params), NOW, &text), Err(Unfit::Tampered));
        assert!(!format!("{KEY:?}").contains('7'));
    }

    /// Parameters of any depth are taken, and told apart.
    #[test]
    fn deep_parameters_are_told_apart() {
        let deep = |end: &str| {
            let (open, close) = ("[".repeat(50_000), "]".repeat(50_000));
            raw(&format!(r#"{{"name":"t","arguments":{open}{end}{close}}}"#))
        };
        let (one, two) = (deep("1"), deep("2"));
        let text = seal(&KEY, bound(&one), LATER, &state());
        assert!(open(&KEY, bound(&one), NOW, &text).is_ok());
        assert_eq!(open(&KEY, bound(&two), NOW, &text), Err(Unfit::OtherParams));
    }
}
