//! What a host sees of the catalog beside tools: resources and their templates under addresses,
//! prompts under names; and what it means by them. Pure.
//!
//! A resource of a server in core mode has an `mcpx://` address. One of a server that is passed
//! through keeps its own URI, unless another such server could mean the same by it: then both have
//! `mcpx://` addresses, and the bare URI is refused with both (F46). Order decides nothing. An
//! `mcpx://` address can be read in every mode.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::view::prefix;
use super::{CatalogServer, Listing, Offer, Offers};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::offer::for_hosts;
use crate::protocol::naming::{Exposed, ExposedName, exposed_names, may_be_of};
use crate::protocol::session::upstream::ListKind;
use crate::protocol::uri;
use crate::settings::ExposeMode;
use crate::settings::typed::ExposeSettings;

/// See the module.
#[derive(Debug)]
pub struct OffersView {
    servers: Vec<Seen>,
    /// Which servers that are passed through list a URI.
    listed: HashMap<String, Vec<usize>>,
    resources: Vec<ShownOffer>,
    templates: Vec<ShownOffer>,
    prompts: Vec<ShownOffer>,
    prompt_names: HashMap<String, usize>,
    name_limit: usize,
}

/// A server, and how hosts see it.
#[derive(Debug)]
struct Seen {
    server: Arc<CatalogServer>,
    /// Under its own URIs.
    passes: bool,
    /// Before the names of its prompts.
    prefix: String,
}

/// A resource, a template or a prompt as a host sees it.
#[derive(Debug, Clone)]
pub struct ShownOffer {
    /// Its URI, URI template or name for hosts.
    pub shown: String,
    /// The upstream's own.
    pub offer: Arc<Offer>,
    /// Whose it is.
    pub server: Arc<CatalogServer>,
    /// The item as hosts get it, otherwise as it came.
    pub definition: RawJson,
}

/// Whose resource an address means.
#[derive(Debug, Clone)]
pub struct Target {
    /// The server.
    pub server: Arc<CatalogServer>,
    /// The server's own URI.
    pub uri: String,
}

/// Why an address leads nowhere or to more than one place (F46).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// None of mcpx's, and no server that is passed through has it.
    #[error("no server behind mcpx has `{0}`; addresses here begin with mcpx://<namespace>/")]
    NotOurs(String),
    /// An address without a namespace.
    #[error("`{0}` names no namespace; addresses are mcpx://<namespace>/<the server's own URI>")]
    NoNamespace(String),
    /// The address of something that mcpx keeps itself, but not as it is written.
    #[error(
        "`{0}` is no address of a stored result or file: these are {begin} with 32 digits, 0-9 and \
         a-f, behind it; take it whole from the result that names it",
        begin = uri::artifact("")
    )]
    NoArtifact(String),
    /// A namespace that is none.
    #[error("`{address}` leads nowhere: there is no namespace `{namespace}`")]
    UnknownNamespace {
        /// The address.
        address: String,
        /// The namespace in it.
        namespace: String,
    },
    /// More than one server may mean this URI.
    #[error("more than one server may mean `{uri}`; ask for {}", .those.join(" or "))]
    Ambiguous {
        /// The URI.
        uri: String,
        /// The address at each of them.
        those: Vec<String>,
    },
}

impl OffersView {
    /// What hosts see of `servers`.
    pub fn new(servers: &[Arc<CatalogServer>], expose: &ExposeSettings) -> Self {
        let passes =
            |server: &CatalogServer| server.def.expose.unwrap_or(expose.mode) != ExposeMode::Core;
        let alone = servers.iter().filter(|server| passes(server)).count() == 1;
        let seen = servers.iter().map(|server| Seen {
            passes: passes(server),
            prefix: prefix(&server.def, alone && passes(server)).to_owned(),
            server: Arc::clone(server),
        });
        let mut view = Self {
            servers: seen.collect(),
            listed: HashMap::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            prompt_names: HashMap::new(),
            name_limit: expose.name_limit,
        };
        for (at, seen) in view.servers.iter().enumerate().filter(|(_, seen)| seen.passes) {
            for item in seen.server.resources.items.iter() {
                view.listed.entry(item.key.clone()).or_default().push(at);
            }
        }
        view.resources = view.shown(ListKind::Resources, |at, item| view.address_at(at, &item.key));
        view.templates =
            view.shown(ListKind::Templates, |at, item| view.template_at(at, &item.key));
        view.prompts = view.named_prompts();
        let names = view.prompts.iter().enumerate();
        view.prompt_names = names.map(|(at, prompt)| (prompt.shown.clone(), at)).collect();
        view
    }

    /// The resources, sorted by server and then by URI.
    pub fn resources(&self) -> &[ShownOffer] {
        &self.resources
    }

