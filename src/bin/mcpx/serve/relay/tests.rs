//! The relay between in-memory links, under a paused clock: F47, H-33, H-34.

use std::sync::{Arc, Mutex};

use mcpx::protocol::jsonrpc::RawJson;
use mcpx::protocol::session::shim::ShimConfig;
use mcpx::transport::link::LinkLimits;
use serde_json::Value;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const LIMITS: LinkLimits =
    LinkLimits { max_frame: 10_000, write_queue: 4, write_queue_bytes: 40_000 };

/// What a dial finds: a link, or why there is none.
type Found = Result<Link, DialFailed>;

/// The far ends: a host and the daemons that a dial finds, one after another.
struct Rig {
    host: Far,
    world: Arc<Mutex<World>>,
    relay: JoinHandle<()>,
    hangs_up: Option<tokio::sync::oneshot::Sender<()>>,
}

#[derive(Default)]
struct World {
    /// A daemon listens.
    up: bool,
    /// Why it cannot be started, where it cannot.
    broken: Option<&'static str>,
    /// Far ends of accepted dials.
    accepted: VecDeque<Far>,
    dials: Vec<Wanted>,
    remarks: Vec<String>,
}

/// One far end of a link.
struct Far {
    reader: LinkReader,
    sender: Option<LinkSender>,
    writer: JoinHandle<String>,
}

impl Far {
    fn new(link: Link) -> Self {
        let Link { reader, sender, writer } = link;
        Self { reader, sender: Some(sender), writer: task::spawn_named("far", writer.run()) }
    }

    fn say(&self, text: &str) -> impl Future<Output = ()> + use<> {
        let frame = Bytes::copy_from_slice(text.as_bytes());
        let sender = self.sender.clone().unwrap();
        async move { sender.send(frame).await.unwrap() }
    }

