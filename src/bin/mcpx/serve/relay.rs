//! Moves frames between a host and whichever daemon there is, by the word of a [`ShimSession`].
//!
//! - Neither direction waits for the other: a host that does not read is not written to, and for that
//!   nothing more is read from the daemon, while the host's own frames go on; and the reverse.
//! - A daemon that is gone is dialled again with growing pauses. It is *started* again only when
//!   something waits for it: who stops the daemon does not want it back before it is needed.
//! - At the end of the host's input what it asked may still be answered, for `shim.end_grace`; a host
//!   that has closed our output as well is left at once (H-33).

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpx::protocol::session::backoff::Backoff;
use mcpx::protocol::session::shim::{ShimOutput, ShimSession};
use mcpx::transport::link::{Link, LinkEvent, LinkReader, LinkSender, LinkWriter};
use mcpx::transport::{clock, task};
use tokio::task::JoinHandle;
use tokio::time::sleep_until;

/// Limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// The pauses of dialling (`shim.redial_step`, `shim.redial_max`).
    pub(crate) backoff: Backoff,
    /// How long answers may still come once the host has closed its side (`shim.end_grace`).
    pub(crate) end_grace: Duration,
    /// `link.max_frame`.
    pub(crate) max_frame: usize,
    /// Answers of our own that may wait for a host that does not read (`shim.hold_frames`).
    pub(crate) backlog: usize,
}

/// What to dial for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The list of tools that the host has been shown.
    pub(crate) view: Option<String>,
    /// Whether a daemon is to be started where there is none.
    pub(crate) start: bool,
}

/// Why there is no daemon.
#[derive(Debug)]
pub(crate) struct DialFailed {
    /// For people.
    pub(crate) text: String,
    /// Whether waiting is pointless before somebody mends something.
    pub(crate) lasting: bool,
}

/// Relays until the host has gone. `dial` reaches for a daemon; `remark` is told what the host's user
/// should know.
pub(crate) async fn run<F>(
    host: Link,
    session: ShimSession,
    rules: Rules,
    dial: impl FnMut(Wanted) -> Pin<Box<F>>,
    remark: impl FnMut(&str),
    hung_up: impl Future<Output = ()>,
) where
    F: Future<Output = Result<Link, DialFailed>>,
{
    let Link { reader, sender, writer } = host;
    let relay = Relay {
        session,
        rules,
        dial,
        remark,
        host: reader,
        to_host: Outlet::new("to-host", sender, writer),
        daemon: Daemon::Resting { until: None },
        dialled_before: false,
        failures: 0,
        told: String::new(),
        end: None,
    };
    relay.run(pin!(hung_up)).await;
}

struct Relay<F, D, R> {
    session: ShimSession,
    rules: Rules,
    dial: D,
    remark: R,
    host: LinkReader,
    to_host: Outlet,
    daemon: Daemon<F>,
    dialled_before: bool,
    /// Tries in a row that gave no daemon.
    failures: u32,
    /// The last failure that was remarked, so that it is said once.
    told: String,
    /// Set when the host's input has ended: when to leave at the latest.
    end: Option<Instant>,
}

/// The daemon's side.
enum Daemon<F> {
    /// Dialled again at this moment; `None` is now.
    Resting { until: Option<Instant> },
    /// Being dialled.
    Dialling { dial: Pin<Box<F>>, start: bool },
    /// There.
    Attached(Box<Attached>),
}

/// A connection to a daemon.
struct Attached {
    reader: LinkReader,
    outlet: Outlet,
}

enum Event {
    /// From the host.
    Host(LinkEvent),
    /// The host takes nothing more.
    HostGone,
    /// From the daemon.
    Daemon(LinkEvent),
    /// The dial is through.
    Dialled(Result<Link, DialFailed>),
    /// The rest is over.
    Rested,
    /// There is room in a queue, or a deadline has come.
    Again,
}

