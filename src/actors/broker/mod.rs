//! Open questions that the host of a call cannot be asked: kept for whoever listens (E-01).
//!
//! A question waits in a table under a short lock, so that asking and answering need no message; it is
//! answered by a person (`mcpx elicit`), withdrawn with its call, or cancelled when its time is up or
//! the last listener goes. The actor does what takes time: it watches the deadlines and keeps the
//! records of what is open, so that the next daemon can tell what became of it. Permanent; no children.
//!
//! An answer is a secret: it goes to who asked, and is neither logged nor kept nor shown by `Debug`.

mod table;

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::settings::Current;
use crate::protocol::model::questions::{self, Question, Reply};
use crate::protocol::session::Limit;
use crate::settings::typed::ElicitSettings;
use table::Table;

/// A question to be kept.
#[derive(Debug)]
pub struct Held {
    /// The upstream that asks, by its configuration key.
    pub server: String,
    /// What it is about, as in "tool `search` of server `github`".
    pub what: String,
    /// The host whose call it is, by its label; none where nobody but mcpx called.
    pub host: Option<String>,
    /// What is asked.
    pub question: Question,
    /// The task that waits for it, where a task does.
    pub task: Option<String>,
}

/// Why a question is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotHeld {
    /// Nobody listens, and `elicit.hold` is zero.
    Nobody,
    /// As many are open as `elicit.max_open` admits.
    Full(Limit),
}

/// Keeps questions and takes answers. Cheap to clone; outlives the actor's incarnations.
#[derive(Clone)]
pub struct BrokerHandle {
    shared: Arc<Shared>,
}

struct Shared {
    settings: watch::Receiver<Arc<Current>>,
    listeners: AtomicUsize,
    table: Mutex<Table>,
}

impl BrokerHandle {
    /// Nothing is open. `settings` shows what is in force.
    pub fn new(settings: watch::Receiver<Arc<Current>>) -> Self {
        let (listeners, table) = (AtomicUsize::new(0), Mutex::new(Table::default()));
        Self { shared: Arc::new(Shared { settings, listeners, table }) }
    }

    /// Whether somebody is there who sees questions as they are asked.
    pub fn listens(&self) -> bool {
        self.shared.listeners.load(Ordering::Relaxed) > 0
    }

    /// Keeps a question until it is answered, withdrawn by dropping what this returns, or its time is
    /// up, which answers it with `cancel`.
    pub fn hold(&self, held: Held) -> Result<Answering, NotHeld> {
        let settings = self.shared.elicit();
        if !self.listens() && settings.hold == Duration::ZERO {
            return Err(NotHeld::Nobody);
        }
        let mut table = self.shared.table();
        if table.len() >= settings.max_open {
            return Err(NotHeld::Full(Limit::count("elicit.max_open", settings.max_open)));
        }
        let (reply, answer) = oneshot::channel();
        let id = table.open(held, reply);
        drop(table);
        Ok(Answering { shared: Arc::clone(&self.shared), id, answer })
    }
}

impl Shared {
    fn elicit(&self) -> ElicitSettings {
        self.settings.borrow().loaded.settings.elicit
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for BrokerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BrokerHandle")
    }
}

/// The answer to a kept question, when there is one. Dropping it withdraws the question.
pub struct Answering {
    shared: Arc<Shared>,
    id: u64,
    answer: oneshot::Receiver<Reply>,
}

impl Future for Answering {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        let answer = Pin::new(&mut self.answer).poll(cx);
        answer.map(|answer| answer.unwrap_or_else(|_| Ok(questions::cancelled())))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.shared.table().withdraw(self.id);
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answering({})", self.id)
    }
}
