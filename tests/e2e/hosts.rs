//! Other programs' configuration files from outside: `import`, `connect`, `disconnect`, and every command
//! of the pages about them (issue 6 item 4, D-25, H-45, X-05).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::setup;
use crate::support::daemon::{Daemon, Output};
use crate::support::raw_host::RawHost;

/// A command of a person without `--config`: imports go into that person's folder.
fn person(daemon: &Daemon, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpx"));
    command.args(args).current_dir(daemon.path("project")).env_clear().stdin(Stdio::null());
    for (key, value) in daemon.command(&["x"]).get_envs() {
        command.env(key, value.unwrap());
    }
    // A port that stays, for `--http`; nothing listens on it here.
    command.env("MCPX_HTTP_LISTEN", "127.0.0.1:7332");
    command
}

fn run(daemon: &Daemon, args: &[&str]) -> Output {
    let output = person(daemon, args).output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Every file below a folder with its bytes and mode, and every folder.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let mode = path.symlink_metadata().unwrap().permissions().mode();
            let bytes =
                if path.is_dir() { Vec::new() } else { fs::read(&path).unwrap_or_default() };
            if path.is_dir() && !path.is_symlink() {
                open.push(path.clone());
            }
            all.insert(path, (mode, bytes));
        }
    }
    all
}

fn hosts(daemon: &Daemon) -> Vec<String> {
    let listed = run(daemon, &["connect", "--json"]).expect_code(0).json();
    listed
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host["host"].as_str().unwrap().to_owned())
        .collect()
}

