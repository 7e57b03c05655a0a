//! Everything durable: small files written whole, and the embedded transactional store.

pub mod statefile;
