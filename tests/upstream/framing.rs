//! Lines as upstreams write them: ends, marks, noise, pieces, broken text (F01 to F07, F09, F10).

use std::time::Duration;

use serde_json::json;

use crate::support::raw_host::text_of;
use crate::{front, front_with};

/// Opening, list and calls work, and mcpx has written only requests and notifications of its own.
async fn works_with(args: &str) {
    let (_daemon, fake, mut host) = front(args, "").await;
    assert!(host.list_tools().await.len() > 20, "{args}");
    for text in ["one", "世界😀"] {
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": text })).await), text, "{args}");
    }
    let transcript = fake.transcript();
    assert!(
        !transcript.methods().iter().any(|name| name.starts_with('(')),
        "{args}: {transcript:?}"
    );
    assert!(transcript.check_frames() >= 4, "{args}");
    // mcpx itself always writes bare LF (F01).
    assert!(transcript.seen_lines().all(|line| !line.ends_with('\r')), "{args}");
    assert_eq!(fake.starts(), 1, "{args}");
}

#[tokio::test]
async fn f01_crlf() {
    works_with("--crlf").await;
}

#[tokio::test]
async fn f02_cr_between_tokens_and_in_strings() {
    works_with("--cr-tokens").await;
    let (_daemon, _, mut host) = front("--cr-tokens --crlf", "").await;
    let answer = host.call("up_echo", json!({ "text": "a\r\nb" })).await;
    assert_eq!(text_of(&answer), "a\r\nb");
    let sent = String::from_utf8_lossy(host.last_read().unwrap()).into_owned();
    assert!(sent.contains(r"a\r\nb"), "the escape is relayed: {sent}");
}

#[tokio::test]
async fn f03_byte_order_marks() {
    works_with("--bom").await;
    works_with("--bom-lines").await;
}

#[tokio::test]
async fn f04_noise_and_blank_lines() {
    let make = |fake: crate::Fake| {
        fake.args("--blank-lines")
            .arg("--noise")
            .arg("🖥️ starting")
            .arg("--noise")
            .arg("[INFO] x {\"id\":1}")
    };
    let (daemon, fake, mut host) = front_with(make, "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
    assert!(!fake.transcript().methods().iter().any(|name| name.starts_with('(')));
    // It is in that server's log.
    let logs = daemon.cli(&["logs", "up"]).await.expect_code(0);
    assert!(logs.stdout.contains("starting"), "{}", logs.stdout);
}

#[tokio::test]
async fn f05_noise_that_is_json() {
    works_with("--json-noise").await;
}

#[tokio::test]
async fn f06_rubbish_is_never_answered() {
    let (_daemon, fake, mut host) = front("--log-per-line", "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
    host.gather(Duration::from_millis(500)).await;
    let methods = fake.transcript().methods();
    assert!(!methods.iter().any(|name| name.starts_with('(')), "{methods:?}");
    assert!(methods.len() < 8, "a storm: {methods:?}");
}

#[tokio::test]
async fn f07_one_byte_at_a_time() {
    let (_daemon, _, mut host) = front("--tools echo,split --chunk 1 --chunk-us 100", "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "世界😀" })).await), "世界😀");
}

#[tokio::test]
async fn f07_two_frames_and_a_half() {
    let (_daemon, _, mut host) = front("", "").await;
    assert_eq!(text_of(&host.call("up_split", json!({})).await), "世界😀");
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "in sync" })).await), "in sync");
}

/// Noise glued before a frame: salvaged where the rest parses and its id is pending (product.md 8).
#[tokio::test]
async fn f04_noise_glued_before_a_frame() {
    let (_daemon, _, mut host) = front_with(|fake| fake.arg("--glue").arg("Loading... "), "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
}

#[tokio::test]
async fn f09_bytes_that_are_no_utf8() {
    let (_daemon, fake, mut host) = front("", "").await;
    let answer = host.call("up_bad_utf8", json!({})).await;
    assert!(text_of(&answer).starts_with("bad \u{fffd}"), "{answer}");
    assert!(text_of(&answer).ends_with(" bytes"), "{answer}");
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "alive" })).await), "alive");
    assert_eq!(fake.starts(), 1);
}

#[tokio::test]
async fn f10_a_lone_surrogate() {
    let (_daemon, _, mut host) = front("", "").await;
    let answer = host.call("up_surrogate", json!({})).await;
    assert_eq!(text_of(&answer), "a\u{fffd}b 😀");
    let sent = String::from_utf8_lossy(host.last_read().unwrap()).into_owned();
    assert!(sent.contains(r"\ud83d\ude00") || sent.contains('😀'), "{sent}");
}

/// The end of the stream without a last line end, and half a frame before it, hang nothing.
#[tokio::test]
async fn f07_half_a_frame_and_the_end() {
    let (_daemon, _, mut host) = front("", "").await;
    host.start_call(
        70,
        "up_raw",
        json!({ "text": "{\"jsonrpc\":\"2.0\",\"id\":", "silent": true }),
    )
    .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    host.start_call(71, "up_die", json!({})).await;
    for id in [70, 71] {
        let answer = host.expect_response(id).await;
        assert_eq!(crate::setup::reason(&answer), "outcome_unknown", "{answer}");
    }
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "again" })).await), "again");
}
