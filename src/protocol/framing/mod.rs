//! Bytes to frames and back.

pub mod line;
pub mod sse;
