//! The opening: which request goes first, what each answer means, what is tried next.
//!
//! Two legs, `server/discover` and `initialize`, each asked for at most once but for the retries
//! named below; they may be under way side by side. What happens:
//!
//! - discover answered as a modern server does: settled, modern, unless `initialize` is under way.
//! - discover refused by a known modern error: modern, asked again in a version it lists (U-14).
//! - discover refused otherwise, answered with something else, or not answered in
//!   `upstream.probe_patience`: `initialize`. The discover is still listened to: the commonest slow
//!   server is a modern one that is being downloaded, and taking it for legacy would be remembered.
//! - discover answered as a modern server does while `initialize` is under way: a server of both eras
//!   answers that, too, and is in a legacy session then, whatever it said before. So the answer is kept
//!   until `initialize` is refused (modern), answered (legacy, which is not remembered: the next start
//!   may be a quicker one), or `upstream.probe_patience` has passed once more (modern).
//! - `initialize` refused: discover, if that was not tried (fall forward, U-10).
//!
//! **Bias**: a modern server that answers `initialize` and is silent on discover past the patience is
//! spoken to as legacy. That costs it modern features and nothing else.

use std::time::Instant;

use super::UpstreamSession;
use super::exchange::HttpFailure;
use super::{
    Asked, OpenError, Phase, Settled, UpstreamConfig, UpstreamEvent, UpstreamOutput, tasks,
};
use crate::protocol::Notice;
use crate::protocol::edge::{keys, lifecycle};
use crate::protocol::era_record::{EraRecord, EraSource};
use crate::protocol::jsonrpc::{Message, Method, Notification, Object, RawJson, RpcError};
use crate::protocol::revision::{Era, Revision};
use crate::protocol::session::pending::CallSink;
use crate::protocol::session::probe::{self, Plan, Verdict};
use crate::protocol::session::timers::{Timer, after};
use crate::protocol::session::{Closed, Limit, Outcome};

/// What is known while the era is found out.
#[derive(Debug)]
pub(super) struct Opening {
    plan: Plan,
    /// The revision that `initialize` offers.
    offer: Revision,
    /// How often each modern revision was offered (U-14).
    offered: Vec<(Revision, u32)>,
    /// `initialize` has been sent once.
    initialize_tried: bool,
    /// Why it came to nothing; told where nothing else works either.
    initialize_failed: Option<OpenError>,
    /// `initialize` was sent again with a version that the server listed.
    reoffered: bool,
    /// An `initialize` answer that named a modern revision was followed by a discover (F26).
    reprobed: bool,
    /// A modern answer to the discover that came while `initialize` was under way (U-08).
    shown_modern: Option<(Revision, RawJson)>,
    /// Over HTTP, the legs that were answered as where there is no such endpoint (U-41).
    bare: Vec<Era>,
}

impl Opening {
    pub(super) fn new(config: &UpstreamConfig) -> Self {
        Self {
            plan: probe::plan(config.preference, config.pin, config.remembered.as_ref()),
            offer: config.pin.unwrap_or(Revision::NEWEST_LEGACY),
            offered: Vec::new(),
            initialize_tried: false,
            initialize_failed: None,
            reoffered: false,
            reprobed: false,
            shown_modern: None,
            bare: Vec::new(),
        }
    }

    /// Opens a session in place of one that the server gave up (U-40): its era is known.
    pub(super) fn again(offer: Revision) -> Self {
        Self {
            plan: Plan { first: Era::Legacy, both: false },
            offer,
            offered: Vec::new(),
            initialize_tried: false,
            initialize_failed: None,
            reoffered: false,
            reprobed: false,
            shown_modern: None,
            bare: Vec::new(),
        }
    }

    fn may(&self, era: Era) -> bool {
        self.plan.both || self.plan.first == era
    }

    fn answered_bare(&mut self, leg: Era, failure: &HttpFailure) {
        if failure.is_bare() {
            self.bare.push(leg);
        }
    }

    fn discover_tried(&self) -> bool {
        !self.offered.is_empty()
    }

    fn times_offered(&self, revision: Revision) -> u32 {
        self.offered.iter().find(|(known, _)| *known == revision).map_or(0, |(_, times)| *times)
    }
}

