//! What can be configured: definitions, layers, strict parsing, upstream definitions.
//!
//! Pure but for reading the named files. Values live in `config/defaults.toml`, meaning in
//! [`defs`]; nothing else holds a policy number. Code receives the narrowed structs of [`typed`].

pub mod defs;
pub mod layers;
pub mod parse;
pub mod servers;
pub mod typed;
pub mod value;

pub use servers::{ExposeMode, Scope, ServerDef};
pub use typed::Settings;
