//! TypeScript from the input and output schemas of tools. Pure.
//!
//! - [`declare()`]: whole declarations, `interface Tools { github: { create_issue(args: …): Promise<…> } }`.
//! - [`signature()`]: a tool in one line, for search results.
//! - [`PRELUDE`]: everything else that a script finds; with it, declarations and a script pass `tsc`.
//!
//! A schema is text of a stranger. It is never built up in memory (`json`), nothing in it is fetched
//! (`refs`), and [`Limits`] bound what is read of it (`convert`) and written ([`declare()`]). What is cut
//! becomes `unknown`, with a comment that says why. What each word of JSON Schema becomes stands in
//! `docs/types.md`.

mod convert;
mod declare;
mod docs;
mod emit;
mod json;
mod refs;
mod shape;
mod signature;

pub use declare::{Declared, Namespace, Tool, declare};
pub use signature::{signature, signature_as};

/// How much of a schema is read and how much is written of it. What is beyond becomes `unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Levels of a schema, objects and lists in each other.
    pub depth: usize,
    /// Schemas and values in all, of one schema.
    pub nodes: usize,
    /// Bytes: of a line ([`signature()`]); of all descriptions of one schema ([`declare()`]).
    pub size: usize,
    /// Bytes of one description.
    pub description: usize,
}

/// What a script finds beside the tools of servers, beyond `lib.es2023`.
pub const PRELUDE: &str = include_str!("prelude.d.ts");

#[cfg(test)]
mod tests;
