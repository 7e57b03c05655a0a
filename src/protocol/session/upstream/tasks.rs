//! How a server is asked to answer a call of a tool by a task (U-57): whether it takes part at all,
//! and what is added to the request. What becomes of the task is its caller's business.
//!
//! 2025-11-25 has a parameter for it, admitted by a capability and by the tool (tasks page, tool-level
//! negotiation). Since 2026-07-28 a client declares the extension with a request, and the server
//! decides (SEP-2663).

use super::TaskWant;
use crate::protocol::edge::keys;
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::model::tool::TaskSupport;
use crate::protocol::revision::Revision;

/// Whether a server that declared `capabilities` takes calls of tools as tasks.
pub(super) fn offered(revision: Revision, capabilities: &RawJson) -> bool {
    let path: &[&str] = if revision.is_modern() {
        &["extensions", keys::TASKS_EXTENSION]
    } else {
        &["tasks", "requests", "tools", "call"]
    };
    let mut at = capabilities.clone();
    for step in path {
        match at.member(step) {
            Some(inner) if inner.is_object() => at = inner,
            _ => return false,
        }
    }
    true
}

/// The capabilities of a request that may be answered by a task.
pub(super) fn declared(capabilities: &RawJson) -> RawJson {
    let mut all = Object::read_or_empty(Some(capabilities));
    let mut extensions = Object::read_or_empty(all.get("extensions"));
    extensions.set_default(keys::TASKS_EXTENSION, RawJson::empty_object());
    all.set("extensions", extensions.write());
    all.write()
}

/// The parameters of a legacy call that is to be answered by a task. As they came where the tool does
/// not allow it: 2025-11-25 forbids asking then.
pub(super) fn asked(params: RawJson, want: &TaskWant) -> RawJson {
    if want.support == TaskSupport::Forbidden {
        return params;
    }
    let Ok(mut object) = Object::read(&params) else { return params };
    let ttl = u64::try_from(want.ttl.as_millis()).unwrap_or(u64::MAX);
    object.set("task", RawJson::write(&serde_json::json!({ "ttl": ttl })));
    object.write()
}
