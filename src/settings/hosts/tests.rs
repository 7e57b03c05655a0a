//! The twelve kinds of configuration files that an importer must survive (`field-cases.md` C1 to C12),
//! each with an input of our own.

use std::path::{Path, PathBuf};

use super::*;
use crate::settings::layers::Sources;
use crate::settings::{Loaded, Mistake, Settings};

/// A person's folders.
struct Desk {
    folder: tempfile::TempDir,
}

/// What an import came to.
struct Outcome {
    plan: Plan,
    target: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home/.config/mcpx/conf.d", "project"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.path("home/.config/mcpx")
    }

    #[expect(clippy::disallowed_methods, reason = "a test writes its own input")]
    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn lookup(&self, name: &str) -> Option<String> {
        match name {
            "HOME" => Some(self.path("home").display().to_string()),
            "SET" | "GITHUB_TOKEN" => Some("x".to_owned()),
            _ => None,
        }
    }

    /// The configuration in force, with what imports have written.
    fn loaded(&self) -> Loaded {
        let sources = Sources { user: Some(self.config()), ..Sources::default() };
        Settings::load(&sources, Path::new("/opt/mcpx")).unwrap_or_else(|mistakes| {
            panic!("{}", mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n"))
        })
    }

    fn import(&self, host: &str, force: bool) -> Outcome {
        let lookup = |name: &str| self.lookup(name);
        let project = self.path("project");
        let around = Around { lookup: &lookup, project: &project };
        let host = find(host).unwrap();
        self.plan(Some(host), &host.files(&around), force)
    }

    fn import_file(&self, name: &str, text: &str) -> Outcome {
        self.write(name, text);
        let files = [Found { path: self.path(name), reach: Reach::User }];
        self.plan(None, &files, false)
    }

    fn plan(&self, host: Option<&'static Host>, files: &[Found], force: bool) -> Outcome {
        let lookup = |name: &str| self.lookup(name);
        let project = self.path("project");
        let around = Around { lookup: &lookup, project: &project };
        let file = files.first().map(|file| file.path.as_path());
        let target = target(&self.config(), host, file);
        let present = std::fs::read_to_string(&target).ok();
        let plan = plan(&Request {
            host,
            files,
            around: &around,
            target: &target,
            present: present.as_deref(),
            secrets: &self.config().join("secrets"),
            loaded: &self.loaded(),
            program: Path::new("/opt/mcpx"),
            runs: &|program| !program.starts_with("/Users") && program != "nowhere",
            force,
        });
        Outcome { plan, target }
    }

    /// Writes what was planned and loads it with mcpx's own strict reader.
    #[expect(clippy::disallowed_methods, reason = "a test writes its own input")]
    fn apply(&self, outcome: &Outcome) -> Loaded {
        if let Some(text) = &outcome.plan.text {
            std::fs::write(&outcome.target, text).unwrap();
        }
        for secret in &outcome.plan.secrets {
            std::fs::create_dir_all(secret.path.parent().unwrap()).unwrap();
            std::fs::write(&secret.path, format!("{}\n", secret.value)).unwrap();
        }
        self.loaded()
    }
}

impl Outcome {
    fn item(&self, server: &str) -> &Item {
        let found = self.plan.servers.iter().find(|item| item.server == server);
        found.unwrap_or_else(|| panic!("no {server} in {:?}", self.plan.servers))
    }

    fn said(&self, server: &str) -> String {
        let told = &self.item(server).told;
        [told.notes.join("\n"), told.warnings.join("\n"), told.needs.join("\n")].join("\n")
    }

    fn skipped(&self, server: &str) -> &str {
        match &self.item(server).becomes {
            Becomes::Skipped(reason) => reason,
            other => panic!("{server}: {other:?}"),
        }
    }
}

fn server<'a>(loaded: &'a Loaded, key: &str) -> &'a crate::settings::ServerDef {
    loaded.settings.servers.iter().find(|def| def.key == key).unwrap_or_else(|| panic!("no {key}"))
}

fn rule(loaded: &Loaded, key: &str, tool: &str) -> &'static str {
    server(loaded, key).tools.of(tool).as_str()
}

