//! Two hosts with questions in flight on one shared instance: a question reaches the host whose call
//! provoked it, or none (E-13, issue 4, product.md 8).

use serde_json::{Value, json};

use crate::setup::{self, PASS};
use crate::support::asking::accept;
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};

/// Questions of both hosts together.
const ROUNDS: u64 = 1000;
/// The most calls that a host has in flight.
const AT_A_TIME: u64 = 4;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A host that answers what bears its own mark with that mark, and fails on any other.
async fn open(daemon: &Daemon, revision: &str, who: &'static str) -> RawHost {
    let mut host = daemon.shim(&[]);
    host.capabilities = json!({ "elicitation": {} });
    setup::open(&mut host, revision).await;
    host.answer_with(move |question| {
        let message = question["params"]["message"].as_str().unwrap_or_default();
        let mark = message.split(['[', ']']).nth(1).unwrap_or_default();
        assert!(mark.starts_with(who), "a question of another host came to {who}: {question}");
        accept(json!({ "name": mark }))
    });
    host
}

/// Half of the rounds, some at a time. How many of them nobody was asked.
async fn play(mut host: RawHost, who: &str, seed: u64) -> u64 {
    let mut dice = Dice(seed);
    let (mut begun, mut nobody) = (0, 0);
    while begun < ROUNDS / 2 {
        let count = (1 + dice.roll(AT_A_TIME)).min(ROUNDS / 2 - begun);
        let mut open = Vec::new();
        for _ in 0..count {
            let (id, mark) = (host.take_id(), format!("{who}-{begun}"));
            host.start_call(id, "up_ask_form", json!({ "id": mark })).await;
            open.push((id, mark));
            begun += 1;
        }
        for (id, mark) in open {
            let answer = host.expect_response(id).await;
            let said: Value = serde_json::from_str(&text_of(&answer))
                .unwrap_or_else(|_| panic!("{mark}: {answer}"));
            if said["form"]["action"] == "cancel" {
                nobody += 1;
            } else {
                assert_eq!(said["form"], accept(json!({ "name": mark })), "{answer}");
            }
        }
    }
    let asked = u64::try_from(host.answers.asked.len()).unwrap();
    // One that was put to an older call of the same host may have lost its call while it was answered.
    assert!((ROUNDS / 2 - nobody..=ROUNDS / 2).contains(&asked), "each question once: {asked}");
    nobody
}

/// Both at a time; how many questions nobody was asked.
async fn both(daemon: &Daemon, seed: u64) -> u64 {
    let first = open(daemon, "2025-06-18", "ada").await;
    let second = open(daemon, "2025-11-25", "bob").await;
    let (one, two) = tokio::join!(play(first, "ada", seed), play(second, "bob", seed + 1));
    one + two
}

/// On stdio nothing says to which call a question belongs. What was in flight when the server asked
/// for the first time may be of both hosts, so that nobody is asked; from then on it has one call at a
/// time, and every question finds its host.
#[tokio::test]
async fn e13_a_thousand_questions_over_stdio() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up").line("scope = \"global\"")], PASS);
    let nobody = both(&daemon, 4711).await;
    assert!(nobody <= 2 * AT_A_TIME, "{nobody} questions were asked of nobody");
    assert_eq!(daemon.fake("up").starts(), 1, "it was shared");
}

/// Over HTTP a question comes on the stream of its call.
#[tokio::test]
async fn e13_a_thousand_questions_over_http() {
    let mut daemon = setup::prepare();
    let (fake, _server) =
        daemon.fake("up").args("--supports 2025-06-18").line("scope = \"global\"").serve();
    daemon.write_config(&[fake], &setup::quick(PASS));
    daemon.launch();
    assert_eq!(both(&daemon, 815).await, 0, "every question has its call");
    let opened = daemon.fake("up").transcript().with_method("initialize");
    assert_eq!(opened.len(), 1, "it was shared");
}
