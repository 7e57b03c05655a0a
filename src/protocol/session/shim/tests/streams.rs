//! Listen streams over the daemon's absence (F47, H-38).

use serde_json::json;

use super::*;

fn listen(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}},"notifications":{{"toolsListChanged":true}}}}}}"#
    )
}

fn again(id: &str) -> String {
    listen(id).replace("2026-07-28\"}", "2026-07-28\",\"dev.mcpx/again\":true}")
}

fn acknowledged(id: &str, agreed: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{agreed}}}}}"#
    )
}

fn changed(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#;
const TOOLS: &str = r#"{"toolsListChanged":true}"#;

/// A shim with this stream open.
fn open(id: &str) -> Rig {
    let mut rig = Rig::new();
    rig.attach();
    rig.host(&listen(id));
    assert_eq!(rig.daemon_got(), [listen(id)]);
    rig.daemon(&acknowledged(id, TOOLS));
    assert_eq!(rig.host_got().len(), 1);
    rig
}

/// The next daemon is asked for it under its own id, before what waits; the host hears nothing but
/// what there is to tell. However long that takes.
#[test]
fn f47_streams_are_opened_again() {
    let mut rig = open(r#""l""#);
    for wait in [1, 10_000] {
        rig.lose();
        assert_eq!(rig.shim.open_requests(), 0, "no daemon is started for it");
        rig.at(wait);
        rig.host(LIST);
        rig.attach();
        assert_eq!(rig.daemon_got(), [again(r#""l""#), LIST.to_owned()]);
        rig.daemon(&acknowledged(r#""l""#, TOOLS));
        assert!(rig.host_got().is_empty(), "it was acknowledged before");
        rig.daemon(&changed(r#""l""#));
        rig.daemon(r#"{"jsonrpc":"2.0","id":5,"result":{"tools":[]}}"#);
        assert_eq!(rig.host_got().len(), 2);
    }
    assert_eq!(rig.shim.awaited_requests(), 0, "the host's end waits for no stream");
}

/// Where the next daemon agrees to something else, the host is told.
#[test]
fn another_agreement_is_told() {
    let mut rig = open("1");
    rig.lose();
    rig.attach();
    rig.daemon(&acknowledged("1", "{}"));
    assert_eq!(rig.host_got().len(), 1);
    // An acknowledgement that nobody asked for is not ours to judge.
    rig.daemon(&acknowledged("1", "{}"));
    rig.daemon(&acknowledged("9", "{}"));
    assert_eq!(rig.host_got().len(), 2);
}

/// One that was never acknowledged waits as other questions do, and is refused as they are.
#[test]
fn f47_a_stream_that_was_never_acknowledged() {
    let mut rig = Rig::new();
    rig.attach();
    rig.host(&listen("1"));
    rig.lose();
    rig.attach();
    assert_eq!(rig.daemon_got(), [listen("1"), listen("1")]);
    rig.lose();
    rig.at(31);
    let told = rig.host_got();
    assert_eq!((&told[0]["id"], &told[0]["error"]["code"]), (&json!(1), &json!(-32603)));
    rig.attach();
    assert!(rig.daemon_got().is_empty());
}

/// What has ended stays so: by the host, also while there is no daemon, or by the daemon.
#[test]
fn streams_that_have_ended_are_not_opened_again() {
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#;
    let ends: [&dyn Fn(&mut Rig); 3] = [
        &|rig| rig.host(cancel),
        &|rig| {
            rig.lose();
            rig.host(cancel);
        },
        &|rig| {
            rig.daemon(cancel);
            rig.daemon(result);
            assert_eq!(rig.host_got().len(), 2, "both reach the host");
        },
    ];
    for end in ends {
        let mut rig = open("1");
        end(&mut rig);
        rig.lose();
        rig.daemon_got();
        rig.attach();
        assert!(rig.daemon_got().is_empty());
    }
}
