//! Tests of server tables.

use super::*;

fn read_all(text: &str) -> Result<Vec<ServerDef>, Vec<String>> {
    let source = SourceText::new(Path::new("/etc/x/c.toml"), text);
    let mut mistakes = Vec::new();
    let content = crate::settings::parse::read_source(
        &source,
        crate::settings::layers::Layer::User,
        &mut mistakes,
    );
    check_names(&content.servers, &mut mistakes);
    if mistakes.is_empty() {
        Ok(content.servers.into_iter().map(|draft| draft.finish(3)).collect())
    } else {
        Err(mistakes.iter().map(ToString::to_string).collect())
    }
}

fn only_mistake(text: &str) -> String {
    let mistakes = read_all(text).unwrap_err();
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    mistakes.into_iter().next().unwrap()
}

#[test]
fn a_full_table_is_read() {
    let text = r#"
[servers.GitHub]
command = ["npx", "-y"]
args = ["@scope/server"]
env = { GITHUB_TOKEN = "${env:GITHUB_TOKEN}", EMPTY = "", EQ = "a=b" }
cwd = "."
scope = "session"
max = 2
protocol = "Legacy"
revision = "2025-06-18"
idleTimeout = "90m"
expose = "both"
prefix = "gh"
namespace = "hub"
"#;
    let servers = read_all(text).unwrap();
    let def = servers.first().unwrap();
    assert_eq!(def.key, "GitHub");
    assert_eq!(def.namespace, "hub");
    assert_eq!(def.command, ["npx", "-y", "@scope/server"]);
    assert_eq!(def.env.get("EQ").map(String::as_str), Some("a=b"));
    assert_eq!(def.base, Path::new("/etc/x"));
    assert_eq!((def.scope, def.max), (Scope::Session, 2));
    assert_eq!(def.protocol, Some(Preference::PreferInitialize));
    assert_eq!(def.revision.map(Revision::as_str), Some("2025-06-18"));
    assert_eq!(def.idle_timeout, Some(Duration::from_mins(90)));
    assert_eq!(def.expose, Some(ExposeMode::Both));
    assert_eq!(def.prefix.as_deref(), Some("gh"));
}

/// U-18: its own word or the general one; a pin leaves nothing to follow.
#[test]
fn u18_who_follows() {
    let read = |line: &str| {
        let servers = read_all(&format!("[servers.a]\ncommand = \"a\"\n{line}\n")).unwrap();
        servers.first().unwrap().clone()
    };
    let (own, plain) = (read("protocol = \"Follow\""), read(""));
    assert!(own.follows(Preference::PreferDiscover));
    assert!(plain.follows(Preference::Follow) && !plain.follows(Preference::PreferDiscover));
    assert!(!read("revision = \"2025-06-18\"").follows(Preference::Follow));
    assert!(!read("protocol = \"modern\"").follows(Preference::Follow));
}

#[test]
fn max_is_one_for_everybody_unless_said() {
    let text = "[servers.a]\ncommand = \"a\"\nscope = \"global\"\n[servers.b]\ncommand = \"b\"\n\
                [servers.c]\ncommand = \"c\"\nscope = \"global\"\nmax = 4\n";
    let max: Vec<_> = read_all(text).unwrap().iter().map(|def| def.max).collect();
    assert_eq!(max, [1, 3, 4]);
}

#[test]
fn namespaces_come_from_keys_and_clashes_are_refused_with_both_names() {
    let mistake = only_mistake(
        "[servers.\"Google Sheets\"]\ncommand = \"a\"\n[servers.\"Google/Sheets\"]\ncommand = \"b\"\n",
    );
    assert!(mistake.starts_with("/etc/x/c.toml:3:10: "), "{mistake}");
    assert!(mistake.contains("`Google Sheets` (at /etc/x/c.toml:1:10)"), "{mistake}");
    assert!(mistake.contains("`Google/Sheets`"), "{mistake}");
    let text = "[servers.a]\ncommand = \"a\"\nprefix = \"\"\n[servers.b]\ncommand = \"b\"\nprefix = \"\"\n";
    assert!(only_mistake(text).contains("the same prefix \"\""));
    let own = only_mistake("[servers.mcpx]\ncommand = \"a\"\n");
    assert!(own.contains("mcpx's own tools"), "{own}");
}

