//! Tasks of upstreams (U-57, T-10, T-17): of both forms, against scripted servers under a paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpx::actors::instance::connect::{Connect, Connected};
use mcpx::actors::pool::ongoing::{Called, News, Ongoing};
use mcpx::actors::upstreams::{CallWant, Reason, Refused};
use mcpx::protocol::jsonrpc::RawJson;
use mcpx::protocol::model::tasks::{EXTENSION, Support};
use mcpx::protocol::session::Answer;
use mcpx::protocol::session::upstream::TaskWant;
use mcpx::transport::clock;
use mcpx::transport::link::{Link, LinkEvent};
use mcpx::transport::stdio::child::{SpawnError, SpawnSpec};
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};

use crate::memory::connected;
use crate::stage::{Stage, bare, text, want};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What a server does with a request, at this time since the first: its result or its error, or
/// nothing for now.
type Play = dyn Fn(&Value, Duration) -> Option<Value> + Send + Sync;

/// A server in memory that plays.
struct Server {
    modern: bool,
    play: Box<Play>,
    heard: Mutex<Vec<(Duration, Value)>>,
    /// What it says by itself.
    says: broadcast::Sender<Value>,
    killed: watch::Sender<bool>,
    since: std::time::Instant,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Server")
    }
}

#[derive(Debug)]
struct Playing(Arc<Server>);

impl Connect for Playing {
    fn connect(&self, spec: &SpawnSpec) -> Result<Connected, SpawnError> {
        let server = Arc::clone(&self.0);
        Ok(connected(spec, |link| server.serve(link)))
    }
}

