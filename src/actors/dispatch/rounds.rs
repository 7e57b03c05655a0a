//! A call on an upstream, with what it asks before it is over (product.md 8).

use std::fmt;

use super::Context;
use super::outcome::{Told, answer_outcome};
use crate::actors::upstreams::{Answers, CallWant};

use crate::protocol::session::{Answer, Outcome};

/// What is called, as texts name it: "tool `search` of server `github`".
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// `tool`, `prompt`, `resource`.
    pub(crate) kind: &'a str,
    /// Its name on its server.
    pub(crate) name: &'a str,
    /// The server's configuration key.
    pub(crate) server: &'a str,
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, server } = self;
        write!(f, "{kind} `{name}` of server `{server}`")
    }
}

/// Makes one call of a method that may ask, and sees it to what its caller is to be told: its outcome,
/// or an `input_required` result for a modern host.
pub(crate) async fn call(
    context: &Context,
    subject: Subject<'_>,
    want: CallWant,
) -> Result<Outcome, Told> {
    let answers = want.caller.answers.clone();
    let is_tool = want.method.as_str() == "tools/call";
    let answered = context.upstreams.call_unattended(want).await;
    // The common case needs no words.
    if let Ok(Answer::Complete(result)) = answered {
        return Ok(Ok(result));
    }
    let declared = match answers.present() {
        Answers::Inline { declared } => Some(declared),
        Answers::Nobody | Answers::Line { .. } | Answers::Task(_) => None,
    };
    answer_outcome(&subject, is_tool, declared, answered)
}