impl<F, D, R> Relay<F, D, R>
where
    F: Future<Output = Result<Link, DialFailed>>,
    D: FnMut(Wanted) -> Pin<Box<F>>,
    R: FnMut(&str),
{
    async fn run(mut self, mut hung_up: Pin<&mut impl Future<Output = ()>>) {
        loop {
            self.pump();
            if self.is_over() {
                break;
            }
            // One that has only closed our output may still want done what it asks for.
            let ending = self.end.is_some();
            let event = tokio::select! {
                event = self.next() => event,
                () = hung_up.as_mut(), if ending => Event::HostGone,
            };
            let now = match event {
                Event::HostGone => return,
                event => self.act_on(event),
            };
            self.session_timeout(now);
        }
        // What has been said is still written, as long as the host takes it.
        self.to_host.close();
        if let Some(end) = self.end {
            let _ = tokio::time::timeout_at(end.into(), &mut self.to_host.writer).await;
        }
    }

    /// Whether the host's input has ended and nothing more will come, or not in time.
    fn is_over(&self) -> bool {
        let Some(end) = self.end else { return false };
        let idle = self.session.awaited_requests() == 0 && self.to_host.backlog.is_empty();
        idle || clock::now() >= end
    }

    async fn next(&mut self) -> Event {
        let deadline = [self.session.poll_deadline(), self.end].into_iter().flatten().min();
        let deadline = async {
            match deadline {
                Some(at) => sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        // A host that reads nothing is read from all the same, or it could never finish writing;
        // while no daemon is there, as far as what we have to say to it is bounded.
        let read_host = self.end.is_none()
            && self.to_host.backlog.len() <= self.rules.backlog
            && self.daemon.has_room();
        let read_daemon = self.to_host.backlog.is_empty();
        let Outlet { sender, writer, .. } = &mut self.to_host;
        tokio::select! {
            event = self.host.next(), if read_host => Event::Host(event),
            event = self.daemon.next(read_daemon) => event,
            () = sender.room(), if !read_daemon => Event::Again,
            _ = writer => Event::HostGone,
            () = deadline => Event::Again,
        }
    }

    /// Hands one event to the session; returns the moment it happened.
    fn act_on(&mut self, event: Event) -> Instant {
        let now = clock::now();
        let limit = self.rules.max_frame;
        match event {
            Event::Host(LinkEvent::Frame(frame)) => {
                let waiting = self.session.open_requests();
                self.session.handle_host_frame(now, frame);
                if waiting == 0 && self.session.open_requests() > 0 {
                    self.daemon.needed(&mut self.failures);
                }
            }
            Event::Host(LinkEvent::TooLarge { head, bytes }) => {
                self.session.handle_host_oversized(&head, bytes, limit);
            }
            Event::Host(LinkEvent::Closed { .. }) => self.end = Some(now + self.rules.end_grace),
            Event::Daemon(LinkEvent::Frame(frame)) => {
                // It takes more than an open door to be a daemon that works.
                self.failures = 0;
                self.session.handle_daemon_frame(now, frame);
            }
            Event::Daemon(LinkEvent::TooLarge { head, bytes }) => {
                self.session.handle_daemon_oversized(&head, bytes, limit);
            }
            Event::Daemon(LinkEvent::Closed { .. }) => self.lost(now),
            Event::Rested => self.start_dialling(),
            Event::Dialled(dialled) => self.dialled(now, dialled),
            Event::HostGone | Event::Again => {}
        }
        now
    }

    fn session_timeout(&mut self, now: Instant) {
        if self.session.poll_deadline().is_some_and(|at| at <= now) {
            self.session.handle_timeout(now);
        }
    }

    /// Executes what the session wants.
    fn pump(&mut self) {
        while let Some(output) = self.session.poll_output() {
            match (output, &mut self.daemon) {
                (ShimOutput::ToHost(frame), _) => self.to_host.send(frame),
                (ShimOutput::ToDaemon(frame), Daemon::Attached(there)) => {
                    there.outlet.send(frame);
                }
                (ShimOutput::CloseOurSide, Daemon::Attached(there)) => there.outlet.close(),
                (ShimOutput::Notice(notice), _) => (self.remark)(&notice.text),
                // The session sends only while it is attached.
                (ShimOutput::ToDaemon(_) | ShimOutput::CloseOurSide, _) => {}
            }
        }
        self.to_host.flush();
        if let Daemon::Attached(there) = &mut self.daemon {
            there.outlet.flush();
        }
    }

    fn start_dialling(&mut self) {
        // The first daemon is wanted in any case: the host starts us to use it.
        let first = !std::mem::replace(&mut self.dialled_before, true);
        let start = first || self.session.open_requests() > 0;
        let wanted = Wanted { view: self.session.view().map(str::to_owned), start };
        self.daemon = Daemon::Dialling { dial: (self.dial)(wanted), start };
    }

    fn dialled(&mut self, now: Instant, dialled: Result<Link, DialFailed>) {
        match dialled {
            Ok(Link { reader, sender, writer }) => {
                let outlet = Outlet::new("to-daemon", sender, writer);
                self.daemon = Daemon::Attached(Box::new(Attached { reader, outlet }));
                self.session.handle_attached(now);
            }
            Err(failed) => {
                let started = matches!(self.daemon, Daemon::Dialling { start: true, .. });
                let waiting = self.session.open_requests() > 0;
                // What began to wait during a dial that was to start nothing gets one that is.
                let again = waiting && !started;
                if waiting && !again && failed.text != self.told {
                    (self.remark)(&failed.text);
                    self.told.clone_from(&failed.text);
                }
                if failed.lasting && !again {
                    self.session.handle_unreachable(&failed.text);
                }
                self.rest(now, again);
            }
        }
    }

    fn lost(&mut self, now: Instant) {
        let old = std::mem::replace(&mut self.daemon, Daemon::Resting { until: None });
        if let Daemon::Attached(there) = old {
            // Stopped first, so that the count stays what it is.
            there.outlet.writer.abort();
            self.session.handle_lost_after(now, there.outlet.sender.frames_begun());
        }
        self.rest(now, self.failures == 0);
    }

    /// Waits before the next dial, unless `at_once`.
    fn rest(&mut self, now: Instant, at_once: bool) {
        let pause = self.rules.backoff.delay(self.failures, clock::random());
        self.failures = self.failures.saturating_add(1);
        self.daemon = Daemon::Resting { until: (!at_once).then(|| now + pause) };
    }
}

impl<F: Future<Output = Result<Link, DialFailed>>> Daemon<F> {
    async fn next(&mut self, may_read: bool) -> Event {
        match self {
            Self::Resting { until: None } => Event::Rested,
            Self::Resting { until: Some(until) } => {
                sleep_until((*until).into()).await;
                Event::Rested
            }
            Self::Dialling { dial, .. } => Event::Dialled(dial.await),
            Self::Attached(there) => {
                let Attached { reader, outlet } = &mut **there;
                let full = !outlet.backlog.is_empty();
                tokio::select! {
                    event = reader.next(), if may_read => Event::Daemon(event),
                    () = outlet.sender.room(), if full => Event::Again,
                    else => std::future::pending().await,
                }
            }
        }
    }

    /// Whether another frame for it may be read from the host. While it is away the session bounds
    /// what waits.
    fn has_room(&self) -> bool {
        !matches!(self, Self::Attached(there) if !there.outlet.backlog.is_empty())
    }

    /// Something waits for it now: no more resting.
    fn needed(&mut self, failures: &mut u32) {
        if let Self::Resting { until } = self {
            *until = None;
            *failures = 0;
        }
    }
}

/// The way out to one side: the link's queue, and before it what the session said in one go beyond
/// that.
struct Outlet {
    sender: LinkSender,
    writer: JoinHandle<String>,
    backlog: VecDeque<Bytes>,
    closing: bool,
}

impl Outlet {
    fn new(name: &'static str, sender: LinkSender, writer: LinkWriter) -> Self {
        let writer = task::spawn_named(name, writer.run());
        Self { sender, writer, backlog: VecDeque::new(), closing: false }
    }

    fn send(&mut self, frame: Bytes) {
        if self.backlog.is_empty() && self.sender.has_room() {
            // A writer that has ended is noticed by its own end.
            let _ = self.sender.try_send(frame);
        } else {
            self.backlog.push_back(frame);
        }
    }

    fn flush(&mut self) {
        while self.sender.has_room() {
            let Some(frame) = self.backlog.pop_front() else { break };
            let _ = self.sender.try_send(frame);
        }
        if self.backlog.is_empty() {
            self.backlog = VecDeque::new();
            if self.closing {
                self.sender.close();
            }
        }
    }

    /// Ends the stream behind what waits.
    fn close(&mut self) {
        self.closing = true;
        self.flush();
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

#[cfg(test)]
mod tests;
