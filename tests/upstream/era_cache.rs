//! What mcpx remembers of eras: `<state>/upstream-eras.json` (U-15 to U-17, S4).

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::raw_host::text_of;
use crate::{front, front_with};

fn file(daemon: &Daemon) -> PathBuf {
    daemon.path("state").join("upstream-eras.json")
}

async fn works(daemon: &Daemon) {
    let mut host = crate::setup::host(daemon, "2025-11-25").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
}

/// U-16: written whole, 0600, with a version; nothing secret in it.
#[tokio::test]
async fn u16_the_file() {
    let (mut daemon, _, host) =
        front_with(|fake| fake.line("# secret").args("--tools echo"), "").await;
    drop(host);
    works(&daemon).await;
    crate::eventually!(Duration::from_secs(5), file(&daemon).is_file());
    daemon.stop();
    let mode = std::fs::metadata(file(&daemon)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let folder = std::fs::metadata(daemon.path("state")).unwrap();
    assert!(folder.is_dir());
    let text = std::fs::read_to_string(file(&daemon)).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!(value.get("version").is_some(), "{text}");
    assert!(text.contains("2025-11-25") && text.contains("legacy"), "{text}");
    assert!(!text.contains(daemon.unique()), "the environment is hashed, not written: {text}");
}

/// U-17: a remembered legacy server is not probed again, by the next daemon either.
#[tokio::test]
async fn u17_a_legacy_server_is_probed_once() {
    let (mut daemon, fake, host) = front("--tools echo", "").await;
    drop(host);
    works(&daemon).await;
    daemon.restart();
    works(&daemon).await;
    assert_eq!(fake.starts(), 2);
    assert_eq!(fake.transcript().with_method("server/discover").len(), 1);
    assert_eq!(fake.transcript().with_method("initialize").len(), 2);
}

/// U-17: a wrong record is corrected and told as `server.era.stale`.
#[tokio::test]
async fn u17_a_wrong_record_is_corrected() {
    // One definition, so one record; what it speaks is in a file.
    let script = |daemon: &Daemon| {
        let path = daemon.path("era.sh");
        let exe = env!("CARGO_BIN_EXE_fakemcp");
        let era = daemon.path("era");
        let text =
            format!("#!/bin/sh\nexec {exe} --tools echo --era \"$(cat {})\"\n", era.display());
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(&era, "legacy").unwrap();
        let mut fake = daemon.fake("up");
        fake.exe = path;
        vec![fake]
    };
    let mut daemon = crate::setup::start(script, crate::setup::PASS);
    works(&daemon).await;
    daemon.stop();
    std::fs::write(daemon.path("era"), "modern").unwrap();
    daemon.launch();
    works(&daemon).await;
    let fake = daemon.fake("up");
    let events = daemon.cli(&["events", "--json"]).await;
    assert!(events.stdout.contains("server.era.stale"), "{events:?}");
    daemon.restart();
    works(&daemon).await;
    // Remembered as modern now: probed as usual, no handshake tried.
    let handshakes = fake.transcript().with_method("initialize").len();
    assert_eq!(handshakes, 2, "once as legacy, once by the stale record");
}

/// U-17: switched off, nothing is remembered; force values neither read nor write.
#[tokio::test]
async fn u17_off_and_force() {
    let (mut daemon, fake, host) = front("--tools echo", "upstream.era_cache = false").await;
    drop(host);
    works(&daemon).await;
    daemon.restart();
    works(&daemon).await;
    assert_eq!(fake.transcript().with_method("server/discover").len(), 2);
}

/// U-16: a torn or foreign file is an empty one, and no reason to fail.
#[tokio::test]
async fn u16_a_torn_file_is_empty() {
    for text in ["{\"version\":1,\"rec", "", "[]", "{\"version\":99,\"records\":{}}", "\u{0}\u{1}"]
    {
        let mut daemon = crate::setup::prepare();
        let fakes = [daemon.fake("up").args("--tools echo")];
        daemon.write_config(&fakes, &crate::setup::quick(crate::setup::PASS));
        std::fs::write(file(&daemon), text).unwrap();
        daemon.launch();
        works(&daemon).await;
        assert_eq!(fakes[0].transcript().methods()[0], "server/discover", "{text:?}");
    }
}

/// U-15: the key is the process definition; how it is leased is not part of it.
#[tokio::test]
async fn u15_leasing_is_not_part_of_the_key() {
    let (mut daemon, fake, host) = front("--tools echo", "").await;
    drop(host);
    works(&daemon).await;
    daemon.stop();
    let again =
        daemon.fake("up").args("--tools echo").line("idle_timeout = \"3m\"").line("max = 2");
    daemon.write_config(&[again], &crate::setup::quick(crate::setup::PASS));
    daemon.launch();
    works(&daemon).await;
    assert_eq!(fake.transcript().with_method("server/discover").len(), 1, "still known");
    daemon.stop();
    let other = daemon.fake("up").args("--tools echo,add");
    daemon.write_config(&[other], &crate::setup::quick(crate::setup::PASS));
    daemon.launch();
    works(&daemon).await;
    assert_eq!(fake.transcript().with_method("server/discover").len(), 2, "another program");
}

/// P-17: many instances of one server share one probe.
#[tokio::test]
async fn p17_many_instances_share_one_probe() {
    let (daemon, fake, host) =
        front_with(|fake| fake.args("--tools echo").line("scope = \"session\""), "").await;
    drop(host);
    works(&daemon).await;
    let mut hosts = Vec::new();
    for _ in 0..3 {
        let mut host = crate::setup::host(&daemon, "2025-11-25").await;
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
        hosts.push(host);
    }
    assert!(fake.starts() >= 4, "{}", fake.starts());
    assert_eq!(fake.transcript().with_method("server/discover").len(), 1);
}