#[test]
fn c1_permission_globs_come_along() {
    let desk = Desk::new();
    desk.write(
        "home/.config/opencode/opencode.jsonc",
        r#"{
          // mine
          "mcp": {
            "tracker": { "type": "remote", "url": "https://mcp.tracker.test" }, // no path
            "wiki": { "type": "local", "command": ["wiki-mcp"] },
          },
          "permission": { "tracker_*": "deny", "tracker_get_*": "ask", "absent_*": "deny", "bash": "ask" },
          "agent": { "planner": { "permission": { "tracker_*": "allow" } } },
        }"#,
    );
    let outcome = desk.import("opencode", false);
    let loaded = desk.apply(&outcome);
    assert_eq!(rule(&loaded, "tracker", "create"), "deny");
    assert_eq!(rule(&loaded, "tracker", "get_one"), "ask");
    assert_eq!(rule(&loaded, "wiki", "create"), "allow");
    let notes = outcome.plan.notes.join("\n");
    assert!(notes.contains("absent_*") && notes.contains("no server"), "{notes}");
    assert!(notes.contains("`planner`") && notes.contains("not carried"), "{notes}");
    assert!(!notes.contains("bash"), "{notes}");
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn c2_bare_names_are_literal_and_said() {
    let desk = Desk::new();
    desk.write(
        "home/.config/opencode/opencode.json",
        r#"{ "mcp": {
          "a": { "type": "local", "command": ["uvx", "--from", "git+https://git.test/x", "x" /*, "y" */],
                 "environment": { "API_KEY": "$API_KEY" } },
          "b": { "type": "remote", "url": "http://127.0.0.1:6700/mcp",
                 "headers": { "Authorization": "Bearer $TOKEN" } } } }"#,
    );
    let outcome = desk.import("opencode", false);
    let loaded = desk.apply(&outcome);
    assert_eq!(server(&loaded, "a").env["API_KEY"], "$$API_KEY");
    let said = outcome.said("a");
    assert!(said.contains("unexpanded") && said.contains("${env:API_KEY}"), "{said}");
    assert!(said.contains("minutes"), "{said}");
    let said = outcome.said("b");
    assert!(said.contains("${env:TOKEN}") && said.contains("may be off"), "{said}");
    assert!(outcome.plan.secrets.is_empty(), "a name is no secret");
}

#[test]
fn c3_a_shells_script_is_left_alone() {
    let desk = Desk::new();
    let script = "cd \"$(git rev-parse --show-toplevel)\" && exec ./tools/mcp $HOME";
    let text = serde_json::json!({ "mcpServers": { "s": {
        "command": "bash", "args": ["-lc", script], "env": { "DEBUG": "0", "N": 0 } } } });
    let outcome = desk.import_file("x.json", &text.to_string());
    let loaded = desk.apply(&outcome);
    let def = server(&loaded, "s");
    assert_eq!(def.command, ["bash", "-lc", script]);
    assert_eq!(def.scope, crate::settings::Scope::Project);
    assert_eq!((def.env["DEBUG"].as_str(), def.env["N"].as_str()), ("0", "0"));
    let said = outcome.said("s");
    assert!(said.contains("login shell") && said.contains("scope `project`"), "{said}");
    assert!(outcome.item("s").told.warnings.is_empty(), "{said}");
}

#[test]
fn c4_the_union_of_shapes() {
    let desk = Desk::new();
    desk.write(
        "home/.config/opencode/opencode.json",
        r#"{ "mcp": {
          "stdio": { "type": "stdio", "command": "one", "args": ["a"], "env": { "X": "1" } },
          "line": { "type": "local", "command": "npx -y two", "cwd": "sub" },
          "list": { "command": ["three"], "args": ["b"], "environment": { "Y": "2" } } } }"#,
    );
    let outcome = desk.import("opencode", false);
    let loaded = desk.apply(&outcome);
    assert_eq!(server(&loaded, "stdio").command, ["one", "a"]);
    assert_eq!(server(&loaded, "line").command, ["npx", "-y", "two"]);
    assert_eq!(server(&loaded, "line").cwd.as_deref(), Some("sub"));
    assert_eq!(server(&loaded, "list").command, ["three", "b"]);
    assert!(outcome.said("line").contains("cut at its spaces"));

    let list = r#"{ "mcpServers": [ { "name": "n", "command": "x" }, { "command": "y" } ] }"#;
    let outcome = desk.import_file("list.json", list);
    desk.apply(&outcome);
    assert_eq!(outcome.item("n").becomes, Becomes::Imported);
    assert_eq!(outcome.item("server-2").becomes, Becomes::Imported);
}

