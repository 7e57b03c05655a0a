//! defs
