//! pools