/// Issue 6: `connect` and `disconnect` restore every file to the byte, whether it was there or not.
#[tokio::test]
async fn connect_and_disconnect_restore_every_file() {
    let daemon = setup::prepare();
    let home = daemon.path("home");
    let token = daemon.path("state/keys/http-token");
    write(&token, "t0ken-of-a-test\n");
    fs::set_permissions(token.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
    let (mut written, mut refused) = (0, Vec::new());
    for host in hosts(&daemon) {
        for reach in ["--user", "--project"] {
            for http in [false, true] {
                let mut words = vec!["connect", &host, reach, "--yes", "--json"];
                words.extend(http.then_some("--http"));
                let before = (snapshot(&home), snapshot(&daemon.path("project")));
                let output = run(&daemon, &words);
                if output.code != 0 {
                    refused.push(format!("{host} {reach} {http}: {}", output.stderr));
                    assert_eq!(before.0, snapshot(&home), "{host}");
                    continue;
                }
                let file = PathBuf::from(output.json()["file"].as_str().unwrap());
                let once = fs::read_to_string(&file).unwrap();
                assert!(once.contains(if http { "7332/mcp" } else { "serve" }), "{once}");
                // A second time nothing changes; with a file of a person's own neither.
                assert_eq!(run(&daemon, &words).expect_code(0).json()["written"], false, "{host}");
                assert_eq!(fs::read_to_string(&file).unwrap(), once);
                run(&daemon, &["disconnect", &host, reach]).expect_code(0);
                let after = (snapshot(&home), snapshot(&daemon.path("project")));
                assert_eq!(before, after, "{host} {reach}");

                let odd = if file.extension().is_some_and(|ending| ending == "toml") {
                    "# mine\nmodel = 'x' # kept\n\n\n[other]\na=1"
                } else {
                    "{ // mine\n\t\"zeta\" : 1,\n\n  \"alpha\": [ 1,2 ,3,], /* kept */\n\n}"
                };
                write(&file, odd);
                fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
                run(&daemon, &words).expect_code(0);
                assert_ne!(fs::read_to_string(&file).unwrap(), odd);
                run(&daemon, &["disconnect", &host, reach]).expect_code(0);
                assert_eq!(fs::read_to_string(&file).unwrap(), odd, "{host}");
                assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
                fs::remove_file(&file).unwrap();
                written += 1;
            }
        }
    }
    assert!(written >= 40, "{written}: {refused:#?}");
    let all = refused.concat();
    for host in ["Claude Desktop has no addresses", "Windsurf has no file for a project"] {
        assert!(all.contains(host), "{all}");
    }
    assert!(!all.contains("t0ken-of-a-test"));
}

/// What `connect` writes is what a host starts: an opening and a call go through it. `mcpx` is not taken
/// for a server of its own.
#[tokio::test]
async fn d25_what_connect_writes_works() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up").args("--tools echo")], "");
    let config = daemon.config_path();
    let words = ["--config", config.to_str().unwrap(), "connect", "opencode", "--yes"];
    let said = run(&daemon, &words).expect_code(0).stdout;
    assert!(said.contains("m_mcpx_call"), "H-45, and no doubled name: {said}");
    let file = daemon.path("home/opencode/opencode.json");
    let entry: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let command: Vec<&str> = entry["mcp"]["m"]["command"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    let mut start = person(&daemon, &[]);
    let environment: Vec<_> =
        start.get_envs().map(|(key, value)| (key.to_owned(), value.unwrap().to_owned())).collect();
    start = Command::new(command[0]);
    start.args(&command[1..]).current_dir(daemon.path("project")).env_clear().envs(environment);
    let mut host = RawHost::spawn(tokio::process::Command::from(start));
    host.initialize("2025-06-18").await;
    let answer = setup::call(&mut host, "up", "echo", serde_json::json!({ "text": "hi" })).await;
    assert!(answer.to_string().contains("hi"), "{answer}");
    let plan = run(&daemon, &["import", "opencode", "--json"]).expect_code(0).json();
    assert_eq!(plan["servers"][0]["becomes"], "skipped", "{plan}");
    assert_eq!(plan["servers"][0]["reason"], "is mcpx itself");
}

/// What is not understood, or is somebody else's, stays as it is; links and changes made since as well.
#[tokio::test]
async fn connect_refuses_and_keeps() {
    let daemon = setup::prepare();
    let home = daemon.path("home");
    let file = home.join(".cursor/mcp.json");
    let refuse = |text: &str, words: &[&str], told: &str| {
        write(&file, text);
        let output = run(&daemon, words).expect_code(1);
        assert!(output.stderr.contains(told), "{output:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    };
    let connect = ["connect", "cursor", "--yes"];
    refuse("{\n  \"mcpServers\": {\n", &connect, "mcp.json:");
    refuse("{\n  \"a\": 1\n  \"b\": 2\n}\n", &connect, "mcp.json:2:9: ");
    refuse("{ \"mcpServers\": [] }", &connect, "`mcpServers` is no object");
    refuse("{ \"mcpServers\": { \"m\": { \"command\": \"x\" } } }", &connect, "--key NAME");
    let ours = "{ \"mcpServers\": { \"hub\": { \"command\": \"mcpx\", \"args\": [\"serve\"] } } }";
    refuse(ours, &connect, "under `hub` already");
    // Written by hand: it goes, and nothing else.
    write(
        &file,
        "{ \"mcpServers\": { \"a\": { \"command\": \"a\" }, \"hub\": { \"command\": \"/b/mcpx\", \
                  \"args\": [\"serve\"] } } }",
    );
    run(&daemon, &["disconnect", "cursor"]).expect_code(0);
    let left = fs::read_to_string(&file).unwrap();
    assert!(left.contains("\"a\"") && !left.contains("hub"), "{left}");

    // A preview, and where nobody can be asked.
    let text = "{}";
    write(&file, text);
    run(&daemon, &["connect", "cursor", "--dry-run"]).expect_code(0);
    let output = run(&daemon, &["connect", "cursor"]).expect_code(2);
    assert!(output.stderr.contains("--yes"), "{output:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);

    // A link is written through, and a change made since stays.
    let real = home.join("dotfiles/cursor.json");
    write(&real, "{\n  \"theme\": \"dark\"\n}\n");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&real, &file).unwrap();
    run(&daemon, &connect).expect_code(0);
    assert!(file.is_symlink() && fs::read_to_string(&real).unwrap().contains("serve"));
    let changed = fs::read_to_string(&real).unwrap().replace("dark", "light");
    fs::write(&real, &changed).unwrap();
    // Another key, from the state that is there now.
    let output = run(&daemon, &["connect", "cursor", "--yes", "--key", "x"]).expect_code(1);
    assert!(output.stderr.contains("--key m"), "{output:?}");
    let said = run(&daemon, &["disconnect", "cursor"]).expect_code(0).stdout;
    assert!(said.contains("has changed since"), "{said}");
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\n  \"theme\": \"light\"\n}\n");
    let output = run(&daemon, &["disconnect", "cursor"]).expect_code(1);
    assert!(output.stderr.contains("not in the configuration of Cursor"), "{output:?}");
    run(&daemon, &["connect", "cursr"]).expect_code(2);
}

/// Import: a preview changes nothing; `--write` writes private files that the strict reader takes; a
/// second time there is nothing to do.
#[tokio::test]
async fn import_previews_writes_and_is_idempotent() {
    let daemon = setup::prepare();
    let home = daemon.path("home");
    write(
        &home.join("opencode/opencode.jsonc"),
        r#"{ // mine
          "mcp": {
            "gh": { "type": "remote", "url": "https://gh.test/mcp",
                    "headers": { "Authorization": "Bearer very-s3cret-value" } },
            "off": { "type": "local", "command": ["off"], "enabled": false },
            "m": { "type": "local", "command": ["mcpx", "serve"] } },
          "permission": { "gh_delete_*": "deny" } }"#,
    );
    let before = snapshot(&home);
    let shown = run(&daemon, &["import", "opencode"]).expect_code(0).stdout;
    for told in [
        "import   gh",
        "off      off",
        "skip     m  is mcpx itself",
        "gh.delete_* = deny",
        "--write",
    ] {
        assert!(shown.contains(told), "{told} in\n{shown}");
    }
    assert!(!shown.contains("very-s3cret-value"), "{shown}");
    assert_eq!(snapshot(&home), before, "a preview writes nothing");
    let written = run(&daemon, &["import", "opencode", "--write", "--json"]).expect_code(0).json();
    assert_eq!(written["written"], true);
    let target = home.join("mcpx/conf.d/20-import-opencode.toml");
    let secret = home.join("mcpx/secrets/gh-Authorization");
    for file in [&target, &secret] {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "very-s3cret-value\n");
    assert!(!fs::read_to_string(&target).unwrap().contains("very-s3cret-value"));
    let checked = run(&daemon, &["config", "check"]).expect_code(0).stdout;
    assert!(checked.contains("1 files, 1 servers"), "{checked}");
    let after = snapshot(&home);
    let again = run(&daemon, &["import", "opencode", "--write", "--json"]).expect_code(0).json();
    assert_eq!((&again["changes"], &again["written"]), (&Value::Bool(false), &Value::Bool(false)));
    assert_eq!(snapshot(&home), after);

    // A file that cannot be read fails the command, with line and column; others still count.
    write(&home.join("opencode/opencode.json"), "{\n  \"mcp\": {,}\n}\n");
    let output = run(&daemon, &["import", "opencode"]).expect_code(1);
    assert!(output.stderr.contains("opencode.json:2:"), "{output:?}");
    assert!(output.stdout.contains("there    gh"), "{output:?}");
    // Any file, by what is in it.
    write(&daemon.path("project/servers.json"), r#"{ "mcpServers": { "x": { "command": "x" } } }"#);
    let output = run(&daemon, &["import", "servers.json"]).expect_code(0);
    assert!(output.stdout.contains("20-import-servers.toml"), "{output:?}");
    run(&daemon, &["import", "nowhere.json"]).expect_code(1);
    let output = run(&daemon, &["import", "opencod"]).expect_code(2);
    assert!(output.stderr.contains("did you mean `opencode`"), "{output:?}");
    // With a file of its own in place of the person's folder, an import would not be read.
    let config = daemon.config_path();
    write(&config, "");
    let words = ["--config", config.to_str().unwrap(), "import", "servers.json", "--write"];
    let output = run(&daemon, &words).expect_code(1);
    assert!(output.stderr.contains("nothing was written"), "{output:?}");
}

/// The lines that a page tells people to type.
fn commands(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut shell = false;
    for line in page.lines() {
        if let Some(kind) = line.trim().strip_prefix("```") {
            shell = kind == "sh";
        } else if shell && !line.trim().is_empty() {
            lines.push(line.trim().split(" #").next().unwrap_or_default().trim().to_owned());
        }
    }
    lines
}

/// Every command of the pages about hosts does what it says, in the order of its page.
#[tokio::test]
async fn x05_every_documented_command_is_run() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut pages: Vec<PathBuf> =
        fs::read_dir(docs.join("hosts")).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.extend([docs.join("getting-started.md"), docs.join("import.md")]);
    let mut all = 0;
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        let daemon = setup::prepare();
        let home = daemon.path("home");
        // What somebody who reads it has: servers in each host.
        let servers = r#"{ "mcpServers": { "x": { "command": "true" } } }"#;
        for host in hosts(&daemon) {
            let file =
                run(&daemon, &["connect", &host, "--dry-run", "--json"]).expect_code(0).json();
            let file = PathBuf::from(file["file"].as_str().unwrap());
            let codex = file.extension().is_some_and(|ending| ending == "toml");
            write(&file, if codex { "[mcp_servers.x]\ncommand = \"true\"\n" } else { servers });
        }
        write(&daemon.path("project/.mcp.json"), servers);
        write(&daemon.path("project/servers.json"), servers);
        write(&home.join("mcpx/config.toml"), &setup::quick(""));
        write(&daemon.path("state/keys/http-token"), "t\n");
        for line in commands(&text) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(("mcpx", rest)) = words.split_first().map(|(first, rest)| (*first, rest))
            else {
                // What other programs do is tests/peers' affair.
                assert!(line.starts_with("opencode ") || line.starts_with("export "), "{line}");
                continue;
            };
            // A person is asked; here nobody is.
            let asks = rest.first() == Some(&"connect") && rest.len() > 1;
            let more = if asks && !line.contains("--dry-run") { vec!["--yes"] } else { vec![] };
            let words = [rest, &more].concat();
            let output = run(&daemon, &words);
            assert_eq!(
                output.code,
                0,
                "{}: `{line}`\n{}{}",
                page.display(),
                output.stdout,
                output.stderr
            );
            all += 1;
        }
        run(&daemon, &["stop", "--daemon"]);
    }
    assert!(pages.len() >= 15 && all >= 30, "{} pages, {all} commands", pages.len());
}

