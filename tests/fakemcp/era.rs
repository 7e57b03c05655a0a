//! Handshakes, discovery, and the ways in which they go wrong (F25, F26).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::args::Args;
use crate::offers;
use crate::process;
use crate::state::{Ask, Fake, MODERN};
use crate::tasks;

const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The legacy revisions it has, the one it offers by itself first.
pub fn supported(args: &Args) -> Vec<String> {
    let text = args.get("supports").map_or_else(|| LEGACY.join(","), str::to_owned);
    text.split(',').map(str::to_owned).collect()
}

/// Who it says it is.
pub fn info(args: &Args) -> Value {
    args.get("info").map_or_else(
        || json!({ "name": args.get("name").unwrap_or("fakemcp"), "version": "1.0.0" }),
        |text| serde_json::from_str(text).expect("--info JSON"),
    )
}

fn capabilities(args: &Args, revision: &str) -> Value {
    args.get("capabilities").map_or_else(
        || {
            let changes = !args.flag("no-list-changed");
            let mut all = json!({ "tools": { "listChanged": changes }, "logging": {} });
            offers::declare(args, revision, &mut all);
            tasks::declare(args, revision, &mut all);
            all
        },
        |text| serde_json::from_str(text).expect("--capabilities JSON"),
    )
}

/// What a modern upstream refuses before looking at the method.
pub fn refusal(fake: &Fake, ask: &Ask) -> Option<(i64, String, Value)> {
    if !ask.modern() || ask.method == "initialize" {
        return None;
    }
    let versions = modern_versions(&fake.args);
    match ask.params["_meta"][VERSION_KEY].as_str() {
        None => Some((-32602, format!("no {VERSION_KEY} in _meta"), Value::Null)),
        Some(version) if !versions.iter().any(|known| known == version) => Some((
            -32022,
            "unsupported protocol version".to_owned(),
            json!({ "supported": versions, "requested": version }),
        )),
        Some(_) => None,
    }
}

fn modern_versions(args: &Args) -> Vec<String> {
    let text = args.get("modern-versions").unwrap_or(MODERN);
    text.split(',').map(str::to_owned).collect()
}

pub fn initialize(fake: &Arc<Fake>, mut ask: Ask) {
    if fake.args.get("era") == Some("modern") {
        let versions = modern_versions(&fake.args);
        let requested = ask.params["protocolVersion"].clone();
        return match fake.args.number("refuse").unwrap_or(-32022) {
            0 => {}
            -32022 => {
                let data = json!({ "supported": versions, "requested": requested });
                fake.error(&ask, -32022, "unsupported protocol version", data);
            }
            code => fake.error(&ask, code, "no such method: initialize", Value::Null),
        };
    }
    if fake.args.flag("initialize-silent") {
        return;
    }
    let offer = offer(&fake.args, &ask);
    ask.revision = offer.clone().unwrap_or_default();
    {
        let mut state = fake.state.lock().unwrap();
        state.revision.clone_from(&offer);
        state.client = ask.params["capabilities"].clone();
    }
    let delay = fake.args.number("initialize-delay").unwrap_or(0);
    fake.later(delay, move |fake| {
        let held = fake.state.lock().unwrap().held_probe.take();
        let late_after = fake.args.get("probe") == Some("late-after");
        if let Some(probe) = held.as_ref().filter(|_| !late_after) {
            fake.error(probe, -32601, "no such method: server/discover", Value::Null);
        }
        answer_initialize(fake, &ask, offer);
        if let Some(probe) = held.filter(|_| late_after) {
            fake.error(&probe, -32601, "no such method: server/discover", Value::Null);
        }
    });
}

/// The revision that it answers with; `None` leaves the member out.
fn offer(args: &Args, ask: &Ask) -> Option<String> {
    if args.flag("offer-missing") {
        return None;
    }
    if let Some(offer) = args.get("offer") {
        return Some(offer.to_owned());
    }
    let supported = supported(args);
    let asked = ask.params["protocolVersion"].as_str().unwrap_or_default();
    let echo = supported.iter().find(|known| *known == asked);
    Some(echo.unwrap_or(&supported[0]).clone())
}

