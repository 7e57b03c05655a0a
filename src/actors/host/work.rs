//! The task of one request: runs it, reports its progress in order and its outcome last.

use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::Semaphore;

use super::HostMsg;
use crate::actors::dispatch::{self, Context};
use crate::actors::support::progress::{CallNote, ProgressReceiver};
use crate::protocol::jsonrpc::{Code, RpcError};
use crate::protocol::session::{CallKey, Outcome};

/// Reports a request's outcome when it falls, also where its task panicked; a cancelled request's
/// report finds no open request and is ignored by the session.
pub(super) struct Report {
    pub(super) me: ActorRef<HostMsg>,
    pub(super) key: CallKey,
    pub(super) outcome: Option<Outcome>,
}

impl Drop for Report {
    fn drop(&mut self) {
        let outcome = self.outcome.take().unwrap_or_else(|| {
            let text = "mcpx failed while it worked on this request; its log has more";
            Err(RpcError::new(Code::InternalError, text))
        });
        let _ = self.me.cast(HostMsg::Finished { key: self.key, outcome });
    }
}

pub(super) async fn run(context: Arc<Context>, work: dispatch::Request, mut report: Report) {
    report.outcome = Some(dispatch::answer(&context, work).await);
}

/// The same, passing progress on before the outcome, in order.
pub(super) async fn run_with_progress(
    context: Arc<Context>,
    work: dispatch::Request,
    mut report: Report,
    notes: ProgressReceiver,
) {
    // One note of a call waits in the mailbox at a time.
    let credit = Arc::new(Semaphore::new(1));
    let pass_on = async |note: CallNote, report: &Report| {
        if let Ok(credit) = Arc::clone(&credit).acquire_owned().await {
            let _ = report.me.cast(HostMsg::Heard { key: report.key, note, credit });
        }
    };
    let outcome = {
        let mut answer = Box::pin(dispatch::answer(&context, work));
        loop {
            tokio::select! {
                biased;
                outcome = &mut answer => break outcome,
                note = notes.next() => pass_on(note, &report).await,
            }
        }
    };
    while let Some(note) = notes.try_next() {
        pass_on(note, &report).await;
    }
    report.outcome = Some(outcome);
}
