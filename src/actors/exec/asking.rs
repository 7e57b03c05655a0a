//! A run of a script as a call that is not over: what its calls ask, and its time.
//!
//! A modern host is asked by the answer to its request, whatever asks. What the calls of one script ask
//! it therefore comes together here, and the run waits as a whole: it is an
//! [`Ongoing`](crate::actors::pool::ongoing::Ongoing) like a call on an upstream, and is parked and
//! brought back like one. Whoever else can be asked is asked by each call itself.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc, oneshot};

use crate::actors::pool::ongoing::News;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::questions::{Question, Reply, unanswered};
use crate::protocol::session::Answer;
use crate::transport::clock;

/// Leads from the calls of a script to whoever the request of the run may ask. Cheap to clone.
#[derive(Clone)]
pub struct ScriptLine {
    asks: mpsc::Sender<Ask>,
}

struct Ask {
    question: Question,
    reply: oneshot::Sender<Reply>,
}

impl fmt::Debug for ScriptLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptLine")
    }
}

impl ScriptLine {
    /// Asks, and waits for the answer for as long as the run goes on. Where as many questions wait already
    /// as may (`elicit.max_open`), nobody answers. Dropping the future withdraws the question.
    pub(crate) async fn put(&self, question: &Question) -> Reply {
        let (reply, answered) = oneshot::channel();
        let ask = Ask { question: question.clone(), reply };
        if self.asks.try_send(ask).is_err() {
            return unanswered(question);
        }
        answered.await.unwrap_or_else(|_| unanswered(question))
    }
}

/// What runs a script: the result of a tool in the end.
pub(crate) type Work = Pin<Box<dyn Future<Output = RawJson> + Send>>;

/// See the module. Dropping it gives the run up: its calls are cancelled, and its process is killed.
pub struct Running {
    work: Work,
    asked: mpsc::Receiver<Ask>,
    open: Vec<(String, oneshot::Sender<Reply>)>,
    deadline: Deadline,
    asks: u64,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

impl Running {
    /// Of what `work` makes with the line to whoever is asked. At most `most` questions wait at once, and
    /// while any does, the `deadline` waits as well.
    pub(crate) fn new(
        most: usize,
        deadline: Deadline,
        work: impl FnOnce(ScriptLine) -> Work,
    ) -> Self {
        let (asks, asked) = mpsc::channel(most.max(1));
        let work = work(ScriptLine { asks });
        Self { work, asked, open: Vec::new(), deadline, asks: 0 }
    }

    /// The next that is heard of it. Cancel-safe; while it is not polled, the script waits.
    pub(in crate::actors) async fn next(&mut self) -> News {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<News> {
        if let Poll::Ready(result) = self.work.as_mut().poll(cx) {
            return Poll::Ready(News::Done(Ok(Answer::Complete(result))));
        }
        let given_up = self.open.iter_mut().position(|(_, reply)| reply.poll_closed(cx).is_ready());
        if let Some(at) = given_up {
            let (key, _) = self.open.swap_remove(at);
            self.look_at_the_clock();
            return Poll::Ready(News::Withdrawn { key });
        }
        // The sender is the work's.
        let Poll::Ready(Some(Ask { question, reply })) = self.asked.poll_recv(cx) else {
            return Poll::Pending;
        };
        self.asks += 1;
        let key = format!("q{}", self.asks);
        self.open.push((key.clone(), reply));
        self.look_at_the_clock();
        Poll::Ready(News::Asked { key, question })
    }

    /// Answers a question; one that is not open is ignored.
    pub(in crate::actors) fn reply(&mut self, key: &str, reply: Reply) {
        if let Some(at) = self.open.iter().position(|(open, _)| open == key) {
            let (_, waiting) = self.open.swap_remove(at);
            // Whoever asked may have gone.
            let _ = waiting.send(reply);
            self.look_at_the_clock();
        }
    }

    fn look_at_the_clock(&self) {
        if self.open.is_empty() {
            self.deadline.go_on(clock::now());
        } else {
            self.deadline.pause(clock::now());
        }
    }
}

/// When a run has taken long enough; stands still while its host is asked. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Deadline(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    time: Mutex<Time>,
    moved: Notify,
}

#[derive(Debug, Clone, Copy)]
enum Time {
    /// It passes then.
    At(Instant),
    /// So much is left.
    Left(Duration),
}

impl Deadline {
    /// So far from now.
    pub(crate) fn new(now: Instant, limit: Duration) -> Self {
        // What is beyond all time never passes.
        let at = now.checked_add(limit).map_or(Time::Left(limit), Time::At);
        Self(Arc::new(Inner { time: Mutex::new(at), moved: Notify::new() }))
    }

