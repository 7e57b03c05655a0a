//! Our entry in a host's file, put in and taken out.

use std::path::Path;

use super::*;
use crate::settings::hosts::table::{HOSTS, find};

fn shim() -> Way {
    Way::Shim { program: "/opt/mcpx".to_owned(), args: vec!["serve".to_owned()] }
}

fn over_http() -> Way {
    let held = Held { file: Some("/s/http-token".into()), text: Some("t0ken".to_owned()) };
    Way::Http { url: "http://127.0.0.1:7332/mcp".to_owned(), token: Some(held) }
}

fn connect(host: &str, name: &str, text: &str, way: &Way) -> (Put, Where) {
    let path = Path::new(name);
    let (_, top) = readable(path, text).unwrap();
    let ours = ours(find(host).unwrap(), way, Reach::User, &top, false).unwrap();
    let put = put(path, text, KEY, &ours).unwrap();
    let of = Where { at: ours.at, key: KEY.to_owned(), made: put.made, input: put.input };
    (put, of)
}

#[test]
fn comments_order_and_format_stay() {
    let text = "{\n  // the model\n  \"model\": \"x\", // here\n  \"mcp\": {\n    /* one */\n    \"a\": { \
                \"type\": \"local\", \"command\": [\"a\"] } // last\n  },\n  \"theme\": \"y\"\n}\n";
    let (put, of) = connect("opencode", "o.jsonc", text, &shim());
    for line in text.lines() {
        let bare = line.trim_end_matches(" // last");
        assert!(put.text.contains(bare), "{line} in\n{}", put.text);
    }
    assert!(put.text.contains("// last"), "{}", put.text);
    let parsed = readable(Path::new("o.jsonc"), &put.text).unwrap().1;
    let mcp = table(&parsed, "mcp").unwrap();
    assert_eq!(mcp.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["a", "m"]);
    // Changed elsewhere since: only ours goes.
    let changed = put.text.replace("\"y\"", "\"z\"");
    let taken = take(Path::new("o.jsonc"), &changed, &of).unwrap().unwrap();
    let strip = |text: &str| text.replace(',', "");
    assert_eq!(strip(&taken), strip(&text.replace("\"y\"", "\"z\"")));
    assert!(readable(Path::new("o.jsonc"), &taken).is_ok());
    assert_eq!(take(Path::new("o.jsonc"), &taken, &of).unwrap(), None);
}

#[test]
fn every_host_reads_its_entry_back_as_ours() {
    let own = Own { program: Path::new("/opt/mcpx"), listen: "127.0.0.1:7332".parse().ok() };
    for host in HOSTS {
        let name = host.spots[0].path;
        for way in [shim(), over_http()] {
            if matches!(way, Way::Http { .. }) && host.remote.is_none() {
                continue;
            }
            let (put, of) = connect(host.name, name, "", &way);
            let (source, top) = readable(Path::new(name), &put.text).unwrap();
            assert_eq!(
                standing(&source, &top, KEY, &own),
                Standing::Ours,
                "{}\n{}",
                name,
                put.text
            );
            assert_eq!(standing(&source, &top, "x", &own), Standing::Elsewhere(KEY.to_owned()));
            assert_eq!(others(&source, &top, &own), 0);
            let left = take(Path::new(name), &put.text, &of).unwrap().unwrap();
            assert!(holds_nothing(&left) || left == host.begin, "{}: {left:?}", host.name);
        }
    }
}

#[test]
fn x05_opencode_2_gets_the_protocol_option() {
    let nested = "{ \"mcp\": { \"servers\": {} } }";
    let (put, of) = connect("opencode", "o.json", nested, &shim());
    assert_eq!(of.at, ["mcp", "servers"]);
    assert!(put.text.contains("\"protocol\": \"auto\""), "{}", put.text);
    let (put, _) = connect("opencode", "o.json", "{ \"mcp\": {} }", &shim());
    assert!(!put.text.contains("protocol"), "{}", put.text);
    let second = ours(find("opencode").unwrap(), &shim(), Reach::User, &[], true).unwrap();
    assert_eq!(second.at, ["mcp", "servers"]);
    assert!(ours(find("zed").unwrap(), &shim(), Reach::User, &[], true).is_err());
}

