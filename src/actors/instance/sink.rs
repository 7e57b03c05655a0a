//! Where the news of one upstream call go: to the task that made it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, oneshot};

use crate::actors::support::progress::ProgressSender;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::logging::LogMessage;
use crate::protocol::model::questions::Question;
use crate::protocol::session::Answer;
use crate::protocol::session::pending::CallSink;
use crate::settings::ServerDef;

/// What the task of a call is told first: the outcome, or that its upstream asks. Then the rest
/// comes through the queue.
#[derive(Debug)]
pub enum Told {
    /// It is over.
    Done(Answer),
    /// The upstream asks.
    Asks(Arc<NewsQueue>),
}

/// What is heard of a call whose upstream asks.
#[derive(Debug)]
pub enum CallNews {
    /// It asks.
    Asked {
        /// The connection's number for the question.
        number: u64,
        /// It.
        question: Question,
    },
    /// It no longer wants an answer.
    Withdrawn {
        /// To which question.
        number: u64,
    },
    /// The outcome; the last.
    Done(Answer),
}

/// From the instance of a call to its task. Bounded by how many questions the session lets be open:
/// one that is withdrawn before it was taken is gone, and leaves nothing behind.
#[derive(Debug, Default)]
pub struct NewsQueue {
    news: Mutex<VecDeque<CallNews>>,
    arrived: Notify,
}

impl NewsQueue {
    fn add(&self, news: CallNews) {
        let mut queue = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        if let CallNews::Withdrawn { number } = &news {
            let asked = |news: &CallNews| matches!(news, CallNews::Asked { number: asked, .. } if asked == number);
            if let Some(at) = queue.iter().position(asked) {
                queue.remove(at);
                return;
            }
        }
        queue.push_back(news);
        drop(queue);
        self.arrived.notify_one();
    }

    /// The next, when there is one. Cancel-safe.
    pub async fn next(&self) -> CallNews {
        loop {
            let first = self.news.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            if let Some(news) = first {
                return news;
            }
            self.arrived.notified().await;
        }
    }
}

/// The caller's end of a call. However it falls, the caller hears an outcome.
#[derive(Debug)]
pub struct Sink {
    reply: Option<oneshot::Sender<Told>>,
    /// There once the upstream has asked.
    asking: Option<Arc<NewsQueue>>,
    /// With whose log messages they are.
    progress: Option<(ProgressSender, Arc<ServerDef>)>,
    taken: bool,
}

impl Sink {
    /// For a caller that waits at the other end of `reply`.
    pub const fn new(
        reply: oneshot::Sender<Told>,
        progress: Option<(ProgressSender, Arc<ServerDef>)>,
    ) -> Self {
        Self { reply: Some(reply), asking: None, progress, taken: false }
    }

    /// From now on the call may have been written.
    pub const fn take(&mut self) {
        self.taken = true;
    }

    fn finish(&mut self, answer: Answer) {
        if let Some(reply) = self.reply.take() {
            // The caller may be gone: then nobody wants to know.
            let _ = reply.send(Told::Done(answer));
        } else if let Some(queue) = self.asking.take() {
            queue.add(CallNews::Done(answer));
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

    fn ask(&mut self, number: u64, question: Question) {
        let queue = self.asking.get_or_insert_default();
        queue.add(CallNews::Asked { number, question });
        if let Some(reply) = self.reply.take() {
            // The caller may be gone; its cancellation is on its way.
            let _ = reply.send(Told::Asks(Arc::clone(queue)));
        }
    }

    fn withdraw(&mut self, number: u64) {
        if let Some(queue) = &self.asking {
            queue.add(CallNews::Withdrawn { number });
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
            let told = outcome.try_recv().unwrap();
            assert!(matches!(told, Told::Done(Answer::Lost { written, .. }) if written == taken));
        }
    }

    fn asked() -> Question {
        Question::new("roots/list", None).unwrap()
    }

    /// E-13: the task of a call hears what is asked in its course, in order, and its outcome last,
    /// also where its sink falls without one.
    #[tokio::test]
    async fn e13_questions_reach_the_task_of_the_call() {
        let (reply, told) = oneshot::channel();
        let mut sink = Sink::new(reply, None);
        sink.take();
        sink.ask(1, asked());
        sink.ask(2, asked());
        let Ok(Told::Asks(queue)) = told.await else { panic!("not told that it asks") };
        assert!(matches!(queue.next().await, CallNews::Asked { number: 1, .. }));
        sink.withdraw(1);
        drop(sink);
        assert!(matches!(queue.next().await, CallNews::Asked { number: 2, .. }));
        assert!(matches!(queue.next().await, CallNews::Withdrawn { number: 1 }));
        let last = queue.next().await;
        assert!(matches!(last, CallNews::Done(Answer::Lost { written: true, .. })));
    }

    /// A server that asks and withdraws for ever while nobody looks fills nothing.
    #[tokio::test]
    async fn what_is_withdrawn_before_it_was_taken_leaves_nothing() {
        let (reply, told) = oneshot::channel();
        let mut sink = Sink::new(reply, None);
        for number in 0..1000 {
            sink.ask(number, asked());
            sink.withdraw(number);
        }
        let Ok(Told::Asks(queue)) = told.await else { panic!("not told that it asks") };
        assert!(queue.news.lock().unwrap().is_empty());
        sink.done(Answer::Complete(RawJson::empty_object()));
        assert!(matches!(queue.next().await, CallNews::Done(Answer::Complete(_))));
    }
}
