//! Samples of what goes on inside.

use super::text;
use crate::control::types as t;
use crate::protocol::jsonrpc::RawJson;

pub(super) fn audit() -> t::AuditAnswer {
    t::AuditAnswer {
        enabled: true,
        dropped: 0,
        records: vec![t::AuditRecord {
            id: text("5f0c2a91-17"),
            at: 1_700_000_000_000,
            ms: 48.2,
            outcome: text("ok"),
            server: text("github"),
            kind: text("tool"),
            name: text("search_issues"),
            named: Some(text("github_search_issues")),
            host: text("opencode 1.0.0"),
            via: text("stdio"),
            user: Some(text("me")),
            session: Some(3),
            request: Some(RawJson::write(&12)),
            script: true,
            project: Some(text("/home/me/project")),
            trace: Some(text("4bf92f3577b34da6a3ce929d0e0e4736")),
            arguments: Some(RawJson::write(&serde_json::json!({ "query": "open" }))),
        }],
    }
}

pub(super) fn trace() -> t::TraceAnswer {
    t::TraceAnswer {
        server: text("github"),
        kept: true,
        frames: vec![t::FrameView {
            seq: 4,
            at: 1_700_000_000_000,
            instance: 1,
            way: text("to"),
            method: Some(text("tools/call")),
            id: Some(text("7")),
            bytes: 4096,
            text: text(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"#),
            cut: true,
        }],
    }
}

pub(super) fn tree() -> t::TreeAnswer {
    let actor = |kind: &str, actor, name: &str, state: &str| t::ActorView {
        kind: text(kind),
        actor,
        name: text(name),
        state: text(state),
        since_ms: None,
        restarts: 0,
        history: Vec::new(),
        children: Vec::new(),
    };
    let pool = t::ActorView {
        restarts: 1,
        history: vec![t::RestartView {
            ago_ms: 60_000,
            why: text("crashed: exited with status 1"),
        }],
        children: vec![actor("Instance", 21, "github#4 global", "ready")],
        ..actor("Pool", 20, "github", "ready")
    };
    let upstreams = t::ActorView {
        since_ms: Some(3_600_000),
        children: vec![pool],
        ..actor("Upstreams", 5, "", "running")
    };
    let root = t::ActorView { children: vec![upstreams], ..actor("Root", 1, "", "running") };
    t::TreeAnswer { root, intensity: 10, window_ms: 60_000, recent: 0 }
}
