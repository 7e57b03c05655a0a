//! Frames over the standard streams: our own, and those of a child process.
//!
//! Only [`child`] starts processes ([`run`] is its way for those that run to their end);
//! [`census`] sees which are there, [`reaper`] buries those that
//! were left to us, [`ledger`] remembers across a crash of ours.

pub mod census;
pub mod child;
pub mod flood;
pub mod ledger;
pub mod locate;
pub mod own;
pub mod reaper;
pub mod ring;
pub mod run;
