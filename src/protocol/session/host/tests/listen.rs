//! `subscriptions/listen` (H-37 to H-39, T-15).

use super::*;

const ALL: &str = r#","notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:b","c:d"]}"#;

fn host() -> Host {
    let capabilities = r#"{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"logging":{}}"#;
    Host::with(HostConfig { capabilities: raw(capabilities), ..config() })
}

/// Opens a stream with this id and these parameters.
fn listen(host: &mut Host, id: &str, more: &str) -> ListenWant {
    let frames = host.say(&modern(id, "subscriptions/listen", more));
    assert!(frames.is_empty(), "{frames:?}");
    match host.events.pop() {
        Some(HostEvent::Listen(want)) => want,
        other => panic!("{other:?}"),
    }
}

fn agree(host: &mut Host, want: &ListenWant) -> Vec<String> {
    host.session.agree(host.now, want.key, want.filter.clone());
    host.drain()
}

fn note(host: &mut Host, key: CallKey, note: ListenNote) -> Vec<String> {
    host.session.listen_note(host.now, key, note);
    host.drain()
}

fn updated(uri: &str) -> ListenNote {
    ListenNote::Updated(uri.to_owned())
}

fn tagged(method: &str, id: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"{method}","params":{{{more}"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

/// H-37: acknowledged first, with what mcpx declared; each message has the id exactly as it was
/// written; what was not agreed is not sent.
#[test]
fn h37_acknowledged_tagged_and_filtered() {
    for id in ["7", r#""7""#, "1e2", r#""a\u0062""#] {
        let mut host = host();
        let want = listen(&mut host, id, ALL);
        let asked = r#"{"toolsListChanged":true,"resourceSubscriptions":["a:b","c:d"]}"#;
        assert_eq!(want.filter.write().as_str(), asked, "prompts were not declared");
        let early = note(&mut host, want.key, ListenNote::Changed(ListKind::Tools));
        assert!(early.is_empty(), "nothing comes before the acknowledgement");
        let mut agreed = want.filter.clone();
        agreed.uris.remove("c:d");
        agreed.prompts = true;
        host.session.agree(host.now, want.key, agreed);
        let told = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}}}}}}"#
        );
        assert_eq!(host.drain(), [told]);
        assert!(agree(&mut host, &want).is_empty(), "once");

        let tools = note(&mut host, want.key, ListenNote::Changed(ListKind::Tools));
        assert_eq!(tools, [tagged("notifications/tools/list_changed", id, "")]);
        let update = note(&mut host, want.key, updated("a:b"));
        assert_eq!(update, [tagged("notifications/resources/updated", id, r#""uri":"a:b","#)]);
        for refused in [
            ListenNote::Changed(ListKind::Prompts),
            ListenNote::Changed(ListKind::Resources),
            ListenNote::Changed(ListKind::Templates),
            updated("c:d"),
            updated("a:b/below"),
            ListenNote::Task { id: "t".to_owned(), params: raw("{}") },
        ] {
            assert!(note(&mut host, want.key, refused).is_empty());
        }
    }
}

/// H-38: any number, told apart by their ids; one id is open once; a cancellation ends one.
#[test]
fn h38_streams_are_told_apart_by_their_ids() {
    let mut host = host();
    let one = listen(&mut host, "1", ALL);
    let text = listen(&mut host, r#""1""#, ALL);
    for want in [&one, &text] {
        assert_eq!(agree(&mut host, want).len(), 1);
    }
    assert_eq!(code(&host.ask(&modern("1", "subscriptions/listen", ALL))), -32600);
    assert_eq!(code(&host.ask(&modern("1", "tools/call", ""))), -32600);
    // The limit is their own, and requests have theirs.
    let full = raw(&host.ask(&modern("3", "subscriptions/listen", ALL))).member("error").unwrap();
    let data = full.member("data").unwrap();
    assert_eq!(data.member_str("setting").as_deref(), Some("listen.max_per_host"));
    assert_eq!(data.member_str("reason").as_deref(), Some("busy"));
    for id in ["11", "12", "13"] {
        host.call(&modern(id, "tools/call", ""));
    }
    assert_eq!((host.session.listening(), host.session.in_flight()), (2, 3));

    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert!(host.say(cancel).is_empty());
    let Some(HostEvent::Cancelled { key }) = host.events.pop() else { panic!() };
    assert_eq!(key, one.key);
    assert!(note(&mut host, one.key, updated("a:b")).is_empty());
    host.session.end_listen(host.now, one.key, "late");
    assert!(host.drain().is_empty(), "the host has closed it");
    assert_eq!(note(&mut host, text.key, updated("a:b")).len(), 1);
    // Its id is free again.
    listen(&mut host, "1", ALL);
}

/// H-39: the cancellation while it is open, then the result; both pages are content.
#[test]
fn h39_our_own_ending() {
    let mut host = host();
    let want = listen(&mut host, r#""l""#, ALL);
    agree(&mut host, &want);
    host.session.end_listen(host.now, want.key, "on purpose");
    let frames = host.drain();
    let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"requestId":"l","reason":"on purpose"}}"#;
    assert_eq!(frames.first().map(String::as_str), Some(cancelled));
    let result = raw(&frames[1]).member("result").unwrap();
    assert_eq!((frames.len(), id(&frames[1]).as_deref()), (2, Some(r#""l""#)));
    assert_eq!(result.member_str("resultType").as_deref(), Some("complete"));
    let meta = result.member("_meta").unwrap();
    assert_eq!(meta.member_str(edge::keys::SUBSCRIPTION_ID).as_deref(), Some("l"));
    assert_eq!(host.session.listening(), 0);
    // One that is not acknowledged may say nothing of itself: it is an error then.
    let want = listen(&mut host, "2", ALL);
    host.session.end_listen(host.now, want.key, "on purpose");
    let frames = host.drain();
    assert_eq!((frames.len(), code(&frames[0])), (1, -32603));
}

/// T-15: tasks need the extension, declared on the request itself; with it they are told whole.
#[test]
fn t15_tasks_need_their_extension() {
    let mut host = host();
    let tasks = r#","notifications":{"taskIds":["t","u"]}"#;
    let refused = raw(&host.ask(&modern("1", "subscriptions/listen", tasks)));
    let error = refused.member("error").unwrap();
    assert_eq!(error.member("code").unwrap().as_str(), "-32021");
    let needed = r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
    assert_eq!(error.member("data").unwrap().as_str(), needed);
    let asks = modern("1", "subscriptions/listen", tasks)
        .replace(r#""roots":{}"#, r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#);
    assert!(host.say(&asks).is_empty());
    let Some(HostEvent::Listen(want)) = host.events.pop() else { panic!() };
    assert_eq!(want.filter.tasks.len(), 2);
    let mut agreed = want.filter.clone();
    agreed.tasks.remove("u");
    host.session.agree(host.now, want.key, agreed);
    assert!(host.drain()[0].contains(r#""notifications":{"taskIds":["t"]}"#));
    let task = |id: &str| ListenNote::Task {
        id: id.to_owned(),
        params: raw(&format!(r#"{{"taskId":"{id}","status":"working","_meta":{{"a/b":1e2}}}}"#)),
    };
    let told = r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t","status":"working","_meta":{"a/b":1e2,"io.modelcontextprotocol/subscriptionId":1}}}"#;
    assert_eq!(note(&mut host, want.key, task("t")), [told]);
    assert!(note(&mut host, want.key, task("u")).is_empty());
}

#[test]
fn what_is_no_filter_is_refused() {
    let mut host = host();
    for (id, more) in [("1", ""), ("2", r#","notifications":true"#)] {
        assert_eq!(code(&host.ask(&modern(id, "subscriptions/listen", more))), -32602);
    }
    // A host that asks for nothing is told that it gets nothing.
    let want = listen(&mut host, "3", r#","notifications":{}"#);
    assert!(agree(&mut host, &want)[0].contains(r#""notifications":{}"#));
    assert!(!want.again);
    let again = modern("4", "subscriptions/listen", ALL)
        .replace(r#""_meta":{"#, r#""_meta":{"dev.mcpx/again":true,"#);
    host.say(&again);
    let Some(HostEvent::Listen(want)) = host.events.pop() else { panic!() };
    assert!(want.again);
}

/// The end of the link closes them, and their limit is free.
#[test]
fn a_closed_link_closes_its_streams() {
    let mut host = host();
    let call = host.call(&modern("0", "tools/call", "")).key;
    let want = listen(&mut host, "1", ALL);
    host.session.handle_closed(host.now);
    host.drain();
    let closed = host.events.iter().filter_map(|event| match event {
        HostEvent::Cancelled { key } => Some(*key),
        _ => None,
    });
    assert_eq!(closed.collect::<Vec<_>>(), [call, want.key]);
    assert_eq!(host.session.listening(), 0);
    assert!(agree(&mut host, &want).is_empty());
}
