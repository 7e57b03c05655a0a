//! What becomes of a list that an upstream gave, and of all lists together. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CatalogServer, Listing, Offer, Offers, Snapshot, ToolRecord};
use crate::protocol::Notice;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::tasks::Support;
use crate::protocol::model::tool::Hints;
use crate::protocol::session::upstream::{ListKind, ListRead};
use crate::settings::{Rule, ServerDef};

/// All servers, by configuration key.
pub(super) type Entries = BTreeMap<String, Arc<CatalogServer>>;

/// A tool's record; `None` where it has no name to call it by.
pub(super) fn record(raw: RawJson) -> Option<ToolRecord> {
    let name = raw.member_str("name").filter(|name| !name.is_empty())?;
    let repeatable = Hints::of(&raw).is_repeatable();
    let tasks = Support::of(&raw);
    Some(ToolRecord { name, raw, repeatable, tasks })
}

/// Sorted by name (P-11), each name once: the first wins (F40).
pub(super) fn tools(server: &str, items: Vec<RawJson>) -> (Arc<[Arc<ToolRecord>]>, Vec<Notice>) {
    let mut notices = Vec::new();
    let mut found: BTreeMap<String, Arc<ToolRecord>> = BTreeMap::new();
    for raw in items {
        let Some(tool) = record(raw) else {
            notices.push(Notice::server(format!(
                "server `{server}`: a tool without a name was left out",
            )));
            continue;
        };
        if found.contains_key(&tool.name) {
            notices.push(Notice::server(format!(
                "server `{server}`: tool `{}` is listed twice; the first is used",
                tool.name,
            )));
            continue;
        }
        found.insert(tool.name.clone(), Arc::new(tool));
    }
    (found.into_values().collect(), notices)
}

/// Sorted by key, each key once: the first wins (F40).
fn offers(server: &str, kind: ListKind, items: Vec<RawJson>) -> (Arc<[Arc<Offer>]>, Vec<Notice>) {
    let (noun, member) = (kind.noun(), kind.item_key());
    let mut notices = Vec::new();
    let mut found: BTreeMap<String, Arc<Offer>> = BTreeMap::new();
    for raw in items {
        let Some(key) = raw.member_str(member).filter(|key| !key.is_empty()) else {
            let text = format!("server `{server}`: one of its {noun} has no `{member}`; left out");
            notices.push(Notice::server(text));
            continue;
        };
        if found.contains_key(&key) {
            let text =
                format!("server `{server}`: `{key}` is twice among its {noun}; the first is used");
            notices.push(Notice::server(text));
            continue;
        }
        found.insert(key.clone(), Arc::new(Offer { key, raw }));
    }
    (found.into_values().collect(), notices)
}

/// The entry of a server of which a list has been read. The old list is kept where nothing changed,
/// so that comparing again costs nothing.
pub(super) fn listed(
    old: &CatalogServer,
    kind: ListKind,
    read: ListRead,
) -> (CatalogServer, Vec<Notice>) {
    let server = &old.def.key;
    let mut entry = old.clone();
    let mut notices = if kind == ListKind::Tools {
        let (tools, notices) = tools(server, read.items);
        if tools != entry.tools {
            entry.tools = tools;
        }
        notices
    } else {
        let (items, notices) = offers(server, kind, read.items);
        if let Some(list) = offers_mut(&mut entry, kind)
            && list.items != items
        {
            list.items = items;
        }
        notices
    };
    *listing_mut(&mut entry, kind) = match read.incomplete {
        None => Listing::Whole,
        Some(why) => {
            let text =
                format!("server `{server}`: its list of {} is not whole: {why}", kind.noun());
            notices.push(Notice::server(text));
            Listing::Incomplete(why)
        }
    };
    (entry, notices)
}

/// The entry of a server of which a list could not be read: what was known stays.
pub(super) fn list_failed(old: &CatalogServer, kind: ListKind, why: String) -> CatalogServer {
    let mut entry = old.clone();
    let listing = listing_mut(&mut entry, kind);
    if *listing != Listing::Whole {
        *listing = Listing::Incomplete(why);
    }
    entry
}

/// The list of this kind; none for tools, which have records of their own.
const fn offers_mut(entry: &mut CatalogServer, kind: ListKind) -> Option<&mut Offers> {
    match kind {
        ListKind::Tools => None,
        ListKind::Resources => Some(&mut entry.resources),
        ListKind::Templates => Some(&mut entry.templates),
        ListKind::Prompts => Some(&mut entry.prompts),
    }
}

const fn listing_mut(entry: &mut CatalogServer, kind: ListKind) -> &mut Listing {
    match kind {
        ListKind::Tools => &mut entry.listing,
        ListKind::Resources => &mut entry.resources.listing,
        ListKind::Templates => &mut entry.templates.listing,
        ListKind::Prompts => &mut entry.prompts.listing,
    }
}

/// The view of all servers, sorted by namespace. (Clashes of namespaces are refused when the
/// configuration is read, H-47.)
pub(super) fn snapshot(entries: &Entries) -> Snapshot {
    let mut servers: Vec<_> = entries.values().cloned().collect();
    servers.sort_by(|a, b| (&a.def.namespace, &a.def.key).cmp(&(&b.def.namespace, &b.def.key)));
    Snapshot::new(servers)
}

