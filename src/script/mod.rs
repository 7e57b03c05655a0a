//! Code mode: what a model needs to use many tools in few words, and the program that runs its scripts.
//!
//! - [`without_fence`]: scripts in a fence of Markdown. Pure.
//! - [`names`]: how servers and tools are called in a script.
//! - [`types`]: TypeScript from JSON schemas. [`search`]: which tools fit some words. Both are pure.
//! - [`values`]: what a script gets for the result of a tool; `types` declares the same.
//! - [`saved`]: what a saved script says of itself, and arguments checked against it. Pure.
//! - [`wire`]: what the daemon and a sandbox say to each other.
//! - [`sandbox`]: the program `mcpx __sandbox`, which runs one script in a process of its own.
//!
//! What a call gives to a script is the tool's structured value where its server sends one; else its text,
//! parsed where that is JSON; a failed tool throws a `ToolError`. So the type of a call is that of the
//! tool's `outputSchema`, and `any` where there is none: a script that is right is never refused by a
//! compiler, and a model writes no casts.
//!
//! Nothing here knows the daemon's state, its actors or the network.

mod fence;
pub mod names;
pub mod sandbox;
pub mod saved;
pub mod search;
pub mod types;
pub mod values;
pub mod wire;

pub use self::fence::without as without_fence;
