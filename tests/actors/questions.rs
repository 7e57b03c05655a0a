//! Questions of legacy upstreams in the course of calls: who hears them, and that all are answered
//! (E-13, F36, F44, product.md 8).

use std::sync::Arc;
use std::time::Duration;

use mcpx::actors::pool::ongoing::{Called, News, Ongoing};
use mcpx::actors::upstreams::{Answers, CallWant, Caller, HostId, UpstreamsHandle};
use mcpx::protocol::jsonrpc::RawJson;
use mcpx::protocol::model::questions::{Kind, Question, cancelled};
use mcpx::protocol::revision::Era;
use mcpx::protocol::session::probe::Preference;
use mcpx::settings::{Scope, ServerDef};
use serde_json::{Value, json};

use crate::asker::Asker;
use crate::stage::{Stage, bare, text, want};

fn host(number: u64) -> Caller {
    let declared = RawJson::write(&json!({ "elicitation": { "form": {} } }));
    Caller {
        host: Some(HostId(number)),
        project: None,
        label: "test".into(),
        era: Era::Legacy,
        answers: Answers::Inline { declared },
        source: mcpx::actors::upstreams::Source::default(),
    }
}

async fn stage(change: impl FnOnce(&mut ServerDef)) -> (Stage, Arc<Asker>) {
    let asker = Arc::new(Asker::default());
    let mut stage = Stage::with(asker.clone(), |settings| {
        settings.pool.queue = 10_000;
        settings.pool.queue_timeout = Duration::from_hours(10);
    })
    .await;
    let mut def = ServerDef { protocol: Some(Preference::ForceInitialize), ..bare("up") };
    change(&mut def);
    stage.serve(vec![def]).await;
    (stage, asker)
}

fn asking(caller: Caller, mark: &str, before: u64) -> CallWant {
    CallWant { caller, ..want("up", "ask", json!({ "mark": mark, "before": before })) }
}

async fn open(upstreams: &UpstreamsHandle, want: CallWant) -> Box<Ongoing> {
    match upstreams.call(want).await.unwrap() {
        Called::Open(ongoing) => ongoing,
        Called::Done(answer) => panic!("it did not ask: {answer:?}"),
    }
}

async fn asked(ongoing: &mut Ongoing) -> (String, Question) {
    match ongoing.next().await {
        News::Asked { key, question } => (key, question),
        other => panic!("not a question: {other:?}"),
    }
}

async fn done(ongoing: &mut Ongoing) -> String {
    match ongoing.next().await {
        News::Done(answered) => text(&answered.unwrap()),
        other => panic!("not the end: {other:?}"),
    }
}

fn said(who: &str) -> RawJson {
    RawJson::write(&json!({ "action": "accept", "content": { "who": who } }))
}

/// E-13: a question reaches the task of its call, and its answer the server, as often as it likes to
/// wait; the call then ends as any other.
#[tokio::test(start_paused = true)]
async fn e13_a_question_and_its_answer() {
    let (stage, asker) = stage(|_| {}).await;
    let mut call = open(&stage.upstreams, asking(host(1), "one", 5)).await;
    let (key, question) = asked(&mut call).await;
    assert_eq!(
        (question.kind(), question.params.member_str("message")),
        (Kind::Form, Some("one".into()))
    );
    // Far longer than a call may be silent.
    tokio::time::sleep(stage.settings.call.idle * 3).await;
    call.reply("no such key", Ok(said("nobody")));
    call.reply(&key, Ok(said("Ada")));
    call.reply(&key, Ok(said("Bob")));
    assert_eq!(done(&mut call).await, "Ada");
    drop(call);
    let heard = asker.heard();
    let answers: Vec<&Value> = heard.iter().filter(|it| it.get("method").is_none()).collect();
    assert_eq!(answers.len(), 1, "{heard:?}");
    assert!(asker.heard_of("notifications/cancelled").is_empty());
    // U-36: the broker stands behind every host, and none with a handshake lacks anything.
    let declared = &asker.heard_of("initialize")[0]["params"]["capabilities"];
    assert_eq!(
        *declared,
        json!({
            "elicitation": { "form": {}, "url": {} },
            "sampling": { "tools": {} },
            "roots": { "listChanged": false },
        })
    );
    stage.end().await;
}

