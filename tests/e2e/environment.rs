//! What a child gets: environment, PATH, working directory (F34).

use std::fs;

use serde_json::{Value, json};

use crate::script;
use crate::setup::{self, call, failed};
use crate::support::raw_host::text_of;

/// F34: one pass of expansion, escapes, missing names, odd values; nothing of the daemon's own.
#[tokio::test]
async fn f34_one_pass_of_expansion() {
    let mut daemon = setup::prepare();
    daemon.set_env("A_REFERENCE", "${env:A_SECRET}");
    daemon.set_env("A_SECRET", "hidden");
    daemon.set_env("UNRELATED_OF_THE_DAEMON", "x");
    fs::write(daemon.path("secret.txt"), "from a file\n").unwrap();
    let mut fake = daemon.fake("up").toml();
    let more = format!(
        "env = {{ PLAIN = \"a=b\", EMPTY = \"\", ONCE = \"${{env:A_REFERENCE}}\", ESCAPED = \
         \"$${{env:A_SECRET}}\", FILE = \"${{file:{}}}\", RUN = \"${{cmd:echo out}}\", ",
        daemon.path("secret.txt").display()
    );
    fake = fake.replace("env = { ", &more);
    fs::write(daemon.config_path(), format!("{}\n{fake}", setup::quick(""))).unwrap();
    daemon.launch();
    let all = daemon.cli(&["call", "up", "env"]).await.expect_code(0).stdout;
    let all: Value = serde_json::from_str(&all).unwrap();
    for (key, value) in [
        ("PLAIN", "a=b"),
        ("EMPTY", ""),
        ("ONCE", "${env:A_SECRET}"),
        ("ESCAPED", "${env:A_SECRET}"),
        ("FILE", "from a file"),
        ("RUN", "out"),
    ] {
        assert_eq!(all[key], value, "{key}: {all}");
    }
    for absent in ["UNRELATED_OF_THE_DAEMON", "A_SECRET", "MCPX_LOG", "MCPX_STATE_DIR"] {
        assert!(all.get(absent).is_none(), "a clean environment: {absent}");
    }
    for passed in ["PATH", "HOME"] {
        assert!(all[passed].is_string(), "{passed}: {all}");
    }
}

/// F34: a missing reference refuses the start, naming the variable; others go on.
#[tokio::test]
async fn f34_a_missing_reference_is_named() {
    let mut daemon = setup::prepare();
    let text =
        daemon.fake("up").toml().replace("env = { ", "env = { X = \"${env:NO_SUCH_NAME}\", ");
    let other = daemon.fake("other").args("--tools echo").toml();
    fs::write(daemon.config_path(), format!("{}\n{text}\n{other}", setup::quick(""))).unwrap();
    daemon.launch();
    let mut host = setup::host(&daemon, "2025-06-18").await;
    let answer = call(&mut host, "up", "echo", json!({})).await;
    assert!(failed(&answer) && text_of(&answer).contains("NO_SUCH_NAME"), "{answer}");
    assert_eq!(daemon.fake("up").starts(), 0);
    assert_eq!(text_of(&call(&mut host, "other", "echo", json!({ "text": "x" })).await), "x");
}

/// F34: a program that only the login shell's PATH knows is found.
#[tokio::test]
async fn f34_the_login_path() {
    let mut daemon = setup::prepare();
    let bin = daemon.path("home").join("bin");
    fs::create_dir(&bin).unwrap();
    let exe = env!("CARGO_BIN_EXE_fakemcp");
    script(&bin.join("only-in-login"), &format!("#!/bin/sh\nexec {exe} \"$@\"\n"));
    fs::write(daemon.path("home").join(".profile"), "PATH=\"$HOME/bin:$PATH\"\n").unwrap();
    daemon.set_env("PATH", "/usr/bin:/bin");
    let mut fake = daemon.fake("up").args("--tools echo,env");
    fake.exe = "only-in-login".into();
    daemon.write_config(&[fake], &setup::quick(""));
    daemon.launch();
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    let path = daemon.cli(&["call", "up", "env", "name=PATH"]).await.expect_code(0).stdout;
    assert!(path.contains(&bin.display().to_string()), "{path}");
}

/// F34: cwd is the project of the calling scope, or the folder of the file; relative ones are in it.
#[tokio::test]
async fn f34_working_directories() {
    let daemon = setup::start(
        |daemon| {
            fs::create_dir_all(daemon.path("project").join("sub")).unwrap();
            fs::create_dir_all(daemon.path("conf-sub")).unwrap();
            vec![
                daemon.fake("here").args("--tools cwd"),
                daemon.fake("sub").args("--tools cwd").line("cwd = \"sub\""),
                daemon
                    .fake("global")
                    .args("--tools cwd")
                    .line("scope = \"global\"")
                    .line("cwd = \"conf-sub\""),
                daemon.fake("gone").args("--tools cwd").line("cwd = \"no/such/folder\""),
            ]
        },
        "",
    );
    let project = fs::canonicalize(daemon.path("project")).unwrap();
    let config = fs::canonicalize(daemon.path(".")).unwrap();
    let mut host = setup::host(&daemon, "2025-06-18").await;
    for (name, wanted) in [
        ("here", project.clone()),
        ("sub", project.join("sub")),
        ("global", config.join("conf-sub")),
    ] {
        let answer = call(&mut host, name, "cwd", json!({})).await;
        assert_eq!(text_of(&answer), wanted.display().to_string(), "{name}");
    }
    let answer = call(&mut host, "gone", "cwd", json!({})).await;
    assert!(failed(&answer) && text_of(&answer).contains("no/such/folder"), "{answer}");
}

/// The project is the nearest folder above with a version-control mark, or what `--project` says.
#[tokio::test]
async fn f34_which_project() {
    let daemon = setup::start(
        |daemon| {
            fs::create_dir_all(daemon.path("project").join("other")).unwrap();
            vec![daemon.fake("up").args("--tools cwd")]
        },
        "",
    );
    fs::create_dir_all(daemon.path("repository/.git")).unwrap();
    fs::create_dir_all(daemon.path("repository/deep/er")).unwrap();
    let mut command = tokio::process::Command::from(daemon.command(&["serve"]));
    command.current_dir(daemon.path("repository/deep/er"));
    let mut host = crate::support::raw_host::RawHost::spawn(command);
    host.initialize("2025-06-18").await;
    let found = text_of(&call(&mut host, "up", "cwd", json!({})).await);
    let wanted = fs::canonicalize(daemon.path("repository")).unwrap();
    assert_eq!(found, wanted.display().to_string());
    let other = daemon.path("project").join("other");
    let mut host = daemon.shim(&["--project", other.to_str().unwrap()]);
    host.initialize("2025-06-18").await;
    let found = text_of(&call(&mut host, "up", "cwd", json!({})).await);
    assert_eq!(found, fs::canonicalize(other).unwrap().display().to_string());
    assert_eq!(daemon.fake("up").starts(), 2, "two projects, two processes");
}
