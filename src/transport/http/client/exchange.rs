//! One exchange, from its request to its last event.
//!
//! Nothing is asked for but plain bodies. Compression would save little, as frames are small; it
//! delays events in servers and proxies that gather input for it, and what a few compressed bytes
//! become must be limited once more.

use std::error::Error as StdError;
use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Incoming};

use super::{
    ClientLimits, ClientSpec, Exchange, ExchangeEnd, ExchangeEvent, ExchangeTo, HttpClient,
};
use crate::protocol::framing::line::blank_line_ends;
use crate::protocol::framing::sse::decode::{SseDecoder, SseEvent};
use crate::transport::http::address::{Origin, resolve, shown, with_query};
use crate::transport::http::body;
use crate::transport::http::dial::{DialFailed, root};
use crate::transport::http::mask::Mask;
use crate::transport::http::media::{Media, Sniffed, quoted, sniff, title};
use crate::transport::http::net::is_forwarded;

/// What is accepted as an answer; a GET asks for events alone.
const ANSWERS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Without a parameter: a charset is refused by some servers (F21).
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PLAIN: HeaderValue = HeaderValue::from_static("identity");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("mcpx/", env!("CARGO_PKG_VERSION")));

pub(super) async fn run(client: HttpClient, exchange: Exchange, to: ExchangeTo) {
    let tag = exchange.tag;
    let tell = Tell { tag, to };
    if let Some(end) = through(&client, exchange, &tell).await {
        tell.event(ExchangeEvent::Ended(end)).await;
    }
}

/// The user of an exchange.
struct Tell {
    tag: u64,
    to: ExchangeTo,
}

impl Tell {
    /// Whether somebody still listens.
    async fn event(&self, event: ExchangeEvent) -> bool {
        self.to.events.send((self.tag, event)).await.is_ok()
    }

    async fn frame(&self, frame: Bytes) -> bool {
        if frame.trim_ascii().is_empty() {
            return true;
        }
        match (self.to.take)(one_line(frame)) {
            None => true,
            Some(frame) => self.event(ExchangeEvent::Frame(frame)).await,
        }
    }
}

/// The end to be told; `None` where nobody listens any more.
async fn through(client: &HttpClient, exchange: Exchange, tell: &Tell) -> Option<ExchangeEnd> {
    let (response, url) = match answered(client, &client.spec.url, exchange).await {
        Ok(answered) => answered,
        Err(Unanswered::Failed { sent, why }) => return Some(ExchangeEnd::Failed { sent, why }),
        Err(Unanswered::Elsewhere(why)) => return Some(ExchangeEnd::Elsewhere { why }),
    };
    let (head, body) = response.into_parts();
    if !head.status.is_success() {
        let body = refusal(client, &head.headers, body).await;
        return Some(ExchangeEnd::Refused { status: head.status, headers: head.headers, body });
    }
    let media = Media::of(&head.headers);
    let coding = coding(&head.headers);
    let nothing = head.status != StatusCode::OK && media != Media::Json && media != Media::Events;
    let told = ExchangeEvent::Head {
        status: head.status,
        headers: head.headers,
        stream: media == Media::Events,
    };
    if !tell.event(told).await {
        return None;
    }
    if nothing || head.status == StatusCode::NO_CONTENT {
        return Some(ExchangeEnd::Whole);
    }
    if let Some(coding) = coding {
        let what = format!("{} compressed its answer ({coding}), unasked", shown(&url));
        return Some(ExchangeEnd::Unreadable { what });
    }
    let ClientSpec { limits, mask, .. } = &*client.spec;
    if media == Media::Html {
        let page = body::read_some(body, limits.error_body).await;
        return Some(ExchangeEnd::Unreadable { what: no_answer(&url, &media, &page, mask) });
    }
    let mut answer = Answer::new(media, &client.spec, &body);
    answer.read(body, &url, tell).await
}