#[test]
fn c5_what_is_not_here_is_imported_and_said() {
    let desk = Desk::new();
    let text = r#"{ "mcpServers": {
      "one": { "command": "/Users/someone/p/venv/bin/python", "args": ["-m", "m"] },
      "two": { "command": "nowhere", "args": ["http://192.168.1.9:8000/sse"] },
      "three": { "command": "npx", "args": ["-y", "m"] } } }"#;
    let outcome = desk.import_file("x.json", text);
    desk.apply(&outcome);
    assert!(outcome.said("one").contains("is not found here"));
    assert!(outcome.said("two").contains("is not found here"));
    assert!(outcome.item("three").told.warnings.is_empty());
    assert!(outcome.plan.servers.iter().all(|item| item.becomes == Becomes::Imported));
}

#[test]
fn c6_the_project_is_the_callers_and_variables_are_named() {
    let desk = Desk::new();
    let text = r#"{ "mcpServers": {
      "files": { "command": "npx", "args": ["-y", "server-filesystem", "."],
                 "env": { "PERSONAL": "${GITHUB_TOKEN}", "OTHER": "${NOT_SET_ANYWHERE}" } } } }"#;
    let outcome = desk.import_file("x.json", text);
    let loaded = desk.apply(&outcome);
    let def = server(&loaded, "files");
    assert_eq!(def.env["PERSONAL"], "${env:GITHUB_TOKEN}");
    assert_eq!(def.scope, crate::settings::Scope::Project);
    let said = outcome.said("files");
    assert!(said.contains("scope `project`"), "{said}");
    assert!(
        said.contains("env.OTHER of `files`") && said.contains("NOT_SET_ANYWHERE"),
        "names the server and the key: {said}"
    );
    // The same in a project's own file belongs to that project.
    desk.write("project/.mcp.json", &text.replace("files", "ours"));
    let outcome = desk.import("claude-code", false);
    let loaded = desk.apply(&outcome);
    let cwd = server(&loaded, "ours").cwd.clone().unwrap();
    assert_eq!(Path::new(&cwd), desk.path("project"));
}

#[test]
fn c7_windows_and_units() {
    let desk = Desk::new();
    let text = r#"{ "mcpServers": {
      "win": { "command": "D:/tools/x.exe", "enabled": true, "timeout_ms": 30000, "colour": "red" },
      "wrapped": { "command": "cmd", "args": ["/c", "npx", "-y", "m", "--cp", "a;b"], "timeout": 60,
                   "startup_timeout_sec": 20 },
      "address": { "url": "https://x.test/mcp" } } }"#;
    let outcome = desk.import_file("x.json", text);
    let loaded = desk.apply(&outcome);
    assert_eq!(server(&loaded, "wrapped").command, ["npx", "-y", "m", "--cp", "a;b"]);
    assert_eq!(server(&loaded, "address").transport, None, "probed");
    let said = outcome.said("win");
    assert!(said.contains("path of Windows"), "{said}");
    assert!(said.contains("timeout_ms = 30000 (milliseconds by its name)"), "{said}");
    assert!(said.contains("colour = \"red\""), "{said}");
    let said = outcome.said("wrapped");
    assert!(said.contains("timeout = 60 (in a unit that it does not say)"), "{said}");
    assert!(said.contains("startup_timeout_sec = 20 (seconds by its name)"), "{said}");
    assert!(said.contains("`cmd /c`"), "{said}");
    let text = outcome.plan.text.unwrap();
    assert!(text.contains("# note: not used: colour"), "kept as a comment: {text}");
}

#[test]
fn c8_invented_keys_are_skipped_and_the_rest_goes_on() {
    let desk = Desk::new();
    let text = r#"{ "mcpServers": {
      "linked": { "link": "https://x.test/mcp" },
      "both": { "link": "https://git.test/x.git", "url": "https://y.test/mcp" },
      "git": { "url": "https://git.test/z.git" },
      "word": "npx",
      "good": { "command": "x" } } }"#;
    let outcome = desk.import_file("x.json", text);
    let loaded = desk.apply(&outcome);
    assert!(outcome.skipped("linked").contains("`link`"));
    assert!(outcome.skipped("git").contains("repository"));
    assert!(outcome.skipped("word").contains("not a table"));
    assert_eq!(server(&loaded, "both").url.as_deref(), Some("https://y.test/mcp"));
    assert_eq!(outcome.item("good").becomes, Becomes::Imported);
}

