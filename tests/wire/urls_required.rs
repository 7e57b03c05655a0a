//! The error -32042 of 2025-11-25 ("URL Elicitation Required Error") on its way to every kind of host:
//! addresses reach whoever is to open them, and a no is one.

use serde_json::{Value, json};

use crate::setup::{call, failed, open, start};
use crate::support::daemon::Daemon;
use crate::support::fake::Fake;
use crate::support::raw_host::{RawHost, text_of};
use crate::support::schema::MODERN;

const ADDRESS: &str = "https://login.test/a?b=1";

fn one() -> (Daemon, Fake) {
    let fake = |daemon: &Daemon| daemon.fake("up").args("--era 2025-11-25 --questions");
    let daemon = start(|daemon| vec![fake(daemon)], "expose.mode = \"both\"");
    let fake = daemon.fake("up");
    (daemon, fake)
}

async fn able(daemon: &Daemon, revision: &str, elicitation: &Value) -> RawHost {
    let mut host = daemon.shim(&[]);
    host.capabilities = json!({ "elicitation": elicitation });
    open(&mut host, revision).await;
    host
}

fn calls(fake: &Fake) -> usize {
    fake.transcript().with_method("tools/call").len()
}

/// A host that can see to addresses gets the error itself also by `mcpx_call`, any other its words with
/// the addresses: a text that says "sign in first" and not where helps nobody.
#[tokio::test]
async fn e02_addresses_come_through_mcpx_call() {
    let (daemon, _) = one();
    let mut host = able(&daemon, "2025-11-25", &json!({ "url": {} })).await;
    let answer = call(&mut host, "up", "ask_url_required", json!({})).await;
    assert_eq!(answer["error"]["code"], -32042, "{answer}");
    assert_eq!(answer["error"]["data"]["elicitations"][0]["url"], ADDRESS, "{answer}");
    let mut host = able(&daemon, "2025-11-25", &json!({ "form": {} })).await;
    let answer = call(&mut host, "up", "ask_url_required", json!({ "id": "x" })).await;
    assert!(failed(&answer) && text_of(&answer).contains(ADDRESS), "{answer}");
}

/// Who does not want to go there is told what the server said, which is not called again for that.
#[tokio::test]
async fn e02_a_no_to_an_address_is_one() {
    let (daemon, fake) = one();
    for action in ["decline", "cancel"] {
        let mut host = able(&daemon, MODERN, &json!({ "url": {} })).await;
        host.answer_with(move |_| json!({ "action": action }));
        let before = calls(&fake);
        let answer = host.call("up_ask_url_required", json!({ "id": action })).await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(ADDRESS), "{answer}");
        assert_eq!(calls(&fake), before + 1);
    }
}