/// The `_meta` members that every request to an upstream of `revision` carries.
fn envelope(config: &UpstreamConfig, revision: Revision) -> Vec<(&'static str, RawJson)> {
    lifecycle::request_meta(revision, &config.info, &RawJson::empty_object(), None)
}

/// Parameters that hold nothing but the envelope.
pub(super) fn bare_params(config: &UpstreamConfig, revision: Revision) -> RawJson {
    let mut meta = Object::new();
    for (key, value) in envelope(config, revision) {
        meta.set(key, value);
    }
    let mut params = Object::new();
    params.set("_meta", meta.write());
    params.write()
}

impl<S: CallSink> UpstreamSession<S> {
    /// The link is up: sends the first request of the opening.
    pub fn open(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::New) {
            return;
        }
        self.phase = Phase::Opening;
        self.timers.set(Timer::Handshake, after(now, self.config.timings.handshake));
        if self.opening.plan.first == Era::Legacy {
            self.send_initialize();
            return;
        }
        self.send_discover(Revision::NEWEST);
        // Where there is no other way, patience is the opening's limit; over HTTP an answer of some
        // kind always comes (U-11).
        if self.opening.may(Era::Legacy) && self.http.is_none() {
            self.timers.set(Timer::ProbePatience, after(now, self.config.timings.probe_patience));
        }
    }

    fn send_discover(&mut self, revision: Revision) {
        match self.opening.offered.iter_mut().find(|(known, _)| *known == revision) {
            Some((_, times)) => *times += 1,
            None => self.opening.offered.push((revision, 1)),
        }
        self.speak(revision);
        let params = bare_params(&self.config, revision);
        self.ask(Asked::Discover, "server/discover", Some(params));
    }

    pub(super) fn send_initialize(&mut self) {
        if let Some(http) = &mut self.http {
            http.forget_session();
        }
        self.opening.initialize_tried = true;
        self.timers.clear(Timer::ProbePatience);
        let offer = self.opening.offer;
        let params =
            lifecycle::initialize_params(offer, &self.config.info, &self.config.capabilities);
        self.ask(Asked::Initialize, "initialize", Some(params));
    }

    /// No answer to the probe in time: `initialize` beside it (U-08, F25 a). Or none to that, by a server
    /// that has shown itself modern.
    pub(super) fn patience_over(&mut self, now: Instant) {
        if self.opening.initialize_tried {
            self.settle_as_shown(now);
        } else {
            self.send_initialize();
        }
    }

    /// Goes by a modern answer that was kept, if there is one: `initialize` came to nothing.
    fn settle_as_shown(&mut self, now: Instant) -> bool {
        let Some((revision, result)) = self.opening.shown_modern.take() else { return false };
        self.settle_modern(now, revision, &result);
        true
    }

    /// The opening took too long. Nothing is cancelled: `initialize` never may be (U-30).
    pub(super) fn handshake_over(&mut self) {
        let limit = Limit::time(Timer::Handshake.setting(), self.config.timings.handshake);
        self.fail(OpenError::TimedOut(limit));
    }

    /// The link ended during the opening. A server that was asked nothing but the probe, or that
    /// ended on it while `initialize` waited behind, gets one start without it (F25 f).
    pub(super) fn opening_closed(&mut self, why: &str) {
        let probe_first = self.opening.plan.first == Era::Modern && self.opening.discover_tried();
        let blameless = probe_first && self.opening.may(Era::Legacy) && !self.opening.reprobed;
        let undecided = self.opening.initialize_failed.is_none()
            && self.opening.shown_modern.is_none()
            && (self.is_asked(Asked::Discover) || self.is_asked(Asked::Initialize));
        let error = if blameless && undecided && !self.is_known_modern() {
            OpenError::RestartLegacy
        } else {
            OpenError::Closed(why.to_owned())
        };
        self.out.event(UpstreamEvent::OpenFailed(error));
        self.end(why.to_owned());
    }

    /// A second discover is only sent to a server that has shown itself modern.
    fn is_known_modern(&self) -> bool {
        self.opening.offered.iter().map(|(_, times)| times).sum::<u32>() > 1
    }

    pub(super) fn discover_answered(&mut self, now: Instant, outcome: &Outcome) {
        match probe::classify(outcome) {
            Verdict::Discovered(versions) => {
                let shared = probe::newest_shared(&versions, Era::Modern);
                match (shared.filter(|revision| self.admits(*revision)), outcome) {
                    (Some(revision), Ok(result)) if self.is_asked(Asked::Initialize) => {
                        self.opening.shown_modern = Some((revision, result.detached()));
                        let patience = after(now, self.config.timings.probe_patience);
                        self.timers.set(Timer::ProbePatience, patience);
                    }
                    (Some(revision), Ok(result)) => self.settle_modern(now, revision, result),
                    _ => self.offer_listed(&versions),
                }
            }
            Verdict::OtherVersion(versions) => self.retry_discover(&versions, outcome),
            Verdict::ModernRefusal(error) => self.fail(refused(&error)),
            Verdict::Legacy => self.discover_showed_legacy(match outcome {
                Err(error) => refused(error),
                Ok(_) => OpenError::Unusable(
                    "server/discover was answered without supportedVersions".to_owned(),
                ),
            }),
        }
    }

    /// Over HTTP, the probe was refused by a status alone (U-11, F24).
    pub(super) fn discover_failed(&mut self, failure: HttpFailure) {
        self.opening.answered_bare(Era::Modern, &failure);
        if self.may_be_sse() {
            self.fail(OpenError::TrySse(failure));
        } else {
            self.discover_showed_legacy(OpenError::Http(failure));
        }
    }

    /// Over HTTP, the handshake was.
    pub(super) fn initialize_failed(&mut self, failure: HttpFailure) {
        if let Some(error) = &failure.error {
            return self.initialize_refused(error);
        }
        self.opening.answered_bare(Era::Legacy, &failure);
        if self.opening.may(Era::Modern) && !self.opening.discover_tried() {
            self.opening.initialize_failed = Some(OpenError::Http(failure));
            self.send_discover(Revision::NEWEST);
        } else if self.may_be_sse() {
            self.fail(OpenError::TrySse(failure));
        } else {
            self.fail(OpenError::Http(failure));
        }
    }

    /// Over HTTP, a leg was answered by nothing that could be a message.
    pub(super) fn leg_said_nothing(&mut self, leg: Asked, why: OpenError) {
        match leg {
            Asked::Discover => self.discover_showed_legacy(why),
            _ => self.fail(why),
        }
    }

    /// Whether every opening that may be tried was, and was refused as by a server of the older
    /// transport.
    fn may_be_sse(&self) -> bool {
        let opening = &self.opening;
        self.http.as_ref().is_some_and(|http| http.may_be_sse())
            && opening.bare.contains(&Era::Legacy)
            && (opening.bare.contains(&Era::Modern) || !opening.discover_tried())
    }

    /// Asked for another version (U-14): one that was not tried, else one that was, since the server
    /// lists it all the same; each at most `upstream.version_attempts` times.
    fn retry_discover(&mut self, versions: &[String], outcome: &Outcome) {
        let attempts = self.config.timings.version_attempts;
        let next = versions
            .iter()
            .filter_map(|text| Revision::parse(text))
            .filter(|revision| revision.era() == Era::Modern && self.admits(*revision))
            .filter(|revision| self.opening.times_offered(*revision) < attempts)
            .min_by_key(|revision| {
                (self.opening.times_offered(*revision), std::cmp::Reverse(*revision))
            });
        match (next, outcome) {
            (Some(revision), _) => {
                // The spec's stdio page: a known modern error is not followed by `initialize`; one
                // that patience has sent is not listened to any more.
                self.timers.clear(Timer::ProbePatience);
                self.forget(Asked::Initialize);
                self.send_discover(revision);
            }
            // It lists what it refuses, again and again; or it lists nothing.
            (None, Err(error))
                if versions.is_empty() || probe::newest_shared(versions, Era::Modern).is_some() =>
            {
                self.fail(refused(error));
            }
            (None, _) => self.offer_listed(versions),
        }
    }

    /// A modern answer without a shared modern revision: where it lists a legacy one, that is the
    /// mutually supported version, and `initialize` is how it is reached.
    fn offer_listed(&mut self, versions: &[String]) {
        let legacy = probe::newest_shared(versions, Era::Legacy);
        match legacy.filter(|revision| self.admits(*revision)) {
            Some(revision) if self.opening.may(Era::Legacy) => {
                self.opening.offer = revision;
                if !self.is_asked(Asked::Initialize) {
                    self.send_initialize();
                }
            }
            _ => self.fail(self.unshared(versions.join(", "))),
        }
    }

    fn discover_showed_legacy(&mut self, why: OpenError) {
        if self.opening.may(Era::Legacy) && !self.opening.initialize_tried {
            self.send_initialize();
        } else if self.is_asked(Asked::Initialize) {
            // F25 g: late; the handshake under way decides.
        } else if let Some(error) = self.opening.initialize_failed.take() {
            self.fail(error);
        } else {
            self.fail(why);
        }
    }

    pub(super) fn initialize_answered(&mut self, now: Instant, outcome: &Outcome) {
        if !self.opens_session(outcome) && self.settle_as_shown(now) {
            return;
        }
        let result = match outcome {
            Ok(result) => result,
            Err(error) => return self.initialize_refused(error),
        };
        let version = result.member("protocolVersion").filter(|version| !version.is_null());
        let Some(version) = version else {
            let text = "its initialize result has no protocolVersion";
            return self.fail(OpenError::Unusable(text.to_owned()));
        };
        let answered = version.read::<String>().unwrap_or_else(|_| version.as_str().to_owned());
        match Revision::parse(&answered) {
            Some(revision) if !self.admits(revision) => self.fail(self.unshared(answered)),
            Some(revision) if revision.era() == Era::Legacy => {
                self.settle_legacy(now, revision, result);
            }
            // F26: a modern revision has no handshake, so the answer contradicts itself. Ask once
            // whether the server is modern.
            Some(_) if self.opening.may(Era::Modern) && !self.opening.reprobed => {
                self.opening.reprobed = true;
                self.opening.initialize_failed = Some(OpenError::Version { answered });
                if !self.is_asked(Asked::Discover) {
                    self.send_discover(Revision::NEWEST);
                }
            }
            _ => self.fail(OpenError::Version { answered }),
        }
    }

    /// Whether an answer to `initialize` begins a legacy session.
    fn opens_session(&self, outcome: &Outcome) -> bool {
        let version = outcome.as_ref().ok().and_then(|result| result.member_str("protocolVersion"));
        let revision = version.and_then(|version| Revision::parse(&version));
        revision.is_some_and(|revision| revision.era() == Era::Legacy && self.admits(revision))
    }

    fn initialize_refused(&mut self, error: &RpcError) {
        // Some legacy servers refuse a newer offer instead of countering it, but list what they speak
        // (2025-11-25 lifecycle page, error handling); that is worth one more offer.
        let listed = probe::offered_by(error).unwrap_or_default();
        let other = probe::newest_shared(&listed, Era::Legacy)
            .filter(|revision| *revision != self.opening.offer && self.admits(*revision));
        if let (Some(revision), false) = (other, self.opening.reoffered) {
            self.opening.reoffered = true;
            self.opening.offer = revision;
            self.send_initialize();
            return;
        }
        if self.opening.may(Era::Modern) && !self.opening.discover_tried() {
            self.opening.initialize_failed = Some(refused(error));
            self.send_discover(Revision::NEWEST);
        } else if self.is_asked(Asked::Discover) {
            self.opening.initialize_failed = Some(refused(error));
        } else {
            self.fail(refused(error));
        }
    }

    /// Whether a pin, if there is one, is this revision.
    fn admits(&self, revision: Revision) -> bool {
        self.config.pin.is_none_or(|pin| pin == revision)
    }

    fn unshared(&self, offered: String) -> OpenError {
        match self.config.pin {
            Some(pinned) => OpenError::Pinned { pinned, offered },
            None => OpenError::Version { answered: offered },
        }
    }

    fn settle_modern(&mut self, now: Instant, revision: Revision, result: &RawJson) {
        let info = result.member("_meta").and_then(|meta| meta.member(keys::SERVER_INFO));
        self.settle(now, revision, info, result);
    }

    fn settle_legacy(&mut self, now: Instant, revision: Revision, result: &RawJson) {
        // U-04: only here, and before any call.
        let method = Method::known("notifications/initialized");
        let note = Message::Notification(Notification { method, params: None });
        let info = result.member("serverInfo");
        if self.http.is_some() {
            self.greet(revision, &note, info, result);
        } else {
            self.send(&note);
            self.settle(now, revision, info, result);
        }
    }

    pub(super) fn settle(
        &mut self,
        now: Instant,
        revision: Revision,
        info: Option<RawJson>,
        result: &RawJson,
    ) {
        self.timers.clear(Timer::Handshake);
        self.timers.clear(Timer::ProbePatience);
        self.forget(Asked::Discover);
        self.forget(Asked::Initialize);
        self.phase = Phase::Open(revision);
        self.pending.settle(revision);
        let capabilities = result.member("capabilities").unwrap_or_else(RawJson::empty_object);
        let settled = Settled {
            revision,
            info: info.map(|info| info.detached()),
            capabilities: lifecycle::lift_server_capabilities(revision, &capabilities).detached(),
            instructions: result.member_str("instructions"),
            session: self.http.as_ref().and_then(|http| http.shown_session()),
            ..self.learned(revision)
        };
        if settled.stale {
            self.out.queue.push_back(UpstreamOutput::Notice(Notice {
                kind: "server.era.stale",
                text: format!(
                    "the remembered era was wrong; the server speaks {revision} ({})",
                    revision.era()
                ),
            }));
        }
        self.lists.declare(&settled.capabilities);
        self.listening.declare(&settled.capabilities);
        self.calls.tasks = tasks::offered(settled.revision, &settled.capabilities);
        let logging = settled.capabilities.member("logging");
        self.calls.logs = logging.is_some_and(|declared| !declared.is_null());
        let renewed = self.http.as_mut().is_some_and(|http| std::mem::take(&mut http.renewing));
        let event = if renewed { UpstreamEvent::Renewed } else { UpstreamEvent::Settled };
        self.out.event(event(settled));
        self.calls.envelope = envelope(&self.config, revision);
        self.questions.declare(revision, &self.config.capabilities);
        self.send_held(now);
        self.send_own_held();
        self.start_wanted_lists(now);
        self.follow_wanted();
        self.open_standalone();
    }

    /// How the era became known, and what is to be remembered of it (U-17).
    fn learned(&self, revision: Revision) -> Settled {
        let forced = !self.opening.plan.both;
        let remembered = self.config.remembered.as_ref().filter(|_| !forced);
        let era = remembered.and_then(EraRecord::known_era);
        // It speaks both, and only its slow start has made this session what it is.
        let both = self.opening.shown_modern.is_some();
        let stale = era.is_some_and(|era| era != revision.era()) && !both;
        // A record made of a server's exit on the probe is part of this very opening.
        let from_cache = remembered.is_some_and(|record| record.learned_at != 0)
            && era == Some(Era::Legacy)
            && !stale;
        let source = match (forced, from_cache) {
            (true, _) => EraSource::Forced,
            (false, true) => EraSource::Cache,
            (false, false) => EraSource::Probe,
        };
        let record = match remembered {
            _ if forced || both => None,
            Some(record) if record.describes(revision) => Some(record.clone()),
            _ => Some(EraRecord::learned(revision, EraSource::Probe)),
        };
        let capabilities = RawJson::empty_object();
        Settled {
            revision,
            source,
            record,
            stale,
            info: None,
            capabilities,
            instructions: None,
            session: None,
        }
    }

    /// The opening came to nothing: held calls are told, the link is to be ended. No notification of
    /// any kind goes out, above all no `notifications/initialized` (U-03, U-04).
    pub(super) fn fail(&mut self, error: OpenError) {
        let why = error.to_string();
        self.out.event(UpstreamEvent::OpenFailed(error));
        self.out.queue.push_back(UpstreamOutput::Close(why.clone()));
        self.end(why.clone());
        // Over HTTP calls of a session that could not be renewed may still be in flight.
        let frames_begun = if self.http.is_some() { u64::MAX } else { 0 };
        self.pending.close(&Closed { why, frames_begun });
    }
}

fn refused(error: &RpcError) -> OpenError {
    OpenError::Refused { code: error.code, message: error.message.clone() }
}