    async fn hears(&mut self) -> String {
        match self.reader.next().await {
            LinkEvent::Frame(frame) => String::from_utf8(frame.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    async fn hears_json(&mut self) -> Value {
        serde_json::from_str(&self.hears().await).unwrap()
    }

    /// The other side has ended its stream.
    async fn hears_the_end(&mut self) {
        let event = self.reader.next().await;
        assert!(matches!(event, LinkEvent::Closed { .. }), "{event:?}");
    }

    /// Nothing comes for a while.
    async fn hears_nothing(&mut self) {
        let quiet = tokio::time::timeout(SECOND, self.reader.next()).await;
        assert!(quiet.is_err(), "{quiet:?}");
    }

    /// Ends our side, behind what was said.
    async fn end(&mut self) {
        self.sender = None;
        let _ = (&mut self.writer).await;
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

impl Rig {
    fn new() -> Self {
        let (near, far) = Link::pair(LIMITS);
        let session = ShimSession::new(ShimConfig {
            grace: 30 * SECOND,
            hold_frames: 100,
            hold_bytes: 100_000,
            info: RawJson::write(&serde_json::json!({"name": "mcpx", "version": "1"})),
            how_to_start: "Run `mcpx daemon`.".to_owned(),
        });
        let rules = Rules {
            backoff: Backoff { step: SECOND / 20, max: 2 * SECOND },
            end_grace: 2 * SECOND,
            max_frame: LIMITS.max_frame,
            backlog: 100,
        };
        let world = Arc::new(Mutex::new(World { up: true, ..World::default() }));
        let (dialled, remarked) = (Arc::clone(&world), Arc::clone(&world));
        let dial = move |wanted: Wanted| {
            let world = Arc::clone(&dialled);
            Box::pin(async move {
                tokio::time::sleep(SECOND / 1000).await;
                world.lock().unwrap().dialled(wanted)
            })
        };
        let remark = move |text: &str| remarked.lock().unwrap().remarks.push(text.to_owned());
        let (hangs_up, hung_up) = tokio::sync::oneshot::channel();
        let hung_up = async { _ = hung_up.await };
        let relay = task::spawn_named("relay", run(near, session, rules, dial, remark, hung_up));
        Self { host: Far::new(far), world, relay, hangs_up: Some(hangs_up) }
    }

    /// With a daemon and the handshake of a legacy host behind it.
    async fn connected() -> (Self, Far) {
        let mut rig = Self::new();
        let mut daemon = rig.daemon().await;
        rig.host.say(INITIALIZE).await;
        assert_eq!(daemon.hears().await, INITIALIZE);
        daemon.say(INITIALIZED).await;
        assert_eq!(rig.host.hears().await, INITIALIZED);
        (rig, daemon)
    }

    /// The next daemon that was dialled; it says its view first, as daemons do.
    async fn daemon(&self) -> Far {
        loop {
            let found = self.world.lock().unwrap().accepted.pop_front();
            if let Some(far) = found {
                far.say("#view one").await;
                return far;
            }
            tokio::time::sleep(SECOND / 1000).await;
        }
    }

    fn world(&self) -> std::sync::MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// The relay has ended, within `limit` from now.
    async fn ends_within(self, limit: Duration) {
        let ended = tokio::time::timeout(limit, self.relay).await;
        ended.expect("the shim does not leave").unwrap();
    }
}

impl World {
    fn dialled(&mut self, wanted: Wanted) -> Found {
        let start = wanted.start;
        self.dials.push(wanted);
        if !self.up
            && start
            && let Some(why) = self.broken
        {
            return Err(DialFailed { text: why.to_owned(), lasting: true });
        }
        if !self.up {
            return Err(DialFailed { text: "no daemon listens".to_owned(), lasting: false });
        }
        let (near, far) = Link::pair(LIMITS);
        self.accepted.push_back(Far::new(far));
        Ok(near)
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}"#;
const INITIALIZED: &str =
    r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;

fn call(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#)
}

fn done(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#)
}

fn reason(answer: &Value) -> &str {
    answer["result"]["_meta"]["dev.mcpx/reason"].as_str().unwrap_or_default()
}

/// F47: idle restart; the gap's call waits and succeeds; the handshake is repeated unseen.
#[tokio::test(start_paused = true)]
async fn f47_a_restart_in_the_idle_is_invisible_and_the_gap_waits() {
    let (mut rig, daemon) = Rig::connected().await;
    rig.world().up = false;
    drop(daemon);
    tokio::time::sleep(3 * SECOND).await;
    rig.host.say(&call(1)).await;
    rig.host.hears_nothing().await;
    rig.world().up = true;
    let mut daemon = rig.daemon().await;
    let repeated = daemon.hears_json().await;
    assert_eq!(
        (&repeated["id"], &repeated["method"]),
        (&"mcpx-shim-1".into(), &"initialize".into())
    );
    daemon.say(&INITIALIZED.replace("\"id\":0", "\"id\":\"mcpx-shim-1\"")).await;
    assert_eq!(daemon.hears().await, call(1));
    daemon.say(&done(1)).await;
    assert_eq!(rig.host.hears().await, done(1));
    // The new daemon was told which list the host has seen.
    let last = rig.world().dials.last().cloned();
    assert_eq!(last.unwrap().view.as_deref(), Some("one"));
    rig.host.end().await;
    rig.ends_within(SECOND).await;
}

/// F47: what was in flight is told "outcome unknown" at once, not after some silence.
#[tokio::test(start_paused = true)]
async fn f47_in_flight_at_a_kill_is_outcome_unknown() {
    let (mut rig, mut daemon) = Rig::connected().await;
    rig.host.say(&call(1)).await;
    daemon.hears().await;
    rig.world().up = false;
    let before = clock::now();
    drop(daemon);
    assert_eq!(reason(&rig.host.hears_json().await), "outcome_unknown");
    assert!(clock::now() - before < SECOND);
}

/// F47: 60 s without a daemon: an error that says how to start it; later calls work.
#[tokio::test(start_paused = true)]
async fn f47_a_minute_without_a_daemon() {
    let (mut rig, daemon) = Rig::connected().await;
    rig.world().up = false;
    drop(daemon);
    let before = clock::now();
    rig.host.say(&call(1)).await;
    let told = rig.host.hears_json().await;
    assert_eq!(reason(&told), "unavailable");
    assert!(told["result"]["content"][0]["text"].as_str().unwrap().contains("mcpx daemon`"));
    assert!((30 * SECOND..31 * SECOND).contains(&(clock::now() - before)));
    tokio::time::sleep(30 * SECOND).await;
    let tries = rig.world().dials.len();
    assert!((15..120).contains(&tries), "{tries} dials in a minute");
    rig.world().up = true;
    rig.host.say(&call(2)).await;
    let mut daemon = rig.daemon().await;
    daemon.hears().await;
    assert_eq!(daemon.hears().await, call(2));
}

/// Nothing is started for an idle host; the first call that waits dials at once, and starts one.
#[tokio::test(start_paused = true)]
async fn h34_a_daemon_is_started_again_only_when_it_is_needed() {
    let (mut rig, daemon) = Rig::connected().await;
    rig.world().up = false;
    drop(daemon);
    tokio::time::sleep(60 * SECOND).await;
    let (first, later) = {
        let world = rig.world();
        let (first, later) = world.dials.split_first().unwrap();
        (first.start, later.iter().filter(|wanted| wanted.start).count())
    };
    assert!(first, "the first one is wanted in any case");
    assert_eq!(later, 0);
    let before = clock::now();
    rig.host.say(&call(1)).await;
    while !rig.world().dials.last().unwrap().start {
        tokio::time::sleep(SECOND / 1000).await;
    }
    assert!(clock::now() - before < SECOND / 10, "it rested on");
    rig.world().up = true;
    let mut daemon = rig.daemon().await;
    daemon.hears().await;
    assert_eq!(daemon.hears().await, call(1));
    rig.host.end().await;
}

/// A daemon that cannot start is told at once, to the host and once to its user; when it has been
/// mended, later calls work.
#[tokio::test(start_paused = true)]
async fn f47_a_daemon_that_cannot_start() {
    let mut rig = Rig::new();
    {
        let mut world = rig.world();
        (world.up, world.broken) = (false, Some("c.toml:1:1: unknown key"));
    }
    let before = clock::now();
    rig.host.say(INITIALIZE).await;
    let told = rig.host.hears_json().await;
    assert!(told["error"]["message"].as_str().unwrap().contains("c.toml:1:1"), "{told}");
    rig.host.say(&call(1)).await;
    assert_eq!(reason(&rig.host.hears_json().await), "unavailable");
    assert!(clock::now() - before < SECOND);
    assert_eq!(rig.world().remarks, ["c.toml:1:1: unknown key"]);
    rig.world().up = true;
    let mut daemon = rig.daemon().await;
    rig.host.say(INITIALIZE).await;
    assert_eq!(daemon.hears().await, INITIALIZE);
}

/// A deliberate restart with a call in flight: the old daemon answers it, the new one the rest.
#[tokio::test(start_paused = true)]
async fn h34_a_drain_loses_nothing() {
    let (mut rig, mut old) = Rig::connected().await;
    rig.host.say(&call(1)).await;
    old.hears().await;
    old.say("#drain").await;
    old.hears_the_end().await;
    rig.host.say(&call(2)).await;
    tokio::time::sleep(5 * SECOND).await;
    old.say(&done(1)).await;
    assert_eq!(rig.host.hears().await, done(1));
    assert!(rig.world().accepted.is_empty(), "it waits for the old one's end");
    old.end().await;
    drop(old);
    let mut new = rig.daemon().await;
    new.hears().await;
    assert_eq!(new.hears().await, call(2));
    new.say(&done(2)).await;
    assert_eq!(rig.host.hears().await, done(2));
}

/// A daemon that takes connections and drops them is not dialled in a tight loop.
#[tokio::test(start_paused = true)]
async fn a_door_that_opens_and_shuts_is_not_hammered() {
    let rig = Rig::new();
    let until = clock::now() + 60 * SECOND;
    while clock::now() < until {
        rig.world().accepted.clear();
        tokio::time::sleep(SECOND / 1000).await;
    }
    let tries = rig.world().dials.len();
    assert!((15..120).contains(&tries), "{tries} dials in a minute");
}

/// H-33: without anything open the shim leaves at once.
#[tokio::test(start_paused = true)]
async fn h33_leaves_at_the_end_of_input() {
    let (mut rig, mut daemon) = Rig::connected().await;
    // A stream of news does not keep it.
    rig.host.say(r#"{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen"}"#).await;
    daemon.hears().await;
    rig.host.end().await;
    rig.host.hears_the_end().await;
    daemon.hears_the_end().await;
    rig.ends_within(SECOND / 10).await;
}

/// H-33: an answer that comes soon is still written; one that does not is not waited for.
#[tokio::test(start_paused = true)]
async fn h33_what_is_in_flight_at_the_end_has_its_grace() {
    let (mut rig, mut daemon) = Rig::connected().await;
    rig.host.say(&call(1)).await;
    rig.host.end().await;
    assert_eq!(daemon.hears().await, call(1));
    tokio::time::sleep(SECOND).await;
    daemon.say(&done(1)).await;
    assert_eq!(rig.host.hears().await, done(1));
    rig.ends_within(SECOND / 10).await;

    let (mut rig, mut daemon) = Rig::connected().await;
    rig.host.say(&call(1)).await;
    rig.host.end().await;
    daemon.hears().await;
    let before = clock::now();
    rig.ends_within(3 * SECOND).await;
    assert!(clock::now() - before >= SECOND);
}

/// H-33: nobody reads the answers of a host that has gone on both sides.
#[tokio::test(start_paused = true)]
async fn h33_a_host_that_closed_both_sides_is_left_at_once() {
    let (mut rig, mut daemon) = Rig::connected().await;
    rig.host.say(&call(1)).await;
    rig.hangs_up.take().unwrap().send(()).unwrap();
    assert_eq!(daemon.hears().await, call(1));
    rig.host.say(&call(2)).await;
    assert_eq!(daemon.hears().await, call(2), "what it asks is still done");
    rig.host.end().await;
    rig.ends_within(SECOND / 10).await;
}

/// H-33: all of the input may come, and end, before there is a daemon.
#[tokio::test(start_paused = true)]
async fn h33_input_that_ends_before_the_daemon_is_there() {
    let mut rig = Rig::new();
    rig.world().up = false;
    rig.host.say(INITIALIZE).await;
    rig.host.say(&call(1)).await;
    rig.host.end().await;
    tokio::time::sleep(SECOND / 2).await;
    rig.world().up = true;
    let mut daemon = rig.daemon().await;
    assert_eq!(daemon.hears().await, INITIALIZE);
    assert_eq!(daemon.hears().await, call(1));
    daemon.say(INITIALIZED).await;
    daemon.say(&done(1)).await;
    assert_eq!(rig.host.hears().await, INITIALIZED);
    assert_eq!(rig.host.hears().await, done(1));
    rig.ends_within(SECOND / 10).await;
}

/// A host that takes nothing more is gone, whatever it still says.
#[tokio::test(start_paused = true)]
async fn a_host_that_hung_up_is_left() {
    let (rig, daemon) = Rig::connected().await;
    let Rig { host, relay, .. } = rig;
    drop(host);
    daemon.say(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
    tokio::time::timeout(SECOND, relay).await.unwrap().unwrap();
}

/// A host that writes many calls before it reads an answer, and a daemon that answers them all at
/// once: neither side waits for the other, nothing is lost, order is kept.
#[tokio::test(start_paused = true)]
async fn neither_direction_waits_for_the_other() {
    const CALLS: u32 = 500;
    let (mut rig, mut daemon) = Rig::connected().await;
    let answering = task::spawn_named("daemon", async move {
        for id in 1..=CALLS {
            assert_eq!(daemon.hears().await, call(id));
        }
        for id in 1..=CALLS {
            daemon.say(&done(id)).await;
        }
        daemon
    });
    for id in 1..=CALLS {
        rig.host.say(&call(id)).await;
    }
    tokio::time::sleep(10 * SECOND).await;
    for id in 1..=CALLS {
        assert_eq!(rig.host.hears().await, done(id));
    }
    drop(answering.await.unwrap());
}