#[test]
fn c9_vs_code_inputs_need_a_value() {
    let desk = Desk::new();
    desk.write(
        "home/.config/Code/User/mcp.json",
        r#"{ "inputs": [ { "type": "promptString", "id": "api-key", "password": true, } ],
             "servers": {
               "My Server": { "type": "stdio", "command": "/opt/My Tools/run", "args": ["${workspaceFolder}/x"],
                              "env": { "KEY": "${input:api-key}" }, "envFile": "${workspaceFolder}/.env",
                              "gallery": true, "version": "1.2" },
               "a/b": { "type": "http", "url": "https://x.test/mcp",
                        "headers": { "Authorization": "Bearer ${input:api-key}" } }, }, }"#,
    );
    let outcome = desk.import("vscode", false);
    let loaded = desk.apply(&outcome);
    let file = desk.config().join("secrets/My-Server-api-key");
    let def = server(&loaded, "My Server");
    assert_eq!(def.env["KEY"], format!("${{file:{}}}", file.display()));
    assert_eq!(def.command, ["/opt/My Tools/run", "./x"]);
    let told = &outcome.item("My Server").told;
    assert!(told.needs[0].contains("api-key") && told.needs[0].contains("0600"), "{told:?}");
    assert!(told.warnings.iter().any(|warning| warning.contains("envFile")), "{told:?}");
    assert!(!file.exists(), "nobody invents a value");
    assert_eq!(server(&loaded, "a/b").auth.as_ref().unwrap().kind(), "bearer");

    // Wrapped in `mcp`, as settings.json has it, and with inputs as a map.
    let wrapped = r#"{ "mcp": { "inputs": { "x": {} }, "servers": { "w": { "command": "w" } } } }"#;
    let outcome = desk.import_file("settings.json", wrapped);
    assert_eq!(outcome.plan.servers.len(), 1, "{:?}", outcome.plan.servers);
    assert_eq!(outcome.item("w").becomes, Becomes::Imported);

    // A comma is missing: line and column.
    let broken = "{\n  \"inputs\": []\n  \"servers\": {}\n}\n";
    let outcome = desk.import_file("broken.json", broken);
    let mistake = outcome.plan.broken[0].to_string();
    assert!(mistake.ends_with("broken.json:2:15: Expected comma"), "{mistake}");
    assert_eq!(outcome.plan.text, None);
}

#[test]
fn c10_aliases_and_off() {
    let desk = Desk::new();
    let text = r#"{ "mcpServers": {
      "a": { "serverUrl": "https://a.test/mcp" },
      "b": { "httpUrl": "https://b.test/mcp", "trust": true },
      "c": { "transport": { "type": "SSE", "url": "https://c.test/sse", "headers": { "X-A": "b" } } },
      "d": { "transport": "sse", "url": "https://d.test/sse" },
      "e": { "transportType": "streamable_http", "URL": "https://e.test/mcp" },
      "f": { "type": "streamableHttp", "url": "https://f.test/mcp", "alwaysAllow": ["x"], "autoApprove": ["y"] },
      "g": { "type": "local", "command": "g", "tools": ["*"] },
      "h": { "command": "h", "disabled": false, "enabled": false },
      "i": { "command": "i", "disabled": true, "enabled": true },
      "j": { "command": "j", "includeTools": ["get"], "excludeTools": ["rm"] } } }"#;
    let outcome = desk.import_file("x.json", text);
    let loaded = desk.apply(&outcome);
    let transport =
        |key: &str| server(&loaded, key).transport.map(crate::settings::RemoteTransport::as_str);
    let found: Vec<_> = ["a", "b", "c", "d", "e", "f"].iter().map(|key| transport(key)).collect();
    assert_eq!(found, [None, Some("http"), Some("sse"), Some("sse"), Some("http"), Some("http")]);
    assert_eq!(server(&loaded, "c").headers["X-A"], "b");
    assert!(outcome.said("f").contains("no permission here"));
    assert!(
        server(&loaded, "f").tools.allow.is_none() && server(&loaded, "g").tools.allow.is_none()
    );
    for off in ["h", "i"] {
        assert_eq!(outcome.item(off).becomes, Becomes::Off, "off wins");
        assert!(loaded.settings.servers.iter().all(|def| def.key != off));
        assert!(outcome.said(off).contains("off wins"));
    }
    assert!(!outcome.said("a").contains("off wins"), "nothing contradicts itself there");
    assert_eq!((rule(&loaded, "j", "get"), rule(&loaded, "j", "rm")), ("allow", "deny"));
    // What is off can be had by taking the marks away.
    let text = outcome.plan.text.as_deref().unwrap();
    assert!(text.starts_with("# Servers taken over from"), "{text}");
    assert!(text.contains("\n# [servers.h]\n# command = [\"h\"]\n"), "{text}");
    // A second time nothing changes.
    let again = desk.import_file("x.json", &std::fs::read_to_string(desk.path("x.json")).unwrap());
    assert_eq!(again.plan.text, None, "{:?}", again.plan.text);
    assert!(again.plan.servers.iter().all(|item| item.becomes == Becomes::Same));
}

