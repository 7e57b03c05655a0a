//! HTTP+SSE of 2024-11-05, the client's side, as an ordinary link (U-41).
//!
//! A GET opens the stream of events; its event `endpoint` says where messages are posted to. What
//! the owner of the link writes is posted line by line, each `message` of the stream is a line to
//! read. Credentials go with every POST, so its address must be of the stream's origin.
//!
//! Messages are posted in order, each when the one before was taken: an `initialized` must not be
//! overtaken. But some servers answer a POST only when its call is through, and may ask something
//! meanwhile; so none is waited for longer than `upstream.sse_post_wait`.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::address::{Origin, resolve, shown};
use super::body;
use super::client::exchange::{Unanswered, answered, no_answer, one_line, refusal};
use super::client::{Exchange, HttpClient};
use super::dial::root;
use super::media::{Media, quoted};
use crate::protocol::framing::sse::decode::{SseDecoder, SseEvent};
use crate::transport::link::{Link, LinkEvent, LinkLimits, LinkReader, LinkSender};
use crate::transport::task::spawn_named;

/// Bytes on their way between the link's two ends; more waits where it comes from.
const PIPE: usize = 64 * 1024;

/// The event that says where messages are posted to.
const ENDPOINT: &str = "endpoint";

/// Why there is no such connection.
#[derive(Debug, thiserror::Error)]
pub enum LegacySseFailed {
    /// The stream was refused.
    #[error("{url} refused an event stream: {status}{said}")]
    Refused {
        /// Who.
        url: String,
        /// How.
        status: StatusCode,
        /// Its words, with a colon before them.
        said: String,
    },
    /// There is an answer, but not of this protocol.
    #[error("{0}")]
    Foreign(String),
    /// No connection, or it broke.
    #[error("{0}")]
    Failed(String),
}

/// A connection under way. It ends when this is dropped.
#[derive(Debug)]
pub struct LegacySse {
    running: AbortHandle,
    ended: watch::Receiver<Option<String>>,
}

impl LegacySse {
    /// Waits for the end of the connection; why it ended, as a sentence without a full stop. The
    /// link says only that it is closed.
    pub async fn ended(&mut self) -> String {
        let why = self.ended.wait_for(Option::is_some).await;
        why.ok().and_then(|why| why.clone()).unwrap_or_else(|| "it was ended".to_owned())
    }
}