/// F36: a host that vanishes has cancelled what it was asked, and its call; nobody waits for it.
#[tokio::test(start_paused = true)]
async fn f36_who_vanishes_answers_cancel() {
    let (stage, asker) = stage(|_| {}).await;
    let mut call = open(&stage.upstreams, asking(host(1), "one", 5)).await;
    asked(&mut call).await;
    drop(call);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let heard = asker.heard();
    let last: Vec<&Value> = heard.iter().rev().take(2).rev().collect();
    assert_eq!(last[0]["result"], serde_json::from_str::<Value>(cancelled().as_str()).unwrap());
    assert_eq!(last[1]["method"], "notifications/cancelled");
    let status = stage.status("up").await;
    assert_eq!(status.instances[0].in_flight, 0);
    // The permit is free again, and a caller who can ask nobody is not left waiting.
    let answer = stage.upstreams.call_unattended(asking(host(1), "two", 5)).await;
    assert_eq!(text(&answer.unwrap()), "cancel");
    stage.end().await;
}

/// product.md 8: calls of two hosts in flight: nobody is asked; from then on one at a time.
#[tokio::test(start_paused = true)]
async fn e13_nobody_is_guessed_and_calls_take_turns() {
    let (stage, _asker) = stage(|_| {}).await;
    let upstreams = stage.upstreams.clone();
    let silent = CallWant { caller: host(2), ..want("up", "ask", json!({ "before": 100 })) };
    let silent = tokio::spawn(async move { upstreams.call_unattended(silent).await });
    tokio::time::sleep(Duration::from_millis(10)).await;
    let answer = stage.upstreams.call(asking(host(1), "one", 20)).await.unwrap();
    let Called::Done(answer) = answer else { panic!("somebody was asked") };
    assert_eq!(text(&answer), "cancel");
    assert_eq!(text(&silent.await.unwrap().unwrap()), "nothing");
    assert!(stage.status("up").await.instances[0].interactive);
    assert_eq!(stage.kinds().iter().filter(|kind| **kind == "server.interactive").count(), 1);
    // Now the one that waits for its answer has the instance for itself.
    let mut first = open(&stage.upstreams, asking(host(1), "one", 20)).await;
    let (key, _) = asked(&mut first).await;
    let upstreams = stage.upstreams.clone();
    let second = tokio::spawn(async move { open(&upstreams, asking(host(2), "two", 20)).await });
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(stage.status("up").await.instances[0].in_flight, 1);
    first.reply(&key, Ok(said("Ada")));
    assert_eq!(done(&mut first).await, "Ada");
    drop(first);
    let mut second = second.await.unwrap();
    let (key, question) = asked(&mut second).await;
    assert_eq!(question.params.member_str("message").unwrap(), "two");
    second.reply(&key, Ok(said("Bob")));
    assert_eq!(done(&mut second).await, "Bob");
    drop(second);
    stage.end().await;
}

/// One host's instance is its own: it may ask in several calls at a time.
#[tokio::test(start_paused = true)]
async fn e13_a_session_of_its_own_takes_no_turns() {
    let (stage, _asker) = stage(|def| def.scope = Scope::Session).await;
    let mut first = open(&stage.upstreams, asking(host(1), "one", 5)).await;
    asked(&mut first).await;
    // Of several calls of one host it is the oldest that hears, whichever it is for.
    let upstreams = stage.upstreams.clone();
    let second = asking(host(1), "two", 5);
    let second = tokio::spawn(async move { upstreams.call_unattended(second).await });
    let (key, question) = asked(&mut first).await;
    assert_eq!(question.params.member_str("message").unwrap(), "two");
    assert!(!stage.status("up").await.instances[0].interactive);
    let mut other = open(&stage.upstreams, asking(host(2), "three", 5)).await;
    assert_eq!(asked(&mut other).await.1.params.member_str("message").unwrap(), "three");
    first.reply(&key, Ok(said("Ada")));
    assert_eq!(text(&second.await.unwrap().unwrap()), "Ada");
    drop((first, other));
    stage.end().await;
}

