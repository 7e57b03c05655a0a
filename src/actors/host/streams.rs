//! A host over HTTP: which answer or stream carries a frame.
//!
//! A POST is answered with one JSON body where its answer is all there is to say, and with a stream of
//! events from the first moment at which there is something before it. What belongs to no POST goes to
//! the newest stream that the host opened with GET (Streamable HTTP pages of 2025-03-26 to
//! 2025-11-25). A stream that breaks is no cancellation: its call goes on, and what it says is kept
//! for a host that comes back, where the revision has a way to come back.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::sessions::SessionId;
use crate::protocol::http_rules::post::{Accepts, Refusal, Said};
use crate::protocol::jsonrpc::{Frame, Id, Incoming};
use crate::protocol::session::host::PostId;
use crate::protocol::session::outcome_unknown;
use crate::protocol::session::resume::{About, Lost, StreamId, Streams, say_plainly};
use crate::settings::typed::SessionSettings;

/// One POST of a host.
#[derive(Debug)]
pub(crate) struct PostIn {
    pub(crate) id: PostId,
    pub(crate) incoming: Incoming,
    /// What its version header says.
    pub(crate) said: Said,
    pub(crate) accepts: Accepts,
    pub(crate) reply: oneshot::Sender<PostOut>,
}

/// Its answer.
#[derive(Debug)]
pub(crate) struct PostOut {
    pub(crate) answer: Result<Answer, Refusal>,
    /// The session that this POST has opened.
    pub(crate) session: Option<SessionId>,
}

impl PostOut {
    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self { answer: Err(refusal), session: None }
    }
}

/// What there is to say.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Nothing.
    Nothing,
    /// One message or array.
    Whole(Frame),
    /// Events, encoded.
    Events(mpsc::Receiver<Bytes>),
}

/// The answers and streams of one session that are open.
pub(super) struct HttpWire {
    settings: SessionSettings,
    posts: HashMap<PostId, Post>,
    /// Those that hold a frame back.
    holding: Vec<PostId>,
    /// Those of which something was lost, for ever.
    lost: Vec<PostId>,
    /// The session's own streams; the last one is the newest. Broken ones stay: a host may come back.
    own: VecDeque<Live>,
    /// What waits for a stream of its own.
    waiting: VecDeque<Frame>,
    /// Where streams can be taken up again.
    kept: Option<Streams>,
}

struct Post {
    accepts: Accepts,
    /// The one request in it.
    request: Option<Id>,
    /// Until something is said.
    reply: Option<oneshot::Sender<PostOut>>,
    /// What was said last: whether it is all there is to say shows only afterwards.
    held: Option<Frame>,
    live: Option<Live>,
}

/// A stream, and its reader while there is one.
struct Live {
    stream: Option<StreamId>,
    sender: Option<mpsc::Sender<Bytes>>,
}

impl Live {
    fn is_read(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| !sender.is_closed())
    }

    /// The last place in the queue is for the last event, which is never dropped. A reader that does
    /// not read loses the rest, or where it can come back for it, the stream. Says whether the event
    /// can still arrive.
    fn push(&mut self, event: Bytes, last: bool) -> bool {
        let kept = self.stream.is_some();
        let Some(sender) = &self.sender else { return kept };
        let full = !last && sender.capacity() <= 1;
        let gone = if full { kept } else { sender.try_send(event).is_err() };
        if gone {
            self.sender = None;
        }
        kept || !(full || gone)
    }
}

impl HttpWire {
    pub(super) fn new(settings: SessionSettings) -> Self {
        Self {
            settings,
            posts: HashMap::new(),
            holding: Vec::new(),
            lost: Vec::new(),
            own: VecDeque::new(),
            waiting: VecDeque::new(),
            kept: None,
        }
    }

    /// From now on the streams of this session can be taken up again; it has had `lives` in daemons
    /// before this one.
    pub(super) fn keep(&mut self, lives: u32) {
        let limits = self.settings.keep;
        self.kept.get_or_insert_with(|| Streams::new(limits, lives));
    }

    /// A POST came, with a request in it or not.
    pub(super) fn take(
        &mut self,
        id: PostId,
        request: Option<Id>,
        accepts: Accepts,
        reply: oneshot::Sender<PostOut>,
    ) {
        let post = Post { accepts, request, reply: Some(reply), held: None, live: None };
        self.posts.insert(id, post);
    }

