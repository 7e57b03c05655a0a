//! F49: a configuration that is edited is in force by itself.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::setup::{self, call};
use crate::support::daemon::Daemon;
use crate::support::fake::Fake;
use crate::support::raw_host::{RawHost, text_of};
use crate::{SOON, eventually};

const WATCHED: &str = "config.watch = true\nconfig.watch_delay = \"150ms\"";

/// How often the configuration was read anew, and how often in vain.
async fn reloads(daemon: &Daemon) -> (usize, usize) {
    let events = daemon.cli(&["events", "--json"]).await.expect_code(0).json();
    let count = |kind: &str| {
        events["events"].as_array().unwrap().iter().filter(|event| event["kind"] == kind).count()
    };
    (count("daemon.reloaded"), count("daemon.reload_failed"))
}

async fn pids(host: &mut RawHost) -> [String; 2] {
    let mut pids = [String::new(), String::new()];
    for (pid, name) in pids.iter_mut().zip(["a", "b"]) {
        *pid = text_of(&call(host, name, "pid", json!({})).await);
    }
    pids
}

fn fakes(daemon: &Daemon, more: &str) -> [Fake; 2] {
    let fake = |name: &str| daemon.fake(name).args("--tools pid").line("scope = \"global\"");
    let b = if more.is_empty() { fake("b") } else { fake("b").line(more) };
    [fake("a"), b]
}

/// As editors do it: a new file takes the place of the old one.
fn save_by_rename(file: &Path, text: &str) {
    let new = file.with_extension("toml.new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, file).unwrap();
}

#[tokio::test]
async fn f49_what_an_editor_does() {
    let mut daemon = setup::prepare();
    daemon.write_config(&fakes(&daemon, ""), &setup::quick(WATCHED));
    let file = daemon.config_path();
    let plain = fs::read_to_string(&file).unwrap();
    daemon.write_config(&fakes(&daemon, "idle_timeout = \"7m\""), &setup::quick(WATCHED));
    let changed = fs::read_to_string(&file).unwrap();
    fs::write(&file, &plain).unwrap();
    daemon.launch();
    let mut host = setup::host(&daemon, "2025-06-18").await;
    let before = pids(&mut host).await;

    // One server is another: that one restarts, and nothing else.
    save_by_rename(&file, &changed);
    eventually!(SOON, reloads(&daemon).await == (1, 0));
    let after = pids(&mut host).await;
    assert_eq!(after[0], before[0]);
    assert_ne!(after[1], before[1]);

    // Two saves in a moment are one, a comment restarts nothing.
    save_by_rename(&file, &format!("# one\n{changed}"));
    save_by_rename(&file, &format!("# two\n{changed}"));
    eventually!(SOON, reloads(&daemon).await == (2, 0));
    assert_eq!(pids(&mut host).await, after);

    // A backup beside it, and the same text once more, are no change; what is written after them is told
    // behind them, so that they would have been seen.
    fs::write(file.with_extension("toml.backup.1"), "rubbish [").unwrap();
    fs::write(&file, format!("# two\n{changed}")).unwrap();

    // Half of it is not in force, and says why; the whole is.
    fs::write(&file, &changed[..changed.len() - 4]).unwrap();
    eventually!(SOON, reloads(&daemon).await == (2, 1));
    assert_eq!(pids(&mut host).await, after);
    let status = daemon.cli(&["status"]).await.expect_code(0);
    assert!(status.stdout.contains("the one before is in force"), "{status:?}");
    fs::write(&file, &plain).unwrap();
    eventually!(SOON, reloads(&daemon).await == (3, 1));
    assert_ne!(pids(&mut host).await[1], after[1]);
}

/// The configuration is a link into a folder of other such files.
#[tokio::test]
async fn f49_a_linked_configuration() {
    let mut daemon = setup::prepare();
    daemon.write_config(&fakes(&daemon, ""), &setup::quick(WATCHED));
    let (file, folder) = (daemon.config_path(), daemon.path("dotfiles"));
    fs::create_dir(&folder).unwrap();
    let real = folder.join("mcpx.toml");
    fs::rename(&file, &real).unwrap();
    std::os::unix::fs::symlink(&real, &file).unwrap();
    daemon.launch();
    let text = fs::read_to_string(&real).unwrap();
    save_by_rename(&real, &format!("{text}\n[profiles.p]\n"));
    eventually!(SOON, reloads(&daemon).await == (1, 0));
    let config: Value = daemon.http("GET", "/v1/config", None).await.json();
    assert_eq!(config["profiles"][0]["profile"], "p");
}

/// What is switched off is off, at once.
#[tokio::test]
async fn f49_nothing_is_watched_where_that_is_off() {
    let mut daemon = setup::prepare();
    let settings = setup::quick(&format!("{WATCHED}\n{}", setup::PASS));
    daemon.write_config(&fakes(&daemon, ""), &settings);
    daemon.launch();
    let mut host = setup::host(&daemon, "2025-06-18").await;
    assert_eq!(host.list_tools().await.len(), 2);
    daemon.cli(&["settings", "set", "config.watch=false"]).await.expect_code(0);
    let [a, _] = fakes(&daemon, "");
    daemon.write_config(&[a], &settings);
    // The change is looked at all the same, and left for whoever asks for it.
    host.expect_silence(600).await;
    daemon.cli(&["reload"]).await.expect_code(0);
    host.expect_notification("notifications/tools/list_changed").await;
}