/// What is kept of a server on disk. Version 1 had nothing but tools.
#[derive(Serialize, Deserialize)]
struct Kept {
    version: u32,
    info: Option<RawJson>,
    instructions: Option<String>,
    #[serde(default)]
    capabilities: Option<RawJson>,
    incomplete: Option<String>,
    tools: Vec<RawJson>,
    #[serde(default)]
    resources: Option<KeptList>,
    #[serde(default)]
    templates: Option<KeptList>,
    #[serde(default)]
    prompts: Option<KeptList>,
}

/// A list that has been read.
#[derive(Serialize, Deserialize)]
struct KeptList {
    incomplete: Option<String>,
    items: Vec<RawJson>,
}

/// The newest layout; older ones are read.
const KEPT_VERSION: u32 = 2;

/// As it is shown: without the tools that may not be called, as if there were none of those names.
pub(super) fn shown(server: &Arc<CatalogServer>) -> Arc<CatalogServer> {
    let rules = &server.def.tools;
    let open = |tool: &&Arc<ToolRecord>| rules.of(&tool.name) != Rule::Deny;
    if rules.is_empty() || server.tools.iter().filter(open).count() == server.tools.len() {
        return Arc::clone(server);
    }
    let tools = server.tools.iter().filter(open).cloned().collect();
    Arc::new(CatalogServer { tools, ..(**server).clone() })
}

/// The text to keep; `None` where the tools were never listed, which are read first.
pub(super) fn keep(server: &CatalogServer) -> Option<Vec<u8>> {
    if server.listing == Listing::Never {
        return None;
    }
    let kept = Kept {
        version: KEPT_VERSION,
        info: server.info.clone(),
        instructions: server.instructions.clone(),
        capabilities: server.capabilities.clone(),
        incomplete: incomplete(&server.listing),
        tools: server.tools.iter().map(|tool| tool.raw.clone()).collect(),
        resources: keep_list(&server.resources),
        templates: keep_list(&server.templates),
        prompts: keep_list(&server.prompts),
    };
    serde_json::to_vec(&kept).ok()
}

fn keep_list(list: &Offers) -> Option<KeptList> {
    (list.listing != Listing::Never).then(|| KeptList {
        incomplete: incomplete(&list.listing),
        items: list.items.iter().map(|item| item.raw.clone()).collect(),
    })
}

/// Why a list that has been read is not whole, where it is not.
fn incomplete(listing: &Listing) -> Option<String> {
    match listing {
        Listing::Never | Listing::Whole => None,
        Listing::Incomplete(why) => Some(why.clone()),
    }
}

/// The entry of a server as it was kept; anything unreadable counts as never listed.
pub(super) fn restore(def: Arc<ServerDef>, kept: Option<&[u8]>) -> CatalogServer {
    let kept = kept.and_then(|text| serde_json::from_slice::<Kept>(text).ok());
    let mut entry = CatalogServer {
        def,
        info: None,
        instructions: None,
        capabilities: None,
        listing: Listing::Never,
        tools: Arc::new([]),
        resources: Offers::default(),
        templates: Offers::default(),
        prompts: Offers::default(),
    };
    let Some(kept) = kept.filter(|kept| (1..=KEPT_VERSION).contains(&kept.version)) else {
        return entry;
    };
    let key = entry.def.key.clone();
    let list = |kind, list: Option<KeptList>| {
        list.map_or_else(Offers::default, |list| Offers {
            listing: read_listing(list.incomplete),
            items: offers(&key, kind, list.items).0,
        })
    };
    entry.resources = list(ListKind::Resources, kept.resources);
    entry.templates = list(ListKind::Templates, kept.templates);
    entry.prompts = list(ListKind::Prompts, kept.prompts);
    entry.tools = tools(&key, kept.tools).0;
    entry.listing = read_listing(kept.incomplete);
    entry.info = kept.info;
    entry.instructions = kept.instructions;
    entry.capabilities = kept.capabilities;
    entry
}

