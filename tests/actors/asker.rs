//! An upstream in memory that asks in the course of its calls, as a legacy one does: without a word
//! about which call it asks for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpx::actors::instance::connect::{Connect, Connected, Exiting, Process};
use mcpx::transport::link::{Link, LinkEvent, LinkSender};
use mcpx::transport::stdio::child::{ExitReport, SpawnError, SpawnSpec, StopLadder};
use mcpx::transport::stdio::ring::StderrRing;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// Makes links to servers that ask. Their tool `ask` takes a time before its question (`before`, in
/// milliseconds) and says `mark` in it; its result is what was answered. With `stays` it goes on
/// although it was told to cancel.
#[derive(Debug, Default)]
pub struct Asker {
    heard: Arc<Mutex<Vec<Value>>>,
}

impl Asker {
    /// What mcpx has written to all of them, in order.
    pub fn heard(&self) -> Vec<Value> {
        self.heard.lock().unwrap().clone()
    }

    /// The same with this method.
    pub fn heard_of(&self, method: &str) -> Vec<Value> {
        self.heard().into_iter().filter(|message| message["method"] == method).collect()
    }
}

#[derive(Debug)]
struct Running {
    ended: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
    ring: StderrRing,
}

fn report() -> ExitReport {
    ExitReport { text: "exited with status 0".to_owned(), code: Some(0), rung: Some("stdin") }
}

impl Process for Running {
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

impl Connect for Asker {
    fn connect(&self, spec: &SpawnSpec) -> Result<Connected, SpawnError> {
        let (ours, theirs) = Link::pair(spec.link);
        let (has_ended, ended) = watch::channel(false);
        let (stop, mut stopped) = watch::channel(false);
        let heard = Arc::clone(&self.heard);
        tokio::spawn(async move {
            tokio::select! {
                () = serve(theirs, heard) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
            let _ = has_ended.send(true);
        });
        let ring = StderrRing::new(spec.stderr);
        Ok(Connected { link: ours, drain: None, process: Box::new(Running { ended, stop, ring }) })
    }
}

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>;

async fn serve(link: Link, heard: Arc<Mutex<Vec<Value>>>) {
    let Link { mut reader, sender, writer } = link;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        writer.run().await;
    });
    let waiting = Waiting::default();
    let mut calls = HashMap::new();
    let mut asked = 0;
    while let LinkEvent::Frame(frame) = reader.next().await {
        let message: Value = serde_json::from_slice(&frame).unwrap();
        heard.lock().unwrap().push(message.clone());
        let id = message["id"].clone();
        let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
        let answer = match message["method"].as_str() {
            None => {
                let waits = id.as_u64().and_then(|id| waiting.lock().unwrap().remove(&id));
                if let Some(waits) = waits {
                    let _ = waits.send(message);
                }
                continue;
            }
            Some("initialize") => answer(json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "asker", "version": "1" },
            })),
            Some("tools/list") => answer(json!({ "tools": [] })),
            Some("tools/call") => {
                asked += 1;
                let stays = message["params"]["arguments"]["stays"] == true;
                let call = ask(asked, message, sender.clone(), Arc::clone(&waiting));
                let call = tasks.spawn(call);
                if !stays {
                    calls.insert(id.to_string(), call);
                }
                continue;
            }
            Some("notifications/cancelled") => {
                if let Some(call) = calls.remove(&message["params"]["requestId"].to_string()) {
                    call.abort();
                }
                continue;
            }
            Some(method) if method.starts_with("notifications/") => continue,
            Some(_) => answer(json!({})),
        };
        if sender.send(bytes::Bytes::from(answer.to_string())).await.is_err() {
            break;
        }
    }
}

async fn ask(number: u64, call: Value, sender: LinkSender, waiting: Waiting) {
    let arguments = &call["params"]["arguments"];
    let before = arguments["before"].as_u64().unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(before)).await;
    let mut said = "nothing".to_owned();
    if arguments["mark"].is_string() {
        let (tell, told) = oneshot::channel();
        waiting.lock().unwrap().insert(number, tell);
        let question = json!({ "jsonrpc": "2.0", "id": number, "method": "elicitation/create",
            "params": { "message": arguments["mark"],
                "requestedSchema": { "type": "object", "properties": {} } } });
        if sender.send(bytes::Bytes::from(question.to_string())).await.is_err() {
            return;
        }
        let Ok(answer) = told.await else { return };
        let result = &answer["result"];
        said = result["content"]["who"].as_str().or(result["action"].as_str()).unwrap().to_owned();
        tokio::time::sleep(Duration::from_millis(before)).await;
    }
    let result = json!({ "content": [{ "type": "text", "text": said }] });
    let answer = json!({ "jsonrpc": "2.0", "id": call["id"], "result": result });
    let _ = sender.send(bytes::Bytes::from(answer.to_string())).await;
}
