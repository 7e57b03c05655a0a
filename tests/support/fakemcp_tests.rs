//! fakemcp
