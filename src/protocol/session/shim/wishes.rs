//! What a legacy host has asked of the daemon for the time to come: its log level and the resources
//! that it subscribed to. The next daemon is asked for them once more, under ids of the shim's own,
//! whose answers go nowhere.

use bytes::Bytes;

use crate::protocol::edge::keys::AGAIN;
use crate::protocol::jsonrpc::{Id, Object, RawJson, scan};

/// See the module. Each was agreed to by a daemon; as many as that admits.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    level: Option<Bytes>,
    /// By address, as it is spelled in its frame.
    subscribed: Vec<(Bytes, Bytes)>,
    asked: u64,
}

impl Wishes {
    /// A daemon answered `request`, whose method is `method`.
    pub(super) fn answered(&mut self, method: &[u8], request: &Bytes, answer: &[u8]) {
        if scan::member(answer, "result").is_none() {
            return;
        }
        // Kept long: not as slices of what was read with them.
        let kept = || Bytes::copy_from_slice(request);
        match method {
            b"logging/setLevel" => self.level = Some(kept()),
            b"resources/subscribe" | b"resources/unsubscribe" => {
                let params = scan::member(request, "params");
                let uri = params.and_then(|params| scan::member(params, "uri"));
                let Some(uri) = uri.map(Bytes::copy_from_slice) else { return };
                self.subscribed.retain(|(known, _)| *known != uri);
                if method == b"resources/subscribe" {
                    self.subscribed.push((uri, kept()));
                }
            }
            _ => {}
        }
    }

    /// A new handshake is a new session.
    pub(super) fn clear(&mut self) {
        self.level = None;
        self.subscribed.clear();
    }

    /// There is a daemon again: what to ask it for.
    pub(super) fn again(&mut self) -> Vec<Bytes> {
        let subscribed = self.subscribed.iter().map(|(_, frame)| frame);
        let all: Vec<Bytes> = self.level.iter().chain(subscribed).cloned().collect();
        let asked = &mut self.asked;
        all.iter().filter_map(|frame| marked(frame, asked)).collect()
    }
}

/// The same request under an id of ours, which says that it is made once more.
fn marked(frame: &Bytes, asked: &mut u64) -> Option<Bytes> {
    let mut request = Object::read(&RawJson::parse(frame.clone()).ok()?).ok()?;
    *asked += 1;
    let id = Id::text(&format!("mcpx-shim-again-{asked}"));
    request.set("id", RawJson::trusted(id.as_raw().to_owned()));
    let mut params = Object::read(request.get("params")?).ok()?;
    let mut meta = Object::read_or_empty(params.get("_meta"));
    meta.set(AGAIN, RawJson::write(&true));
    params.set("_meta", meta.write());
    request.set("params", params.write());
    Some(request.write().bytes())
}
