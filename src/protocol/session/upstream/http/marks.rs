//! Arguments that are repeated in headers (2026-07-28, U-24 to U-26): known from the list of tools, so
//! a connection reads that before its first call, and again where the server says that it has changed.

use std::collections::HashMap;
use std::time::Instant;

use http::HeaderMap;

use super::super::calls::Held;
use super::super::{ListKind, UpstreamSession};
use crate::protocol::http_rules::param_headers::{ParamHeaders, admit};
use crate::protocol::jsonrpc::{Code, Method, RawJson, RpcError};
use crate::protocol::revision::Revision;
use crate::protocol::session::Outcome;
use crate::protocol::session::pending::CallSink;

/// Tools with marked parameters, by name; `None` before the first list, and while it is read again
/// because of a refused call.
pub(super) type Marks = Option<HashMap<String, ParamHeaders>>;

const CALL: &str = "tools/call";

impl<S: CallSink> UpstreamSession<S> {
    /// Whether requests repeat what their parameters say.
    fn mirrors(&self) -> bool {
        self.http.is_some() && self.revision().is_some_and(Revision::mirrors_in_headers)
    }

    /// Whether a call of `method` has to wait for the list of tools, which is then read.
    pub(in super::super) fn waits_for_marks(&mut self, now: Instant, method: &Method) -> bool {
        let unknown = self.http.as_ref().is_some_and(|http| http.marks.is_none());
        if method.as_str() != CALL || !unknown || !self.mirrors() {
            return false;
        }
        self.read_list_once(now, ListKind::Tools);
        // A server without tools has been read by now.
        self.http.as_ref().is_some_and(|http| http.marks.is_none())
    }

    /// What a call repeats in headers; an error where an argument cannot be repeated (U-25).
    pub(in super::super) fn marked_headers(
        &self,
        method: &Method,
        params: &RawJson,
    ) -> Result<HeaderMap, RpcError> {
        let marks = self.http.as_ref().and_then(|http| http.marks.as_ref());
        let (true, Some(marks)) = (method.as_str() == CALL, marks.filter(|it| !it.is_empty()))
        else {
            return Ok(HeaderMap::new());
        };
        let tool = params.member_str("name").and_then(|name| marks.get(&name));
        tool.map_or_else(
            || Ok(HeaderMap::new()),
            |tool| tool.mirror(params.member("arguments").as_ref()),
        )
    }

    /// The list of tools was read; those that may be offered (U-24). None came where it failed: what
    /// was known before stays, and calls go on without more.
    pub(in super::super) fn marks_read(&mut self, tools: Option<Vec<RawJson>>) -> Vec<RawJson> {
        let mirrors = self.mirrors();
        let Some(http) = self.http.as_mut().filter(|_| mirrors) else {
            return tools.unwrap_or_default();
        };
        let Some(tools) = tools else {
            http.marks.get_or_insert_default();
            return Vec::new();
        };
        let admitted = admit(tools);
        http.marks = Some(admitted.marked);
        for excluded in admitted.excluded {
            let (tool, why) = (excluded.tool, excluded.why);
            self.out.warn(format!("the tool `{tool}` is left out: {why} (U-24)"));
        }
        admitted.tools
    }

    /// A call was refused for its headers: the tool has changed since it was listed. Reads the list
    /// again, and makes the call once more after that (U-26). Whether it does.
    pub(super) fn retry_marked(
        &mut self,
        now: Instant,
        id: u64,
        outcome: &Outcome,
        mut call: Held,
    ) -> bool {
        let refused = matches!(outcome, Err(error) if error.code == Code::HeaderMismatch.number());
        if !refused || call.method.as_str() != CALL || !self.mirrors() {
            return false;
        }
        if let Some(http) = &mut self.http {
            http.marks = None;
        }
        call.last = true;
        self.pending.mark_held(id);
        self.calls.held.push(call);
        self.reread_list(now, ListKind::Tools);
        // A server without tools has been read by now; otherwise they wait.
        self.send_held(now);
        true
    }
}
