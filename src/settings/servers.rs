//! Upstream definitions: the `[servers.NAME]` tables.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::protocol::revision::Revision;
use crate::protocol::session::probe::Preference;

/// Who shares an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Scope {
    /// Everybody.
    Global,
    /// Everybody in one project directory; the default.
    #[default]
    Project,
    /// One host session.
    Session,
    /// One call.
    Call,
}

/// What a host sees of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExposeMode {
    /// Only through the core tools.
    Core,
    /// Each tool under a name of its own, without the core tools.
    Passthrough,
    /// Both.
    Both,
}

/// One upstream as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDef {
    /// The configuration key.
    pub key: String,
    /// The namespace: from the key, or `namespace`.
    pub namespace: String,
    /// Program and arguments, references unexpanded.
    pub command: Vec<String>,
    /// Environment, references unexpanded.
    pub env: BTreeMap<String, String>,
    /// Working directory as written; relative to the project of the scope.
    pub cwd: Option<String>,
    /// The folder of the file that defines it: the base of relative paths for global scope.
    pub base: PathBuf,
    /// Who shares an instance.
    pub scope: Scope,
    /// Instances per scope key and lane.
    pub max: usize,
    /// Its own preference (U-07).
    pub protocol: Option<Preference>,
    /// A revision pin (U-02).
    pub revision: Option<Revision>,
    /// Its own idle time; zero means never.
    pub idle_timeout: Option<Duration>,
    /// Its own exposure.
    pub expose: Option<ExposeMode>,
    /// Its own name prefix; `""` for bare names.
    pub prefix: Option<String>,
    /// The built-in upstream.
    pub builtin: bool,
}
