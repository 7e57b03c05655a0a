//! Open questions that the host of a call cannot be asked: kept for whoever listens (E-01).
//!
//! A question waits in a table under a short lock, so that asking and answering need no message; it is
//! answered by a person (`mcpx elicit`), withdrawn with its call, or cancelled when its time is up or
//! the last listener has gone. The actor (`keeper`) does what takes time: it watches the deadlines and
//! keeps the records of what is open, so that the next daemon can tell what became of it.
//!
//! An answer is a secret: it goes to who asked, and is neither logged nor kept nor shown by `Debug`.

mod keeper;
mod listening;
mod said;
mod table;

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use ractor::{ActorCell, SpawnErr};
use tokio::sync::{oneshot, watch};

use super::events::{Event, EventsHandle};
use super::settings::Current;
use super::support::slot::Slot;
use crate::control::types::{QuestionState, QuestionView, WhoAnswers};
use crate::protocol::model::questions::{self, Question, Reply};
use crate::protocol::session::Limit;
use crate::settings::typed::ElicitSettings;
use crate::transport::clock;
use crate::transport::store::Store;
use keeper::KeeperMsg;
pub use listening::{Listening, News};
pub use said::Said;
use table::{Entry, Table};

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

/// Why an answer was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotTaken {
    /// There is no open question of this id; the ids of those that are.
    Unknown(Vec<String>),
    /// Its call ended with an earlier daemon.
    Lost,
    /// It does not fit; why. The question stays open.
    Unfit(String),
}

/// Keeps questions and takes answers. Cheap to clone; outlives the actor's incarnations.
#[derive(Clone)]
pub struct BrokerHandle {
    shared: Arc<Shared>,
    /// The call whose own caller sees its questions.
    watch: Option<CallWatch>,
}

/// The call of a caller that is told of its questions.
#[derive(Debug, Clone, Copy)]
struct CallWatch {
    number: u64,
    who: WhoAnswers,
}

struct Shared {
    settings: watch::Receiver<Arc<Current>>,
    store: Arc<dyn Store>,
    events: EventsHandle,
    listeners: AtomicUsize,
    calls: AtomicU64,
    table: Mutex<Table>,
    /// Counts changes of the table.
    changes: watch::Sender<u64>,
    actor: Slot<KeeperMsg>,
}