/// Why there is no answer.
pub(in crate::transport::http) enum Unanswered {
    /// [`ExchangeEnd::Failed`].
    Failed { sent: bool, why: String },
    /// [`ExchangeEnd::Elsewhere`].
    Elsewhere(String),
}

impl Unanswered {
    pub(in crate::transport::http) fn why(self) -> String {
        match self {
            Self::Failed { why, .. } | Self::Elsewhere(why) => why,
        }
    }
}

/// The answer of `url`, which is of the client's origin, behind all redirects; and whose it is.
pub(in crate::transport::http) async fn answered(
    client: &HttpClient,
    url: &Uri,
    exchange: Exchange,
) -> Result<(Response<Incoming>, Uri), Unanswered> {
    let spec = &client.spec;
    let (first, mut url) = (url, url.clone());
    let mut headers = headers(client, &exchange);
    for _ in 0..=spec.limits.redirects {
        proxied(client, &url, &mut headers).await;
        let mut request = Request::new(Full::new(exchange.body.clone()));
        *request.method_mut() = exchange.method.clone();
        let query = spec.query.as_deref();
        *request.uri_mut() =
            query.and_then(|pair| with_query(&url, pair)).unwrap_or_else(|| url.clone());
        *request.headers_mut() = headers.clone();
        let response = client.pool.request(request).await.map_err(|error| ended(&error, &url))?;
        match redirect(&url, &response) {
            Ok(Some(next)) => url = next,
            Ok(None) => return Ok((response, url)),
            Err(why) => return Err(Unanswered::Elsewhere(why)),
        }
    }
    let why = format!(
        "{} redirects again and again, last to {}; {} redirects are followed (setting \
         upstream.redirects)",
        shown(first),
        shown(&url),
        spec.limits.redirects,
    );
    Err(Unanswered::Elsewhere(why))
}

fn headers(client: &HttpClient, exchange: &Exchange) -> HeaderMap {
    let mut headers = client.spec.headers.clone();
    for (name, value) in &exchange.headers {
        headers.insert(name, value.clone());
    }
    let get = exchange.method == Method::GET;
    let accept = if get { EVENTS } else { ANSWERS };
    headers.entry(header::ACCEPT).or_insert(accept);
    headers.entry(header::USER_AGENT).or_insert(AGENT);
    headers.insert(header::ACCEPT_ENCODING, PLAIN);
    // What this client is for; another use of it says so with the exchange.
    if !exchange.body.is_empty() && !exchange.headers.contains_key(header::CONTENT_TYPE) {
        headers.insert(header::CONTENT_TYPE, JSON);
    }
    headers
}

/// The credential for a proxy that reads requests itself.
async fn proxied(client: &HttpClient, url: &Uri, headers: &mut HeaderMap) {
    if let Some(proxy) = client.spec.net.proxy(url).await
        && is_forwarded(url, &proxy)
        && let Some(auth) = proxy.basic_auth()
    {
        headers.insert(header::PROXY_AUTHORIZATION, auth.clone());
    }
}

