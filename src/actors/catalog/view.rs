//! What a host sees of the catalog in pass-through mode: every tool of every exposed server under a
//! name of its own. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{CatalogServer, Listing, ToolRecord};
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::settings::ExposeMode;
use crate::settings::typed::ExposeSettings;

/// See the module.
#[derive(Debug)]
pub struct View {
    tools: Vec<ViewTool>,
    digest: [u8; 32],
    by_name: HashMap<String, usize>,
    waits: bool,
    everything: bool,
}

/// One tool as a host sees it.
#[derive(Debug, Clone)]
pub struct ViewTool {
    /// Its name for hosts.
    pub name: String,
    /// The upstream's tool; calls use its own name.
    pub tool: Arc<ToolRecord>,
    /// Whose it is.
    pub server: Arc<CatalogServer>,
    /// The tool under its name for hosts, otherwise as it came.
    pub definition: RawJson,
}

impl View {
    /// The tools of all servers whose mode shows them. Bare names where exactly one server is
    /// exposed and its prefix is empty; with several, an empty prefix means the namespace.
    pub fn passthrough(servers: &[Arc<CatalogServer>], expose: &ExposeSettings) -> Self {
        let mode = |server: &CatalogServer| server.def.expose.unwrap_or(expose.mode);
        let exposed: Vec<_> =
            servers.iter().filter(|server| mode(server) != ExposeMode::Core).collect();
        let alone = exposed.len() == 1;
        let mut view = Self {
            tools: Vec::new(),
            digest: [0; 32],
            by_name: HashMap::new(),
            waits: exposed.iter().any(|server| server.listing == Listing::Never),
            everything: !servers.is_empty()
                && servers.iter().all(|server| mode(server) == ExposeMode::Passthrough),
        };
        for server in exposed {
            let prefix = match server.def.prefix.as_deref() {
                Some("") if alone => None,
                Some("") | None => Some(server.def.namespace.as_str()),
                Some(prefix) => Some(prefix),
            };
            for tool in server.tools.iter() {
                view.add(server, tool, prefix, expose.name_limit);
            }
        }
        view.digest = digest(&view.tools);
        view
    }

    /// The tools, sorted by server and then by name.
    pub fn tools(&self) -> &[ViewTool] {
        &self.tools
    }

    /// Differs where a host would see a difference (F38).
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Whether a server that it shows was never listed.
    pub const fn waits_for_lists(&self) -> bool {
        self.waits
    }

    /// Whether every server is shown in this way and in no other.
    pub const fn everything_passes(&self) -> bool {
        self.everything
    }

    /// The tool a host means by `name`.
    pub fn find(&self, name: &str) -> Option<&ViewTool> {
        self.tools.get(*self.by_name.get(name)?)
    }

    fn add(
        &mut self,
        server: &Arc<CatalogServer>,
        tool: &Arc<ToolRecord>,
        prefix: Option<&str>,
        limit: usize,
    ) {
        let wished = prefix.map_or_else(|| tool.name.clone(), |p| format!("{p}_{}", tool.name));
        let identity = format!("{}/{}", server.def.key, tool.name);
        let fits = wished.chars().count() <= limit && !self.by_name.contains_key(&wished);
        // `a_b` with `c` and `a` with `b_c` wish the same: the later one, by the order of servers,
        // gets a tail of its own, as does one that must be cut.
        let name = if fits { wished } else { with_tail(&wished, &identity, limit) };
        let definition = renamed(&tool.raw, &name);
        self.by_name.insert(name.clone(), self.tools.len());
        let (tool, server) = (Arc::clone(tool), Arc::clone(server));
        self.tools.push(ViewTool { name, tool, server, definition });
    }
}

/// Bytes of the hash that tells cut names apart: eight hexadecimal digits.
const TAIL: usize = 4;

