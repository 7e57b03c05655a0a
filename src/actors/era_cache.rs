//! era_cache