/// Where an answer leads to. What was asked is asked there again, body and all: 301 and 302 are
/// taken for 308 and 307, which their senders mean. Another origin is never followed, for it would
/// get the credentials, the session and the arguments.
fn redirect<B>(url: &Uri, response: &Response<B>) -> Result<Option<Uri>, String> {
    if !matches!(response.status().as_u16(), 301 | 302 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(header::LOCATION) else { return Ok(None) };
    let next = location.to_str().ok().and_then(|location| resolve(url, location));
    let (from, status) = (Origin::of(url), response.status().as_u16());
    match next {
        Some(next) if Origin::of(&next) == from => Ok(Some(next)),
        Some(next) => {
            let to = Origin::of(&next).map_or_else(|| shown(&next), |to| to.to_string());
            let from = from.map(|from| from.to_string()).unwrap_or_default();
            Err(format!(
                "{from} redirects ({status}) to another origin, {to}, where credentials are never \
                 sent; if that is right, write url = \"{}\"",
                shown(&next),
            ))
        }
        None => Err(format!("{} redirects ({status}) to what is no address", shown(url))),
    }
}

/// Why there was no answer at all.
fn ended(error: &hyper_util::client::legacy::Error, url: &Uri) -> Unanswered {
    if let Some(failed) = cause::<DialFailed>(error) {
        return Unanswered::Failed { sent: false, why: failed.to_string() };
    }
    let broke = cause::<hyper::Error>(error);
    // A request that a connection gave back was not begun.
    let unsent = error.is_connect() || broke.is_some_and(hyper::Error::is_canceled);
    let how = match broke {
        Some(broke) if broke.is_incomplete_message() => {
            "closed the connection without an answer".to_owned()
        }
        Some(broke) if broke.is_parse() => format!("did not answer in HTTP ({broke})"),
        _ => format!("did not answer: {}", root(error)),
    };
    Unanswered::Failed { sent: !unsent, why: format!("{} {how}", shown(url)) }
}

fn cause<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref() {
            return Some(found);
        }
        next = cause.source();
    }
    None
}

/// The words of a refusal. They are not waited for longer than a connection would be.
pub(in crate::transport::http) async fn refusal(
    client: &HttpClient,
    headers: &HeaderMap,
    body: Incoming,
) -> Bytes {
    let limits = &client.spec.limits;
    let json = Media::of(headers) == Media::Json;
    let limit = if json { limits.max_frame } else { limits.error_body };
    let words = tokio::time::timeout(limits.connect, body::read_some(body, limit)).await;
    client.spec.mask.body(&words.unwrap_or_default())
}

/// A compression that was not asked for.
fn coding(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_ENCODING)?;
    let value = String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase();
    (!value.is_empty() && value != "identity").then_some(value)
}

/// A 2xx body that is read to its end.
struct Answer {
    media: Media,
    max_frame: usize,
    error_body: usize,
    mask: Mask,
    reading: Reading,
}

enum Reading {
    /// Not enough came to tell what it is.
    Unclear(BytesMut),
    Json(BytesMut),
    Events(SseDecoder),
    /// Neither of them: only for a text about it.
    Foreign(BytesMut),
}

impl Answer {
    fn new(media: Media, spec: &ClientSpec, body: &impl Body) -> Self {
        let ClientLimits { max_frame, error_body, .. } = spec.limits;
        let said = usize::try_from(body.size_hint().exact().unwrap_or_default());
        let room = said.unwrap_or_default().min(max_frame);
        let reading = match media {
            Media::Events => Reading::Events(SseDecoder::new(max_frame)),
            _ => Reading::Unclear(BytesMut::with_capacity(room)),
        };
        Self { media, max_frame, error_body, mask: spec.mask.clone(), reading }
    }

    async fn read(&mut self, body: Incoming, url: &Uri, tell: &Tell) -> Option<ExchangeEnd> {
        let said = body.size_hint().exact().and_then(|said| usize::try_from(said).ok());
        if let Some(bytes) = said.filter(|_| !matches!(self.reading, Reading::Events(_)))
            && bytes > self.max_frame
        {
            return Some(ExchangeEnd::TooLarge { bytes });
        }
        let mut body = pin!(body);
        while let Some(frame) = body.frame().await {
            let chunk = match frame {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                Err(error) => {
                    let why = format!("the answer of {} broke off: {}", shown(url), root(&error));
                    return Some(ExchangeEnd::Failed { sent: true, why });
                }
            };
            self.push(&chunk);
            if let Some(end) = self.progress(url, false, tell).await? {
                return Some(end);
            }
        }
        self.progress(url, true, tell).await?.or(Some(ExchangeEnd::Whole))
    }

