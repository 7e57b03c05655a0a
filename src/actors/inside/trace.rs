//! The last frames to and from each server, for those who look at what goes over a connection.
//!
//! Kept only while somebody wants them: a frame that is not kept costs the look at one flag. A frame's
//! beginning is copied, so that a long one is not held; what is secret is masked when it is shown.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use dashmap::DashMap;
use tokio::sync::Notify;

use super::chronicle::now_ms;
use crate::actors::instance::InstanceId;
use crate::protocol::jsonrpc::scan;
use crate::protocol::redact;
use crate::settings::typed::TraceSettings;
use crate::transport::clock;
use crate::transport::http::mask::Mask;

/// Which way a frame went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the server.
    To,
    /// From it.
    From,
}

/// A frame as it is shown.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Its number among those of its server that were kept.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The instance.
    pub instance: u64,
    /// Which way.
    pub way: Way,
    /// Its length.
    pub bytes: usize,
    /// How much of it is shown.
    shown: usize,
    method: Option<String>,
    id: Option<String>,
    head: Bytes,
    mask: Mask,
}

impl Frame {
    /// Its method, where it has one.
    pub fn method(&self) -> Option<String> {
        self.method.clone()
    }

    /// Its id as JSON, where it has one.
    pub fn id(&self) -> Option<String> {
        self.id.clone()
    }

    /// Its text without secrets, and whether it goes on.
    pub fn text(&self) -> (String, bool) {
        let text = self.mask.text(String::from_utf8_lossy(&self.head));
        let cut = self.shown < self.bytes;
        let end =
            if cut { text.floor_char_boundary(self.shown.min(text.len())) } else { text.len() };
        (redact::json(text.get(..end).unwrap_or_default()), cut)
    }
}

/// The frames of one server.
#[derive(Debug, Default)]
pub struct Trace {
    on: AtomicBool,
    ring: Mutex<Ring>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Ring {
    frames: VecDeque<Frame>,
    next: u64,
    limits: Option<TraceSettings>,
    /// Until when they are kept where that is not always.
    until: Option<Instant>,
    readers: usize,
}

impl Ring {
    fn is_over(&self, now: Instant) -> bool {
        self.readers == 0
            && !self.limits.is_some_and(|limits| limits.keep)
            && self.until.is_none_or(|until| until <= now)
    }
}

impl Trace {
    /// These limits are in force.
    pub fn configure(&self, limits: TraceSettings) {
        let mut ring = self.ring();
        ring.limits = Some(limits);
        self.on.store(!ring.is_over(clock::now()), Ordering::Relaxed);
    }

    /// Somebody looks: frames are kept from now on for `trace.linger`. Those that are, the last so many
    /// of them, and whether they were kept before.
    pub fn look(&self, limits: TraceSettings, most: Option<usize>) -> (Vec<Frame>, bool) {
        self.show(&mut self.ring(), limits, most)
    }

    fn show(
        &self,
        ring: &mut Ring,
        limits: TraceSettings,
        most: Option<usize>,
    ) -> (Vec<Frame>, bool) {
        let now = clock::now();
        ring.limits = Some(limits);
        let kept = !ring.is_over(now);
        if !kept {
            ring.frames.clear();
        }
        ring.until = now.checked_add(limits.linger);
        self.on.store(true, Ordering::Relaxed);
        let skip = ring.frames.len().saturating_sub(most.unwrap_or(usize::MAX));
        (ring.frames.iter().skip(skip).cloned().collect(), kept)
    }

    /// The same for one who goes on: frames are kept as long as this is held.
    pub fn follow(
        self: &Arc<Self>,
        limits: TraceSettings,
        most: Option<usize>,
    ) -> (Vec<Frame>, Reader) {
        let mut ring = self.ring();
        let (frames, _) = self.show(&mut ring, limits, most);
        ring.readers += 1;
        let next = ring.next;
        (frames, Reader { trace: Arc::clone(self), next })
    }

