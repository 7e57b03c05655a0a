//! Frames over the standard streams: our own, and those of a child process.

pub mod child;
pub mod ledger;
pub mod own;
pub mod ring;