    /// Takes bytes in, and with them decides what the body is.
    fn push(&mut self, chunk: &[u8]) {
        match &mut self.reading {
            Reading::Events(decoder) => return decoder.push(chunk),
            Reading::Unclear(held) | Reading::Json(held) | Reading::Foreign(held) => {
                held.extend_from_slice(chunk);
            }
        }
        let Reading::Unclear(held) = &mut self.reading else { return };
        let held = match sniff(held) {
            Sniffed::Unclear => return,
            _ => std::mem::take(held),
        };
        self.reading = match sniff(&held) {
            Sniffed::Events => {
                let mut decoder = SseDecoder::new(self.max_frame);
                decoder.push(&held);
                Reading::Events(decoder)
            }
            // What is declared as JSON is judged by whoever parses it.
            Sniffed::Neither if self.media != Media::Json => Reading::Foreign(held),
            _ => Reading::Json(held),
        };
    }

    /// Hands on what is whole. The outer `None`: nobody listens; the inner one: it goes on.
    async fn progress(
        &mut self,
        url: &Uri,
        ended: bool,
        tell: &Tell,
    ) -> Option<Option<ExchangeEnd>> {
        match &mut self.reading {
            Reading::Events(decoder) => {
                if ended {
                    decoder.end();
                }
                loop {
                    match decoder.next_event() {
                        Ok(None) => return Some(None),
                        Ok(Some(event)) => {
                            if !hand_on(event, tell).await {
                                return None;
                            }
                        }
                        Err(large) => {
                            return Some(Some(ExchangeEnd::TooLarge { bytes: large.bytes }));
                        }
                    }
                }
            }
            Reading::Json(held) | Reading::Unclear(held) if held.len() > self.max_frame => {
                Some(Some(ExchangeEnd::TooLarge { bytes: held.len() }))
            }
            Reading::Json(held) if ended => {
                let frame = std::mem::take(held).freeze();
                let mark = "\u{feff}".as_bytes();
                let begin = if frame.starts_with(mark) { mark.len() } else { 0 };
                tell.frame(frame.slice(begin..)).await.then_some(None)
            }
            Reading::Foreign(held) if ended || held.len() >= self.error_body => {
                let what = no_answer(url, &self.media, &std::mem::take(held).freeze(), &self.mask);
                Some(Some(ExchangeEnd::Unreadable { what }))
            }
            Reading::Json(_) | Reading::Unclear(_) | Reading::Foreign(_) => Some(None),
        }
    }
}

/// Whether somebody still listens.
async fn hand_on(event: SseEvent, tell: &Tell) -> bool {
    let said = event.id.is_some() || event.retry.is_some();
    let heard = event.is_message();
    let data = event.data.filter(|data| heard && !data.trim_ascii().is_empty());
    let mark = ExchangeEvent::Mark { id: event.id, retry: event.retry, bears: data.is_some() };
    if said && !tell.event(mark).await {
        return false;
    }
    match data {
        Some(data) => tell.frame(data).await,
        None => true,
    }
}

/// The same JSON text without line ends, as links carry frames one a line.
pub(in crate::transport::http) fn one_line(frame: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &frame).is_none() {
        return frame;
    }
    let mut line = BytesMut::from(frame);
    blank_line_ends(&mut line);
    line.freeze()
}

/// What came in place of an answer.
pub(in crate::transport::http) fn no_answer(
    url: &Uri,
    media: &Media,
    body: &Bytes,
    mask: &Mask,
) -> String {
    let (url, body) = (shown(url), mask.body(body));
    match media {
        Media::Html => {
            let titled = match title(&body) {
                Some(title) => format!(" titled {title:?}"),
                None => String::new(),
            };
            format!(
                "{url} answered with a web page{titled}: it wants a login (see `auth`), or its \
                 path is not that of an MCP server"
            )
        }
        other => {
            let kind = match other {
                Media::Other(kind) => format!("{kind}, "),
                _ => String::new(),
            };
            format!(
                "{url} answered with neither JSON nor an event stream: {kind}{:?}",
                quoted(&body)
            )
        }
    }
}