    fn keep(&self, instance: InstanceId, way: Way, frame: &[u8], mask: &Mask) {
        let now = clock::now();
        let head = scan::head(frame);
        let method = head.method.map(|raw| lossy(scan::unquoted(raw)));
        let id = head.id.map(lossy);
        let mut ring = self.ring();
        let Some(limits) = ring.limits else { return };
        if ring.is_over(now) {
            ring.frames = VecDeque::new();
            self.on.store(false, Ordering::Relaxed);
            return;
        }
        while ring.frames.len() >= limits.frames.max(1) {
            ring.frames.pop_front();
        }
        // A secret that stands at the end of what is shown is whole in what is kept.
        let kept = limits.frame_bytes.saturating_add(mask.longest()).min(frame.len());
        let head = frame.get(..kept).unwrap_or_default();
        let seq = ring.next;
        ring.next += 1;
        ring.frames.push_back(Frame {
            seq,
            at_ms: now_ms(),
            instance: instance.0,
            way,
            bytes: frame.len(),
            shown: limits.frame_bytes,
            method,
            id,
            head: Bytes::copy_from_slice(head),
            mask: mask.clone(),
        });
        drop(ring);
        self.arrived.notify_waiters();
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // Nothing panics inside the lock.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who goes on reading.
#[derive(Debug)]
pub struct Reader {
    trace: Arc<Trace>,
    next: u64,
}

impl Reader {
    /// The next frames, once there are any. Cancel-safe.
    pub async fn next(&mut self) -> Vec<Frame> {
        loop {
            let mut arrived = std::pin::pin!(self.trace.arrived.notified());
            // Listened to before looking, so that none is missed that comes in between.
            arrived.as_mut().enable();
            let frames: Vec<Frame> = self
                .trace
                .ring()
                .frames
                .iter()
                .filter(|one| one.seq >= self.next)
                .cloned()
                .collect();
            if let Some(last) = frames.last() {
                self.next = last.seq + 1;
                return frames;
            }
            arrived.await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.trace.ring().readers -= 1;
    }
}

/// The frames of all servers, by configuration key. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Traces(Arc<DashMap<Box<str>, Arc<Trace>>>);

impl Traces {
    /// Those of one server.
    pub fn of(&self, server: &str) -> Arc<Trace> {
        if let Some(trace) = self.0.get(server) {
            return Arc::clone(&trace);
        }
        Arc::clone(&self.0.entry(server.into()).or_default())
    }
}

/// Where an instance's frames pass. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tap {
    /// Where they are kept.
    pub trace: Arc<Trace>,
    /// Whose they are.
    pub instance: InstanceId,
    /// What is taken out of them.
    pub mask: Mask,
}

impl Tap {
    /// A frame passes.
    pub fn pass(&self, way: Way, frame: impl FnOnce() -> Bytes) {
        if self.trace.on.load(Ordering::Relaxed) {
            self.trace.keep(self.instance, way, &frame(), &self.mask);
        }
    }
}

fn lossy(raw: &[u8]) -> String {
    String::from_utf8_lossy(raw).into_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: TraceSettings =
        TraceSettings { keep: false, frames: 3, frame_bytes: 40, linger: Duration::from_mins(1) };

    fn tap(traces: &Traces) -> Tap {
        let mask = Mask::of(["hunter22".to_owned()]);
        Tap { trace: traces.of("s"), instance: InstanceId(1), mask }
    }

    #[tokio::test(start_paused = true)]
    async fn frames_are_kept_while_somebody_looks() {
        let traces = Traces::default();
        let tap = tap(&traces);
        let pass = |text: &str| tap.pass(Way::To, || Bytes::copy_from_slice(text.as_bytes()));
        pass("before anybody looks");
        let (frames, kept) = traces.of("s").look(LIMITS, None);
        assert!(frames.is_empty() && !kept);
        for number in 0..5 {
            pass(&format!(r#"{{"id":{number},"method":"m","pw":"hunter22","x":"0123456789"}}"#));
        }
        let (frames, kept) = traces.of("s").look(LIMITS, Some(2));
        assert!(kept);
        let ids: Vec<_> = frames.iter().filter_map(Frame::id).collect();
        assert_eq!(ids, ["3", "4"]);
        assert_eq!(frames[0].method().as_deref(), Some("m"));
        assert_eq!(
            frames[0].text(),
            (r#"{"id":3,"method":"m","pw":"***","x":"012"#.to_owned(), true)
        );
        tokio::time::advance(LIMITS.linger).await;
        pass("nobody looks any more");
        let (frames, kept) = traces.of("s").look(LIMITS, None);
        assert!(frames.is_empty() && !kept);
    }

    #[tokio::test(start_paused = true)]
    async fn who_follows_gets_each_once() {
        let traces = Traces::default();
        let (tap, trace) = (tap(&traces), traces.of("s"));
        let (frames, mut reader) = trace.follow(LIMITS, None);
        assert!(frames.is_empty());
        tokio::time::advance(LIMITS.linger * 2).await;
        tap.pass(Way::From, || Bytes::from_static(b"one"));
        tap.pass(Way::To, || Bytes::from_static(b"two"));
        let texts = |frames: Vec<Frame>| frames.iter().map(|one| one.text().0).collect::<Vec<_>>();
        assert_eq!(texts(reader.next().await), ["one", "two"]);
        tap.pass(Way::To, || Bytes::from_static(b"three"));
        assert_eq!(texts(reader.next().await), ["three"]);
    }

    #[test]
    fn what_is_always_kept_is_there_at_once() {
        let traces = Traces::default();
        traces.of("s").configure(TraceSettings { keep: true, ..LIMITS });
        tap(&traces).pass(Way::From, || Bytes::from_static(b"x"));
        assert_eq!(traces.of("s").ring().frames.len(), 1);
    }
}