    /// Something to say, on the stream of a POST or on the session's own.
    pub(super) fn send(&mut self, now: Instant, post: Option<PostId>, frame: Frame) {
        let Some(id) = post else {
            self.send_own(now, frame);
            return;
        };
        let Some(mut post) = self.posts.remove(&id) else { return };
        match post.held.replace(frame) {
            Some(before) => self.say(now, id, &mut post, &before, false),
            None => self.holding.push(id),
        }
        self.posts.insert(id, post);
    }

    /// Nothing more is known for now: what was held back is not all that there is to say.
    pub(super) fn flush(&mut self, now: Instant) {
        while let Some(id) = self.holding.pop() {
            // It may have been done since.
            let Some(mut post) = self.posts.remove(&id) else { continue };
            if let Some(frame) = post.held.take() {
                self.say(now, id, &mut post, &frame, false);
            }
            self.posts.insert(id, post);
        }
    }

    /// A POST has its answer, which opened `session` where it opened one.
    pub(super) fn done(&mut self, now: Instant, id: PostId, session: Option<SessionId>) {
        let Some(mut post) = self.posts.remove(&id) else { return };
        match (post.held.take(), post.accepts.json) {
            (None, _) => reply(&mut post, Answer::Nothing, session),
            (Some(frame), true) if post.reply.is_some() => {
                reply(&mut post, Answer::Whole(frame), session);
            }
            (Some(frame), _) => {
                self.begin(&mut post, session);
                self.say(now, id, &mut post, &frame, true);
            }
        }
        if let (Some(kept), Some(live)) = (&mut self.kept, &post.live)
            && let Some(stream) = live.stream
        {
            kept.end(stream);
        }
    }

    /// The answer takes long: it becomes a stream now.
    pub(super) fn begin_waiting(&mut self, id: PostId) {
        let Some(mut post) = self.posts.remove(&id) else { return };
        if post.accepts.events {
            self.begin(&mut post, None);
        }
        self.posts.insert(id, post);
    }

    /// A GET: a new stream of the session's own, or an old one from the event after `last_seen` on.
    /// One that ended with an earlier daemon cannot be gone on with: the session's own begins anew, and
    /// who waits for an answer is told that there is none (F23). An error says that there is no such
    /// event any more.
    pub(super) fn listen(
        &mut self,
        now: Instant,
        last_seen: Option<&str>,
    ) -> Result<mpsc::Receiver<Bytes>, String> {
        let (Some(last_seen), Some(kept)) = (last_seen, &mut self.kept) else {
            let receiver = self.open_own();
            self.send_waiting(now);
            return Ok(receiver);
        };
        let missed = match kept.after(now, last_seen) {
            Ok(missed) => missed,
            Err(Lost::Before(About::Session)) => {
                let receiver = self.open_own();
                self.send_waiting(now);
                return Ok(receiver);
            }
            Err(Lost::Before(About::Request(Some(id)))) => return Ok(self.answer_lost(now, id)),
            Err(Lost::Before(About::Request(None)) | Lost::Unknown) => {
                return Err(format!(
                    "nothing is known of the stream with the event {last_seen:?}: it was never sent \
                     in this session, or ended with an earlier daemon, or is longer ago than \
                     http.resume_age, http.resume_events and http.resume_bytes let it be kept"
                ));
            }
        };
        let (sender, receiver) =
            mpsc::channel(missed.events.len() + self.settings.stream_queue + 1);
        for event in missed.events {
            // There is room for all of them.
            let _ = sender.try_send(event);
        }
        if missed.open {
            self.take_up(missed.stream, sender);
            self.send_waiting(now);
        }
        Ok(receiver)
    }

    /// The POSTs of which something was lost since the last look: their hosts have gone or do not read,
    /// and have no way to come back for it.
    pub(super) fn take_lost(&mut self) -> Vec<PostId> {
        std::mem::take(&mut self.lost)
    }

    /// Whether nobody waits for an answer or listens.
    pub(super) fn is_quiet(&self) -> bool {
        self.posts.is_empty() && !self.own.iter().any(Live::is_read)
    }

