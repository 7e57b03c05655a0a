//! Bytes to frames and back.

pub mod line;