#[test]
fn c11_codex() {
    let desk = Desk::new();
    desk.write(
        "home/.codex/config.toml",
        r#"model = "x"
[mcp_servers.win]
command = 'C:\Tools\x.exe'
args = ['a\b']
env = { A = "1" }
env_vars = ["PASSED"]
required = true
startup_timeout_sec = 20.5

[mcp_servers.far]
url = "https://far.test/${REGION}/mcp"
bearer_token_env_var = "FAR_TOKEN"
http_headers = { "X-Team" = "t" }
env_http_headers = { "X-Other" = "OTHER_VALUE" }
tool_timeout_sec = 60
"#,
    );
    let outcome = desk.import("codex", false);
    let loaded = desk.apply(&outcome);
    let def = server(&loaded, "win");
    assert_eq!(def.command, ["C:\\Tools\\x.exe", "a\\b"]);
    assert_eq!(def.env["PASSED"], "${env:PASSED}");
    let def = server(&loaded, "far");
    assert_eq!(def.url.as_deref(), Some("https://far.test/$${REGION}/mcp"));
    let auth = def.auth.as_ref().unwrap().members();
    assert_eq!(auth[0].unwrap().1, "${env:FAR_TOKEN}");
    assert_eq!(def.headers["X-Other"], "${env:OTHER_VALUE}");
    let said = outcome.said("far");
    assert!(said.contains("${env:REGION}") && said.contains("seconds by its name"), "{said}");
    assert!(outcome.said("win").contains("required = true"));
}

#[test]
fn c12_opencode_specials() {
    let desk = Desk::new();
    desk.write("home/.config/opencode/secrets/x", "s3cret\n");
    desk.write(
        "home/.config/opencode/opencode.json",
        r#"{ "mcp": { "servers": {
          "home": { "type": "local", "command": ["x", "--dir={env:HOME}/d"],
                    "environment": { "KEY": "{file:./secrets/x}" } },
          "far": { "type": "remote", "url": "https://x.test/${VAR}/mcp", "disabled": true },
          "key": { "type": "local", "command": ["y", "--api-key", "abcdefgh12345678",
                   "--header", "Authorization: Bearer zyxwvuts87654321"] },
          "box": { "type": "local", "command": ["docker", "run", "-i", "--rm", "-e", "NAME", "img"] },
          "built": { "type": "local", "command": ["npx", "-y", "github:someone/repo#branch"] },
          "m": { "type": "local", "command": ["/usr/bin/mcpx", "serve"] },
          "over-http": { "type": "remote", "url": "http://127.0.0.1:7332/mcp" },
          "shelled": { "type": "local", "command": ["sh", "-c", "exec /opt/mcpx serve"] },
        } } }"#,
    );
    let outcome = desk.import("opencode", false);
    let loaded = desk.apply(&outcome);
    let def = server(&loaded, "home");
    assert_eq!(def.command[1], "--dir=${env:HOME}/d");
    let file = desk.path("home/.config/opencode/secrets/x");
    assert_eq!(def.env["KEY"], format!("${{file:{}}}", file.display()));
    assert!(outcome.said("home").contains("folder of the file"));
    assert_eq!(outcome.item("far").becomes, Becomes::Off);
    assert!(outcome.said("far").contains("${env:VAR}"));

    let def = server(&loaded, "key");
    let secrets = desk.config().join("secrets");
    assert_eq!(def.command[2], format!("${{file:{}/key-api-key}}", secrets.display()));
    let header = format!("Authorization: Bearer ${{file:{}/key-Authorization}}", secrets.display());
    assert_eq!(def.command[4], header);
    let text = outcome.plan.text.as_deref().unwrap();
    let all = format!("{text}{:?}{:?}", outcome.plan.servers, outcome.plan.notes);
    for value in ["abcdefgh12345678", "zyxwvuts87654321", "s3cret"] {
        assert!(!all.contains(value), "{value} is shown");
    }
    assert_eq!(outcome.plan.secrets.len(), 2);
    assert!(outcome.said("box").contains("docker ps") && outcome.said("built").contains("minutes"));
    for own in ["m", "over-http", "shelled"] {
        assert_eq!(outcome.skipped(own), "is mcpx itself");
    }
}

