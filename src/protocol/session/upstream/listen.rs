//! What the upstream is to tell by itself: changes of its lists, updates of resources.
//!
//! A legacy server tells of its lists unasked and of a resource after `resources/subscribe`. A modern
//! one tells on a `subscriptions/listen` stream: there is one on a connection, which asks only for
//! what the server declared (U-42). Another set of resources means another stream: the new one is
//! opened first, and the old one ended when the new one is acknowledged, so that nothing is missed in
//! between; what the old one still says then is dropped.
//!
//! The pages disagree on how a server ends a stream: by the response to the request (subscriptions
//! page) or by a cancellation that names it (cancellation page). Both are taken (U-43), and it is
//! opened again after `upstream.listen_reopen_delay`, later where it tells nothing time and again.
//! What changed meanwhile nobody has told: the lists are read again, and each resource counts as
//! updated.

use std::collections::BTreeSet;
use std::time::Instant;

use super::{Asked, UpstreamEvent, UpstreamSession, refusal};
use crate::protocol::edge;
use crate::protocol::jsonrpc::{Code, Method, Notification, Object, RawJson, RpcError};
use crate::protocol::session::Outcome;
use crate::protocol::session::listen::{ListenFilter, subscription_id};
use crate::protocol::session::pending::CallSink;
use crate::protocol::session::timers::{Timer, after};
use crate::protocol::session::upstream::ListKind;

const LISTEN: &str = "subscriptions/listen";
pub(super) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The rest between tries that bring nothing doubles this often at most.
const MOST_DOUBLINGS: u32 = 6;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Listening {
    /// The lists of whose changes the server declared that it tells.
    offers: ListenFilter,
    /// It lets its resources be subscribed to.
    subscribe: bool,
    /// The resources whose updates are wanted; none where nobody has said so yet.
    wanted: Option<BTreeSet<String>>,
    /// Those that the server has agreed to.
    confirmed: BTreeSet<String>,
    /// The stream of a modern server.
    stream: Option<Stream>,
    /// The one before it, open until the new one is acknowledged.
    replaced: Option<Stream>,
    /// A stream has ended that was not replaced: what happened since then is not known.
    gap: bool,
    /// Streams in a row that told nothing: refused, or ended without a word.
    silent: u32,
    /// It was said once that the server refuses them.
    refusal_told: bool,
    /// Requests about single resources under way, to a legacy server.
    subscribing: Vec<(u64, String)>,
    /// Resources that a legacy server was asked for.
    asked: BTreeSet<String>,
    /// Those that it told of in a session that is over.
    lapsed: BTreeSet<String>,
}

#[derive(Debug)]
struct Stream {
    id: u64,
    asked: ListenFilter,
    acknowledged: bool,
}

impl Listening {
    /// The opening said what there is.
    pub(super) fn declare(&mut self, capabilities: &RawJson) {
        let flag = |kind: &str, flag: &str| {
            let flag = capabilities.member(kind).and_then(|kind| kind.member(flag));
            flag.is_some_and(|flag| flag.as_bytes() == b"true")
        };
        self.subscribe = flag("resources", "subscribe");
        self.offers = ListenFilter {
            tools: flag("tools", "listChanged"),
            prompts: flag("prompts", "listChanged"),
            resources: flag("resources", "listChanged"),
            ..ListenFilter::default()
        };
    }

    /// What a stream is to tell of now.
    fn filter(&self) -> ListenFilter {
        let uris = self.wanted.clone().filter(|_| self.subscribe).unwrap_or_default();
        ListenFilter { uris, ..self.offers.clone() }
    }

    fn is_open(&self, id: &RawJson) -> bool {
        [&self.stream, &self.replaced].into_iter().flatten().any(|stream| names(id, stream.id))
    }
}

/// Whether an id of the peer's writing means ours; some write every id as a string (F13).
fn names(id: &RawJson, ours: u64) -> bool {
    id.as_str().trim_matches('"') == ours.to_string()
}

impl<S: CallSink> UpstreamSession<S> {
    /// From now on the upstream is to tell of its lists, and of these resources. For each one that is
    /// new there is an [`UpstreamEvent::Watched`].
    pub fn watch(&mut self, _now: Instant, uris: BTreeSet<String>) {
        self.listening.wanted = Some(uris);
        self.follow_wanted();
    }

    /// Brings what the upstream was asked for in line with what is wanted.
    pub(super) fn follow_wanted(&mut self) {
        let (Some(revision), Some(wanted)) = (self.revision(), &self.listening.wanted) else {
            return;
        };
        let wanted = wanted.clone();
        self.listening.confirmed.retain(|uri| wanted.contains(uri));
        if !self.listening.subscribe {
            for uri in wanted {
                let text = "the server offers no subscriptions to its resources";
                self.watched(uri, Err(RpcError::new(Code::InvalidParams, text)));
            }
        } else if !revision.is_modern() {
            self.subscribe_singly(&wanted);
        }
        if revision.is_modern() {
            self.replace_stream();
        }
    }

