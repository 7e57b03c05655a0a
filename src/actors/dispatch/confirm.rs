//! Whether a call may go on to its upstream: policy, and the confirmation of what destroys (E-10).

use super::{Context, Told};
use crate::actors::catalog::ToolRecord;
use crate::actors::upstreams::Caller;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::questions::Question;

/// What becomes of a call.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is made.
    Go,
    /// It is not, and this is what the caller is told.
    Deny(Told),
    /// Only if this question is accepted with `approve`.
    Ask(Question),
}

/// Decides on a call of `tool` of `server` with these arguments.
pub(crate) fn check(
    _context: &Context,
    _caller: &Caller,
    _server: &str,
    _tool: &ToolRecord,
    _arguments: &RawJson,
) -> Verdict {
    Verdict::Go
}
