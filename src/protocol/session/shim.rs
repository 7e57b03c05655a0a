//! The shim's part of a conversation: what must survive when the daemon goes away and comes back.
//!
//! Frames pass through untouched; this remembers the host's handshake, which requests are in flight
//! and what must be said for the daemon while there is none (F47, H-34).