impl BrokerHandle {
    /// With what an earlier daemon left in `store`, as lost; `settings` shows what is in force.
    pub fn new(
        store: Arc<dyn Store>,
        events: EventsHandle,
        settings: watch::Receiver<Arc<Current>>,
    ) -> Self {
        let shared = Shared {
            settings,
            store,
            events,
            listeners: AtomicUsize::new(0),
            calls: AtomicU64::new(0),
            table: Mutex::new(Table::default()),
            changes: watch::Sender::new(0),
            actor: Slot::default(),
        };
        shared.find_lost();
        Self { shared: Arc::new(shared), watch: None }
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.shared.actor.ask(limit, |reply| KeeperMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the actor as a child of `parent`.
    pub async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        keeper::start(&self.shared, parent).await
    }

    /// Resolves when everything is on disk, or `limit` has passed.
    pub async fn flush(&self, limit: Duration) {
        // What could not be written has been said in an event.
        let _ = self.shared.actor.ask(limit, |reply| KeeperMsg::Flush { reply }).await;
    }

    /// Whether somebody is there who sees questions as they are asked.
    pub fn listens(&self) -> bool {
        self.watch.is_some() || self.shared.listened()
    }

    /// Whether what is asked at this moment would be kept: for whoever listens, or for `elicit.hold`.
    pub fn keeps(&self) -> bool {
        self.listens() || !self.shared.elicit().hold.is_zero()
    }

    /// Somebody listens from now on, until what this returns falls.
    pub fn listen(&self) -> Listening {
        Listening::to_all(&self.shared)
    }

    /// A broker for one call whose caller is told of its questions, and what tells it.
    pub fn for_call(&self, who: WhoAnswers) -> (Self, Listening) {
        let number = self.shared.calls.fetch_add(1, Ordering::Relaxed);
        let listening = Listening::to_call(&self.shared, number);
        let watch = Some(CallWatch { number, who });
        (Self { shared: Arc::clone(&self.shared), watch }, listening)
    }

    /// All that are open or were lost, oldest first.
    pub fn questions(&self) -> Vec<QuestionView> {
        self.shared.views(None)
    }

    /// One of them.
    pub fn question(&self, id: &str) -> Option<QuestionView> {
        self.questions().into_iter().find(|view| view.id == id)
    }

    /// Keeps a question until it is answered, withdrawn by dropping what this returns, or its time is
    /// up, which answers it with `cancel`.
    pub fn hold(&self, held: Held) -> Result<Answering, NotHeld> {
        let settings = self.shared.elicit();
        let now = clock::now();
        let (reply, answer) = oneshot::channel();
        let mut table = self.shared.table();
        // Under the lock: a listener that goes at this moment finds the question, or is not counted.
        let unseen = self.kept_unseen(&settings)?;
        if table.len() >= settings.max_open {
            return Err(NotHeld::Full(Limit::count("elicit.max_open", settings.max_open)));
        }
        let id = new_id(&table);
        let view = view(id.clone(), &held, settings.timeout);
        let opened = opened(&view);
        table.open(Entry {
            view,
            question: held.question,
            reply,
            asked: now,
            deadline: now + settings.timeout,
            unseen_until: unseen.map(|unseen| now + unseen),
            watch: self.watch.map(|watch| watch.number),
            attended: self.watch.is_some_and(|watch| watch.who == WhoAnswers::Here),
            number: 0,
        });
        drop(table);
        self.shared.changed();
        self.shared.events.emit(opened);
        Ok(Answering { shared: Arc::clone(&self.shared), id, answer })
    }

    /// How long a question is kept if nobody comes to see it; `None` where somebody does.
    fn kept_unseen(&self, settings: &ElicitSettings) -> Result<Option<Duration>, NotHeld> {
        let who = self.watch.map(|watch| watch.who);
        if who == Some(WhoAnswers::Here) || self.shared.listened() {
            return Ok(None);
        }
        let linger = if who.is_some() { settings.linger } else { Duration::ZERO };
        let kept = settings.hold.max(linger);
        if kept == Duration::ZERO { Err(NotHeld::Nobody) } else { Ok(Some(kept)) }
    }

    /// Takes an answer to a question; what does not fit leaves it open.
    pub fn answer(&self, id: &str, said: &Said) -> Result<(), NotTaken> {
        let mut table = self.shared.table();
        let Some(entry) = table.get(id) else {
            let lost = table.is_lost(id);
            return Err(if lost { NotTaken::Lost } else { NotTaken::Unknown(table.ids()) });
        };
        let reply = said.reply(entry.view.kind, &entry.question).map_err(NotTaken::Unfit)?;
        let Some(entry) = table.take(id) else { return Err(NotTaken::Unknown(Vec::new())) };
        drop(table);
        let text = format!("{} was answered: {}", named(&entry.view), said.action());
        self.shared.closed(entry, reply, "question.answered", text);
        Ok(())
    }

    /// A server says that what its url question asked for has been done (client/elicitation of
    /// 2025-11-25, "Completion Notifications"): that answers it.
    pub fn completed(&self, server: &str, elicitation: &str) {
        let id = self.shared.table().of_elicitation(server, elicitation);
        if let Some(id) = id {
            let done = Said::Accept { content: None, value: None };
            // Answered by a person at the same moment: as good.
            let _ = self.answer(&id, &done);
        }
    }
}

impl Shared {
    fn elicit(&self) -> ElicitSettings {
        self.settings.borrow().loaded.settings.elicit
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn views(&self, call: Option<u64>) -> Vec<QuestionView> {
        self.table().views(call)
    }

    fn listened(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0
    }

    /// Tells listeners and the actor.
    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
        // Without an actor the next incarnation looks.
        self.actor.cast(KeeperMsg::Changed);
    }