#[test]
fn the_token_is_referred_to_where_the_host_can() {
    for (host, shown) in [
        ("opencode", "Bearer {file:/s/http-token}"),
        ("claude-code", "Bearer ${MCPX_TOKEN}"),
        ("cursor", "Bearer ${env:MCPX_TOKEN}"),
        ("gemini", "Bearer $MCPX_TOKEN"),
        ("vscode", "Bearer ${input:mcpx-token}"),
        ("codex", "bearer_token_env_var = \"MCPX_TOKEN\""),
        ("zed", "Bearer t0ken"),
    ] {
        let name = find(host).unwrap().spots[0].path;
        let (put, _) = connect(host, name, "", &over_http());
        assert!(put.text.contains(shown), "{host}: {}", put.text);
        assert_eq!(put.text.contains("t0ken"), host == "zed", "{host}");
    }
    let zed = find("zed").unwrap();
    assert!(ours(zed, &over_http(), Reach::Project, &[], false).is_err());
    let desktop = find("claude-desktop").unwrap();
    assert!(ours(desktop, &over_http(), Reach::User, &[], false).is_err());
}

#[test]
fn toml_stays_in_order() {
    for end in ["\n", "\r\n"] {
        let text =
            "# mine\nmodel = 'x'\n\n[mcp_servers.b]\ncommand = 'C:\\b' # kept\n\n[a]\nz = 1\n";
        let text = text.replace('\n', end);
        let (put, of) = connect("codex", "config.toml", &text, &shim());
        let lines: Vec<&str> = put.text.lines().collect();
        assert!(text.lines().all(|line| lines.contains(&line)), "{}", put.text);
        assert_eq!(put.text.matches('\n').count(), put.text.matches(end).count());
        assert!(put.text.contains("[mcp_servers.m]"), "{}", put.text);
        let taken = take(Path::new("config.toml"), &put.text, &of).unwrap().unwrap();
        assert_eq!(taken, text);
    }
    let mixed = "a = 1\r\nb = 2\n";
    let path = Path::new("config.toml");
    let ours = ours(find("codex").unwrap(), &shim(), Reach::User, &[], false).unwrap();
    assert!(put(path, mixed, KEY, &ours).unwrap_err().to_string().contains("line ends"));
    let broken = put(path, "a = \n", KEY, &ours).unwrap_err().to_string();
    assert!(broken.starts_with("config.toml:1:"), "{broken}");
}

#[test]
fn a_byte_order_mark_and_windows_lines_stay() {
    let text =
        "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {\"command\": \"a\"}\r\n  }\r\n}\r\n";
    let (put, _) = connect("cursor", "mcp.json", text, &shim());
    assert!(put.text.starts_with('\u{feff}'));
    assert_eq!(put.text.matches('\n').count(), put.text.matches("\r\n").count(), "{:?}", put.text);
}

#[test]
fn what_is_no_table_is_refused() {
    for text in ["[]", "{\"mcpServers\": []}", "{\"mcpServers\": 1}"] {
        let path = Path::new("mcp.json");
        let ours = ours(find("cursor").unwrap(), &shim(), Reach::User, &[], false).unwrap();
        assert!(put(path, text, KEY, &ours).is_err(), "{text}");
    }
}

#[test]
fn a_difference_shows_no_others_secret() {
    let before = "{\n  \"token\": \"hush\"\n}\n";
    let after = "{\n  \"token\": \"hush\",\n  \"m\": \"t0ken\"\n}\n";
    let lines = difference(before, after, Some("t0ken"));
    assert_eq!(
        lines,
        ["    2 -   \"token\": …", "    2 +   \"token\": …,", "    3 +   \"m\": \"…\""]
    );
    assert!(difference(before, before, None).is_empty());
}