#[test]
fn what_is_there_stays() {
    let desk = Desk::new();
    desk.write("home/.config/mcpx/config.toml", "[servers.a]\ncommand = \"mine\"\n");
    desk.write(
        "home/.cursor/mcp.json",
        r#"{ "mcpServers": { "a": { "command": "theirs" }, "b": { "command": "b" } } }"#,
    );
    let first = desk.import("cursor", false);
    assert!(first.skipped("a").contains("--force"), "{}", first.skipped("a"));
    desk.apply(&first);
    // A person's own changes of the written file survive the next import.
    let text = first.plan.text.unwrap().replace("[\"b\"]", "[\"b\"] # mine\nmax = 3");
    desk.write("home/.config/mcpx/conf.d/20-import-cursor.toml", &text);
    desk.write(
        "home/.cursor/mcp.json",
        r#"{ "mcpServers": { "a": { "command": "theirs" }, "b": { "command": "b" }, "c": { "command": "c" } } }"#,
    );
    let second = desk.import("cursor", false);
    assert_eq!(second.item("b").becomes, Becomes::Same);
    let loaded = desk.apply(&second);
    let text = second.plan.text.unwrap();
    assert!(text.contains("# mine\nmax = 3"), "{text}");
    assert_eq!(server(&loaded, "c").command, ["c"]);
    let forced = desk.import("cursor", true);
    assert_eq!(forced.item("a").becomes, Becomes::Replaced);
    let loaded = desk.apply(&forced);
    assert_eq!(server(&loaded, "a").command, ["theirs"]);
    assert!(forced.plan.text.unwrap().contains("# mine\nmax = 3"));
}

#[test]
fn the_same_server_in_two_files_comes_once() {
    let desk = Desk::new();
    desk.write(
        "home/.cursor/mcp.json",
        r#"{ "mcpServers": { "a": { "url": "https://a.test/mcp" } } }"#,
    );
    desk.write(
        "project/.cursor/mcp.json",
        r#"{ "mcpServers": { "a": { "url": "https://a.test/mcp" }, "A": { "url": "https://b.test" } } }"#,
    );
    let outcome = desk.import("cursor", false);
    desk.apply(&outcome);
    let becomes: Vec<_> = outcome.plan.servers.iter().map(|item| &item.becomes).collect();
    assert_eq!(*becomes[0], Becomes::Imported);
    assert!(matches!(becomes[1], Becomes::Skipped(why) if why.contains("the same as")));
}

#[test]
fn other_hosts_files() {
    let desk = Desk::new();
    desk.write(
        "home/.continue/config.yaml",
        "name: x\nmcpServers:\n  - name: Far One\n    type: streamable-http\n    url: https://f.test/mcp\n    \
         requestOptions:\n      headers:\n        Authorization: Bearer ${{ secrets.FAR }}\n  - name: near\n    \
         command: uvx\n    args: [mcp-near]\n",
    );
    desk.write("home/.continue/mcpServers/one.json", r#"{ "command": "one" }"#);
    let outcome = desk.import("continue", false);
    let loaded = desk.apply(&outcome);
    assert!(outcome.item("Far One").told.needs[0].contains("FAR"));
    assert_eq!(server(&loaded, "near").command, ["uvx", "mcp-near"]);
    assert_eq!(server(&loaded, "one").command, ["one"]);

    desk.write(
        "home/.config/zed/settings.json",
        r#"{ // mine
          "theme": "x",
          "context_servers": {
            "old": { "source": "custom", "command": { "path": "old", "args": ["a"], "env": null } },
            "new": { "command": "new", "args": [], "env": {}, "enabled": false },
            "extension": { "settings": {} } } }"#,
    );
    let outcome = desk.import("zed", false);
    let loaded = desk.apply(&outcome);
    assert_eq!(server(&loaded, "old").command, ["old", "a"]);
    assert_eq!(outcome.item("new").becomes, Becomes::Off);
    assert!(outcome.skipped("extension").contains("neither"));

    desk.write(
        "home/.gemini/settings.json",
        r#"{ "mcp": { "excluded": ["x"] }, "mcpServers": {
            "x": { "command": "x" }, "y": { "command": "y", "env": { "T": "$GITHUB_TOKEN" } } } }"#,
    );
    let outcome = desk.import("gemini", false);
    let loaded = desk.apply(&outcome);
    assert_eq!(outcome.item("x").becomes, Becomes::Off);
    assert_eq!(server(&loaded, "y").env["T"], "${env:GITHUB_TOKEN}");

    let project = desk.path("project").display().to_string();
    let text = serde_json::json!({
        "mcpServers": { "u": { "command": "u" } },
        "projects": { (project.clone()): { "mcpServers": { "l": { "command": "l" } } },
                      "/elsewhere": { "mcpServers": { "e": { "command": "e" } } } } });
    desk.write("home/.claude.json", &text.to_string());
    desk.write("home/.claude/settings.json", r#"{ "permissions": { "deny": ["mcp__u__rm"] } }"#);
    let outcome = desk.import("claude-code", false);
    let loaded = desk.apply(&outcome);
    assert_eq!(rule(&loaded, "u", "rm"), "deny");
    let keys: Vec<_> = outcome.plan.servers.iter().map(|item| item.server.as_str()).collect();
    assert!(keys.contains(&"u") && keys.contains(&"l") && !keys.contains(&"e"), "{keys:?}");
}