impl Server {
    fn new(
        modern: bool,
        play: impl Fn(&Value, Duration) -> Option<Value> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            modern,
            play: Box::new(play),
            heard: Mutex::default(),
            says: broadcast::channel(16).0,
            killed: watch::Sender::new(false),
            since: clock::now(),
        })
    }

    async fn serve(self: Arc<Self>, link: Link) {
        let Link { mut reader, sender, writer } = link;
        let writing = tokio::spawn(writer.run());
        let (mut said, mut killed) = (self.says.subscribe(), self.killed.subscribe());
        loop {
            tokio::select! {
                event = reader.next() => {
                    let LinkEvent::Frame(frame) = event else { break };
                    let message: Value = serde_json::from_slice(&frame).unwrap();
                    if let Some(mut answer) = self.answer(&message) {
                        answer["jsonrpc"] = json!("2.0");
                        answer["id"] = message["id"].clone();
                        sender.send(bytes::Bytes::from(answer.to_string())).await.unwrap();
                    }
                }
                message = said.recv() => {
                    sender.send(bytes::Bytes::from(message.unwrap().to_string())).await.unwrap();
                }
                _ = killed.changed() => break,
            }
        }
        drop(sender);
        writing.abort();
    }

    fn answer(&self, message: &Value) -> Option<Value> {
        let at = clock::now() - self.since;
        self.heard.lock().unwrap().push((at, message.clone()));
        message.get("id")?;
        let opening = match message["method"].as_str()? {
            "server/discover" if self.modern => json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}, "extensions": {EXTENSION: {}}},
                "ttlMs": 0,
                "cacheScope": "private",
            }),
            "initialize" if !self.modern => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}},
                "serverInfo": {"name": "s", "version": "1"},
            }),
            "tools/list" => json!({"resultType": "complete", "tools": []}),
            "server/discover" | "initialize" => {
                return Some(json!({"error": {"code": -32601, "message": "no"}}));
            }
            _ => return (self.play)(message, at),
        };
        Some(json!({ "result": opening }))
    }

    /// The requests of this method, and when they came.
    fn asked(&self, method: &str) -> Vec<(Duration, Value)> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|(_, message)| message["method"] == method).cloned().collect()
    }

    fn kill(&self) {
        self.killed.send_replace(true);
    }

    /// Waits until it has heard so many requests of this method.
    async fn hears(&self, method: &str, times: usize) {
        while self.asked(method).len() < times {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn stage(self: &Arc<Self>) -> Stage {
        let connect = Arc::new(Playing(Arc::clone(self)));
        let mut stage = Stage::with(connect, |settings| {
            settings.call.total = Duration::from_mins(10);
            settings.pool.park_after = 100;
        })
        .await;
        stage.serve(vec![bare("up")]).await;
        stage
    }
}

/// A task as the two forms tell it.
fn task(modern: bool, status: &str, more: Value) -> Value {
    let names = if modern { ["ttlMs", "pollIntervalMs"] } else { ["ttl", "pollInterval"] };
    let mut task = json!({
        "taskId": "t-1", "status": status,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
        names[0]: 60_000, names[1]: 2_000,
    });
    for (key, value) in more.as_object().unwrap() {
        task[key] = value.clone();
    }
    task
}

fn created(modern: bool) -> Value {
    let task = task(modern, "working", json!({}));
    if modern {
        let mut flat = task;
        flat["resultType"] = json!("task");
        return json!({ "result": flat });
    }
    json!({ "result": {"task": task} })
}

#[expect(clippy::unnecessary_wraps, reason = "one of the answers of a peer, which may give none")]
fn looked(modern: bool, status: &str, more: Value) -> Option<Value> {
    let mut task = task(modern, status, more);
    if modern {
        task["resultType"] = json!("complete");
    }
    Some(json!({ "result": task }))
}

fn done() -> Value {
    json!({ "content": [{"type": "text", "text": "worked"}] })
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn as_task(support: Support, eager: bool) -> CallWant {
    let task = TaskWant { ttl: seconds(90), support, eager };
    CallWant { task: Some(task), ..want("up", "work", json!({})) }
}

async fn ongoing(stage: &Stage, want: CallWant) -> Box<Ongoing> {
    match stage.upstreams.call(want).await.unwrap() {
        Called::Open(ongoing) => ongoing,
        Called::Done(answer) => panic!("over: {answer:?}"),
    }
}

/// Hears until the end; what came before it, in words.
async fn to_the_end(ongoing: &mut Ongoing) -> (Vec<String>, Result<Answer, Refused>) {
    let mut heard = Vec::new();
    loop {
        match ongoing.next().await {
            News::Done(answered) => return (heard, answered),
            News::Status(task) => heard.push(task.member_str("status").unwrap()),
            News::Asked { key, question } => {
                heard.push(format!("{key} {}", question.method));
                let said = json!({"action": "accept", "content": {"key": key}});
                ongoing.reply(&key, Ok(RawJson::write(&said)));
            }
            News::Withdrawn { key } => heard.push(format!("-{key}")),
        }
    }
}

/// U-57: a tool of 2025-11-25 that must be a task is called as one and waited for at the rhythm that its
/// server asks for; its result is fetched.
#[tokio::test(start_paused = true)]
async fn u57_a_required_task_of_2025_11_25() {
    let server = Server::new(false, |message, at| match message["method"].as_str()? {
        "tools/call" => Some(created(false)),
        "tasks/get" if at < seconds(9) => looked(false, "working", json!({})),
        "tasks/get" => looked(false, "completed", json!({})),
        "tasks/result" => Some(json!({ "result": done() })),
        other => panic!("{other}"),
    });
    let stage = server.stage().await;
    let answer = stage.upstreams.call_unattended(as_task(Support::Required, false)).await;
    assert_eq!(text(&answer.unwrap()), "worked");
    let calls = server.asked("tools/call");
    assert_eq!(calls[0].1["params"]["task"], json!({"ttl": 90_000}));
    let looks = server.asked("tasks/get");
    let at: Vec<u64> = looks.iter().map(|(at, _)| at.as_secs()).collect();
    assert_eq!(at, [2, 4, 6, 8, 10], "{looks:?}");
    assert_eq!(looks[0].1["params"], json!({"taskId": "t-1"}));
    assert!(server.asked("tasks/cancel").is_empty());
    stage.end().await;
}

/// U-57: what a tool of 2025-11-25 says of tasks is heeded, and what its server declared.
#[tokio::test(start_paused = true)]
async fn u57_t08_no_task_is_asked_for_where_there_is_none() {
    let server = Server::new(false, |_, _| Some(json!({ "result": done() })));
    let stage = server.stage().await;
    for (support, eager, asked) in [
        (Support::Unsaid, true, false),
        (Support::Forbidden, true, false),
        (Support::Optional, false, false),
        (Support::Optional, true, true),
        (Support::Required, false, true),
    ] {
        let answer = stage.upstreams.call_unattended(as_task(support, eager)).await;
        // Whatever was asked for: what is no task is a result.
        assert_eq!(text(&answer.unwrap()), "worked");
        let (_, call) = server.asked("tools/call").pop().unwrap();
        assert_eq!(call["params"].get("task").is_some(), asked, "{support:?} {eager}");
    }
    stage.end().await;
}

/// SEP-2663: the extension is declared for who wants a task, and again where the server can do it only so.
#[tokio::test(start_paused = true)]
async fn u57_the_extension_is_declared_where_it_is_needed() {
    let server = Server::new(true, |message, _| {
        let declared = &message["params"]["_meta"][CAPABILITIES]["extensions"][EXTENSION];
        let needed = json!({ "requiredCapabilities": {"extensions": {EXTENSION: {}}} });
        match message["method"].as_str()? {
            _ if declared.is_null() => Some(json!({
                "error": {"code": -32021, "message": "tasks are needed", "data": needed}
            })),
            "tools/call" => Some(created(true)),
            "tasks/get" => looked(true, "completed", json!({ "result": done() })),
            other => panic!("{other}"),
        }
    });
    let stage = server.stage().await;
    let answer = stage.upstreams.call_unattended(as_task(Support::Unsaid, false)).await;
    assert_eq!(text(&answer.unwrap()), "worked");
    assert_eq!(server.asked("tools/call").len(), 2);
    let answer = stage.upstreams.call_unattended(as_task(Support::Unsaid, true)).await;
    assert_eq!(text(&answer.unwrap()), "worked");
    assert_eq!(server.asked("tools/call").len(), 3);
    // Who cannot take a task is told what the server said.
    let answer = stage.upstreams.call_unattended(want("up", "work", json!({}))).await.unwrap();
    assert!(matches!(&answer, Answer::Error(error) if error.code == -32021), "{answer:?}");
    stage.end().await;
}

/// T-10: `isError` is completed in the newer form and failed in the older; either way it is the result
/// of the call. An error is failed in both.
#[tokio::test(start_paused = true)]
async fn t10_errors_of_tools_and_of_requests() {
    let wrong = json!({ "content": [], "isError": true });
    let error = json!({ "code": -32050, "message": "broken" });
    for modern in [true, false] {
        for (result, fails) in [(Ok(wrong.clone()), !modern), (Err(error.clone()), true)] {
            let given = result.clone();
            let status = if fails { "failed" } else { "completed" };
            let server =
                Server::new(modern, move |message, _| match message["method"].as_str()? {
                    "tools/call" => Some(created(modern)),
                    "tasks/get" if modern => match &given {
                        Ok(result) => looked(true, status, json!({ "result": result })),
                        Err(error) => looked(true, status, json!({ "error": error })),
                    },
                    "tasks/get" => looked(false, status, json!({})),
                    "tasks/result" => Some(match &given {
                        Ok(result) => json!({ "result": result }),
                        Err(error) => json!({ "error": error }),
                    }),
                    other => panic!("{other}"),
                });
            let stage = server.stage().await;
            let answer = stage.upstreams.call_unattended(as_task(Support::Required, true)).await;
            match (answer.unwrap(), result) {
                (Answer::Complete(got), Ok(_)) => {
                    assert_eq!(got.member("isError").unwrap().as_str(), "true");
                }
                (Answer::Error(got), Err(_)) => {
                    assert_eq!((got.code, got.message.as_str()), (-32050, "broken"));
                }
                (got, wanted) => panic!("{got:?} for {wanted:?}, modern: {modern}"),
            }
            stage.end().await;
        }
    }
}

/// Questions of the newer form: each is put once, answers go up by their keys, one that is no longer
/// asked is withdrawn.
#[tokio::test(start_paused = true)]
async fn u57_questions_of_the_extension() {
    let updates = Arc::new(Mutex::new(Vec::<Value>::new()));
    let taken = Arc::clone(&updates);
    let server = Server::new(true, move |message, at| {
        let ask = json!({"method": "elicitation/create", "params": {"message": "?"}});
        let mut taken = taken.lock().unwrap();
        match message["method"].as_str()? {
            "tools/call" => Some(created(true)),
            "tasks/update" => {
                taken.push(message["params"]["inputResponses"].clone());
                Some(json!({ "result": {"resultType": "complete"} }))
            }
            "tasks/get" if taken.len() > 1 => {
                looked(true, "completed", json!({ "result": done() }))
            }
            "tasks/get" if taken.len() == 1 && at > seconds(20) => {
                looked(true, "input_required", json!({ "inputRequests": {"b": ask} }))
            }
            "tasks/get" if taken.len() == 1 => looked(true, "working", json!({})),
            "tasks/get" => looked(true, "input_required", json!({ "inputRequests": {"a": ask} })),
            other => panic!("{other}"),
        }
    });
    let stage = server.stage().await;
    let mut open = ongoing(&stage, as_task(Support::Unsaid, true)).await;
    let (heard, answered) = to_the_end(&mut open).await;
    assert_eq!(text(&answered.unwrap()), "worked");
    assert_eq!(
        heard,
        [
            "working",
            "input_required",
            "a elicitation/create",
            "working",
            "input_required",
            "b elicitation/create"
        ],
    );
    let said = |key: &str| json!({ key: {"action": "accept", "content": {"key": key}} });
    assert_eq!(*updates.lock().unwrap(), [said("a"), said("b")]);
    stage.end().await;
}

/// What a server tells by itself makes mcpx look at once, in either form; not more often than
/// `tasks.poll_min`.
#[tokio::test(start_paused = true)]
async fn u57_notifications_shorten_the_wait() {
    for (modern, method) in [(true, "notifications/tasks"), (false, "notifications/tasks/status")] {
        let server = Server::new(modern, move |message, at| match message["method"].as_str()? {
            "tools/call" => Some(created(modern)),
            "tasks/get" if at < seconds(60) => {
                looked(modern, "working", json!({"pollIntervalMs": 50_000, "pollInterval": 50_000}))
            }
            "tasks/get" if modern => looked(true, "completed", json!({ "result": done() })),
            "tasks/get" => looked(false, "completed", json!({})),
            "tasks/result" => Some(json!({ "result": done() })),
            other => panic!("{other}"),
        });
        let stage = server.stage().await;
        let upstreams = stage.upstreams.clone();
        let call = tokio::spawn(async move {
            upstreams.call_unattended(as_task(Support::Required, true)).await
        });
        server.hears("tasks/get", 1).await;
        tokio::time::sleep(seconds(10)).await;
        let params = task(modern, "working", json!({}));
        for _ in 0..10 {
            server
                .says
                .send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
                .unwrap();
        }
        tokio::time::sleep(seconds(10)).await;
        let looks = server.asked("tasks/get").len();
        assert!((2..=3).contains(&looks), "{looks}");
        assert_eq!(text(&call.await.unwrap().unwrap()), "worked");
        stage.end().await;
    }
}

/// Who gives up cancels the task; so does the limit on a call in all, where a host waits.
#[tokio::test(start_paused = true)]
async fn u57_a_task_nobody_waits_for_is_cancelled() {
    for modern in [true, false] {
        let server = Server::new(modern, move |message, _| match message["method"].as_str()? {
            "tools/call" => Some(created(modern)),
            "tasks/get" => looked(modern, "working", json!({})),
            "tasks/cancel" => looked(modern, "cancelled", json!({})),
            other => panic!("{other}"),
        });
        let stage = server.stage().await;
        let mut open = ongoing(&stage, as_task(Support::Required, true)).await;
        assert!(matches!(open.next().await, News::Status(_)));
        drop(open);
        server.hears("tasks/cancel", 1).await;
        assert_eq!(server.asked("tasks/cancel")[0].1["params"]["taskId"], "t-1");

        let answer = stage.upstreams.call_unattended(as_task(Support::Required, false)).await;
        let Ok(Answer::TimedOut(limit)) = answer else { panic!("{answer:?}") };
        assert_eq!((limit.setting, limit.value.as_str()), ("call.total_timeout", "10m"));
        server.hears("tasks/cancel", 2).await;
        stage.end().await;
    }
}

/// A process that dies takes its tasks with it: what became of them is not known. The same for a task that
/// its server no longer knows.
#[tokio::test(start_paused = true)]
async fn u57_the_outcome_of_a_lost_task_is_unknown() {
    let server = Server::new(true, |message, _| match message["method"].as_str()? {
        "tools/call" => Some(created(true)),
        "tasks/get" => looked(true, "working", json!({})),
        other => panic!("{other}"),
    });
    let stage = server.stage().await;
    let mut open = ongoing(&stage, as_task(Support::Unsaid, true)).await;
    tokio::select! {
        _ = to_the_end(&mut open) => panic!("it goes on"),
        () = server.hears("tasks/get", 2) => {}
    }
    server.kill();
    let (_, answered) = to_the_end(&mut open).await;
    let refused = answered.unwrap_err();
    assert_eq!(refused.reason, Reason::OutcomeUnknown);
    assert!(refused.text.starts_with("outcome unknown: server `up`"), "{}", refused.text);
    stage.end().await;

    let server = Server::new(false, |message, at| match message["method"].as_str()? {
        "tools/call" => Some(created(false)),
        "tasks/get" if at < seconds(5) => looked(false, "working", json!({})),
        "tasks/get" => Some(json!({"error": {"code": -32602, "message": "Task has expired"}})),
        other => panic!("{other}"),
    });
    let stage = server.stage().await;
    let answered = stage.upstreams.call_unattended(as_task(Support::Required, false)).await;
    let refused = answered.unwrap_err();
    assert_eq!(refused.reason, Reason::OutcomeUnknown);
    assert!(refused.text.contains("Task has expired"), "{}", refused.text);
    stage.end().await;
}

/// A look that fails for the moment is made again; a server that answers `tasks/result` with an error
/// although its task goes on is asked again when that has ended.
#[tokio::test(start_paused = true)]
async fn u57_passing_failures_are_no_outcome() {
    let server = Server::new(false, |message, at| match message["method"].as_str()? {
        "tools/call" => Some(created(false)),
        "tasks/get" if at < seconds(3) => {
            Some(json!({"error": {"code": -32603, "message": "busy"}}))
        }
        "tasks/get" if at < seconds(20) => looked(false, "input_required", json!({})),
        "tasks/get" => looked(false, "completed", json!({})),
        "tasks/result" if at < seconds(20) => {
            Some(json!({"error": {"code": -32603, "message": "not ready"}}))
        }
        "tasks/result" => Some(json!({ "result": done() })),
        other => panic!("{other}"),
    });
    let stage = server.stage().await;
    let answer = stage.upstreams.call_unattended(as_task(Support::Required, false)).await;
    assert_eq!(text(&answer.unwrap()), "worked");
    stage.end().await;
}

/// A task of an earlier daemon is looked at again by its name, and one that is not known there any more is
/// told as such.
#[tokio::test(start_paused = true)]
async fn t18_a_task_is_taken_up_again() {
    let server = Server::new(true, |message, _| match message["method"].as_str()? {
        "tasks/get" if message["params"]["taskId"] == "kept" => {
            looked(true, "completed", json!({ "result": done() }))
        }
        "tasks/get" => Some(json!({"error": {"code": -32602, "message": "never heard of it"}})),
        other => panic!("{other}"),
    });
    let stage = server.stage().await;
    let resume = |id: &str| {
        let (upstreams, id) = (stage.upstreams.clone(), id.to_owned());
        let caller = crate::stage::nobody();
        async move { upstreams.resume_task(caller, &"up".into(), id).await }
    };
    let (_, answered) = to_the_end(&mut resume("kept").await.unwrap()).await;
    assert_eq!(text(&answered.unwrap()), "worked");
    let (_, answered) = to_the_end(&mut resume("lost").await.unwrap()).await;
    assert_eq!(answered.unwrap_err().reason, Reason::OutcomeUnknown);
    stage.end().await;
}
