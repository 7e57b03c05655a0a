//! What the catalog publishes.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{OffersView, View, merge};
use crate::actors::dispatch;
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::model::tasks::Support;
use crate::protocol::session::upstream::ListKind;
use crate::script::search::{Document, Index};
use crate::settings::typed::ExposeSettings;
use crate::settings::{ServerDef, Settings};

/// An immutable snapshot.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// All configured servers, sorted by namespace, without the tools that may not be called.
    pub servers: Vec<Arc<CatalogServer>>,
    /// The same with all their tools: where the catalog goes on after a failure.
    pub(super) whole: Vec<Arc<CatalogServer>>,
    /// The view of pass-through mode, made when first asked for.
    view: OnceLock<(ExposeSettings, Arc<View>)>,
    /// The view of everything beside tools, made when first asked for.
    offers: OnceLock<(ExposeSettings, Arc<OffersView>)>,
    /// What searches look into, made when first asked for.
    index: OnceLock<Arc<Index>>,
    /// What hosts of profiles see of it, by what is in force for them; made when first asked for.
    narrowed: Mutex<Vec<(Arc<Settings>, Arc<Snapshot>)>>,
}

impl Snapshot {
    /// Of these servers, sorted by namespace.
    pub fn new(whole: Vec<Arc<CatalogServer>>) -> Self {
        let servers = whole.iter().map(merge::shown).collect();
        Self { servers, whole, ..Self::default() }
    }

    /// What is left for hosts for whom `settings` are in force: their servers, with their rules.
    pub fn narrowed(&self, settings: &Arc<Settings>) -> Arc<Self> {
        let mut made = self.narrowed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, narrowed)) = made.iter().find(|(of, _)| Arc::ptr_eq(of, settings)) {
            return Arc::clone(narrowed);
        }
        let narrow = |server: &Arc<CatalogServer>| {
            let def = settings.servers.iter().find(|def| def.key == server.def.key)?;
            Some(Arc::new(CatalogServer { def: Arc::clone(def), ..(**server).clone() }))
        };
        let narrowed = Arc::new(Self::new(self.whole.iter().filter_map(narrow).collect()));
        // Of settings that nobody else has, none will ask again.
        made.retain(|(of, _)| Arc::strong_count(of) > 1);
        made.push((Arc::clone(settings), Arc::clone(&narrowed)));
        narrowed
    }

    /// The server with this configuration key.
    pub fn by_key(&self, key: &str) -> Option<&Arc<CatalogServer>> {
        self.servers.iter().find(|server| server.def.key == key)
    }

    /// What a host sees in pass-through mode. Made once for each snapshot: settings change rarely.
    pub fn passthrough(&self, expose: &ExposeSettings) -> Arc<View> {
        let make = || {
            let reserved = dispatch::own_names();
            let reserved: Vec<&str> = reserved.iter().map(String::as_str).collect();
            Arc::new(View::passthrough(&self.servers, expose, &reserved, &self.offers(expose)))
        };
        let (made_for, view) = self.view.get_or_init(|| (*expose, make()));
        if made_for == expose { Arc::clone(view) } else { make() }
    }

    /// What a host sees beside tools. Made once for each snapshot, as well.
    pub fn offers(&self, expose: &ExposeSettings) -> Arc<OffersView> {
        let make = || Arc::new(OffersView::new(&self.servers, expose));
        let (made_for, view) = self.offers.get_or_init(|| (*expose, make()));
        if made_for == expose { Arc::clone(view) } else { make() }
    }

    /// All tools as searches find them: those of the first server, then those of the second, and so on.
    /// Made once for each snapshot.
    pub fn search_index(&self) -> &Index {
        self.index.get_or_init(|| {
            let documents = self.servers.iter().flat_map(|server| {
                let info = Object::read_or_empty(server.info.as_ref());
                let own = info.get_str("title").or_else(|| info.get_str("name"));
                let own: Arc<str> = own.unwrap_or_default().into();
                server.tools.iter().map(move |tool| (server, Arc::clone(&own), tool))
            });
            let documents: Vec<_> = documents.collect();
            Arc::new(Index::new(documents.iter().map(|(server, own, tool)| Document {
                namespace: &server.def.namespace,
                server: own,
                name: &tool.name,
                definition: &tool.raw,
            })))
        })
    }
}

/// One server's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogServer {
    /// Its definition.
    pub def: Arc<ServerDef>,
    /// Its own identity as it came (U-53), once it has been reached.
    pub info: Option<RawJson>,
    /// Its instructions.
    pub instructions: Option<String>,
    /// What it declared, newest shape, once it has been reached.
    pub capabilities: Option<RawJson>,
    /// Whether its tools have ever been listed.
    pub listing: Listing,
    /// Its tools, sorted by name (P-11).
    pub tools: Arc<[Arc<ToolRecord>]>,
    /// Its resources.
    pub resources: Offers,
    /// Its resource templates.
    pub templates: Offers,
    /// Its prompts.
    pub prompts: Offers,
}

impl CatalogServer {
    /// The tool of this name, the upstream's own.
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolRecord>> {
        let at = self.tools.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok()?;
        self.tools.get(at)
    }
}

impl CatalogServer {
    /// How far a list of it is known.
    pub const fn listing_of(&self, kind: ListKind) -> &Listing {
        match kind {
            ListKind::Tools => &self.listing,
            ListKind::Resources => &self.resources.listing,
            ListKind::Templates => &self.templates.listing,
            ListKind::Prompts => &self.prompts.listing,
        }
    }

    /// Whether it declared `capability`.
    pub fn declares(&self, capability: &str) -> bool {
        let declared = self.capabilities.as_ref().and_then(|all| all.member(capability));
        declared.is_some_and(|declared| !declared.is_null())
    }

    /// Whether it has been reached and did not declare `capability`; it is not asked then.
    pub fn lacks(&self, capability: &str) -> bool {
        self.capabilities.is_some() && !self.declares(capability)
    }
}

/// How far a server's list is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// Never listed yet.
    Never,
    /// Listed.
    Whole,
    /// Listed in part; why (F39).
    Incomplete(String),
}

/// One list of a server beside that of its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offers {
    /// How far it is known.
    pub listing: Listing,
    /// What is in it, sorted by key.
    pub items: Arc<[Arc<Offer>]>,
}

impl Default for Offers {
    fn default() -> Self {
        Self { listing: Listing::Never, items: Arc::new([]) }
    }
}

impl Offers {
    /// The item of this key.
    pub fn get(&self, key: &str) -> Option<&Arc<Offer>> {
        let at = self.items.binary_search_by(|item| item.key.as_str().cmp(key)).ok()?;
        self.items.get(at)
    }
}

/// A resource, a resource template or a prompt, kept whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The upstream's own URI, URI template or name for it.
    pub key: String,
    /// The item as it came, lifted.
    pub raw: RawJson,
}

/// One upstream tool, kept whole (U-48).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRecord {
    /// The upstream's own name for it.
    pub name: String,
    /// The tool as it came, lifted.
    pub raw: RawJson,
    /// Marked `readOnlyHint` or `idempotentHint`: a lost call may be repeated (U-56).
    pub repeatable: bool,
    /// What it says of tasks (T-04, T-08).
    pub tasks: Support,
}
