//! The daemon harness, on a shell script in place of mcpx: what it starts, finds and refuses.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::eventually;
use crate::support::daemon::Daemon;

/// A harness around a script.
fn harness(script: &str) -> Daemon {
    // Removed by the script itself: it must outlive this function and no test needs it twice.
    let unique = Daemon::prepare("unused", "unused").unique().to_owned();
    let path = std::env::temp_dir().join(format!("mcpx-harness-{unique}"));
    std::fs::write(&path, format!("#!/bin/sh\nrm -f \"$0\"\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Daemon::prepare(path.to_str().unwrap(), env!("CARGO_BIN_EXE_fakemcp"))
}

#[tokio::test]
async fn commands_get_the_folders_and_nothing_else() {
    let mut daemon = harness("echo \"$@\"; env; echo oops >&2; exit 3");
    daemon.set_env("MCPX_EXPOSE_MODE", "both");
    let output = daemon.cli(&["ps", "--json"]).await.expect_code(3);
    let first = output.stdout.lines().next().unwrap_or_default();
    assert_eq!(first, format!("--config {} ps --json", daemon.config_path().display()));
    let state = format!("MCPX_STATE_DIR={}", daemon.path("state").display());
    assert!(output.stdout.contains(&state), "{output:?}");
    assert!(output.stdout.contains("MCPX_EXPOSE_MODE=both"), "{output:?}");
    assert!(!output.stdout.contains("CARGO"), "{output:?}");
    assert_eq!(output.stderr, "oops\n");
}

#[test]
#[should_panic(expected = "no such setting")]
fn a_daemon_that_refuses_its_configuration_says_so() {
    harness("echo no such setting; exit 4").launch();
}

#[tokio::test]
#[should_panic(expected = "processes are left")]
async fn a_process_that_is_left_fails_the_test() {
    let daemon = harness("setsid sleep 60 >/dev/null 2>&1 & exit 0");
    let _ = daemon.cli(&["x"]).await;
    eventually!(Duration::from_secs(2), daemon.marked().len() == 1);
}

#[test]
fn the_configuration_is_toml() {
    let daemon = Daemon::prepare("unused", env!("CARGO_BIN_EXE_fakemcp"));
    let fakes = [daemon.fake("one").args("--era modern"), daemon.fake("two")];
    daemon.write_config(&fakes, "[call]\nidle_timeout = \"5s\"");
    let text = std::fs::read_to_string(daemon.config_path()).unwrap();
    let table: toml::Table = text.parse().unwrap_or_else(|why| panic!("{why}\n{text}"));
    assert_eq!(table["servers"].as_table().unwrap().len(), 2);
    assert_eq!(fakes[0].starts(), 0);
}

crate::for_revisions! { all;
    /// The macro itself: five tests, each told its revision.
    async fn every_revision_is_told(revision) {
        assert!(crate::support::schema::REVISIONS.contains(&revision));
    }
}
