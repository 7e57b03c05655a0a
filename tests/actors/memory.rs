//! Upstreams in memory, so that a paused clock can run through hours of crashes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpx::actors::instance::connect::{Connect, Connected, Exiting, Process};
use mcpx::transport::clock;
use mcpx::transport::link::{Link, LinkEvent};
use mcpx::transport::stdio::child::{ExitReport, SpawnError, SpawnSpec, StopLadder};
use mcpx::transport::stdio::ring::StderrRing;
use serde_json::{Value, json};
use tokio::sync::watch;

/// How one start behaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Script {
    /// There is no such program.
    pub missing: bool,
    /// It ends at once.
    pub exits: bool,
    /// It never answers the opening.
    pub mute: bool,
    /// It takes so long over its handshake.
    pub opens_after: Duration,
    /// What it does when it is asked for its tools.
    pub list: ListScript,
    /// It ends so long after its handshake.
    pub dies_after: Option<Duration>,
    /// It answers nothing any more so long after its handshake.
    pub wedges_after: Option<Duration>,
}

/// How a list is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListScript {
    /// With one tool.
    #[default]
    Given,
    /// With an error the first time.
    RefusedFirst,
    /// Not at all.
    Mute,
    /// By dying so long after the question.
    Deadly(Duration),
}

/// Makes memory links to servers that follow a script.
#[derive(Debug, Default)]
pub struct Memory {
    script: Mutex<Script>,
    /// Scripts of servers that run in these folders.
    local: Mutex<HashMap<PathBuf, Script>>,
    starts: Mutex<Vec<std::time::Instant>>,
    alive: Arc<AtomicUsize>,
    /// How often all have been killed.
    killed: watch::Sender<u32>,
}

impl Memory {
    /// Whose servers all follow `script`.
    pub fn new(script: Script) -> Arc<Self> {
        let memory = Self::default();
        memory.follow(script);
        Arc::new(memory)
    }

    /// From now on.
    pub fn follow(&self, script: Script) {
        *self.script.lock().unwrap() = script;
    }

    /// From now on, where a server runs in `folder`.
    pub fn follow_in(&self, folder: &str, script: Script) {
        self.local.lock().unwrap().insert(folder.into(), script);
    }

    /// Ends all that run.
    pub fn kill_all(&self) {
        self.killed.send_modify(|times| *times += 1);
    }

    /// When servers were started, since the first.
    pub fn starts(&self) -> Vec<Duration> {
        let starts = self.starts.lock().unwrap();
        starts.iter().map(|at| *at - starts[0]).collect()
    }

    /// How many are alive.
    pub fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
pub struct MemoryProcess {
    ended: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
    ring: StderrRing,
}

fn report() -> ExitReport {
    ExitReport { text: "exited with status 1".to_owned(), code: Some(1), rung: Some("stdin") }
}

impl Process for MemoryProcess {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn stderr(&self) -> StderrRing {
        self.ring.clone()
    }

    fn exited(&mut self) -> Exiting<'_> {
        Box::pin(async {
            let _ = self.ended.wait_for(|ended| *ended).await;
            report()
        })
    }

    fn stop(mut self: Box<Self>, _ladder: StopLadder) -> Exiting<'static> {
        self.stop.send_replace(true);
        Box::pin(async move {
            let _ = self.ended.wait_for(|ended| *ended).await;
            report()
        })
    }
}

impl Connect for Memory {
    fn connect(&self, spec: &SpawnSpec) -> Result<Connected, SpawnError> {
        self.starts.lock().unwrap().push(clock::now());
        let local = self.local.lock().unwrap().get(&spec.cwd).copied();
        let script = local.unwrap_or(*self.script.lock().unwrap());
        if script.missing {
            let program = spec.program.to_string_lossy().into_owned();
            return Err(SpawnError::NotFound { program, path: "/bin".to_owned() });
        }
        let alive = Alive::new(&self.alive);
        let mut killed = self.killed.subscribe();
        Ok(connected(spec, |link| async move {
            let _alive = alive;
            tokio::select! {
                () = serve(link, script) => {}
                _ = killed.changed() => {}
            }
        }))
    }
}

/// Counts a server, however it ends.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A connection to a server that runs as long as the future that `serve` makes of its link.
pub fn connected<F: Future<Output = ()> + Send + 'static>(
    spec: &SpawnSpec,
    serve: impl FnOnce(Link) -> F,
) -> Connected {
    let (ours, theirs) = Link::pair(spec.link);
    let (has_ended, ended) = watch::channel(false);
    let (stop, mut stopped) = watch::channel(false);
    let served = serve(theirs);
    tokio::spawn(async move {
        tokio::select! {
            () = served => {}
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
        let _ = has_ended.send(true);
    });
    let process = Box::new(MemoryProcess { ended, stop, ring: StderrRing::new(spec.stderr) });
    Connected { link: ours, drain: None, process }
}

async fn serve(link: Link, script: Script) {
    if script.exits {
        return;
    }
    let Link { mut reader, sender, writer } = link;
    let writing = tokio::spawn(writer.run());
    let mut ready_at = None;
    let mut readings = 0;
    loop {
        let death = async {
            match (ready_at, script.dies_after) {
                (Some(at), Some(after)) => {
                    tokio::time::sleep_until(tokio::time::Instant::from_std(at + after)).await;
                }
                _ => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            event = reader.next() => event,
            () = death => break,
        };
        let LinkEvent::Frame(frame) = event else { break };
        let message: Value = serde_json::from_slice(&frame).unwrap();
        let wedged =
            ready_at.zip(script.wedges_after).is_some_and(|(at, after)| clock::now() >= at + after);
        if script.mute || wedged || message.get("id").is_none() {
            continue;
        }
        let id = &message["id"];
        let result = match message["method"].as_str().unwrap() {
            "initialize" => {
                tokio::time::sleep(script.opens_after).await;
                ready_at = Some(clock::now());
                json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "memory", "version": "1"},
                })
            }
            "tools/list" if script.list == ListScript::Mute => continue,
            "tools/list" if script.list == ListScript::RefusedFirst && readings == 0 => {
                readings += 1;
                let error = json!({"code": -32603, "message": "not now"});
                let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
                sender.send(bytes::Bytes::from(answer.to_string())).await.unwrap();
                continue;
            }
            "tools/list" if let ListScript::Deadly(after) = script.list => {
                tokio::time::sleep(after).await;
                break;
            }
            "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
            "tools/call" => json!({"content": [{"type": "text", "text": "called"}]}),
            "ping" => json!({}),
            other => {
                let error = json!({"code": -32601, "message": format!("no method {other}")});
                let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
                sender.send(bytes::Bytes::from(answer.to_string())).await.unwrap();
                continue;
            }
        };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        if sender.send(bytes::Bytes::from(answer.to_string())).await.is_err() {
            break;
        }
    }
    drop(sender);
    writing.abort();
}