fn read_listing(incomplete: Option<String>) -> Listing {
    incomplete.map_or(Listing::Whole, Listing::Incomplete)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn raw(text: &'static str) -> RawJson {
        RawJson::parse(bytes::Bytes::from_static(text.as_bytes())).unwrap()
    }

    fn never() -> CatalogServer {
        restore(Arc::new(ServerDef::demo(Path::new("/bin/x"))), None)
    }

    fn read(items: &[&'static str]) -> ListRead {
        let items = items.iter().map(|item| raw(item)).collect();
        ListRead { items, incomplete: None, ttl_ms: None }
    }

    fn names(server: &CatalogServer) -> Vec<&str> {
        server.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// P-11, F40: sorted by name; duplicates and nameless ones are told of and left out.
    #[test]
    fn p11_tools_are_sorted_and_unique() {
        let items = [
            r#"{"name":"b","inputSchema":null}"#,
            r#"{"name":"a","annotations":{"readOnlyHint":true},"_meta":{"n":1e2}}"#,
            r#"{"name":"b","second":true}"#,
            r#"{"title":"nameless"}"#,
        ];
        let (server, notices) = listed(&never(), ListKind::Tools, read(&items));
        assert_eq!(names(&server), ["a", "b"]);
        assert_eq!(notices.len(), 2);
        assert_eq!(server.tools[0].raw.as_str(), items[1]);
        assert_eq!(server.tools[1].raw.as_str(), items[0]);
        assert!(server.tools[0].repeatable && !server.tools[1].repeatable);
    }

    /// F38: a list that did not change is the same entry, so that nobody is told.
    #[test]
    fn f38_an_unchanged_list_is_equal() {
        let (first, _) =
            listed(&never(), ListKind::Tools, read(&[r#"{"name":"a"}"#, r#"{"name":"b"}"#]));
        let (second, _) =
            listed(&first, ListKind::Tools, read(&[r#"{"name":"b"}"#, r#"{"name":"a"}"#]));
        assert_eq!(first, second);
        assert!(Arc::ptr_eq(&first.tools, &second.tools));
        let (third, _) = listed(
            &first,
            ListKind::Tools,
            read(&[r#"{"name":"a","title":"x"}"#, r#"{"name":"b"}"#]),
        );
        assert_ne!(first, third);
    }

    /// F39, F48: a failed reading takes nothing away.
    #[test]
    fn f39_a_failed_reading_keeps_what_was_known() {
        let (whole, _) = listed(&never(), ListKind::Tools, read(&[r#"{"name":"a"}"#]));
        assert_eq!(list_failed(&whole, ListKind::Tools, "late".into()), whole);
        let failed = list_failed(&never(), ListKind::Tools, "late".into());
        assert_eq!(failed.listing, Listing::Incomplete("late".into()));
    }

    #[test]
    fn what_is_kept_comes_back_and_rubbish_is_never_listed() {
        let (whole, _) = listed(&never(), ListKind::Tools, read(&[r#"{"name":"a","x":[1e2,-0]}"#]));
        let text = keep(&whole).unwrap();
        assert_eq!(restore(Arc::clone(&whole.def), Some(&text)), whole);
        assert_eq!(restore(Arc::clone(&whole.def), Some(b"{}")), never());
        assert_eq!(keep(&never()), None);
    }

    /// R-02: resources, templates and prompts are kept, each by its own key, and come back; what an
    /// earlier version kept has its tools, and the rest was never listed.
    #[test]
    fn r02_every_list_is_kept() {
        let (tools, _) = listed(&never(), ListKind::Tools, read(&[r#"{"name":"a"}"#]));
        let items = [r#"{"uri":"b:","name":"n"}"#, r#"{"uri":"a:"}"#, r#"{"name":"n"}"#];
        let (server, notices) = listed(&tools, ListKind::Resources, read(&items));
        assert_eq!(notices.len(), 1);
        assert_eq!(server.resources.items[0].key, "a:");
        assert_eq!(server.resources.get("b:").unwrap().raw.as_str(), items[0]);
        let (server, _) =
            listed(&server, ListKind::Templates, read(&[r#"{"uriTemplate":"db://{t}"}"#]));
        let server = list_failed(&server, ListKind::Prompts, "late".into());
        assert_eq!(server.listing_of(ListKind::Prompts), &Listing::Incomplete("late".into()));
        let text = keep(&server).unwrap();
        assert_eq!(restore(Arc::clone(&server.def), Some(&text)), server);

        let old = br#"{"version":1,"info":null,"instructions":"i","incomplete":null,"tools":[{"name":"a"}]}"#;
        let old = restore(Arc::clone(&server.def), Some(old));
        assert_eq!((names(&old), &old.listing), (vec!["a"], &Listing::Whole));
        assert_eq!(old.resources, Offers::default());
    }

    /// A-09, product.md 3: what is denied is shown to nobody, kept on disk, and there again when the rule
    /// goes.
    #[test]
    fn a_denied_tool_is_not_shown() {
        let mut def = ServerDef::demo(Path::new("/bin/x"));
        def.tools.deny = vec![crate::settings::policy::Glob::parse("b*").unwrap()];
        let mut entry = restore(Arc::new(def), None);
        let items =
            ["a", "b", "c"].map(|name| RawJson::write(&serde_json::json!({ "name": name })));
        entry.tools = tools("demo", items.to_vec()).0;
        entry.listing = Listing::Whole;
        let names = |server: &CatalogServer| -> Vec<String> {
            server.tools.iter().map(|tool| tool.name.clone()).collect()
        };
        let snapshot = Snapshot::new(vec![Arc::new(entry.clone())]);
        let shown = snapshot.servers.first().unwrap();
        assert_eq!(names(shown), ["a", "c"]);
        assert!(shown.tool("b").is_none());
        assert_eq!(names(snapshot.whole.first().unwrap()), ["a", "b", "c"]);
        let kept = keep(&entry).unwrap();
        let again = restore(Arc::new(ServerDef::demo(Path::new("/bin/x"))), Some(&kept));
        assert_eq!(names(&again), ["a", "b", "c"]);
    }
}