    /// Whether every POST was answered.
    pub(super) fn is_answered(&self) -> bool {
        self.posts.is_empty()
    }

    /// The session's own streams end; answers may still come.
    pub(super) fn end_own(&mut self) {
        self.own.clear();
    }

    /// A stream with nothing but what is to be said of a request whose answer ended with a daemon.
    fn answer_lost(&mut self, now: Instant, id: Id) -> mpsc::Receiver<Bytes> {
        let (live, receiver) = self.stream(About::Request(Some(id.clone())));
        let event = written(&mut self.kept, now, live.stream, &outcome_unknown(id));
        if let (Some(sender), Some(kept), Some(stream)) = (live.sender, &mut self.kept, live.stream)
        {
            // There is room for it.
            let _ = sender.try_send(event);
            kept.end(stream);
        }
        receiver
    }

    fn send_own(&mut self, now: Instant, frame: Frame) {
        let Some(live) = self.own.iter_mut().rev().find(|live| live.is_read()) else {
            if self.waiting.len() >= self.settings.stream_queue {
                self.waiting.pop_front();
            }
            self.waiting.push_back(frame);
            return;
        };
        live.push(written(&mut self.kept, now, live.stream, &frame), false);
    }

    fn send_waiting(&mut self, now: Instant) {
        if self.own.iter().any(Live::is_read) {
            for frame in std::mem::take(&mut self.waiting) {
                self.send_own(now, frame);
            }
        }
    }

    fn say(&mut self, now: Instant, id: PostId, post: &mut Post, frame: &Frame, last: bool) {
        if !last && !post.accepts.events {
            // A host that takes no events hears the answer alone.
            return;
        }
        self.begin(post, None);
        if let Some(live) = &mut post.live
            && !live.push(written(&mut self.kept, now, live.stream, frame), last)
            && !last
        {
            self.lost.push(id);
        }
    }

    /// Answers a POST with a stream, unless it was answered.
    fn begin(&mut self, post: &mut Post, session: Option<SessionId>) {
        if post.reply.is_some() {
            let (live, receiver) = self.stream(About::request(post.request.take()));
            post.live = Some(live);
            reply(post, Answer::Events(receiver), session);
        }
    }

    fn stream(&mut self, about: About) -> (Live, mpsc::Receiver<Bytes>) {
        // One place for the event that begins it, one for the last.
        let (sender, receiver) = mpsc::channel(self.settings.stream_queue + 2);
        let retry = self.settings.retry;
        let stream = self.kept.as_mut().map(|kept| {
            let (stream, first) = kept.open(retry, about);
            let _ = sender.try_send(first);
            stream
        });
        (Live { stream, sender: Some(sender) }, receiver)
    }

    fn open_own(&mut self) -> mpsc::Receiver<Bytes> {
        if self.own.len() >= self.settings.max_streams
            && let Some(oldest) = self.own.pop_front()
            && let (Some(kept), Some(stream)) = (&mut self.kept, oldest.stream)
        {
            kept.end(stream);
        }
        let (live, receiver) = self.stream(About::Session);
        self.own.push_back(live);
        receiver
    }

    /// A host came back to an open stream: it has a new reader.
    fn take_up(&mut self, stream: StreamId, sender: mpsc::Sender<Bytes>) {
        let mut posts = self.posts.values_mut().filter_map(|post| post.live.as_mut());
        if let Some(live) = posts.find(|live| live.stream == Some(stream)) {
            live.sender = Some(sender);
            return;
        }
        self.own.retain(|live| live.stream != Some(stream));
        self.own.push_back(Live { stream: Some(stream), sender: Some(sender) });
    }
}

fn written(
    kept: &mut Option<Streams>,
    now: Instant,
    stream: Option<StreamId>,
    frame: &Frame,
) -> Bytes {
    let frame = &frame.to_bytes();
    match (kept, stream) {
        (Some(kept), Some(stream)) => kept.say(now, stream, frame),
        _ => say_plainly(frame),
    }
}

/// A host that has gone gets no answer (F27): its receiver is.
fn reply(post: &mut Post, answer: Answer, session: Option<SessionId>) {
    if let Some(reply) = post.reply.take() {
        let _ = reply.send(PostOut { answer: Ok(answer), session });
    }
}

#[cfg(test)]
mod tests;
