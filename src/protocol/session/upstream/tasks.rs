//! How a server is asked to answer a call of a tool by a task (U-57): whether it takes part at all,
//! and what is added to the request. What becomes of the task is its caller's business.
//!
//! 2025-11-25 has a parameter for it, admitted by a capability and by the tool (tasks page, tool-level
//! negotiation). Since 2026-07-28 a client declares the extension with a request, and the server
//! decides (SEP-2663).

use super::TaskWant;
use crate::protocol::jsonrpc::{Method, Object, RawJson};
use crate::protocol::model::tasks::{EXTENSION, Support};
use crate::protocol::revision::Revision;

/// Whether a server that declared `capabilities` takes calls of tools as tasks.
pub(super) fn offered(revision: Revision, capabilities: &RawJson) -> bool {
    let path: &[&str] = if revision.is_modern() {
        &["extensions", EXTENSION]
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
    extensions.set_default(EXTENSION, RawJson::empty_object());
    all.set("extensions", extensions.write());
    all.write()
}

/// Whether a call of `method` is to be asked for as a task now.
pub(super) fn wanted(modern: bool, method: &Method, want: &TaskWant) -> bool {
    match method.as_str() {
        "tools/call" if modern => want.eager || want.support == Support::Required,
        // 2025-11-25 forbids asking for it where the tool does not allow it.
        "tools/call" => match want.support {
            Support::Required => true,
            Support::Optional => want.eager,
            Support::Forbidden | Support::Unsaid => false,
        },
        // Only who declares the extension may ask about its tasks.
        method => modern && method.starts_with("tasks/"),
    }
}

/// The parameters of a legacy call that is to be answered by a task.
pub(super) fn asked(params: RawJson, want: &TaskWant) -> RawJson {
    let Ok(mut object) = Object::read(&params) else { return params };
    let ttl = u64::try_from(want.ttl.as_millis()).unwrap_or(u64::MAX);
    object.set("task", RawJson::write(&serde_json::json!({ "ttl": ttl })));
    object.write()
}
