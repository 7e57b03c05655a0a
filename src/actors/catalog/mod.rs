//! The merged view of what all upstreams offer: kept in the store, published as a snapshot.
//!
//! Owns the snapshot; no children. Pools report lists; hosts read the snapshot without a message.
//! A crash loses nothing: it is rebuilt from the store and from the next reports.

use std::sync::Arc;

use tokio::sync::watch;

use crate::protocol::jsonrpc::RawJson;
use crate::settings::ServerDef;

/// An immutable snapshot.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// All configured servers, sorted by namespace.
    pub servers: Vec<Arc<CatalogServer>>,
}

/// One server's entry.
#[derive(Debug, Clone)]
pub struct CatalogServer {
    /// Its definition.
    pub def: Arc<ServerDef>,
    /// Its own identity as it came (U-53), once it has been reached.
    pub info: Option<RawJson>,
    /// Its instructions.
    pub instructions: Option<String>,
    /// Whether its tools have ever been listed.
    pub listing: Listing,
    /// Its tools, sorted by name (P-11).
    pub tools: Arc<[Arc<ToolRecord>]>,
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

/// One upstream tool, kept whole (U-48).
#[derive(Debug, Clone)]
pub struct ToolRecord {
    /// The upstream's own name for it.
    pub name: String,
    /// The tool as it came, lifted.
    pub raw: RawJson,
    /// Marked `readOnlyHint` or `idempotentHint`: a lost call may be repeated (U-56).
    pub repeatable: bool,
}

/// How others read and feed the catalog. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CatalogHandle {
    snapshot: watch::Receiver<Arc<Snapshot>>,
}

impl CatalogHandle {
    /// The present snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// Wakes when there is another one.
    pub fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.clone()
    }
}
