//! The edge: the one place that knows how each revision spells things.
//!
//! `lift` right after parsing, `downgrade` right before writing, for both roles. Raw where nothing
//! changes: a payload is only opened where a table says that a member must go, come or change for
//! the revision at hand, and everything else is spliced from its own text.
//! Called by the sessions and by nobody else.

use super::jsonrpc::{Method, RawJson, RpcError};
use super::revision::Revision;

/// Spells a newest-shape result of `method` for a host of `revision`. Takes a reference: a stored
/// result handed out twice must not change (seed LV-36).
///
/// For a modern host it adds `resultType`, server identity under its `_meta` key and, on complete
/// results of the methods that have them, cache hints (H-17, H-18, H-21); for a legacy host it takes
/// out what that revision lacks, also inside list items and content blocks (H-04, H-53, H-54, H-60).
pub fn downgrade_result(
    _revision: Revision,
    _method: &Method,
    _result: &RawJson,
    _own_info: &RawJson,
) -> RawJson {
    todo!()
}

/// Spells an error for a host of `revision` (H-30: codes of another era become this one's).
pub fn downgrade_error(_revision: Revision, _method: &Method, _error: &RpcError) -> RpcError {
    todo!()
}

/// Reads a result that an upstream of `revision` gave to `method` into newest shape.
pub fn lift_result(_revision: Revision, _method: &Method, _result: RawJson) -> RawJson {
    todo!()
}

/// Spells newest-shape request parameters for an upstream of `revision`. `meta` is set by the
/// session: progress token, and for a modern upstream the request envelope.
pub fn downgrade_params(
    _revision: Revision,
    _method: &Method,
    _params: &RawJson,
    _meta: &[(&'static str, RawJson)],
) -> RawJson {
    todo!()
}
