//! Revisions of upstreams: all five, counter-offers, pins (F26, U-01 to U-03, U-13, U-14).

use serde_json::json;

use crate::setup::{call, failed};
use crate::support::raw_host::text_of;
use crate::support::schema::MODERN;
use crate::{front, front_with};

crate::for_revisions! { all_real;
    /// U-01: an upstream that has one revision only, to the end: list, call, progress, cancel.
    async fn u01_one_revision_upstreams(revision) {
        let args = if revision == MODERN {
            "--era modern".to_owned()
        } else {
            format!("--supports {revision}")
        };
        let (_daemon, fake, mut host) = front(&args, "host.progress_interval = \"0s\"").await;
        assert!(host.list_tools().await.len() > 20);
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
        host.start_call_with_progress(70, "up_slow", json!({ "ms": 40, "steps": 2 }), "p").await;
        assert_eq!(text_of(&host.expect_response(70).await), "done in 2 steps");
        assert_eq!(host.inbox.len(), 2, "progress: {:?}", host.inbox);
        host.start_call(71, "up_slow", json!({ "ms": 60_000 })).await;
        crate::eventually!(
            std::time::Duration::from_secs(5),
            fake.transcript().with_method("tools/call").len() == 3
        );
        host.cancel(71).await;
        crate::eventually!(std::time::Duration::from_secs(5), !fake.ledger("stopped").is_empty());
        assert!(fake.transcript().check_frames() >= 6);
    }
}

/// U-02: the newest legacy revision is what a handshake offers.
#[tokio::test]
async fn u02_the_offer_is_2025_11_25() {
    let (_daemon, fake, mut host) = front("", "").await;
    host.list_tools().await;
    let initialize = fake.transcript().with_method("initialize");
    assert_eq!(initialize[0]["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(initialize[0]["params"]["clientInfo"]["name"], "mcpx");
}

/// U-02: a pin is real: only that revision is offered and accepted.
#[tokio::test]
async fn u02_a_pin_is_real() {
    for pin in ["2024-11-05", "2025-06-18", MODERN] {
        let (_daemon, fake, mut host) =
            front_with(|fake| fake.args("--era dual").line(format!("revision = \"{pin}\"")), "")
                .await;
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x", "{pin}");
        let transcript = fake.transcript();
        if pin == MODERN {
            assert!(transcript.with_method("initialize").is_empty());
        } else {
            assert!(transcript.with_method("server/discover").is_empty());
            assert_eq!(transcript.with_method("initialize")[0]["params"]["protocolVersion"], pin);
        }
        transcript.check_frames();
    }
    let (_daemon, fake, mut host) = front_with(
        |fake| fake.args("--supports 2025-06-18").line("revision = \"2025-03-26\""),
        "expose.mode = \"core\"",
    )
    .await;
    let answer = call(&mut host, "up", "echo", json!({})).await;
    assert!(failed(&answer), "{answer}");
    let text = text_of(&answer);
    assert!(text.contains("2025-06-18") && text.contains("2025-03-26"), "names both: {text}");
    assert!(fake.ledger("initialized").is_empty(), "U-03");
}

/// F26: known legacy revisions are accepted and spoken from then on.
#[tokio::test]
async fn f26_known_counter_offers() {
    for offer in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let (_daemon, fake, mut host) = front(&format!("--offer {offer}"), "").await;
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x", "{offer}");
        assert!(fake.transcript().check_frames() >= 4);
    }
}

/// F26, U-03: an unknown one ends the connection, naming both; no `initialized` is sent.
#[tokio::test]
async fn f26_u03_unknown_missing_and_empty_offers() {
    for args in ["--offer 1999-01-01", "--offer 2099-01-01", "--offer-missing", "--empty-result"] {
        let (_daemon, fake, mut host) = front(args, "expose.mode = \"core\"").await;
        let answer = call(&mut host, "up", "echo", json!({})).await;
        assert!(failed(&answer), "{args}: {answer}");
        let text = text_of(&answer);
        if let Some(offer) = args.strip_prefix("--offer ") {
            assert!(text.contains(offer) && text.contains("2025-11-25"), "{args}: {text}");
        } else {
            assert!(
                text.contains("protocolVersion") || text.contains("revision"),
                "{args}: {text}"
            );
        }
        assert!(fake.ledger("initialized").is_empty(), "{args}");
    }
}

/// F26: 2026-07-28 in a handshake contradicts itself: once more as modern, else fail.
#[tokio::test]
async fn f26_a_modern_offer_in_a_handshake() {
    let (_daemon, fake, mut host) =
        front("--era dual --offer 2026-07-28", "upstream.protocol = \"prefer-initialize\"").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
    assert!(fake.ledger("initialized").is_empty());
    let (_daemon, fake, mut host) =
        front("--offer 2026-07-28 --discover-error -32601", "expose.mode = \"core\"").await;
    let answer = call(&mut host, "up", "echo", json!({})).await;
    assert!(failed(&answer) && text_of(&answer).contains("2026-07-28"), "{answer}");
    assert!(fake.ledger("initialized").is_empty());
}

/// U-13, U-14: the newest shared one; where none is shared, the fall to `initialize` or an error
/// that names the versions.
#[tokio::test]
async fn u13_u14_modern_versions() {
    let (_daemon, fake, mut host) =
        front("--era modern --modern-versions 2099-01-01,2026-07-28", "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
    fake.transcript().check_frames();
    let (_daemon, fake, mut host) =
        front("--era modern --modern-versions 2099-01-01", "expose.mode = \"core\"").await;
    let answer = call(&mut host, "up", "echo", json!({})).await;
    assert!(failed(&answer) && text_of(&answer).contains("2099-01-01"), "{answer}");
    let probes = fake.transcript().with_method("server/discover").len();
    assert!(probes <= 2 * fake.starts(), "U-14: {probes} probes in {} starts", fake.starts());
}
