//! What can be configured: definitions, layers, strict parsing, upstream definitions.
//!
//! Pure but for reading the named files. Values live in `config/defaults.toml`, meaning in
//! [`defs`]; nothing else holds a policy number. Code receives the narrowed structs of [`typed`].

mod alone;
pub mod defs;
pub mod generated;
pub mod hosts;
pub mod layers;
pub mod load;
pub mod mistake;
pub mod parse;
pub mod places;
pub mod policy;
pub mod profiles;
pub mod projects;
pub mod references;
pub mod runtime;
pub mod servers;
pub mod tree;
pub mod typed;
pub mod units;
pub mod value;

pub use layers::{Origin, Sources};
pub use load::Loaded;
pub use mistake::Mistake;
pub use policy::Rule;
pub use profiles::Profile;
pub use projects::Project;
pub use servers::{AuthDef, ExposeMode, RemoteTransport, Scope, ServerDef};
pub use typed::Settings;
