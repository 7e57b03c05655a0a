//! The table as a whole.

use std::collections::BTreeSet;

use super::*;

#[test]
fn keys_variables_and_aliases_are_unambiguous() {
    let keys: BTreeSet<_> = DEFS.iter().map(|def| def.key).collect();
    let variables: BTreeSet<_> = DEFS.iter().map(Def::variable).collect();
    assert_eq!((keys.len(), variables.len()), (DEFS.len(), DEFS.len()));
    for def in DEFS {
        if let Some(alias) = def.alias() {
            assert_eq!(find(&alias).map(|found| found.key), Some(def.key));
        }
        assert!(def.doc.ends_with('.') || def.doc.ends_with("..."), "{}", def.key);
    }
    for reserved in ["MCPX_STATE_DIR", "MCPX_RUNTIME_DIR", "MCPX_CONFIG", "MCPX_LOG"] {
        assert!(!variables.contains(reserved), "{reserved} is not a setting (product.md 3)");
    }
}

#[test]
fn the_spellings_of_the_seeds_are_aliases() {
    for (alias, key) in [
        ("upstream.eraCache", "upstream.era_cache"),
        ("upstream.versionAttempts", "upstream.version_attempts"),
        ("plumbing.stdioDrainGrace", "plumbing.stdio_drain_grace"),
        ("plumbing.restartBackoffStep", "plumbing.restart_backoff_step"),
        ("plumbing.restartBackoffMax", "plumbing.restart_backoff_max"),
        ("transport.sseKeepAlive", "transport.sse_keep_alive"),
        ("timing.taskEager", "tasks.eager"),
        ("protoMessages.taskAfter", "tasks.after"),
    ] {
        assert_eq!(find(alias).map(|def| def.key), Some(key));
    }
}
