//! What a host is told that it did not ask for now.

use super::*;

#[test]
fn tools_changed_is_said_to_initialised_hosts_only() {
    let mut host = Host::fresh();
    host.note(HostNote::Changed(ListKind::Tools));
    assert!(host.drain().is_empty());
    host.ask(&plain("1", "initialize"));
    let told = host.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(told, [r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#]);
    assert!(host.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).is_empty());
    host.note(HostNote::Changed(ListKind::Tools));
    assert_eq!(host.drain().len(), 1);
    let mut fixed = Host::with(HostConfig { capabilities: raw(r#"{"tools":{}}"#), ..config() });
    fixed.shake("2025-06-18");
    fixed.note(HostNote::Changed(ListKind::Tools));
    assert!(fixed.drain().is_empty());
}

fn log(level: LogLevel, about: Option<CallKey>) -> HostNote {
    let text = format!(
        r#"{{"level":"{}","data":1,"_meta":{{"{}":7}}}}"#,
        level.as_str(),
        edge::keys::SUBSCRIPTION_ID
    );
    HostNote::Log { level, params: raw(&text), about }
}

/// H-42: what `logging/setLevel` lets through, in all legacy revisions, whenever it was said (F35).
#[test]
fn h42_legacy_hosts_hear_what_they_asked_for() {
    for revision in LEGACY {
        let mut host = Host::at(revision);
        let key = host.call(&plain("1", "tools/call")).key;
        host.note(log(LogLevel::Emergency, None));
        host.note(log(LogLevel::Emergency, Some(key)));
        assert!(host.drain().is_empty(), "nothing was asked for");
        host.ask(
            r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"notice"}}"#,
        );
        for about in [None, Some(key)] {
            host.note(log(LogLevel::Info, about));
            assert!(host.drain().is_empty());
            host.note(log(LogLevel::Notice, about));
            let told = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"notice","data":1}}"#;
            assert_eq!(host.drain(), [told]);
        }
        assert_eq!(host.call(&plain("3", "tools/call")).log_level, Some(LogLevel::Notice));
    }
}

/// H-41: a modern request hears what it asked for itself, until its answer.
#[test]
fn h41_modern_requests_hear_what_they_asked_for() {
    let mut host = Host::fresh();
    let silent = host.call(&modern("1", "tools/call", "")).key;
    let text = modern("2", "tools/call", "")
        .replace("\"_meta\":{", r#""_meta":{"io.modelcontextprotocol/logLevel":"error","#);
    let heard = host.call(&text);
    assert_eq!(heard.log_level, Some(LogLevel::Error));
    host.note(log(LogLevel::Emergency, Some(silent)));
    host.note(log(LogLevel::Warning, Some(heard.key)));
    host.note(log(LogLevel::Emergency, None));
    assert!(host.drain().is_empty());
    host.note(log(LogLevel::Error, Some(heard.key)));
    assert_eq!(host.drain().len(), 1);
    host.finish(heard.key, "{}");
    host.note(log(LogLevel::Error, Some(heard.key)));
    assert!(host.drain().is_empty());
}

/// R-05, R-11: each kind in its own notification, once, and only where it was declared.
#[test]
fn r11_changes_and_updates_reach_initialised_legacy_hosts() {
    let all = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}}"#;
    let mut host = Host::with(HostConfig { capabilities: raw(all), ..config() });
    host.ask(&plain("1", "initialize"));
    let updated = HostNote::ResourceUpdated { uri: "mcpx://a/b".to_owned() };
    let changed = HostNote::Changed(ListKind::Resources);
    for note in [changed.clone(), HostNote::Changed(ListKind::Prompts), updated.clone(), changed] {
        host.note(note);
    }
    assert!(host.drain().is_empty());
    let told = host.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(
        told,
        [
            r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mcpx://a/b"}}"#,
        ]
    );
    host.note(updated.clone());
    assert_eq!(host.drain().len(), 1);
    let mut plain_tools = Host::at("2025-11-25");
    for note in [updated, HostNote::Changed(ListKind::Prompts)] {
        plain_tools.note(note);
    }
    assert!(plain_tools.drain().is_empty());
    let mut modern_host = Host::with(HostConfig { capabilities: raw(all), ..config() });
    modern_host.ask(&modern("1", "server/discover", ""));
    modern_host.note(HostNote::Changed(ListKind::Tools));
    assert!(modern_host.drain().is_empty(), "it hears of them on its listen stream");
}

/// H-42: a flood of messages is cut off, and that is said once.
#[test]
fn h42_floods_of_messages_are_bounded() {
    let mut host = Host::with(HostConfig { log_rate: 3, ..config() });
    host.shake("2025-06-18");
    host.ask(r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}"#);
    for sent in [3, 3] {
        for _ in 0..10 {
            host.note(log(LogLevel::Info, None));
        }
        assert_eq!(host.drain().len(), sent);
        assert_eq!(host.notices.len(), 1);
        host.now += Duration::from_secs(1);
    }
}
