//! What a host sees of the catalog in pass-through mode: every tool of every exposed server under a
//! name of its own. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{CatalogServer, Listing, OffersView, ToolRecord};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::links;
use crate::protocol::model::tool::for_hosts;
use crate::protocol::naming::{Exposed, ExposedName, exposed_names, may_be_of};
use crate::settings::typed::ExposeSettings;
use crate::settings::{ExposeMode, ServerDef};

/// See the module.
#[derive(Debug)]
pub struct View {
    tools: Vec<ViewTool>,
    digest: [u8; 32],
    by_name: HashMap<String, usize>,
    /// Servers of whose tools nothing is known, with the prefix of their names.
    unlisted: Vec<(Arc<CatalogServer>, String)>,
    name_limit: usize,
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
    /// The tools of all servers whose mode shows them, under names that are none of `reserved`. Bare
    /// names where exactly one server is exposed and its prefix is empty; with several, an empty
    /// prefix means the namespace. Links to resources are those of `offers`.
    pub fn passthrough(
        servers: &[Arc<CatalogServer>],
        expose: &ExposeSettings,
        reserved: &[&str],
        offers: &OffersView,
    ) -> Self {
        let mode = |server: &CatalogServer| server.def.expose.unwrap_or(expose.mode);
        let shown: Vec<_> =
            servers.iter().filter(|server| mode(server) != ExposeMode::Core).collect();
        let own: Vec<Vec<&str>> = shown
            .iter()
            .map(|server| server.tools.iter().map(|tool| tool.name.as_str()).collect())
            .collect();
        let alone = shown.len() == 1;
        let exposed: Vec<_> = shown
            .iter()
            .zip(&own)
            .map(|(server, tools)| Exposed { prefix: prefix(&server.def, alone), tools })
            .collect();
        let mut view = Self {
            tools: Vec::new(),
            digest: [0; 32],
            by_name: HashMap::new(),
            unlisted: shown
                .iter()
                .filter(|server| server.listing != Listing::Whole && server.tools.is_empty())
                .map(|server| (Arc::clone(server), prefix(&server.def, alone).to_owned()))
                .collect(),
            name_limit: expose.name_limit,
            waits: shown.iter().any(|server| server.listing == Listing::Never),
            everything: !servers.is_empty()
                && servers.iter().all(|server| mode(server) == ExposeMode::Passthrough),
        };
        for ExposedName { name, server, tool } in
            exposed_names(&exposed, reserved, expose.name_limit)
        {
            let Some(server) = shown.get(server) else { continue };
            let Some(tool) = server.tools.get(tool) else { continue };
            // One that no host can take is left out; mcpx_namespaces shows it (F41).
            let Ok(definition) = for_hosts(&tool.raw, &name) else { continue };
            let renamed = |uri: &str| {
                let shown = offers.address_of(&server.def.key, uri);
                (shown != uri).then_some(shown)
            };
            let definition = links::in_definition(&definition, &renamed).unwrap_or(definition);
            view.by_name.insert(name.clone(), view.tools.len());
            let (tool, server) = (Arc::clone(tool), Arc::clone(server));
            view.tools.push(ViewTool { name, tool, server, definition });
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

    /// The servers of whose tools nothing is known and that may have one of this name.
    pub fn unlisted(&self, name: &str) -> impl Iterator<Item = &Arc<CatalogServer>> {
        let fits = move |prefix: &str| may_be_of(name, prefix, self.name_limit);
        self.unlisted.iter().filter(move |(_, prefix)| fits(prefix)).map(|(server, _)| server)
    }
}

/// What the names of a server's tools begin with.
pub(super) fn prefix(def: &ServerDef, alone: bool) -> &str {
    match def.prefix.as_deref() {
        Some("") if alone => "",
        Some("") | None => &def.namespace,
        Some(prefix) => prefix,
    }
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
                let text =
                    format!(r#"{{"x":1e2,"name":{name:?},"inputSchema":{{"type":"object"}}}}"#);
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
            read_limit: 1024,
        }
    }

    fn passthrough(servers: &[Arc<CatalogServer>], limit: usize, reserved: &[&str]) -> View {
        let offers = OffersView::new(servers, &expose(limit));
        View::passthrough(servers, &expose(limit), reserved, &offers)
    }

    fn names(servers: &[Arc<CatalogServer>], limit: usize) -> Vec<String> {
        let view = passthrough(servers, limit, &[]);
        for tool in &view.tools {
            assert_eq!(view.find(&tool.name).unwrap().tool.name, tool.tool.name);
        }
        view.tools.into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn names_have_the_namespace_before_them() {
        let servers = [server("a", None, &["x", "y"]), server("b", Some("pre"), &["x"])];
        assert_eq!(names(&servers, 64), ["a_x", "a_y", "pre_x"]);
        let raw = &passthrough(&servers, 64, &[]).tools[0].definition;
        assert_eq!(raw.as_str(), r#"{"x":1e2,"name":"a_x","inputSchema":{"type":"object"}}"#);
    }

    #[test]
    fn names_are_bare_for_one_exposed_server_with_an_empty_prefix() {
        assert_eq!(names(&[server("a", Some(""), &["x"])], 64), ["x"]);
        let two = [server("a", Some(""), &["x"]), server("b", None, &["x"])];
        assert_eq!(names(&two, 64), ["a_x", "b_x"]);
    }

    /// A name of mcpx's own is never given to an upstream's tool, whatever its prefix.
    #[test]
    fn reserved_names_are_not_given() {
        let servers = [server("a", Some(""), &["mcpx_call", "x"])];
        let view = passthrough(&servers, 64, &["mcpx_call"]);
        assert!(view.find("mcpx_call").is_none());
        assert_eq!(view.tools.len(), 2);
        assert_eq!(view.find("x").unwrap().tool.name, "x");
    }

    /// F38: the digest tells whether a host would see another list.
    #[test]
    fn f38_the_digest_is_of_what_is_seen() {
        let of = |names: &[&str]| passthrough(&[server("a", None, names)], 64, &[]).digest;
        assert_eq!(of(&["x", "y"]), of(&["y", "x"]));
        assert_ne!(of(&["x", "y"]), of(&["x"]));
    }
}