/// E-13: of several calls of one host the oldest hears every question; when it ends before they are
/// answered, those of the others are not left without an answer.
#[tokio::test(start_paused = true)]
async fn e13_a_call_that_ends_leaves_no_question_open() {
    let (stage, _asker) = stage(|def| def.scope = Scope::Session).await;
    let mut first = open(&stage.upstreams, asking(host(1), "one", 5)).await;
    let (key, _) = asked(&mut first).await;
    let upstreams = stage.upstreams.clone();
    let second = asking(host(1), "two", 5);
    let second = tokio::spawn(async move { upstreams.call_unattended(second).await });
    assert_eq!(asked(&mut first).await.1.params.member_str("message").unwrap(), "two");
    first.reply(&key, Ok(said("Ada")));
    assert_eq!(done(&mut first).await, "Ada");
    let second = tokio::time::timeout(Duration::from_mins(1), second).await;
    let second = second.expect("its question was never answered");
    assert_eq!(text(&second.unwrap().unwrap()), "cancel");
    drop(first);
    stage.end().await;
}

/// F44: two hosts, a thousand calls that ask at any time, some given up while the server goes on:
/// whoever is asked is the one for whom it was asked, and nothing is left open.
#[tokio::test(start_paused = true)]
async fn f44_never_the_wrong_host() {
    let (stage, asker) = stage(|_| {}).await;
    let mut hosts = Vec::new();
    for host in [1, 2] {
        for worker in 0..4 {
            hosts.push(tokio::spawn(rounds(stage.upstreams.clone(), host, worker)));
        }
    }
    let mut heard = 0;
    for host in hosts {
        heard += host.await.unwrap();
    }
    // But for what was asked before the instance was known to ask, and for those who gave up.
    assert!(heard > 300, "only {heard} questions were put to anybody");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.status("up").await.instances[0].in_flight, 0);
    let heard = asker.heard();
    let answers = heard.iter().filter(|message| message.get("method").is_none());
    let mut answered: Vec<u64> = answers.map(|message| message["id"].as_u64().unwrap()).collect();
    let all = answered.len();
    answered.sort_unstable();
    answered.dedup();
    assert_eq!(answered.len(), all, "a question was answered twice");
    stage.end().await;
}

/// What one of a host's workers was asked, all of it for this host.
async fn rounds(upstreams: UpstreamsHandle, number: u64, worker: u64) -> usize {
    let mut heard = 0;
    for round in 0..125 {
        // No two workers alike, and none in step with itself.
        let dice = (number * 31 + worker * 17 + round * 7) % 23;
        let arguments = match dice {
            0..=3 => json!({ "before": dice }),
            _ => {
                json!({ "mark": number.to_string(), "before": dice, "stays": dice.is_multiple_of(2) })
            }
        };
        let call = CallWant { caller: host(number), ..want("up", "ask", arguments) };
        let limit = Duration::from_millis(if dice == 7 { 5 } else { 3_600_000 });
        let Ok(called) = tokio::time::timeout(limit, upstreams.call(call)).await else { continue };
        let Called::Open(mut ongoing) = called.unwrap() else { continue };
        loop {
            match ongoing.next().await {
                News::Asked { key, question } => {
                    let mark = question.params.member_str("message").unwrap();
                    assert_eq!(mark, number.to_string(), "asked for another host");
                    heard += 1;
                    if dice == 11 {
                        break;
                    }
                    ongoing.reply(&key, Ok(said(&mark)));
                }
                News::Withdrawn { .. } | News::Status(_) => {}
                News::Done(answered) => {
                    answered.unwrap();
                    break;
                }
            }
        }
    }
    heard
}
