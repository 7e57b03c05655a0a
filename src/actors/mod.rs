//! State, supervision, routing, timing, policy.
//!
//! ```text
//! Root
//! ├─ EraCache, Catalog, SettingsKeeper, Broker, Parked, Artifacts   permanent; a crash restarts that one
//! ├─ Metrics, Audit, Spans                      permanent: a listener, the record of calls, traces
//! ├─ Tasks ── Task per call that nobody waits for (temporary)
//! ├─ Exec ── Worker per sandbox process, each for one script (temporary)
//! ├─ Upstreams ── Pool per configured server ── Instance per connection (temporary)
//! ├─ Listens ── Listen per stream of a host   temporary, never restarted
//! └─ Hosts ── Host per connection             temporary, never restarted
//! ```
//!
//! Rules: `handle` never waits for a peer; work is admitted by a permit before it enters a mailbox;
//! `handle` returns `Err` only if the actor must die; every supervisor says what each child's end
//! means; process cleanup also stands in `Drop`, because a killed actor's `post_stop` does not run;
//! no names, no registry, no statics.
//!
//! Events are a ring and ops are functions, not actors; ARCHITECTURE.md says why.
//!
//! Read in this order: [`support`], [`root`], [`hosts`], [`host`], [`dispatch`], [`upstreams`],
//! [`pool`], [`instance`], [`catalog`], the rest.

pub mod support;

pub mod daemon;

pub mod root;

pub mod settings;

pub mod events;

pub mod inside;

pub mod hosts;

pub mod host;

pub mod dispatch;

pub mod endpoint;

pub mod upstreams;
pub(crate) mod watchdog;

pub mod parked;

pub mod pool;

pub mod instance;

pub mod era_cache;

pub mod catalog;

pub mod subs;

pub mod broker;

pub mod artifacts;

pub mod scripts;

pub mod listens;

pub mod listen;
pub mod tasks;

mod task;

pub mod exec;

pub mod control;