#[test]
fn credentials_in_addresses_are_moved() {
    let desk = Desk::new();
    let text = r#"{ "mcpServers": {
      "user": { "url": "https://me:hunter2222@x.test/mcp" },
      "query": { "url": "https://x.test/mcp?a=b&api_key=abcdefgh%2B1" },
      "literal": { "url": "https://x.test/mcp", "headers": { "X-Api-Key": "abcdefgh1", "X-Plain": "ok" } } } }"#;
    let outcome = desk.import_file("x.json", text);
    let loaded = desk.apply(&outcome);
    assert_eq!(server(&loaded, "user").url.as_deref(), Some("https://x.test/mcp"));
    assert_eq!(server(&loaded, "user").auth.as_ref().unwrap().kind(), "basic");
    assert_eq!(server(&loaded, "query").url.as_deref(), Some("https://x.test/mcp?a=b"));
    let query = outcome.plan.secrets.iter().find(|secret| secret.path.ends_with("query-api_key"));
    assert_eq!(query.unwrap().value, "abcdefgh+1");
    assert!(server(&loaded, "literal").headers["X-Api-Key"].starts_with("${file:"));
    assert_eq!(server(&loaded, "literal").headers["X-Plain"], "ok");
}

#[test]
fn our_own_entries_are_found() {
    let desk = Desk::new();
    desk.write(
        "home/.config/opencode/opencode.json",
        r#"{ "mcp": { "m": { "type": "local", "command": ["/x/mcpx", "serve"], "enabled": false } } }"#,
    );
    desk.write(
        "project/.vscode/mcp.json",
        r#"{ "servers": { "v": { "url": "http://localhost:7332/mcp/p" } } }"#,
    );
    desk.write("home/.cursor/mcp.json", "{ broken");
    let lookup = |name: &str| desk.lookup(name);
    let project = desk.path("project");
    let around = Around { lookup: &lookup, project: &project };
    let own = Own { program: Path::new("/opt/mcpx"), listen: "127.0.0.1:7332".parse().ok() };
    let found = entries(&around, &own);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((found[0].host, found[0].key.as_str(), found[0].off), ("opencode", "m", true));
    assert_eq!(found[1].leads, Leads::Url("http://localhost:7332/mcp/p".to_owned()));
}

#[test]
fn every_host_has_its_page() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/hosts");
    for host in HOSTS {
        let page = std::fs::read_to_string(pages.join(format!("{}.md", host.name))).unwrap();
        assert!(page.starts_with(&format!("# {}\n", host.title)), "{}", host.name);
        assert!(page.contains(host.source), "{} does not name {}", host.name, host.source);
        for words in
            [format!("mcpx connect {}", host.name), format!("mcpx disconnect {}", host.name)]
        {
            assert!(page.contains(&words), "{words}");
        }
        let file = host.spots[0].path.rsplit('/').next().unwrap();
        assert!(page.contains(file), "{}: {file}", host.name);
    }
}
