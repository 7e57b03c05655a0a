//! Which era an upstream is of (F25, U-04, U-05, U-08 to U-10, U-30).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::setup::failed;
use crate::support::raw_host::text_of;
use crate::{front, front_with};

const CANCELLED: &str = "notifications/cancelled";

/// A legacy server with this habit ends in a working session; returns what mcpx sent.
async fn legacy_with(args: &str) -> Vec<String> {
    let (_daemon, fake, mut host) = front(args, "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x", "{args}");
    let transcript = fake.transcript();
    assert!(transcript.check_frames() >= 4, "{args}");
    let methods = transcript.methods();
    assert!(methods.contains(&"notifications/initialized".to_owned()), "U-04: {args}: {methods:?}");
    methods
}

#[tokio::test]
async fn f25a_never_answers_the_probe() {
    let began = Instant::now();
    let methods = legacy_with("--probe silent").await;
    assert_eq!(&methods[..2], ["server/discover", "initialize"]);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test]
async fn f25b_c_d_refuses_with_any_code() {
    for code in ["-32602", "-32601", "-32000", "-32600", "-32004", "1"] {
        let methods = legacy_with(&format!("--probe {code}")).await;
        assert_eq!(&methods[..2], ["server/discover", "initialize"], "{code}");
    }
}

#[tokio::test]
async fn f25e_dumps_on_standard_error_first() {
    legacy_with("--probe-stderr 204800").await;
}

#[tokio::test]
async fn f25f_exits_on_an_unknown_method() {
    let (daemon, fake, mut host) = front("--probe exit", "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
    assert_eq!(fake.starts(), 2, "the second start does not probe");
    assert_eq!(fake.transcript().with_method("server/discover").len(), 1);
    // And it is remembered.
    daemon.cli(&["restart", "up"]).await.expect_code(0);
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "y" })).await), "y");
    assert_eq!(fake.transcript().with_method("server/discover").len(), 1);
}

#[tokio::test]
async fn f25g_a_late_answer_is_ignored() {
    legacy_with("--probe late").await;
    legacy_with("--probe late-after").await;
}

#[tokio::test]
async fn f25_noise_for_an_answer() {
    legacy_with("--probe noise").await;
}

/// U-08: a modern server whose first start is slow: the discover is still listened to.
#[tokio::test]
async fn u08_a_late_discover_counts() {
    let args = "--era modern --discover-delay 700 --refuse 0";
    let (_daemon, fake, mut host) = front(args, "upstream.probe_patience = \"200ms\"").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
    let transcript = fake.transcript();
    assert!(transcript.with_method("notifications/initialized").is_empty(), "U-04");
    // U-30: whatever became of the initialize beside it, it is never cancelled.
    let initialize = transcript.with_method("initialize");
    let cancelled = transcript.with_method(CANCELLED);
    for one in &initialize {
        assert!(!cancelled.iter().any(|cancel| cancel["params"]["requestId"] == one["id"]));
    }
    assert_eq!(fake.starts(), 1);
}

/// U-08: a slow process start (npx) is not a silent server.
#[tokio::test]
async fn u08_a_slow_start_of_either_era() {
    for era in ["legacy", "modern", "dual"] {
        let args = format!("--era {era} --start-delay 700");
        let (_daemon, fake, mut host) = front(&args, "upstream.probe_patience = \"200ms\"").await;
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x", "{era}");
        assert_eq!(fake.starts(), 1, "{era}");
        fake.transcript().check_frames();
    }
}

/// U-04: a modern server never hears of a handshake.
#[tokio::test]
async fn u04_no_handshake_with_a_modern_server() {
    for era in ["modern", "dual"] {
        let (_daemon, fake, mut host) = front(&format!("--era {era}"), "").await;
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x", "{era}");
        let methods = fake.transcript().methods();
        assert!(!methods.iter().any(|name| name.contains("initialize")), "{era}: {methods:?}");
        assert_eq!(methods[0], "server/discover");
        fake.transcript().check_frames();
    }
}

/// U-05, U-10: the preference names the first request; a modern-only server that refuses
/// `initialize` is reached by falling forward.
#[tokio::test]
async fn u05_u10_initialize_first() {
    for (era, refusal) in
        [("legacy", -32022), ("dual", -32022), ("modern", -32022), ("modern", -32601)]
    {
        let args = format!("--era {era} --refuse {refusal}");
        let more = "upstream.protocol = \"prefer-initialize\"";
        let (_daemon, fake, mut host) = front(&args, more).await;
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x", "{args}");
        let methods = fake.transcript().methods();
        assert_eq!(methods[0], "initialize", "{args}");
        assert_eq!(methods.contains(&"server/discover".to_owned()), era == "modern", "{args}");
        fake.transcript().check_frames();
    }
}

/// U-05, U-07: a force value tries one way only; a server's own beats the setting.
#[tokio::test]
async fn u05_u07_force_values() {
    let own = |word: &'static str, era: &'static str| {
        move |fake: crate::Fake| {
            fake.args(&format!("--era {era}")).line(format!("protocol = \"{word}\""))
        }
    };
    for (word, era, first) in [
        ("force-initialize", "dual", "initialize"),
        ("force-discover", "dual", "server/discover"),
        ("FORCE-LEGACY", "dual", "initialize"),
        ("modern", "dual", "server/discover"),
    ] {
        let more = "upstream.protocol = \"prefer-initialize\"";
        let (_daemon, fake, mut host) = front_with(own(word, era), more).await;
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x", "{word}");
        assert_eq!(fake.transcript().methods()[0], first, "{word}");
    }
    for (word, era) in [("force-initialize", "modern"), ("force-discover", "legacy")] {
        let more = "expose.mode = \"core\"\nupstream.handshake_timeout = \"800ms\"";
        let (_daemon, fake, mut host) = front_with(own(word, era), more).await;
        let answer = crate::setup::call(&mut host, "up", "echo", json!({})).await;
        assert!(failed(&answer), "{word}: {answer}");
        let methods = fake.transcript().methods();
        let other = if era == "modern" { "server/discover" } else { "initialize" };
        assert!(!methods.contains(&other.to_owned()), "{word}: {methods:?}");
    }
}

/// U-30: `initialize` is never cancelled, also when its time is over; the limit names itself.
#[tokio::test]
async fn u30_initialize_is_never_cancelled() {
    let more = "expose.mode = \"core\"\nupstream.handshake_timeout = \"500ms\"\n\
                upstream.probe_patience = \"100ms\"";
    let (_daemon, fake, mut host) = front("--initialize-silent --probe silent", more).await;
    let answer = crate::setup::call(&mut host, "up", "echo", json!({})).await;
    assert!(failed(&answer), "{answer}");
    assert!(text_of(&answer).contains("upstream.handshake_timeout"), "{answer}");
    let transcript = fake.transcript();
    let ids: Vec<Value> =
        transcript.with_method("initialize").iter().map(|one| one["id"].clone()).collect();
    assert!(!ids.is_empty());
    for cancel in transcript.with_method(CANCELLED) {
        assert!(!ids.contains(&cancel["params"]["requestId"]), "{cancel}");
    }
}