    /// The templates, sorted like the resources.
    pub fn templates(&self) -> &[ShownOffer] {
        &self.templates
    }

    /// The prompts, sorted by server and then by their own names.
    pub fn prompts(&self) -> &[ShownOffer] {
        &self.prompts
    }

    /// The items of one of these lists; none for tools.
    pub fn items(&self, kind: ListKind) -> &[ShownOffer] {
        match kind {
            ListKind::Tools => &[],
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
            ListKind::Prompts => &self.prompts,
        }
    }

    /// Differs where a host would see a difference (F38). That of resources is their templates', too,
    /// as the notification is.
    pub fn digest(&self, kind: ListKind) -> [u8; 32] {
        let mut hash = Sha256::new();
        let resources = matches!(kind, ListKind::Resources | ListKind::Templates);
        let more = if resources { self.items(ListKind::Templates) } else { &[] };
        let first = if resources { self.items(ListKind::Resources) } else { self.items(kind) };
        for item in first.iter().chain(more) {
            hash.update(item.definition.as_bytes());
            // Not JSON, so that no two lists have the same bytes.
            hash.update([0]);
        }
        hash.finalize().into()
    }

    /// Whether a server's list of this kind was never read.
    pub fn waits_for(&self, kind: ListKind) -> bool {
        self.servers.iter().any(|seen| *seen.server.listing_of(kind) == Listing::Never)
    }

    /// The prompt that a host means by `name`.
    pub fn prompt(&self, name: &str) -> Option<&ShownOffer> {
        self.prompts.get(*self.prompt_names.get(name)?)
    }

    /// The servers of whose prompts nothing is known and that may have one of this name.
    pub fn unlisted_prompts(&self, name: &str) -> impl Iterator<Item = &Arc<CatalogServer>> {
        self.servers
            .iter()
            .filter(|seen| {
                let prompts = &seen.server.prompts;
                prompts.listing != Listing::Whole && prompts.items.is_empty()
            })
            .filter(move |seen| may_be_of(name, &seen.prefix, self.name_limit))
            .map(|seen| &seen.server)
    }

    /// Whose resource a host means by `address`.
    pub fn resolve(&self, address: &str) -> Result<Target, Missing> {
        let (at, uri) = self.place_of(address)?;
        let seen = self.servers.get(at).ok_or_else(|| Missing::NotOurs(address.to_owned()))?;
        Ok(Target { server: Arc::clone(&seen.server), uri: uri.to_owned() })
    }

    /// Whose template, or resource, a host means by `address`, in a completion.
    pub fn resolve_template(&self, address: &str) -> Result<Target, Missing> {
        let own = || {
            let mut those = self.passing().filter(|(_, seen)| {
                self.named(address).is_none() && seen.server.templates.get(address).is_some()
            });
            let (_, seen) = those.next()?;
            let target = Target { server: Arc::clone(&seen.server), uri: address.to_owned() };
            those.next().is_none().then_some(target)
        };
        own().map_or_else(|| self.resolve(address), Ok)
    }

    /// The address for hosts of a URI that the server of this key uses: in a list, in a result, in a
    /// note. What it gives leads back ([`Self::resolve`]), but for a server without resources: nobody
    /// can read its URIs there, so those in its results stay what they are.
    pub fn address_of(&self, key: &str, uri: &str) -> String {
        let readable = |seen: &Seen| !seen.server.lacks(ListKind::Resources.capability());
        let at = self.servers.iter().position(|seen| seen.server.def.key == key && readable(seen));
        at.map_or_else(|| uri.to_owned(), |at| self.address_at(at, uri))
    }

    fn address_at(&self, at: usize, uri: &str) -> String {
        let Some(seen) = self.servers.get(at) else { return uri.to_owned() };
        let own =
            seen.passes && self.place_of(uri).is_ok_and(|(there, same)| there == at && same == uri);
        if own { uri.to_owned() } else { uri::address(&seen.server.def.namespace, uri) }
    }

    /// A template keeps its own form only where no other server could have a template that gives the
    /// same URIs; what stands before the first variable decides.
    fn template_at(&self, at: usize, template: &str) -> String {
        let Some(seen) = self.servers.get(at) else { return template.to_owned() };
        let begin = |template: &str| template.split('{').next().unwrap_or_default().to_owned();
        let mine = begin(template);
        let shared = self.passing().any(|(other, seen)| {
            let mut theirs = seen.server.templates.items.iter().map(|item| begin(&item.key));
            other != at && theirs.any(|other| other.starts_with(&mine) || mine.starts_with(&other))
        });
        let own = seen.passes && !shared && self.named(template).is_none();
        if own { template.to_owned() } else { uri::address(&seen.server.def.namespace, template) }
    }

