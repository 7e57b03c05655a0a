//! Seeded random sequences over HTTP: whatever comes of exchanges in whatever order, every call ends
//! once, and nothing is left (asserted by the rig's end).

use super::super::random::{Dice, ERRORS, OTHERS, RESULTS};
use super::*;

/// What may come of `exchange` next.
fn news(dice: &mut Dice, exchange: &Exchange) -> ExchangeNews {
    let body: Value = serde_json::from_slice(&exchange.body).unwrap_or_default();
    let id = &body["id"];
    let line = |dice: &mut Dice| match dice.roll(5) {
        0 => dice.pick(OTHERS).to_owned(),
        1 => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, dice.pick(ERRORS)),
        2 => format!(r#"[{{"jsonrpc":"2.0","id":{id},"result":{{}}}}]"#),
        _ => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, dice.pick(RESULTS)),
    };
    let status =
        |dice: &mut Dice, of: &[u16]| StatusCode::from_u16(of[dice.roll(of.len())]).unwrap();
    match dice.roll(9) {
        0 | 1 => {
            let mut headers = ::http::HeaderMap::new();
            if dice.roll(2) == 0 {
                headers.insert(SESSION_ID, "s".parse().unwrap());
            }
            let status = status(dice, &[200, 200, 202, 204]);
            ExchangeNews::Head { status, headers, stream: dice.roll(2) == 0 }
        }
        2 => {
            let id = (dice.roll(3) > 0).then(|| dice.roll(9).to_string());
            let retry = (dice.roll(3) == 0).then(|| seconds(dice.roll(4) as u64));
            ExchangeNews::Mark { id, retry, bears: dice.roll(2) == 0 }
        }
        3..=5 => ExchangeNews::Frame(line(dice).into()),
        _ => ExchangeNews::Ended(match dice.roll(7) {
            0 | 1 => ExchangeEnd::Whole,
            2 => {
                let status = status(dice, &[400, 401, 404, 404, 404, 405, 429, 500, 503]);
                let body = if dice.roll(2) == 0 { String::new() } else { line(dice) };
                ExchangeEnd::Refused { status, body: body.into() }
            }
            3 => ExchangeEnd::Unreadable { what: "a page".into() },
            4 => ExchangeEnd::TooLarge { bytes: 9, limit: 8 },
            5 => ExchangeEnd::Elsewhere { why: "moved".into() },
            _ => ExchangeEnd::Failed { sent: dice.roll(2) == 0, why: "broken".into() },
        }),
    }
}

fn sequence(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut rig = match dice.roll(4) {
        0 => Rig::new(over_http(Preference::PreferDiscover)),
        1 => Rig::http_settled(Revision::V2025_11_25),
        2 => Rig::http_settled(Revision::V2025_03_26),
        _ => Rig::http_settled(Revision::V2026_07_28),
    };
    let (mut clock, mut ended) = (0, Vec::new());
    for _ in 0..60 {
        let opening = rig.exchanges.last().filter(|last| {
            let over = ended.contains(&last.tag) || rig.dropped.contains(&last.tag);
            name(last) == "initialize" && !over && rig.closes.is_empty()
        });
        let opening = opening.is_some();
        match dice.roll(12) {
            0 => {
                clock += dice.roll(12) as u64;
                rig.at(clock);
            }
            1 | 2 => {
                let limits = CallLimits { idle: seconds(9), total: seconds(20) };
                let wants_progress = dice.roll(2) == 0;
                rig.call_with(wants_progress, limits);
            }
            3 if !rig.calls.is_empty() => {
                let id = rig.calls[dice.roll(rig.calls.len())];
                rig.cancel(id);
            }
            4 => rig.session.read_lists(rig.now),
            5 => rig.session.check_alive(rig.now),
            6 if opening => {
                rig.initialize("2025-06-18", Some("s2"));
                let handshake = rig.exchanges.iter().rev().take(4);
                ended.extend(handshake.filter(|one| name(one) != "GET").map(|one| one.tag));
            }
            _ => {
                let open =
                    |one: &&Exchange| !ended.contains(&one.tag) && !rig.dropped.contains(&one.tag);
                let open: Vec<_> = rig.exchanges.iter().filter(open).cloned().collect();
                if open.is_empty() {
                    continue;
                }
                let exchange = &open[dice.roll(open.len())];
                match news(&mut dice, exchange) {
                    ExchangeNews::Frame(frame) => {
                        rig.frame(exchange.tag, std::str::from_utf8(&frame).unwrap());
                    }
                    news => {
                        if matches!(news, ExchangeNews::Ended(_)) {
                            ended.push(exchange.tag);
                        }
                        rig.brings(exchange.tag, news);
                    }
                }
            }
        }
        rig.drain();
    }
    let settled = rig.events.iter().filter(|e| matches!(e, UpstreamEvent::Settled(_))).count();
    assert!(settled <= 1, "seed {seed}: {settled} openings");
}

#[test]
fn random_exchanges_keep_every_promise() {
    for seed in 1..=1000_u64 {
        sequence(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
    }
}
