//! Somebody who is told of questions, as they open and close.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::Shared;
use crate::control::types::QuestionView;
use crate::transport::clock;

/// What is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A question that is open, or was lost.
    Question(Box<QuestionView>),
    /// It is no longer there; its id.
    Closed(String),
}

/// Listens until it falls. What it is told is read off the table as it stands: a slow listener misses
/// only what has closed again.
pub struct Listening {
    shared: Arc<Shared>,
    changes: watch::Receiver<u64>,
    known: BTreeSet<String>,
    untold: VecDeque<News>,
    /// To the questions of this call alone; it does not count for others.
    call: Option<u64>,
}

impl Listening {
    pub(super) fn to_all(shared: &Arc<Shared>) -> Self {
        shared.listeners.fetch_add(1, Ordering::Relaxed);
        shared.table().seen();
        shared.changed();
        Self::new(shared, None)
    }

    pub(super) fn to_call(shared: &Arc<Shared>, call: u64) -> Self {
        Self::new(shared, Some(call))
    }

    fn new(shared: &Arc<Shared>, call: Option<u64>) -> Self {
        let mut changes = shared.changes.subscribe();
        // What is there already is news.
        changes.mark_changed();
        let (known, untold) = (BTreeSet::new(), VecDeque::new());
        Self { shared: Arc::clone(shared), changes, known, untold, call }
    }

    /// What is new, when there is something.
    pub async fn next(&mut self) -> News {
        loop {
            if let Some(news) = self.untold.pop_front() {
                return news;
            }
            // The sender lives as long as `shared`.
            let _ = self.changes.changed().await;
            self.look();
        }
    }

    fn look(&mut self) {
        let views = self.shared.views(self.call);
        let present: BTreeSet<String> = views.iter().map(|view| view.id.clone()).collect();
        self.untold.extend(self.known.difference(&present).cloned().map(News::Closed));
        let fresh = views.into_iter().filter(|view| !self.known.contains(&view.id));
        self.untold.extend(fresh.map(Box::new).map(News::Question));
        self.known = present;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if self.call.is_some() || self.shared.listeners.fetch_sub(1, Ordering::Relaxed) > 1 {
            return;
        }
        let settings = self.shared.elicit();
        self.shared.table().unseen(clock::now() + settings.linger.max(settings.hold));
        self.shared.changed();
    }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listening")
    }
}