    fn watched(&mut self, uri: String, outcome: Result<(), RpcError>) {
        if outcome.is_ok() {
            self.listening.confirmed.insert(uri.clone());
        } else {
            self.listening.confirmed.remove(&uri);
        }
        self.out.event(UpstreamEvent::Watched { uri, outcome });
    }

    // ---- legacy: one request a resource ----

    fn subscribe_singly(&mut self, wanted: &BTreeSet<String>) {
        let gone: Vec<String> = self.listening.asked.difference(wanted).cloned().collect();
        for uri in gone {
            self.listening.asked.remove(&uri);
            self.ask_about(Asked::Unsubscribe, "resources/unsubscribe", &uri);
        }
        let new: Vec<String> = wanted.difference(&self.listening.asked).cloned().collect();
        for uri in new {
            let id = self.ask_about(Asked::Subscribe, "resources/subscribe", &uri);
            self.listening.subscribing.push((id, uri.clone()));
            self.listening.asked.insert(uri);
        }
    }

    fn ask_about(&mut self, what: Asked, method: &'static str, uri: &str) -> u64 {
        let mut params = Object::new();
        params.set("uri", RawJson::write(uri));
        self.ask(what, method, Some(params.write()))
    }

    pub(super) fn subscribe_answered(&mut self, id: u64, outcome: &Outcome) {
        let subscribing = &mut self.listening.subscribing;
        let Some(at) = subscribing.iter().position(|(asked, _)| *asked == id) else { return };
        let (_, uri) = subscribing.swap_remove(at);
        // Not wanted any more, or asked for once more since: the later answer counts.
        let again = self.listening.subscribing.iter().any(|(_, other)| *other == uri);
        if again || !self.listening.asked.contains(&uri) {
            return;
        }
        let outcome = match outcome {
            Ok(_) => Ok(()),
            Err(error) => {
                self.listening.asked.remove(&uri);
                self.out.warn(format!(
                    "the server refuses a subscription to {uri:.200}: {:.200}",
                    refusal(error)
                ));
                Err(error.clone())
            }
        };
        let lapsed = self.listening.lapsed.remove(&uri) && outcome.is_ok();
        self.watched(uri.clone(), outcome);
        if lapsed {
            self.out.event(UpstreamEvent::Updated { uri });
        }
    }

    // ---- modern: one stream ----

    fn replace_stream(&mut self) {
        let filter = self.listening.filter();
        if self.listening.stream.as_ref().is_some_and(|stream| stream.asked == filter) {
            return;
        }
        if self.timers.is_set(Timer::ListenReopen) && self.listening.stream.is_none() {
            // It rests, and asks for what is wanted then.
            return;
        }
        if let Some(stream) = self.listening.stream.take() {
            if stream.acknowledged && !filter.is_empty() {
                self.listening.replaced = Some(stream);
            } else {
                // Nothing was agreed on it yet: the one before it is the one that tells.
                self.end_stream(&stream, "another one is wanted");
            }
        }
        if filter.is_empty() {
            if let Some(old) = self.listening.replaced.take() {
                self.end_stream(&old, "nothing is wanted any more");
            }
            return;
        }
        self.open_stream(filter);
    }

    fn open_stream(&mut self, filter: ListenFilter) {
        let Some(revision) = self.revision() else { return };
        let mut params = Object::new();
        params.set("notifications", filter.write());
        let method = Method::known(LISTEN);
        let params =
            edge::downgrade_params(revision, &method, &params.write(), &self.calls.envelope);
        let id = self.ask(Asked::Listen, LISTEN, Some(params));
        self.listening.stream = Some(Stream { id, asked: filter, acknowledged: false });
    }

    fn end_stream(&mut self, stream: &Stream, reason: &str) {
        self.asked.retain(|(id, _)| *id != stream.id);
        self.withdraw(stream.id, reason);
    }

    /// Whether a notification may pass: what is tagged must name a stream that is open, which the
    /// stdio page asks for (U-42). What is not tagged belongs to no stream.
    pub(super) fn is_of_open_stream(&mut self, note: &Notification) -> bool {
        let Some(id) = subscription_id(note.params.as_ref()) else { return true };
        let open = self.listening.is_open(&id);
        if open && note.method.as_str() != ACKNOWLEDGED {
            self.listening.silent = 0;
        }
        open
    }

    /// [`ACKNOWLEDGED`].
    pub(super) fn listen_acknowledged(&mut self, now: Instant, params: Option<&RawJson>) {
        let id = subscription_id(params);
        let listening = &mut self.listening;
        let Some(stream) = &mut listening.stream else { return };
        let named = id.is_none_or(|id| names(&id, stream.id));
        if stream.acknowledged || !named {
            return;
        }
        stream.acknowledged = true;
        listening.refusal_told = false;
        let asked = stream.asked.clone();
        let agreed = params.and_then(|params| params.member("notifications"));
        let agreed = agreed.as_ref().map(ListenFilter::read).unwrap_or_default();
        let old = listening.replaced.take();
        let gap = std::mem::take(&mut listening.gap);
        if let Some(old) = old {
            self.end_stream(&old, "replaced by a new one");
        }
        self.agreed(&asked, &agreed);
        if gap {
            self.catch_up(now, &agreed);
        }
    }

