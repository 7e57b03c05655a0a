//! Stored results by hand, and over the end of a daemon (C-14; product.md 6).

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::setup;
use crate::support::daemon::Daemon;

const SMALL: &str = "shim.autostart = false\ncall.result_limit = \"4KiB\"";

/// Stores this text by a call of a model; its address.
async fn store(daemon: &Daemon, text: &str) -> String {
    let mut host = setup::host(daemon, "2025-11-25").await;
    let arguments = json!({ "namespace": "up", "tool": "echo", "arguments": { "text": text } });
    let answer = host.call("mcpx_call", arguments).await;
    let blocks = answer["result"]["content"].as_array().unwrap();
    let link = blocks.iter().find(|block| block["type"] == "resource_link");
    link.unwrap_or_else(|| panic!("no link: {answer}"))["uri"].as_str().unwrap().to_owned()
}

fn daemon() -> Daemon {
    setup::start(|daemon| vec![daemon.fake("up")], SMALL)
}

fn file(daemon: &Daemon, uri: &str) -> std::path::PathBuf {
    daemon.path("state/artifacts").join(uri.rsplit('/').next().unwrap())
}

/// A person reads and lists what a model's call has left; a call by hand is given whole.
#[tokio::test]
async fn stored_results_by_hand() {
    let daemon = daemon();
    let text = "a line\n".repeat(2000);
    let uri = store(&daemon, &text).await;
    let read = daemon.cli(&["read", &uri]).await.expect_code(0);
    assert_eq!(read.stdout, text);
    let copy = daemon.path("copy.txt");
    daemon.cli(&["read", &uri, "-o", &copy.display().to_string()]).await.expect_code(0);
    assert_eq!(std::fs::read_to_string(copy).unwrap(), text);
    for arguments in [&["resources"][..], &["resources", "artifacts"]] {
        let listed = daemon.cli(arguments).await.expect_code(0).stdout;
        assert!(listed.contains(&uri) && listed.contains("echo.txt"), "{listed}");
    }
    let given = format!("text={text}");
    let called = daemon.cli(&["call", "up", "echo", &given]).await.expect_code(0);
    assert_eq!(called.stdout.trim_end(), text.trim_end());
    let events = daemon.cli(&["events"]).await.expect_code(0).stdout;
    assert!(events.contains("artifact.stored"), "{events}");
    assert!(!events.contains(uri.rsplit('/').next().unwrap()), "the id is a secret");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = file(&daemon, &uri);
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
}

/// A killed daemon takes none with it. Of a file without a record, which is what a kill between the two
/// leaves, of one that was torn and of one that is gone, the next daemon makes what can be made of them.
#[tokio::test]
async fn stored_results_outlive_a_killed_daemon() {
    let mut daemon = daemon();
    let text = "kept\n".repeat(2000);
    let kept = store(&daemon, &text).await;
    let torn = store(&daemon, &text).await;
    let gone = store(&daemon, &text).await;
    daemon.kill9();
    std::fs::write(file(&daemon, &torn), "ke").unwrap();
    std::fs::remove_file(file(&daemon, &gone)).unwrap();
    let orphan = format!("mcpx://artifacts/{}", "0123456789abcdef".repeat(2));
    std::fs::write(file(&daemon, &orphan), "no record\n").unwrap();
    let half = file(&daemon, "x/.00000000000000000000000000000000.0123456789abcdef");
    std::fs::write(&half, "ha").unwrap();
    daemon.launch();
    assert_eq!(daemon.cli(&["read", &kept]).await.expect_code(0).stdout, text);
    assert_eq!(daemon.cli(&["read", &orphan]).await.expect_code(0).stdout, "no record\n");
    assert!(!half.exists(), "what was never whole is taken away");
    for uri in [&torn, &gone] {
        let missing = daemon.cli(&["read", uri]).await.expect_code(1);
        assert!(missing.stderr.contains("artifacts.keep"), "{}", missing.stderr);
    }
    let events = daemon.cli(&["events"]).await.expect_code(0).stdout;
    assert!(events.contains("its file is gone") && events.contains("put aside"), "{events}");
    // And once more: what was put in order is in order.
    daemon.kill9();
    daemon.launch();
    assert_eq!(daemon.cli(&["read", &orphan]).await.expect_code(0).stdout, "no record\n");
    let events = daemon.cli(&["events"]).await.expect_code(0).stdout;
    assert!(!events.contains("its file is gone") && !events.contains("put aside"), "{events}");
}

/// `artifacts.keep` is obeyed without a restart, and while nothing else happens.
#[tokio::test]
async fn they_are_kept_for_their_time() {
    let daemon = daemon();
    let uri = store(&daemon, &"old\n".repeat(2000)).await;
    daemon.cli(&["settings", "set", "artifacts.keep=1ms"]).await.expect_code(0);
    crate::eventually!(crate::SOON, { !file(&daemon, &uri).exists() });
    daemon.cli(&["read", &uri]).await.expect_code(1);
    let events = daemon.cli(&["events"]).await.expect_code(0).stdout;
    assert!(events.contains("artifact.dropped"), "{events}");
}