    fn pause(&self, now: Instant) {
        let mut time = self.time();
        if let Time::At(at) = *time {
            *time = Time::Left(at.saturating_duration_since(now));
            self.0.moved.notify_one();
        }
    }

    fn go_on(&self, now: Instant) {
        let mut time = self.time();
        if let Time::Left(left) = *time
            && let Some(at) = now.checked_add(left)
        {
            *time = Time::At(at);
            self.0.moved.notify_one();
        }
    }

    /// Resolves when it has passed. For one who waits.
    pub(crate) async fn passed(&self) {
        loop {
            let time = *self.time();
            let sleep = async {
                match time {
                    Time::At(at) => tokio::time::sleep_until(at.into()).await,
                    Time::Left(_) => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.0.moved.notified() => {}
                () = sleep => return,
            }
        }
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        self.0.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::jsonrpc::Method;

    fn question() -> Question {
        let method = Method::known("elicitation/create");
        Question { method, params: RawJson::empty_object() }
    }

    /// E-06: a run that asks waits as a whole, and its time stands still meanwhile.
    #[tokio::test(start_paused = true)]
    async fn e06_the_time_in_which_a_host_answers_is_not_the_scripts() {
        let minute = Duration::from_mins(1);
        let deadline = Deadline::new(clock::now(), minute);
        let own = deadline.clone();
        let mut run = Running::new(4, deadline, |line| {
            Box::pin(async move {
                let (one, two) = (question(), question());
                let both = async { tokio::join!(line.put(&one), line.put(&two)) };
                let asked = tokio::select! {
                    both = both => both,
                    () = own.passed() => return RawJson::null(),
                };
                assert!(asked.0.is_ok() && asked.1.is_ok());
                let begun = clock::now();
                own.passed().await;
                RawJson::write(&clock::now().duration_since(begun).as_secs())
            })
        });
        let News::Asked { key: first, .. } = run.next().await else { panic!() };
        let News::Asked { key: second, .. } = run.next().await else { panic!() };
        assert_ne!(first, second);
        tokio::time::advance(minute * 10).await;
        run.reply(&first, Ok(RawJson::empty_object()));
        assert!(tokio::time::timeout(minute, run.next()).await.is_err(), "one is still open");
        run.reply(&second, Ok(RawJson::empty_object()));
        let News::Done(Ok(Answer::Complete(left))) = run.next().await else { panic!() };
        assert_eq!(left.as_str(), "60");
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_is_withdrawn() {
        let deadline = Deadline::new(clock::now(), Duration::from_mins(1));
        let mut run = Running::new(1, deadline, |line| {
            Box::pin(async move {
                let asked = question();
                {
                    let mut put = std::pin::pin!(line.put(&asked));
                    poll_fn(|cx| Poll::Ready(put.as_mut().poll(cx).is_pending())).await;
                    // One waits, which is as many as may.
                    assert_eq!(line.put(&asked).await.unwrap(), unanswered(&asked).unwrap());
                    tokio::task::yield_now().await;
                }
                std::future::pending().await
            })
        });
        let News::Asked { key, .. } = run.next().await else { panic!() };
        let News::Withdrawn { key: gone } = run.next().await else { panic!() };
        assert_eq!(key, gone);
    }
}
