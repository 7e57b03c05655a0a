//! instance
