//! Where the news of one upstream call go: to the task that made it.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::actors::support::progress::ProgressSender;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::logging::LogMessage;
use crate::protocol::session::Answer;
use crate::protocol::session::pending::CallSink;
use crate::settings::ServerDef;

/// The caller's end of a call. However it falls, the caller hears an outcome.
#[derive(Debug)]
pub struct Sink {
    reply: Option<oneshot::Sender<Answer>>,
    /// With whose log messages they are.
    progress: Option<(ProgressSender, Arc<ServerDef>)>,
    taken: bool,
}

impl Sink {
    /// For a caller that waits at the other end of `reply`.
    pub const fn new(
        reply: oneshot::Sender<Answer>,
        progress: Option<(ProgressSender, Arc<ServerDef>)>,
    ) -> Self {
        Self { reply: Some(reply), progress, taken: false }
    }

    /// From now on the call may have been written.
    pub const fn take(&mut self) {
        self.taken = true;
    }

    fn finish(&mut self, answer: Answer) {
        if let Some(reply) = self.reply.take() {
            // The caller may be gone: then nobody wants to know.
            let _ = reply.send(answer);
        }
    }
}

impl CallSink for Sink {
    fn progress(&mut self, params: RawJson) {
        if let Some((progress, _)) = &self.progress {
            progress.send(params);
        }
    }

    fn log(&mut self, message: LogMessage) {
        if let Some((progress, def)) = &self.progress {
            progress.log(message.named(&def.namespace));
        }
    }

    fn done(mut self, answer: Answer) {
        self.finish(answer);
    }
}

impl Drop for Sink {
    /// Reached without an outcome only if the instance ended before it took the call (it stops, its
    /// mailbox falls), or by a crash of ours after it.
    fn drop(&mut self) {
        let written = self.taken;
        self.finish(Answer::Lost { written, why: "its instance had ended".to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F23: what no instance took was not written; a lost one that was taken may have been.
    #[test]
    fn f23_a_sink_that_falls_says_whether_it_was_taken() {
        for taken in [false, true] {
            let (reply, mut outcome) = oneshot::channel();
            let mut sink = Sink::new(reply, None);
            if taken {
                sink.take();
            }
            drop(sink);
            let answer = outcome.try_recv().unwrap();
            assert!(matches!(answer, Answer::Lost { written, .. } if written == taken));
        }
    }
}