#[test]
fn every_mistake_of_a_table_is_named() {
    let text = r#"
[servers.a]
comand = ["x"]
scope = "everybody"
max = 0
revision = "2025-06-19"
env = { N = 1 }
idle_timeout = 600
"#;
    let mistakes = read_all(text).unwrap_err();
    let expected = [
        ":3:1: server `a`: unknown key `comand`; did you mean `command`?",
        ":4:9: server `a`: `scope`: \"everybody\" is not one of global, project, session, call",
        ":5:7: server `a`: `max` is a whole number from 1, found 0",
        ":6:12: server `a`: `revision`: \"2025-06-19\" is not one of 2024-11-05",
        ":7:13: server `a`: `env.N` is text, found a number",
        ":8:16: server `a`: `idle_timeout`: a time needs its unit, for example \"600s\"",
        ":2:10: server `a`: has no `command`",
    ];
    assert_eq!(mistakes.len(), expected.len(), "{mistakes:#?}");
    for (mistake, expected) in mistakes.iter().zip(expected) {
        assert!(mistake.contains(expected), "{mistake} should say {expected}");
    }
}

#[test]
fn a_remote_server_is_read() {
    let text = r#"
[servers.docs]
url = "https://docs.example/mcp"
transport = "streamable-http"
headers = { X-Tenant = "acme", Authorization = "Bearer ${env:T}" }
[servers.old]
url = "${env:OLD}/sse"
transport = "sse"
auth = { type = "basic", username = "me", password = "${file:/run/p}" }
[servers.local]
command = "x"
auth = { type = "env", name = "TOKEN", value = "${env:T}" }
"#;
    let servers = read_all(text).unwrap();
    let [docs, old, local] = servers.as_slice() else { panic!("{servers:?}") };
    assert!(docs.is_remote() && docs.command.is_empty());
    assert_eq!(docs.url.as_deref(), Some("https://docs.example/mcp"));
    assert_eq!(docs.transport, Some(RemoteTransport::Http));
    assert_eq!(docs.headers["Authorization"], "Bearer ${env:T}");
    assert_eq!(old.transport, Some(RemoteTransport::Sse));
    let basic = AuthDef::Basic { username: "me".to_owned(), password: "${file:/run/p}".to_owned() };
    assert_eq!(old.auth, Some(basic));
    let variable = AuthDef::Env { name: "TOKEN".to_owned(), value: "${env:T}".to_owned() };
    assert_eq!((local.is_remote(), &local.auth), (false, &Some(variable)));
}

#[test]
fn mistakes_of_a_remote_server_are_named() {
    for (table, expected) in [
        ("url = \"ftp://x/y\"", ":2:7: server `a`: `url`: `ftp:` is neither http: nor https:"),
        ("url = \"docs.example\"", "write it like https://example.com/mcp"),
        ("url = \"https://me:pw@x/\"", "has a user name in it"),
        ("url = \"x${A}\"", "begins with neither http:// nor https://"),
        ("url = \"https://x/\"\ntransport = \"ws\"", "\"ws\" is not one of http, sse"),
        ("url = \"https://x/\"\ncommand = \"y\"", "has both `command` and `url`"),
        ("url = \"https://x/\"\nenv = { A = \"b\" }", "`env` belongs to a `command`"),
        ("command = \"x\"\nheaders = { A = \"b\" }", "`headers` belongs to a `url`"),
        ("url = \"https://x/\"\nheaders = { Accept = \"b\" }", "is set by mcpx itself"),
        ("url = \"https://x/\"\nheaders = { Mcp-Name = \"b\" }", "is set by mcpx itself"),
        ("url = \"https://x/\"\nheaders = { \"a b\" = \"c\" }", "is no name of a header"),
        ("url = \"https://x/\"\nheaders = { A = \"b\\nc\" }", "one line of plain text"),
        ("url = \"https://x/\"\nheaders = { A = \"b\", a = \"c\" }", "is given twice"),
        ("httpUrl = \"https://x/\"\nurl = \"https://x/\"", "unknown key `httpUrl`; write `url`"),
        ("type = \"http\"\nurl = \"https://x/\"", "unknown key `type`; "),
    ] {
        let mistake = only_mistake(&format!("[servers.a]\n{table}\n"));
        assert!(mistake.contains(expected), "{mistake} should say {expected}");
    }
}