impl Drop for LegacySse {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Opens the stream and waits for its endpoint, for as long as its caller waits.
pub async fn connect(
    client: &HttpClient,
    limits: LinkLimits,
) -> Result<(Link, LegacySse), LegacySseFailed> {
    let (mut events, url) = Events::open(client).await?;
    let endpoint = loop {
        match events.next().await.map_err(LegacySseFailed::Failed)? {
            Some(event) if event.name == ENDPOINT => break endpoint(client, &url, event)?,
            Some(_) => {}
            None => {
                let why = format!("the event stream of {} ended before it began", shown(&url));
                return Err(LegacySseFailed::Failed(why));
            }
        }
    };
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let link = |io| {
        let (read, write) = tokio::io::split(io);
        Link::new(read, write, limits)
    };
    let (ours, theirs) = (link(ours), link(theirs));
    let (tell, ended) = watch::channel(None);
    let client = client.clone();
    let running = spawn_named("legacy-sse", async move {
        let Link { reader, sender, writer } = ours;
        // What came last is still handed on when the stream ends.
        let reading = async { tokio::join!(read(events, sender), writer.run()).0 };
        let why = tokio::select! {
            why = reading => why,
            why = post(&client, &endpoint, reader) => why,
        };
        tell.send_replace(Some(why));
    });
    Ok((theirs, LegacySse { running: running.abort_handle(), ended }))
}

/// Where messages go.
fn endpoint(client: &HttpClient, url: &Uri, event: SseEvent) -> Result<Uri, LegacySseFailed> {
    let said = event.data.unwrap_or_default();
    let named = std::str::from_utf8(&said).ok().and_then(|said| resolve(url, said));
    let (from, to) = (Origin::of(url), named.as_ref().and_then(Origin::of));
    match (named, from, to) {
        (Some(endpoint), from, to) if from == to => Ok(endpoint),
        (_, Some(from), Some(to)) => Err(LegacySseFailed::Foreign(format!(
            "{from} wants its messages at another origin, {to}, where credentials are never sent"
        ))),
        _ => Err(LegacySseFailed::Foreign(format!(
            "{} wants its messages at {:?}, which is no address",
            shown(url),
            quoted(&client.spec().mask.body(&said))
        ))),
    }
}

/// The stream of events.
struct Events {
    body: Incoming,
    decoder: SseDecoder,
    url: Uri,
    ended: bool,
}

impl Events {
    async fn open(client: &HttpClient) -> Result<(Self, Uri), LegacySseFailed> {
        let spec = client.spec();
        let get = exchange(Method::GET, Bytes::new());
        let answer = answered(client, &spec.url, get).await;
        let (response, url) = answer.map_err(|none| LegacySseFailed::Failed(none.why()))?;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            let said = said(&refusal(client, &head.headers, body).await);
            let url = shown(&url);
            return Err(LegacySseFailed::Refused { url, status: head.status, said });
        }
        let media = Media::of(&head.headers);
        if media != Media::Events {
            let begin = body::read_some(body, spec.limits.error_body).await;
            return Err(LegacySseFailed::Foreign(no_answer(&url, &media, &begin, &spec.mask)));
        }
        let decoder = SseDecoder::new(spec.limits.max_frame);
        Ok((Self { body, decoder, url: url.clone(), ended: false }, url))
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Result<Option<SseEvent>, String> {
        loop {
            let next = self.decoder.next_event().map_err(|large| {
                format!("an event of {} bytes is too large (setting link.max_frame)", large.bytes)
            })?;
            if next.is_some() || self.ended {
                return Ok(next);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.decoder.push(&frame.into_data().unwrap_or_default()),
                Some(Err(error)) => {
                    let url = shown(&self.url);
                    return Err(format!("the event stream of {url} broke off: {}", root(&error)));
                }
                None => {
                    self.decoder.end();
                    self.ended = true;
                }
            }
        }
    }
}

/// Hands messages on until the stream ends; why it did.
async fn read(mut events: Events, to: LinkSender) -> String {
    loop {
        match events.next().await {
            Ok(Some(event)) if event.is_message() => {
                let Some(frame) = event.data.filter(|data| !data.trim_ascii().is_empty()) else {
                    continue;
                };
                if to.send(one_line(frame)).await.is_err() {
                    return "closed".to_owned();
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return format!("{} ended its event stream", shown(&events.url)),
            Err(why) => return why,
        }
    }
}

/// Posts messages until there are no more, or one was not taken; why it ended.
async fn post(client: &HttpClient, endpoint: &Uri, mut messages: LinkReader) -> String {
    let mut posts = JoinSet::new();
    loop {
        let event = tokio::select! {
            Some(post) = posts.join_next() => match post {
                Ok(Ok(())) => continue,
                Ok(Err(why)) => return why,
                Err(error) => return error.to_string(),
            },
            event = messages.next() => event,
        };
        let message = match event {
            LinkEvent::Frame(message) => message,
            LinkEvent::TooLarge { bytes, .. } => {
                return format!("a message of {bytes} bytes is too large (setting link.max_frame)");
            }
            LinkEvent::Closed { .. } => return "closed".to_owned(),
        };
        let (taken, wait) = oneshot::channel();
        let (client, endpoint) = (client.clone(), endpoint.clone());
        let limit: Duration = client.spec().limits.post_wait;
        posts.spawn(async move {
            let outcome = deliver(&client, &endpoint, message).await;
            // Whoever waited may have given up.
            let _ = taken.send(());
            outcome
        });
        // A failure is seen above.
        let _ = tokio::time::timeout(limit, wait).await;
    }
}

/// Posts one message. One that is not taken would be missed by nobody but its caller, for ever: the
/// connection ends with it.
async fn deliver(client: &HttpClient, endpoint: &Uri, message: Bytes) -> Result<(), String> {
    let answer = answered(client, endpoint, exchange(Method::POST, message)).await;
    let (response, url) = answer.map_err(Unanswered::why)?;
    let (head, body) = response.into_parts();
    if head.status.is_success() {
        return Ok(());
    }
    let said = said(&refusal(client, &head.headers, body).await);
    Err(format!("{} did not take a message: {}{said}", shown(&url), head.status))
}

fn exchange(method: Method, body: Bytes) -> Exchange {
    Exchange { tag: 0, method, headers: HeaderMap::new(), body }
}

fn said(body: &[u8]) -> String {
    let words = quoted(body);
    if words.is_empty() { words } else { format!(": {words}") }
}

#[cfg(test)]
mod tests;