/// `name` within `limit` characters, with a tail that depends on `identity` alone.
fn with_tail(name: &str, identity: &str, limit: usize) -> String {
    let tail: String =
        Sha256::digest(identity).iter().take(TAIL).map(|byte| format!("{byte:02x}")).collect();
    let room = limit.saturating_sub(tail.len() + 1);
    let head: String = name.chars().take(room).collect();
    format!("{head}_{tail}")
}

fn renamed(raw: &RawJson, name: &str) -> RawJson {
    let mut object = Object::read_or_empty(Some(raw));
    if object.get_str("name").as_deref() == Some(name) {
        return raw.clone();
    }
    object.set("name", RawJson::write(name));
    object.write()
}

fn digest(tools: &[ViewTool]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for tool in tools {
        hash.update(tool.definition.as_bytes());
        // Not JSON, so that no two lists have the same bytes.
        hash.update([0]);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::super::merge;
    use super::*;
    use crate::settings::ServerDef;

    fn server(namespace: &str, prefix: Option<&str>, names: &[&str]) -> Arc<CatalogServer> {
        let def = ServerDef {
            key: namespace.to_owned(),
            namespace: namespace.to_owned(),
            prefix: prefix.map(str::to_owned),
            ..ServerDef::demo(Path::new("/bin/x"))
        };
        let items = names
            .iter()
            .map(|name| {
                let text = format!(r#"{{"x":1e2,"name":{name:?},"_meta":{{}}}}"#);
                RawJson::parse(bytes::Bytes::from(text)).unwrap()
            })
            .collect();
        Arc::new(CatalogServer {
            listing: Listing::Whole,
            tools: merge::tools(namespace, items).0,
            ..merge::restore(Arc::new(def), None)
        })
    }

    fn expose(name_limit: usize) -> ExposeSettings {
        ExposeSettings {
            mode: ExposeMode::Passthrough,
            ops: false,
            name_limit,
            list_wait: Duration::ZERO,
            page: 50,
        }
    }

    fn names(servers: &[Arc<CatalogServer>], limit: usize) -> Vec<String> {
        let view = View::passthrough(servers, &expose(limit));
        for tool in &view.tools {
            assert_eq!(view.find(&tool.name).unwrap().tool.name, tool.tool.name);
        }
        view.tools.into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn names_have_the_namespace_before_them() {
        let servers = [server("a", None, &["x", "y"]), server("b", Some("pre"), &["x"])];
        assert_eq!(names(&servers, 64), ["a_x", "a_y", "pre_x"]);
        let raw = &View::passthrough(&servers, &expose(64)).tools[0].definition;
        assert_eq!(raw.as_str(), r#"{"x":1e2,"name":"a_x","_meta":{}}"#);
    }

    #[test]
    fn names_are_bare_for_one_exposed_server_with_an_empty_prefix() {
        assert_eq!(names(&[server("a", Some(""), &["x"])], 64), ["x"]);
        let two = [server("a", Some(""), &["x"]), server("b", None, &["x"])];
        assert_eq!(names(&two, 64), ["a_x", "b_x"]);
    }

    /// Deterministic, within the limit, and never the same name twice.
    #[test]
    fn long_and_clashing_names_get_a_tail() {
        let long = "n".repeat(100);
        let servers = [server("a", None, &["b_c", &long]), server("a_b", None, &["c"])];
        let first = names(&servers, 20);
        assert_eq!(first, names(&servers, 20));
        assert_eq!(first[0], "a_b_c");
        assert!(first.iter().all(|name| name.chars().count() <= 20), "{first:?}");
        assert!(first[2].starts_with("a_b_c_"), "{first:?}");
    }

    /// F38: the digest tells whether a host would see another list.
    #[test]
    fn f38_the_digest_is_of_what_is_seen() {
        let of = |names: &[&str]| {
            View::passthrough(&[server("a", None, names)], &expose(64)).digest
        };
        assert_eq!(of(&["x", "y"]), of(&["y", "x"]));
        assert_ne!(of(&["x", "y"]), of(&["x"]));
    }
}
