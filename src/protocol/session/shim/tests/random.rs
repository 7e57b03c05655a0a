//! Seeded random conversations: every request gets exactly one answer whatever the daemon does, and
//! no call is ever handed to a daemon twice.

use std::collections::{HashMap, HashSet};

use super::*;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// What has become of the host's requests, and which of them the present daemon has.
#[derive(Default)]
struct Book {
    answers: HashMap<String, u32>,
    cancelled: HashSet<String>,
    with_daemon: Vec<Value>,
    calls_seen: HashSet<String>,
}

impl Book {
    fn read(&mut self, rig: &mut Rig, seed: u64) {
        for frame in rig.daemon_got() {
            let frame: Value = serde_json::from_str(&frame).unwrap();
            if frame["method"] == "tools/call" {
                let id = frame["id"].to_string();
                assert!(self.calls_seen.insert(id), "seed {seed}: a call was sent twice");
            }
            if frame.get("id").is_some() {
                self.with_daemon.push(frame["id"].clone());
            }
        }
        for frame in rig.host_got() {
            if frame.get("method").is_none() {
                *self.answers.entry(frame["id"].to_string()).or_default() += 1;
            }
        }
    }
}

fn conversation(seed: u64) {
    let mut dice = Dice(seed);
    let mut book = Book::default();
    let mut rig = Rig::new();
    let (mut asked, mut clock) = (Vec::new(), 0);
    for turn in 0..60 {
        match dice.roll(12) {
            0 => {
                book.with_daemon.clear();
                rig.attach();
            }
            1 => {
                book.with_daemon.clear();
                rig.lose();
            }
            2 => {
                clock += dice.roll(40);
                rig.at(clock);
            }
            3 if !asked.is_empty() => {
                let id: &String = &asked[usize::try_from(dice.roll(asked.len() as u64)).unwrap()];
                book.cancelled.insert(id.clone());
                rig.host(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                ));
            }
            4..=7 if !book.with_daemon.is_empty() => {
                let at = usize::try_from(dice.roll(book.with_daemon.len() as u64)).unwrap();
                let id = book.with_daemon.swap_remove(at);
                rig.daemon(&format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-06-18"}}}}"#
                ));
            }
            _ => {
                let id = if turn % 2 == 0 { turn.to_string() } else { format!("\"{turn}\"") };
                let methods = ["tools/call", "tools/list", "ping", "resources/read", "initialize"];
                let method = methods[usize::try_from(dice.roll(5)).unwrap()];
                rig.host(&asks(&id, method));
                asked.push(id);
            }
        }
        book.read(&mut rig, seed);
    }
    rig.lose();
    rig.at(100_000);
    book.read(&mut rig, seed);
    for id in &asked {
        let times = book.answers.get(id).copied().unwrap_or_default();
        let least = u32::from(!book.cancelled.contains(id));
        assert!(times <= 1 && times >= least, "seed {seed}: {id} was answered {times} times");
    }
}

#[test]
fn f47_random_conversations_answer_everything_once() {
    for seed in 1..=300_u64 {
        conversation(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
    }
}