fn answer_initialize(fake: &Arc<Fake>, ask: &Ask, offer: Option<String>) {
    if let Some(code) = fake.args.number("initialize-error") {
        return fake.error(ask, code, "initialize is refused", Value::Null);
    }
    let mut result = json!({});
    if !fake.args.flag("empty-result") {
        result = json!({ "capabilities": capabilities(&fake.args, &ask.revision),
                "serverInfo": info(&fake.args) });
        if let Some(offer) = offer {
            result["protocolVersion"] = json!(offer);
        }
        if let Some(text) = fake.args.get("instructions") {
            result["instructions"] = json!(text);
        }
    }
    // Not `result`: a handshake never has a modern envelope, even where it offers one (F26).
    fake.out.send(&json!({ "jsonrpc": "2.0", "id": ask.id, "result": result }));
}

pub fn discover(fake: &Arc<Fake>, ask: Ask) {
    let delay = fake.args.number("discover-delay").unwrap_or(0);
    fake.later(delay, move |fake| {
        if let Some(code) = fake.args.number("discover-error") {
            return fake.error(&ask, code, "discover is refused", Value::Null);
        }
        let mut result = json!({
            "supportedVersions": modern_versions(&fake.args),
            "capabilities": capabilities(&fake.args, MODERN),
            "ttlMs": 0,
            "cacheScope": "public",
        });
        if let Some(text) = fake.args.get("instructions") {
            result["instructions"] = json!(text);
        }
        fake.result(&ask, result);
        ready(fake);
    });
}

/// `subscriptions/listen`: acknowledged, then open until cancelled.
pub fn listen(fake: &Fake, ask: &Ask) {
    {
        let mut state = fake.state.lock().unwrap();
        state.listens.push(ask.id.clone());
        state.filters.insert(ask.id.to_string(), ask.params["notifications"].clone());
    }
    let mut agreed = ask.params["notifications"].clone();
    if let (Some(declined), Some(agreed)) =
        (fake.args.get("listen-decline"), agreed.as_object_mut())
    {
        agreed.remove(declined);
    }
    fake.notify(
        "notifications/subscriptions/acknowledged",
        json!({
            "notifications": agreed,
            "_meta": { "io.modelcontextprotocol/subscriptionId": ask.id },
        }),
    );
}

/// A method that it does not know; the probe of a legacy one ends here.
pub fn unknown(fake: &Arc<Fake>, ask: Ask) {
    let probe = fake.args.get("probe").unwrap_or("-32601");
    if probe == "exit" {
        std::process::exit(1);
    }
    if ask.method == "server/discover" {
        if let Some(bytes) = fake.args.number("probe-stderr") {
            process::flood(bytes, "lines");
        }
        match probe {
            "silent" => return,
            "noise" => return fake.out.raw(b"Error: unknown method server/discover\n"),
            "late" | "late-after" => {
                fake.state.lock().unwrap().held_probe = Some(ask);
                return;
            }
            code => {
                let code = code.parse().expect("--probe CODE");
                return fake.error(&ask, code, "what is server/discover?", Value::Null);
            }
        }
    }
    let text = format!("no such method: {}", ask.method);
    fake.error(&ask, -32601, &text, Value::Null);
}

/// The handshake is over (or the first discover answered): timers start here, once.
pub fn ready(fake: &Arc<Fake>) {
    if std::mem::replace(&mut fake.state.lock().unwrap().ready, true) {
        return;
    }
    for line in fake.args.all_of("on-ready") {
        fake.out.raw(format!("{line}\n").as_bytes());
    }
    if let Some(millis) = fake.args.number("die-after") {
        fake.later(millis, |_| std::process::exit(1));
    }
    if let Some(millis) = fake.args.number("ping") {
        let fake = Arc::clone(fake);
        std::thread::spawn(move || {
            loop {
                drop(fake.ask("ping", Value::Null));
                std::thread::sleep(Duration::from_millis(millis));
            }
        });
    }
}
