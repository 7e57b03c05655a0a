//! The views of two servers and more, mode by mode.

use std::path::Path;
use std::time::Duration;

use super::super::merge;
use super::*;
use crate::protocol::session::upstream::ListRead;
use crate::settings::ServerDef;

fn expose(mode: ExposeMode) -> ExposeSettings {
    let (list_wait, page, read_limit) = (Duration::ZERO, 50, 1024);
    ExposeSettings { mode, ops: false, name_limit: 64, list_wait, page, read_limit }
}

fn raw(text: String) -> RawJson {
    RawJson::parse(bytes::Bytes::from(text)).unwrap()
}

/// A server with these resources, templates and prompts.
fn server(
    namespace: &str,
    mode: Option<ExposeMode>,
    resources: &[&str],
    templates: &[&str],
    prompts: &[&str],
) -> Arc<CatalogServer> {
    let def = ServerDef {
        key: namespace.to_owned(),
        namespace: namespace.to_owned(),
        expose: mode,
        ..ServerDef::demo(Path::new("/bin/x"))
    };
    let mut entry = merge::restore(Arc::new(def), None);
    entry.capabilities = Some(raw(r#"{"resources":{},"prompts":{}}"#.to_owned()));
    let lists = [
        (ListKind::Resources, resources),
        (ListKind::Templates, templates),
        (ListKind::Prompts, prompts),
    ];
    for (kind, items) in lists {
        let key = kind.item_key();
        let items = items.iter().map(|item| raw(format!(r#"{{"{key}":{item:?},"n":1e2}}"#)));
        let read = ListRead { items: items.collect(), ..ListRead::default() };
        entry = merge::listed(&entry, kind, read).0;
    }
    Arc::new(entry)
}

fn names(items: &[ShownOffer]) -> Vec<&str> {
    items.iter().map(|item| item.shown.as_str()).collect()
}

/// Whatever is shown leads back to where it came from.
fn leads_back(view: &OffersView) {
    for item in view.resources() {
        let target = view.resolve(&item.shown).unwrap();
        assert_eq!((&target.uri, &target.server), (&item.offer.key, &item.server));
        assert_eq!(view.address_of(&item.server.def.key, &item.offer.key), item.shown);
    }
    for item in view.templates() {
        let target = view.resolve_template(&item.shown).unwrap();
        assert_eq!((&target.uri, &target.server), (&item.offer.key, &item.server));
    }
    for item in view.prompts() {
        assert_eq!(view.prompt(&item.shown).unwrap().offer, item.offer);
    }
}

/// R-01, R-07, R-12: core mode.
#[test]
fn r01_core_mode_has_addresses_of_mcpx() {
    let servers = [
        server("a", None, &["file:///README.md"], &["db://{t}/{r}"], &["p"]),
        server("b", None, &["file:///README.md"], &[], &["p", "q"]),
    ];
    let view = OffersView::new(&servers, &expose(ExposeMode::Core));
    leads_back(&view);
    let both = ["mcpx://a/file:///README.md", "mcpx://b/file:///README.md"];
    assert_eq!(names(view.resources()), both);
    assert_eq!(names(view.templates()), ["mcpx://a/db://{t}/{r}"]);
    assert_eq!(names(view.prompts()), ["a_p", "b_p", "b_q"]);
    let expected = r#"{"uri":"mcpx://a/file:///README.md","n":1e2,"name":"file:///README.md"}"#;
    assert_eq!(view.resources()[0].definition.as_str(), expected);
    // What a template gave goes to its server as it was filled in.
    let target = view.resolve("mcpx://a/db://users/a%2Fb").unwrap();
    assert_eq!((target.server.def.key.as_str(), target.uri.as_str()), ("a", "db://users/a%2Fb"));
    assert_eq!(view.address_of("a", "ui://x"), "mcpx://a/ui://x");
}

/// R-04: the causes that are told apart.
#[test]
fn r04_what_leads_nowhere() {
    let servers = [server("Ab", None, &["x:1"], &[], &[])];
    let view = OffersView::new(&servers, &expose(ExposeMode::Core));
    let missing = |address: &str| view.resolve(address).unwrap_err();
    assert_eq!(missing("x:1"), Missing::NotOurs("x:1".to_owned()));
    assert_eq!(missing("mcpx:///x:1"), Missing::NoNamespace("mcpx:///x:1".to_owned()));
    assert_eq!(missing("mcpx://Ab"), Missing::NoNamespace("mcpx://Ab".to_owned()));
    assert!(matches!(missing("mcpx://zz/x:1"), Missing::UnknownNamespace { .. }));
    assert_eq!(view.resolve("mcpx://ab/x:1").unwrap().uri, "x:1");
}

/// F46: two servers with one URI, in either order: never picked silently, both readable.
#[test]
fn f46_ambiguous_uris_are_never_picked() {
    let a = server("a", None, &["file:///README.md", "a:1"], &["ui://{x}"], &["p"]);
    let b = server("b", None, &["file:///README.md", "b:1"], &["ui://{y}/z"], &["p"]);
    for servers in [[a.clone(), b.clone()], [b, a]] {
        let view = OffersView::new(&servers, &expose(ExposeMode::Passthrough));
        leads_back(&view);
        let mut shown = names(view.resources());
        shown.sort_unstable();
        let all = ["a:1", "b:1", "mcpx://a/file:///README.md", "mcpx://b/file:///README.md"];
        assert_eq!(shown, all);
        let Err(Missing::Ambiguous { mut those, .. }) = view.resolve("file:///README.md") else {
            panic!("picked")
        };
        those.sort_unstable();
        assert_eq!(those, all[2..]);
        // Their templates may give the same URIs.
        assert!(names(view.templates()).iter().all(|name| name.starts_with("mcpx://")));
        assert!(matches!(view.resolve("ui://x/z"), Err(Missing::Ambiguous { .. })));
        assert_eq!(view.resolve("ui://x").unwrap().server.def.key, "a");
        // Listed nowhere: it could be either's.
        assert_eq!(view.resolve("c:1").unwrap_err(), Missing::NotOurs("c:1".to_owned()));
        assert_eq!(view.address_of("a", "c:1"), "mcpx://a/c:1");
    }
}

/// Modes may differ from server to server; one server alone has whatever is not listed, too.
#[test]
fn f46_mixed_modes() {
    let core = server("c", Some(ExposeMode::Core), &["file:///x"], &[], &["p"]);
    let pass = server("d", Some(ExposeMode::Both), &["file:///x"], &["db://{t}"], &["p"]);
    let view = OffersView::new(&[core, pass], &expose(ExposeMode::Core));
    leads_back(&view);
    assert_eq!(names(view.resources()), ["mcpx://c/file:///x", "file:///x"]);
    assert_eq!(names(view.templates()), ["db://{t}"]);
    assert_eq!(view.resolve("unlisted:1").unwrap().server.def.key, "d");
    assert_eq!(view.address_of("d", "unlisted:1"), "unlisted:1");
    assert_eq!(view.address_of("c", "unlisted:1"), "mcpx://c/unlisted:1");
    // A URI of its own that reads like an address of mcpx is told apart from one.
    assert_eq!(view.address_of("d", "mcpx://c/file:///x"), "mcpx://d/mcpx://c/file:///x");
}

/// Links of a server that has tools alone can be read nowhere, so they are not rewritten.
#[test]
fn f46_links_of_servers_without_resources_stay() {
    for mode in [ExposeMode::Core, ExposeMode::Passthrough] {
        let mut bare = CatalogServer::clone(&server("a", None, &[], &[], &[]));
        bare.capabilities = Some(raw(r#"{"tools":{}}"#.to_owned()));
        let other = server("b", None, &["b:1"], &[], &[]);
        let view = OffersView::new(&[Arc::new(bare), other], &expose(mode));
        assert_eq!(view.address_of("a", "https://a.test/x"), "https://a.test/x");
    }
}

/// F38: each list has its own digest, which changes with what is seen.
#[test]
fn f38_digests_are_of_what_is_seen() {
    let of = |resources: &[&str]| {
        let view = OffersView::new(
            &[server("a", None, resources, &[], &["p"])],
            &expose(ExposeMode::Core),
        );
        (view.digest(ListKind::Resources), view.digest(ListKind::Prompts))
    };
    assert_eq!(of(&["x:1", "x:2"]), of(&["x:2", "x:1"]));
    assert_ne!(of(&["x:1"]).0, of(&["x:2"]).0);
    assert_eq!(of(&["x:1"]).1, of(&["x:2"]).1);
}