    fn passing(&self) -> impl Iterator<Item = (usize, &Seen)> {
        self.servers.iter().enumerate().filter(|(_, seen)| seen.passes)
    }

    /// The server that an `mcpx://` address names, and the URI there.
    fn named<'a>(&self, address: &'a str) -> Option<(usize, &'a str)> {
        let (namespace, uri) = uri::split(address).filter(|(_, uri)| !uri.is_empty())?;
        let all = || self.servers.iter().map(|seen| seen.server.def.namespace.as_str());
        let at = all().position(|own| own == namespace).or_else(|| {
            // Some readers of URLs write this part in small letters.
            let mut alike =
                all().enumerate().filter(|(_, own)| own.eq_ignore_ascii_case(namespace));
            let (at, _) = alike.next()?;
            alike.next().is_none().then_some(at)
        })?;
        Some((at, uri))
    }

    fn place_of<'a>(&self, address: &'a str) -> Result<(usize, &'a str), Missing> {
        if let Some(place) = self.named(address) {
            return Ok(place);
        }
        let mut places = self.listed.get(address).cloned().unwrap_or_default();
        for (at, seen) in self.passing() {
            let mut templates = seen.server.templates.items.iter();
            if !places.contains(&at) && templates.any(|item| uri::may_give(&item.key, address)) {
                places.push(at);
            }
        }
        if places.is_empty() {
            // Not everything that a server has is listed: where one alone has any, it is meant.
            let has_any = |seen: &Seen| !seen.server.lacks(ListKind::Resources.capability());
            let all = self.passing().filter(|(_, seen)| has_any(seen)).map(|(at, _)| at);
            places = all.collect();
            if places.len() != 1 {
                return Err(missing(address));
            }
        }
        match places.as_slice() {
            [at] => Ok((*at, address)),
            several => {
                let those = several.iter().filter_map(|at| self.servers.get(*at));
                let those =
                    those.map(|seen| uri::address(&seen.server.def.namespace, address)).collect();
                Err(Missing::Ambiguous { uri: address.to_owned(), those })
            }
        }
    }

    fn shown(&self, kind: ListKind, name: impl Fn(usize, &Offer) -> String) -> Vec<ShownOffer> {
        let mut all = Vec::new();
        for (at, seen) in self.servers.iter().enumerate() {
            for item in list_of(&seen.server, kind).into_iter().flat_map(|list| list.items.iter()) {
                all.extend(shown_offer(kind, name(at, item), item, &seen.server));
            }
        }
        all
    }

    /// prompts have names like the tools of pass-through mode, in every mode.
    fn named_prompts(&self) -> Vec<ShownOffer> {
        let own: Vec<Vec<&str>> = self
            .servers
            .iter()
            .map(|seen| seen.server.prompts.items.iter().map(|item| item.key.as_str()).collect())
            .collect();
        let exposed: Vec<_> = self
            .servers
            .iter()
            .zip(&own)
            .map(|(seen, tools)| Exposed { prefix: &seen.prefix, tools })
            .collect();
        let names = exposed_names(&exposed, &[], self.name_limit);
        let item = |ExposedName { name, server, tool }: ExposedName| {
            let server = &self.servers.get(server)?.server;
            shown_offer(ListKind::Prompts, name, server.prompts.items.get(tool)?, server)
        };
        names.into_iter().filter_map(item).collect()
    }
}

fn missing(address: &str) -> Missing {
    match uri::split(address) {
        None => Missing::NotOurs(address.to_owned()),
        Some((namespace, _)) if namespace.eq_ignore_ascii_case(uri::ARTIFACTS) => {
            Missing::NoArtifact(address.to_owned())
        }
        Some((_, "") | ("", _)) => Missing::NoNamespace(address.to_owned()),
        Some((namespace, _)) => Missing::UnknownNamespace {
            address: address.to_owned(),
            namespace: namespace.to_owned(),
        },
    }
}

const fn list_of(server: &CatalogServer, kind: ListKind) -> Option<&Offers> {
    match kind {
        ListKind::Tools => None,
        ListKind::Resources => Some(&server.resources),
        ListKind::Templates => Some(&server.templates),
        ListKind::Prompts => Some(&server.prompts),
    }
}

/// One that no host can take is left out (F41).
fn shown_offer(
    kind: ListKind,
    shown: String,
    offer: &Arc<Offer>,
    server: &Arc<CatalogServer>,
) -> Option<ShownOffer> {
    let definition = for_hosts(&offer.raw, kind.item_key(), &shown, &offer.key)?;
    Some(ShownOffer { shown, offer: Arc::clone(offer), server: Arc::clone(server), definition })
}

#[cfg(test)]
mod tests;