    /// An entry that has been taken out gets its reply.
    fn closed(&self, entry: Entry, reply: Reply, kind: &'static str, text: String) {
        // Its call may have ended at this moment.
        let _ = entry.reply.send(reply);
        self.changed();
        self.events.emit(of(&entry.view, Event::new(kind, text)));
    }

    /// What an earlier daemon left.
    fn find_lost(&self) {
        let kept = self.store.all(keeper::TABLE);
        let records = match kept {
            Ok(records) => records,
            Err(error) => {
                let text = format!("open questions of the last daemon could not be read: {error}");
                self.events.emit(Event::new("daemon.warning", text));
                return;
            }
        };
        let (now, wall, keep) = (clock::now(), wall_ms(), self.elicit().keep_lost);
        for (_, record) in &records {
            let Some(view) = table::lost(record, wall.saturating_add(millis(keep))) else {
                continue;
            };
            let left = Duration::from_millis(view.expires_at.saturating_sub(wall)).min(keep);
            let text =
                format!("{} was lost: the daemon ended before it was answered", named(&view));
            self.events.emit(of(&view, Event::new("question.lost", text)));
            self.table().lose(view, now + left);
        }
    }
}

impl fmt::Debug for BrokerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BrokerHandle")
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Broker")
    }
}

/// The answer to a kept question, when there is one. Dropping it withdraws the question.
pub struct Answering {
    shared: Arc<Shared>,
    id: String,
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
        let entry = self.shared.table().take(&self.id);
        if let Some(entry) = entry {
            let text = format!("{} is no longer asked: its call ended", named(&entry.view));
            self.shared.changed();
            self.shared.events.emit(of(&entry.view, Event::new("question.withdrawn", text)));
        }
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answering({})", self.id)
    }
}

/// An id that is not in use: a few letters and digits that nobody mistakes for one another. Not counted:
/// who answers an old question must not hit a new one.
fn new_id(table: &Table) -> String {
    const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz";
    const ALL: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
    const LENGTH: usize = 4;
    loop {
        let drawn: [u8; LENGTH] = clock::random();
        let letter = |(index, byte): (usize, u8)| {
            let from = if index == 0 { LETTERS } else { ALL };
            from.get(usize::from(byte) % from.len()).copied().map(char::from)
        };
        let id: String = drawn.into_iter().enumerate().filter_map(letter).collect();
        if !table.has(&id) {
            return id;
        }
    }
}

fn view(id: String, held: &Held, kept: Duration) -> QuestionView {
    let params = &held.question.params;
    let asked_at = wall_ms();
    QuestionView {
        id,
        state: QuestionState::Open,
        kind: said::kind_of(&held.question),
        server: held.server.clone(),
        what: held.what.clone(),
        host: held.host.clone(),
        task: held.task.clone(),
        message: params.member_str("message").unwrap_or_default(),
        url: params.member_str("url"),
        params: params.detached(),
        asked_at,
        expires_at: asked_at.saturating_add(millis(kept)),
        fate: None,
    }
}

/// Longest part of a message in an event, in characters.
const SHOWN: usize = 200;

fn opened(view: &QuestionView) -> Event {
    let message: String =
        view.message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect();
    let text = format!(
        "{} asks: {message} (question {id}; `mcpx elicit show {id}` shows it, `mcpx elicit answer {id} \
         …` answers it)",
        view.what,
        id = view.id,
    );
    of(view, Event::new("question.opened", text))
}

fn named(view: &QuestionView) -> String {
    format!("question {} of {}", view.id, view.what)
}

fn of(view: &QuestionView, event: Event) -> Event {
    let event = event.of_server(view.server.as_str());
    match &view.host {
        Some(host) => event.of_host(host.as_str()),
        None => event,
    }
}

fn wall_ms() -> u64 {
    millis(clock::wall())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
