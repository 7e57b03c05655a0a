//! State, supervision, routing, timing, policy.
//!
//! ```text
//! Root
//! ├─ SettingsKeeper, Events, EraCache         permanent; a crash restarts that one
//! ├─ Catalog                                  permanent; rebuilt from the store and the pools
//! ├─ Upstreams ── Pool per configured server ── Instance per connection (temporary)
//! ├─ Control                                  permanent; executes ops
//! └─ Hosts ── accept tasks and Host per connection (temporary, never restarted)
//! ```
//!
//! Rules: `handle` never waits for a peer; work is admitted by a permit before it enters a mailbox;
//! `handle` returns `Err` only if the actor must die; every supervisor says what each child's end
//! means; process cleanup also stands in `Drop`, because a killed actor's `post_stop` does not run;
//! no names, no registry, no statics.
//!
//! Read in this order: [`support`], [`root`], [`hosts`], [`host`], [`dispatch`], [`upstreams`],
//! [`pool`], [`instance`], [`catalog`], the rest.

pub mod support;

pub mod daemon;

pub mod root;

pub mod settings;

pub mod events;

pub mod hosts;

pub mod host;

pub mod dispatch;

pub mod upstreams;

pub mod pool;

pub mod instance;

pub mod era_cache;

pub mod catalog;

pub mod control;
