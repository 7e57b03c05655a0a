//! Answers that are streams of events, as bytes.

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::protocol::framing::sse::encode::{Fields, event};
use crate::protocol::jsonrpc::RawJson;

/// The sending end of a stream. The receiver is the answer's body: when its reader goes away, sending
/// fails; when it is slow, sending waits.
#[derive(Debug, Clone)]
pub(super) struct EventSender(mpsc::Sender<Bytes>);

/// Chunks that wait in one stream at most. A stream's own source is bounded; this only decouples.
const WAITING: usize = 16;

/// A stream of events.
pub(super) fn channel() -> (EventSender, mpsc::Receiver<Bytes>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (EventSender(sender), receiver)
}

impl EventSender {
    /// Sends one event; false where nobody reads any more.
    pub(super) async fn send<T: Serialize + ?Sized>(&self, name: &str, data: &T) -> bool {
        let fields = Fields { name: Some(name), ..Fields::default() };
        self.0.send(event(fields, RawJson::write(data).as_str().as_bytes())).await.is_ok()
    }

    /// Resolves when nobody reads any more.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}
