//! The host's listen streams, which outlive the daemon: the next one is asked for them under their
//! own ids, so that the host notices nothing but what has changed meanwhile.
//!
//! A stream that is acknowledged waits for a daemon as long as it takes: it asks for nothing that
//! would be late, and nobody starts a daemon for its sake. Its second acknowledgement is kept from
//! the host, unless it says something else than the first.

use bytes::Bytes;

use crate::protocol::edge::keys::{AGAIN, SUBSCRIPTION_ID};
use crate::protocol::jsonrpc::{Id, Object, RawJson, scan};

/// A stream that is open.
#[derive(Debug)]
struct Stream {
    id: Id,
    frame: Bytes,
    /// What the host was told that it gets; none before it was told.
    agreed: Option<Bytes>,
    /// It was asked for once more and is not acknowledged yet.
    again: bool,
}

/// See the module. In the order of their opening; few.
#[derive(Debug, Default)]
pub(super) struct Streams(Vec<Stream>);

impl Streams {
    /// The host opens one.
    pub(super) fn opened(&mut self, id: &Id, frame: &Bytes) {
        if !self.0.iter().any(|stream| stream.id == *id) {
            // Kept long: not as a slice of what was read with it.
            let frame = Bytes::copy_from_slice(frame);
            self.0.push(Stream { id: id.clone(), frame, agreed: None, again: false });
        }
    }

    /// It is over, or was never begun.
    pub(super) fn closed(&mut self, id: &Id) {
        self.0.retain(|stream| stream.id != *id);
    }

    /// An acknowledgement on its way to the host; whether it is to get there.
    pub(super) fn acknowledged(&mut self, params: Option<&[u8]>) -> bool {
        let meta = params.and_then(|params| scan::member(params, "_meta"));
        let id = meta.and_then(|meta| scan::member(meta, SUBSCRIPTION_ID)).and_then(super::read_id);
        let stream = self.0.iter_mut().find(|stream| Some(&stream.id) == id.as_ref());
        let Some(stream) = stream else { return true };
        let agreed = params.and_then(|params| scan::member(params, "notifications"));
        let agreed = agreed.unwrap_or_default();
        let again = std::mem::take(&mut stream.again);
        if again && stream.agreed.as_deref() == Some(agreed) {
            return false;
        }
        stream.agreed = Some(Bytes::copy_from_slice(agreed));
        true
    }

    /// The daemon is gone: whether this one waits for the next. One that was never acknowledged is
    /// like any other question without an answer.
    pub(super) fn rests(&mut self, id: &Id) -> bool {
        let rests = self.0.iter().any(|stream| stream.id == *id && stream.agreed.is_some());
        if !rests {
            self.closed(id);
        }
        rests
    }

    /// There is a daemon again: what to ask it for.
    pub(super) fn reopen(&mut self) -> Vec<Bytes> {
        let again = |stream: &mut Stream| {
            stream.again = true;
            marked(&stream.frame)
        };
        self.0.iter_mut().map(again).collect()
    }
}

/// The same request, which says that it is made once more.
fn marked(frame: &Bytes) -> Bytes {
    let write = || {
        let mut request = Object::read(&RawJson::parse(frame.clone()).ok()?).ok()?;
        let mut params = Object::read(request.get("params")?).ok()?;
        let mut meta = Object::read(params.get("_meta")?).ok()?;
        meta.set(AGAIN, RawJson::write(&true));
        params.set("_meta", meta.write());
        request.set("params", params.write());
        Some(request.write().bytes())
    };
    // It was acknowledged once, so that it can be read.
    write().unwrap_or_else(|| frame.clone())
}