/// The doctor looks at the entries of hosts: what they start must be there.
#[tokio::test]
async fn doctor_looks_at_the_entries_of_hosts() {
    let mut daemon = setup::prepare();
    daemon.write_config(&[], &setup::quick(""));
    daemon.launch();
    let findings = async |subject: &str| {
        let answer = daemon.cli(&["doctor", "--json"]).await.json();
        let all = answer["findings"].as_array().unwrap().iter();
        let of = all.filter(|finding| finding["subject"] == subject);
        of.cloned().collect::<Vec<Value>>()
    };
    assert_eq!(findings("hosts").await[0]["severity"], "warning");
    run(&daemon, &["connect", "opencode", "--yes"]).expect_code(0);
    assert!(findings("hosts").await.is_empty());
    let found = findings("host opencode").await;
    assert_eq!((found.len(), &found[0]["severity"]), (1, &Value::from("ok")), "{found:?}");
    let file = found[0]["text"].as_str().unwrap().rsplit(' ').next().unwrap().to_owned();
    let text = fs::read_to_string(&file).unwrap();
    let program = env!("CARGO_BIN_EXE_mcpx");
    assert!(text.contains(program), "{text}");
    fs::write(&file, text.replace(program, "/nowhere/mcpx")).unwrap();
    let found = findings("host opencode").await;
    assert_eq!(found[0]["severity"], "error", "{found:?}");
    assert!(found[0]["mend"].as_str().unwrap().contains("mcpx connect opencode"), "{found:?}");
    fs::write(&file, "{").unwrap();
    assert_eq!(findings("host opencode").await[0]["severity"], "warning");
}