    /// U-43: compares what was agreed with what was asked for.
    fn agreed(&mut self, asked: &ListenFilter, agreed: &ListenFilter) {
        let declined = asked.without(agreed);
        if !declined.is_empty() {
            self.out.warn(format!(
                "the server declared it, but does not tell of all that was asked for on \
                 {LISTEN}; declined: {:.300}",
                declined.write().as_str()
            ));
        }
        for uri in &asked.uris {
            if declined.uris.contains(uri) {
                let text = "the server declined a subscription to this resource";
                self.watched(uri.clone(), Err(RpcError::new(Code::InvalidParams, text)));
            } else if !self.listening.confirmed.contains(uri) {
                self.watched(uri.clone(), Ok(()));
            }
        }
    }

    /// Nobody has told what happened while there was no stream.
    fn catch_up(&mut self, now: Instant, agreed: &ListenFilter) {
        let kinds = [
            (agreed.tools, ListKind::Tools),
            (agreed.prompts, ListKind::Prompts),
            (agreed.resources, ListKind::Resources),
        ];
        for (_, kind) in kinds.into_iter().filter(|(agreed, _)| *agreed) {
            self.list_changed(now, kind);
        }
        for uri in self.listening.confirmed.clone() {
            self.out.event(UpstreamEvent::Updated { uri });
        }
    }

    /// `notifications/cancelled`: the other way in which a server ends a stream.
    pub(super) fn listen_cancelled(&mut self, now: Instant, params: Option<&RawJson>) {
        let named = params.and_then(|params| params.member("requestId"));
        let own = self.asked.iter().filter(|(_, asked)| *asked == Asked::Listen);
        let id = named.and_then(|named| own.map(|(id, _)| *id).find(|id| names(&named, *id)));
        if let Some(id) = id {
            self.asked.retain(|(asked, _)| *asked != id);
            self.stream_ended(now, id, None);
        }
    }

    /// The response to the request, which ends the stream.
    pub(super) fn listen_answered(&mut self, now: Instant, id: u64, outcome: &Outcome) {
        self.stream_ended(now, id, outcome.as_ref().err());
    }

    fn stream_ended(&mut self, now: Instant, id: u64, error: Option<&RpcError>) {
        let listening = &mut self.listening;
        if listening.replaced.as_ref().is_some_and(|old| old.id == id) {
            listening.replaced = None;
            listening.gap = true;
            return;
        }
        let Some(stream) = listening.stream.take_if(|stream| stream.id == id) else { return };
        if stream.acknowledged {
            listening.gap = true;
            listening.silent += 1;
            return self.reopen_later(now);
        }
        if let Some(error) = error {
            self.stream_refused(&stream, error);
        }
        if self.listening.replaced.is_some() {
            // The one before it goes on, and is not tried to be replaced until something changes.
            self.listening.stream = self.listening.replaced.take();
            return;
        }
        self.listening.gap = true;
        self.listening.silent += 1;
        let never = error.is_some_and(|error| error.code == Code::MethodNotFound.number());
        if !never {
            self.reopen_later(now);
        }
    }

    fn stream_refused(&mut self, stream: &Stream, error: &RpcError) {
        if !std::mem::replace(&mut self.listening.refusal_told, true) {
            self.out.warn(format!("the server refuses {LISTEN}: {:.200}", refusal(error)));
        }
        let new = stream.asked.uris.difference(&self.listening.confirmed);
        for uri in new.cloned().collect::<Vec<_>>() {
            self.watched(uri, Err(error.clone()));
        }
    }

    fn reopen_later(&mut self, now: Instant) {
        let doublings = self.listening.silent.saturating_sub(1).min(MOST_DOUBLINGS);
        let rest = self.config.timings.listen_reopen.saturating_mul(1 << doublings);
        self.timers.set(Timer::ListenReopen, after(now, rest));
    }

    /// The rest is over.
    pub(super) fn listen_due(&mut self) {
        if self.listening.stream.is_none() {
            self.replace_stream();
        }
    }

    /// `notifications/resources/updated`.
    pub(super) fn resource_updated(&mut self, params: Option<&RawJson>) {
        if let Some(uri) = params.and_then(|params| params.member_str("uri")) {
            self.out.event(UpstreamEvent::Updated { uri });
        }
    }

    /// Whether `id` is a listen stream of ours.
    pub(super) fn is_listening(&self, id: u64) -> bool {
        self.asked.contains(&(id, Asked::Listen))
    }

    /// A legacy server has given up the session, and with it what it was told in it: it is told again
    /// in the next one.
    pub(super) fn session_forgotten(&mut self, now: Instant) {
        self.calls.forget_level();
        self.questions_forgotten(now);
        self.asked.retain(|(_, asked)| !matches!(asked, Asked::Subscribe | Asked::Unsubscribe));
        self.listening.subscribing.clear();
        self.listening.asked.clear();
        self.listening.lapsed.extend(std::mem::take(&mut self.listening.confirmed));
    }

    /// The connection ended.
    pub(super) fn listening_ended(&mut self) {
        self.listening = Listening::default();
    }
}
