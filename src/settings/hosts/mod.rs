//! Other programs' configuration files: taking their servers over, and standing in them (issue 6,
//! `import` and `connect`).
//!
//! Pure but for reading named files: plans are made here, and written by
//! `transport::store::hostfile`. A new host is one row of [`table::HOSTS`].

mod command;
pub mod connect;
pub mod document;
mod edit;
mod entry;
mod found;
mod own;
mod plan;
mod render;
mod rules;
mod secret;
pub mod table;
mod words;

pub use own::{Connected, Leads, Own, Surveyed, entries, entries_of, survey};
pub use plan::{Becomes, Item, Plan, Request, plan, target};
pub use rules::Line;
pub use secret::SecretFile;
pub use table::{Around, Found, HOSTS, Host, Reach, find};
pub use words::Told;

#[cfg(test)]
mod tests;
