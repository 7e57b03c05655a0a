//! Finds the top-level members of a frame without checking the rest of it.
//!
//! For the shim, which forwards frames as they are and needs no more than id and method to know
//! what is in flight. The daemon validates; this only skips.