#[test]
fn mistakes_of_a_credential_are_named() {
    for (auth, expected) in [
        ("\"token\"", "`auth` is a table, found text; write it like { type"),
        ("{ token = \"x\" }", "`auth` has no `type`"),
        ("{ type = \"oauth\" }", "oauth is not supported by this version"),
        ("{ type = \"barer\", token = \"x\" }", "did you mean `bearer`?"),
        ("{ type = \"bearer\" }", "`auth` of type bearer has no `token`"),
        ("{ type = \"bearer\", tokn = \"\", token = \"x\" }", "`auth.tokn` is not known to bearer"),
        ("{ type = \"basic\", username = \"a:b\", password = \"\" }", "has no colon"),
        ("{ type = \"header\", name = \"a b\", value = \"c\" }", "is no name of a header"),
        ("{ type = \"query\", name = \"\", value = \"c\" }", "`name` is empty"),
        ("{ type = \"bearer\", token = \"${x\" }", "`auth.token`: a reference begins"),
        ("{ type = \"env\", name = \"A\", value = \"c\" }", "belongs to a `command`"),
    ] {
        let mistake = only_mistake(&format!("[servers.a]\nurl = \"https://x/\"\nauth = {auth}\n"));
        assert!(mistake.contains(expected), "{mistake} should say {expected}");
    }
    let text = "[servers.a]\ncommand = \"a\"\nauth = { type = \"bearer\", token = \"x\" }\n";
    assert!(only_mistake(text).contains("with a `command`, `auth` is of type env"));
    let text = "[servers.a]\nurl = \"https://x/\"\nheaders = { authorization = \"x\" }\n\
                auth = { type = \"bearer\", token = \"x\" }\n";
    assert!(only_mistake(text).contains("given by both `headers` and `auth`"));
}

#[test]
fn no_secret_stands_in_debug_output() {
    let text = "[servers.a]\nurl = \"https://x/?k=hush\"\nheaders = { A = \"hush\" }\n\
                auth = { type = \"bearer\", token = \"hush\" }\n";
    let servers = read_all(text).unwrap();
    let shown = format!("{servers:?} {:?}", servers[0].auth);
    assert!(!shown.contains("hush"), "{shown}");
}

#[test]
fn a_command_line_as_one_text_is_refused_with_the_list_to_write() {
    let mistake = only_mistake("[servers.a]\ncommand = \"npx -y server\"\n");
    assert!(mistake.ends_with("[\"npx\", \"-y\", \"server\"]"), "{mistake}");
    assert!(only_mistake("[servers.a]\ncommand = []\n").contains("names no program"));
}

#[test]
fn contradictions_and_bad_references_are_refused() {
    let text =
        "[servers.a]\ncommand = \"a\"\nrevision = \"2025-06-18\"\nprotocol = \"force-discover\"\n";
    assert!(only_mistake(text).contains("can never be agreed"));
    let text = "[servers.a]\ncommand = \"a\"\nrevision = \"2025-06-18\"\nprotocol = \"follow\"\n";
    assert!(only_mistake(text).contains("leave one of them out"));
    let text = "[servers.a]\ncommand = \"a\"\nenv = { T = \"${env:TOKEN\" }\n";
    let mistake = only_mistake(text);
    assert!(mistake.contains(":3:13: server `a`: `env.T`: "), "{mistake}");
}

#[test]
fn labels_towards_hosts_are_taken_as_written_or_refused() {
    let text = "[servers.a]\ncommand = \"a\"\nnamespace = \"My Server\"\n";
    assert!(only_mistake(text).contains("would do"), "{}", only_mistake(text));
}
