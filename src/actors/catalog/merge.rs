//! What becomes of a list that an upstream gave, and of all lists together. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CatalogServer, Listing, Snapshot, ToolRecord};
use crate::protocol::Notice;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::session::upstream::ListRead;
use crate::settings::ServerDef;

/// All servers, by configuration key.
pub(super) type Entries = BTreeMap<String, Arc<CatalogServer>>;

/// A tool's record; `None` where it has no name to call it by.
pub(super) fn record(raw: RawJson) -> Option<ToolRecord> {
    let name = raw.member_str("name").filter(|name| !name.is_empty())?;
    let hints = raw.member("annotations");
    let hint = |key| {
        let value = hints.as_ref().and_then(|hints| hints.member(key));
        value.is_some_and(|value| value.as_bytes() == b"true")
    };
    let repeatable = hint("readOnlyHint") || hint("idempotentHint");
    Some(ToolRecord { name, raw, repeatable })
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

/// The entry of a server whose tools have been read.
pub(super) fn listed(old: &CatalogServer, read: ListRead) -> (CatalogServer, Vec<Notice>) {
    let (tools, mut notices) = tools(&old.def.key, read.items);
    let listing = match read.incomplete {
        None => Listing::Whole,
        Some(why) => {
            let key = &old.def.key;
            let text = format!("server `{key}`: its tool list is not whole: {why}");
            notices.push(Notice::server(text));
            Listing::Incomplete(why)
        }
    };
    // The old list is kept where nothing changed, so that comparing again costs nothing.
    let tools = if tools == old.tools { Arc::clone(&old.tools) } else { tools };
    (CatalogServer { listing, tools, ..old.clone() }, notices)
}

/// The entry of a server whose tools could not be read: what was known stays.
pub(super) fn list_failed(old: &CatalogServer, why: String) -> CatalogServer {
    let listing = match &old.listing {
        Listing::Whole => Listing::Whole,
        Listing::Never | Listing::Incomplete(_) => Listing::Incomplete(why),
    };
    CatalogServer { listing, ..old.clone() }
}

/// The view of all servers, sorted by namespace. (Clashes of namespaces are refused when the
/// configuration is read, H-47.)
pub(super) fn snapshot(entries: &Entries) -> Snapshot {
    let mut servers: Vec<_> = entries.values().cloned().collect();
    servers.sort_by(|a, b| (&a.def.namespace, &a.def.key).cmp(&(&b.def.namespace, &b.def.key)));
    Snapshot::new(servers)
}

/// What is kept of a server on disk.
#[derive(Serialize, Deserialize)]
struct Kept {
    version: u32,
    info: Option<RawJson>,
    instructions: Option<String>,
    incomplete: Option<String>,
    tools: Vec<RawJson>,
}

/// The only layout so far.
const KEPT_VERSION: u32 = 1;

/// The text to keep; `None` where nothing was ever listed.
pub(super) fn keep(server: &CatalogServer) -> Option<Vec<u8>> {
    let incomplete = match &server.listing {
        Listing::Never => return None,
        Listing::Whole => None,
        Listing::Incomplete(why) => Some(why.clone()),
    };
    let kept = Kept {
        version: KEPT_VERSION,
        info: server.info.clone(),
        instructions: server.instructions.clone(),
        incomplete,
        tools: server.tools.iter().map(|tool| tool.raw.clone()).collect(),
    };
    serde_json::to_vec(&kept).ok()
}

/// The entry of a server as it was kept; anything unreadable counts as never listed.
pub(super) fn restore(def: Arc<ServerDef>, kept: Option<&[u8]>) -> CatalogServer {
    let kept = kept.and_then(|text| serde_json::from_slice::<Kept>(text).ok());
    let Some(kept) = kept.filter(|kept| kept.version == KEPT_VERSION) else {
        return CatalogServer {
            def,
            info: None,
            instructions: None,
            listing: Listing::Never,
            tools: Arc::new([]),
        };
    };
    let (tools, _) = tools(&def.key, kept.tools);
    CatalogServer {
        def,
        info: kept.info,
        instructions: kept.instructions,
        listing: kept.incomplete.map_or(Listing::Whole, Listing::Incomplete),
        tools,
    }
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
        let (server, notices) = listed(&never(), read(&items));
        assert_eq!(names(&server), ["a", "b"]);
        assert_eq!(notices.len(), 2);
        assert_eq!(server.tools[0].raw.as_str(), items[1]);
        assert_eq!(server.tools[1].raw.as_str(), items[0]);
        assert!(server.tools[0].repeatable && !server.tools[1].repeatable);
    }

    /// F38: a list that did not change is the same entry, so that nobody is told.
    #[test]
    fn f38_an_unchanged_list_is_equal() {
        let (first, _) = listed(&never(), read(&[r#"{"name":"a"}"#, r#"{"name":"b"}"#]));
        let (second, _) = listed(&first, read(&[r#"{"name":"b"}"#, r#"{"name":"a"}"#]));
        assert_eq!(first, second);
        assert!(Arc::ptr_eq(&first.tools, &second.tools));
        let (third, _) = listed(&first, read(&[r#"{"name":"a","title":"x"}"#, r#"{"name":"b"}"#]));
        assert_ne!(first, third);
    }

    /// F39, F48: a failed reading takes nothing away.
    #[test]
    fn f39_a_failed_reading_keeps_what_was_known() {
        let (whole, _) = listed(&never(), read(&[r#"{"name":"a"}"#]));
        assert_eq!(list_failed(&whole, "late".into()), whole);
        let failed = list_failed(&never(), "late".into());
        assert_eq!(failed.listing, Listing::Incomplete("late".into()));
    }

    #[test]
    fn what_is_kept_comes_back_and_rubbish_is_never_listed() {
        let (whole, _) = listed(&never(), read(&[r#"{"name":"a","x":[1e2,-0]}"#]));
        let text = keep(&whole).unwrap();
        assert_eq!(restore(Arc::clone(&whole.def), Some(&text)), whole);
        assert_eq!(restore(Arc::clone(&whole.def), Some(b"{}")), never());
        assert_eq!(keep(&never()), None);
    }
}
