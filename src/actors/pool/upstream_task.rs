//! A call that its upstream works on as a task (U-57), driven to its outcome, of either form: the
//! core of 2025-11-25 (`tasks/get`, `tasks/result`) and the extension of 2026-07-28 (`tasks/get`,
//! `tasks/update`).
//!
//! A state machine without a task or an actor of its own: it goes on while somebody waits in
//! `UpstreamTask::next` and costs nothing while nobody does. It looks after its task at the rhythm
//! that the server asks for, within `tasks.poll_min` and `tasks.poll_max`, and at once where the
//! server tells by itself that something changed. Its requests go to the instance that made the task
//! and need no permits: at most three are under way, and the call that led to them was admitted.
//!
//! **Bias**: a legacy server may answer `tasks/result` with an error although its task goes on
//! (the page wants it to block). So an error counts as the outcome only of a task that has ended.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::caller::{self, CallScope, Leased, Place};
use super::directory::Watched;
use super::ongoing::{Called, News, Ongoing};
use crate::actors::support::progress::ProgressSender;
use crate::actors::upstreams::{CallWant, Caller, Reason, Refused, Shared};
use crate::protocol::jsonrpc::{Code, Method, Object, RawJson, RpcError};
use crate::protocol::model::questions::{self, Kind, Question, Reply};
use crate::protocol::model::tasks::{self, Detail, Support, Task};
use crate::protocol::revision::Era;
use crate::protocol::session::pending::CallLimits;
use crate::protocol::session::upstream::TaskWant;
use crate::protocol::session::{Answer, Limit};
use crate::protocol::task_fsm::Status;
use crate::settings::Settings;
use crate::transport::clock;

/// See the module. Dropping it before its outcome cancels the task.
pub struct UpstreamTask {
    shared: Arc<Shared>,
    caller: Caller,
    progress: Option<ProgressSender>,
    id: String,
    want: TaskWant,
    place: Place,
    /// A server of call scope lives as long as this.
    _scope: Option<CallScope>,
    told: Watched,
    /// `tasks/get`.
    look: Request,
    /// `tasks/result` of the older form.
    fetch: Request,
    /// `tasks/update` of the newer form, and what it answers.
    update: Request,
    updating: Vec<String>,
    /// Questions that wait for an answer, and the keys of all that were ever asked.
    open: Vec<(String, Kind)>,
    asked: HashSet<String>,
    /// Answers that are to be sent.
    replies: Vec<(String, RawJson)>,
    /// As it was last told.
    seen: Task,
    rhythm: Rhythm,
    /// When it is given up, where no host has a say in that.
    limit: Option<Instant>,
    /// How often its status was told as progress.
    steps: u64,
    ready: VecDeque<News>,
    ended: bool,
}

/// When to look next.
#[derive(Debug)]
struct Rhythm {
    /// `None` while a look is under way.
    due: Option<Instant>,
    looked: Instant,
    /// The rest that grows while a server that names none has nothing new.
    rest: Duration,
    /// Since when no look has succeeded.
    failing: Option<Instant>,
}

/// A request of its own.
enum Request {
    Idle,
    Calling(Calling),
    /// Its server asks in the course of it.
    Open(Box<Ongoing>),
}

type Calling = Pin<Box<dyn Future<Output = Result<Called, Refused>> + Send>>;

/// What woke it.
enum Step {
    Looked(News),
    Fetched(News),
    Updated(News),
    Told,
    Due,
}

impl Request {
    const fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// The next that is heard of it; for ever nothing where there is none. Cancel-safe.
    async fn next(&mut self) -> News {
        loop {
            match self {
                Self::Idle => std::future::pending().await,
                Self::Calling(calling) => match calling.as_mut().await {
                    Ok(Called::Open(ongoing)) => *self = Self::Open(ongoing),
                    Ok(Called::Done(answer)) => return self.done(Ok(answer)),
                    Err(refused) => return self.done(Err(refused)),
                },
                Self::Open(ongoing) => match Box::pin(ongoing.next()).await {
                    News::Done(answered) => return self.done(answered),
                    news => return news,
                },
            }
        }
    }

    fn done(&mut self, answered: Result<Answer, Refused>) -> News {
        *self = Self::Idle;
        News::Done(answered)
    }

    fn reply(&mut self, key: &str, reply: &Reply) {
        if let Self::Open(ongoing) = self {
            ongoing.reply(key, reply.clone());
        }
    }
}

impl UpstreamTask {
    /// Of a call that was answered with `handle`, the task's handle in newest shape, from `place`.
    pub(super) fn new(
        shared: &Arc<Shared>,
        want: &CallWant,
        task: TaskWant,
        place: Place,
        scope: Option<CallScope>,
        handle: &RawJson,
    ) -> Result<Self, String> {
        let seen = Task::read(handle)?;
        let (caller, progress) = (want.caller.clone(), want.progress.clone());
        let mut begun = Self::begin(shared, caller, progress, task, place, scope, seen);
        let first = begun.seen.clone();
        begun.tell(&first);
        begun.rest();
        Ok(begun)
    }

    /// A task of an earlier life of mcpx, of whose state nothing is known but its name.
    pub(in crate::actors) async fn resume(
        shared: &Arc<Shared>,
        caller: Caller,
        server: &Arc<str>,
        id: String,
    ) -> Result<Self, Refused> {
        let (place, scope) = Place::find(shared, &caller, server).await?;
        // It has been asked for: nothing of this is said again.
        let task = TaskWant { ttl: Duration::ZERO, support: Support::Unsaid, eager: true };
        let seen = Task {
            id,
            status: Status::Working,
            message: None,
            created_at: String::new(),
            updated_at: String::new(),
            ttl_ms: None,
            poll_ms: None,
            detail: Detail::Nothing,
        };
        Ok(Self::begin(shared, caller, None, task, place, scope, seen))
    }

    fn begin(
        shared: &Arc<Shared>,
        caller: Caller,
        progress: Option<ProgressSender>,
        want: TaskWant,
        place: Place,
        scope: Option<CallScope>,
        seen: Task,
    ) -> Self {
        let (settings, now) = (shared.settings(), clock::now());
        let limit = if want.eager { None } else { now.checked_add(settings.call.total) };
        let rest = settings.tasks.poll_min;
        Self {
            shared: Arc::clone(shared),
            caller,
            progress,
            id: seen.id.clone(),
            want,
            told: place.route.watch_task(&seen.id),
            place,
            _scope: scope,
            look: Request::Idle,
            fetch: Request::Idle,
            update: Request::Idle,
            updating: Vec::new(),
            open: Vec::new(),
            asked: HashSet::new(),
            replies: Vec::new(),
            seen,
            rhythm: Rhythm { due: Some(now), looked: now, rest, failing: None },
            limit,
            steps: 0,
            ready: VecDeque::new(),
            ended: false,
        }
    }

    /// Its server's name for it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The next that is heard of it. Cancel-safe; may be left unpolled for long.
    pub(super) async fn next(&mut self) -> News {
        loop {
            if let Some(news) = self.ready.pop_front() {
                return news;
            }
            if self.ended {
                // It has told its outcome.
                std::future::pending::<()>().await;
            }
            self.start_due();
            let step = self.step().await;
            self.take(step);
        }
    }

    /// Answers a question; one that is not open is ignored.
    pub(super) fn reply(&mut self, key: &str, reply: Reply) {
        self.look.reply(key, &reply);
        self.fetch.reply(key, &reply);
        let Some(at) = self.open.iter().position(|(open, _)| open == key) else { return };
        let (key, kind) = self.open.remove(at);
        match reply {
            Ok(result) => self.replies.push((key, result)),
            // The extension has no word for an error; an elicitation has one for no answer.
            Err(_) if matches!(kind, Kind::Form | Kind::Url) => {
                self.replies.push((key, questions::cancelled()));
            }
            Err(error) => {
                self.cancel();
                self.finish(Ok(Answer::Error(error)));
            }
        }
    }

    async fn step(&mut self) -> Step {
        let wake = [self.rhythm.due, self.limit].into_iter().flatten().min();
        let due = async {
            match wake {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            news = self.fetch.next() => Step::Fetched(news),
            news = self.update.next() => Step::Updated(news),
            news = self.look.next() => Step::Looked(news),
            () = self.told.changed() => Step::Told,
            () = due => Step::Due,
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Due => self.check_limit(),
            Step::Told => {
                // However often it is told, looks keep their least distance.
                let settings = self.shared.settings();
                let soon = self.rhythm.looked.checked_add(settings.tasks.poll_min);
                if self.rhythm.due.is_some() {
                    self.rhythm.due = soon.min(self.rhythm.due);
                }
            }
            Step::Looked(News::Done(answered)) => self.looked(answered),
            Step::Fetched(News::Done(answered)) => self.fetched(answered),
            Step::Updated(News::Done(answered)) => self.updated(&answered),
            // A server of the older form asks where it can: each request of the task is a place.
            Step::Looked(news) | Step::Fetched(news) | Step::Updated(news) => {
                self.ready.push_back(news);
            }
        }
    }

    fn is_modern(&self) -> bool {
        self.place.route.era == Era::Modern
    }

    // ---- requests ----

    fn start_due(&mut self) {
        if !self.replies.is_empty() && self.update.is_idle() {
            let replies = std::mem::take(&mut self.replies);
            self.updating = replies.iter().map(|(key, _)| key.clone()).collect();
            let params = tasks::update(&self.id, &replies);
            self.update = self.request("tasks/update", &params, self.limits());
        }
        let now = clock::now();
        if self.look.is_idle() && self.rhythm.due.is_some_and(|due| due <= now) {
            self.rhythm.due = None;
            self.rhythm.looked = now;
            self.look = self.request("tasks/get", &tasks::named(&self.id), self.limits());
        }
    }

    fn limits(&self) -> CallLimits {
        let call = self.shared.settings().call;
        CallLimits { idle: call.idle, total: call.total }
    }

    /// Asks for the result, which blocks until there is one; looks tell meanwhile that the server is
    /// alive.
    fn start_fetch(&mut self) {
        if self.fetch.is_idle() {
            let limits = CallLimits { idle: Duration::MAX, total: Duration::MAX };
            self.fetch = self.request("tasks/result", &tasks::named(&self.id), limits);
        }
    }

    fn request(&self, method: &'static str, params: &RawJson, limits: CallLimits) -> Request {
        let (shared, place) = (Arc::clone(&self.shared), self.place.again());
        let mut want = self.want_of(method, params);
        Request::Calling(Box::pin(async move {
            let leased = Leased::again(&place);
            let scope = &mut None;
            let sent = caller::send(leased, scope, &place.server, &want, limits, &shared).await;
            match sent {
                Called::Done(Answer::Lost { written: false, .. }) if place.is_anywhere() => {
                    caller::call(&shared, &mut want).await
                }
                called => Ok(called),
            }
        }))
    }

    fn want_of(&self, method: &'static str, params: &RawJson) -> CallWant {
        CallWant {
            server: self.place.server.def.key.as_str().into(),
            caller: self.caller.clone(),
            method: Method::known(method),
            params: params.clone(),
            progress: None,
            repeatable: method != "tasks/update",
            task: Some(self.want),
        }
    }

    // ---- what came of them ----

    fn looked(&mut self, answered: Result<Answer, Refused>) {
        let task = match answered {
            Ok(Answer::Complete(raw) | Answer::Task(raw)) => Task::read(&raw),
            Ok(Answer::Error(error)) if says_gone(&error) => return self.gone(&error.message),
            Ok(Answer::Lost { why, .. }) if !self.place.is_anywhere() => return self.gone(&why),
            Ok(Answer::Invalid(why)) => Err(why),
            Ok(Answer::TimedOut(limit)) => return self.give_up(limit),
            Ok(other) => return self.look_failed(&format!("{other:?}")),
            Err(refused) => return self.look_failed(&refused.text),
        };
        match task {
            Ok(task) => self.sees(task),
            Err(why) => {
                self.cancel();
                self.finish(Ok(Answer::Invalid(why)));
            }
        }
    }

    /// The task as its server tells it.
    fn sees(&mut self, task: Task) {
        self.rhythm.failing = None;
        let changed = task.status != self.seen.status || task.message != self.seen.message;
        // An end is told with its outcome.
        let ends = matches!(task.status, Status::Completed | Status::Failed);
        if !ends && (changed || task.ttl_ms != self.seen.ttl_ms) {
            self.tell(&task);
            self.rhythm.rest = self.shared.settings().tasks.poll_min;
        }
        self.seen = task;
        let detail = self.seen.detail.clone();
        match (self.seen.status, detail) {
            (Status::Cancelled, _) => {
                let text = self.seen.message.as_deref().unwrap_or("it does not say why");
                let text = format!("its server cancelled the task: {text}");
                return self.finish(Ok(Answer::Error(RpcError::new(Code::InternalError, text))));
            }
            // Of the older form both the result and what is asked come that way.
            (Status::Completed | Status::Failed | Status::InputRequired, _)
                if !self.is_modern() =>
            {
                self.start_fetch();
            }
            (Status::Completed, Detail::Result(result)) => {
                return self.finish(Ok(Answer::Complete(result)));
            }
            (Status::Failed, Detail::Error(error)) => {
                return self.finish(Ok(Answer::Error(error)));
            }
            (Status::Completed | Status::Failed, _) => {
                let text = "its task has ended and has no result".to_owned();
                return self.finish(Ok(Answer::Invalid(text)));
            }
            (Status::InputRequired, Detail::Asks(asks)) => self.asks(&asks),
            (Status::InputRequired | Status::Working, _) => self.asks(&RawJson::empty_object()),
        }
        if self.seen.status.is_terminal() {
            // Only its result is missing, and that is on its way.
            self.rhythm.due = None;
        } else {
            self.rest();
        }
    }

    /// Questions of the newer form, which stand in the task until they are answered.
    fn asks(&mut self, asks: &RawJson) {
        let asks = Object::read_or_empty(Some(asks));
        let gone = self.open.extract_if(.., |(key, _)| !asks.contains(key));
        self.ready.extend(gone.map(|(key, _)| News::Withdrawn { key }));
        for (key, ask) in asks.iter() {
            if self.asked.contains(key) {
                continue;
            }
            let method = ask.member_str("method").unwrap_or_default();
            let Some(question) = Question::new(&method, ask.member("params")) else {
                self.cancel();
                let text = format!("its task asks for `{method:.80}`, which nobody can answer");
                return self.finish(Ok(Answer::Invalid(text)));
            };
            self.asked.insert(key.to_owned());
            self.open.push((key.to_owned(), question.kind()));
            self.ready.push_back(News::Asked { key: key.to_owned(), question });
        }
    }

    fn fetched(&mut self, answered: Result<Answer, Refused>) {
        match answered {
            Ok(Answer::Lost { why, .. }) if !self.place.is_anywhere() => self.gone(&why),
            // See the bias of the module.
            Ok(Answer::Error(_) | Answer::Lost { .. }) | Err(_)
                if !self.seen.status.is_terminal() => {}
            // The mark is of a task that nobody but its server knows by this name.
            Ok(Answer::Complete(result)) => {
                self.finish(Ok(Answer::Complete(tasks::unrelated(result))));
            }
            answered => self.finish(answered),
        }
    }

    fn updated(&mut self, answered: &Result<Answer, Refused>) {
        let keys = std::mem::take(&mut self.updating);
        if !matches!(answered, Ok(Answer::Complete(_))) {
            // Not taken: what still stands in the task is asked once more.
            self.asked.retain(|key| !keys.contains(key));
        }
        self.look_soon();
    }

    fn look_failed(&mut self, why: &str) {
        let now = clock::now();
        let call = self.shared.settings().call;
        let since = *self.rhythm.failing.get_or_insert(now);
        tracing::debug!(server = %self.place.server.def.key, why, "a look after a task failed");
        if now.duration_since(since) > call.idle {
            return self.give_up(Limit::time("call.idle_timeout", call.idle));
        }
        self.rest();
    }

    // ---- time ----

    fn look_soon(&mut self) {
        if self.rhythm.due.is_some() {
            self.rhythm.due = Some(clock::now());
        }
    }

    /// The next look after a rest: as long as the server asks for, else longer each time.
    fn rest(&mut self) {
        let settings = self.shared.settings();
        let rest = rest(self.seen.poll_ms, &mut self.rhythm.rest, &settings);
        self.rhythm.due = clock::now().checked_add(rest);
    }

    fn check_limit(&mut self) {
        if self.limit.is_some_and(|limit| limit <= clock::now()) {
            let total = self.shared.settings().call.total;
            self.give_up(Limit::time("call.total_timeout", total));
        }
    }

    fn give_up(&mut self, limit: Limit) {
        self.cancel();
        self.finish(Ok(Answer::TimedOut(limit)));
    }

    // ---- the end ----

    /// Nobody knows what became of it.
    fn gone(&mut self, why: &str) {
        let text = format!(
            "outcome unknown: server `{}` worked on the call as a task and can no longer be asked \
             about it ({why}); it may or may not have taken effect, check before trying again",
            self.place.server.def.key,
        );
        self.finish(Err(Refused { reason: Reason::OutcomeUnknown, text, limit: None }));
    }

    fn finish(&mut self, answered: Result<Answer, Refused>) {
        self.ended = true;
        self.look = Request::Idle;
        self.fetch = Request::Idle;
        self.update = Request::Idle;
        self.ready.push_back(News::Done(answered));
    }

    /// Says what is new of the task to whoever drives it, and as progress to the caller.
    fn tell(&mut self, task: &Task) {
        let plain = Task { detail: Detail::Nothing, ..task.clone() };
        self.ready.push_back(News::Status(plain.write()));
        let wanted = self.progress.as_ref().filter(|progress| progress.wants_progress());
        if let (Some(progress), Some(message)) = (wanted, &task.message) {
            self.steps += 1;
            let mut note = Object::new();
            note.set("progress", RawJson::write(&self.steps));
            note.set("message", RawJson::write(message));
            progress.send(note.write());
        }
    }

    /// Tells the server that nobody wants it any more; what it says to that reaches nobody.
    fn cancel(&self) {
        if self.ended || self.seen.status.is_terminal() {
            return;
        }
        let want = self.want_of("tasks/cancel", &tasks::named(&self.id));
        caller::tell(&self.shared, &self.place, &want, self.limits());
    }
}

/// A server that says this of a task will not say anything else.
fn says_gone(error: &RpcError) -> bool {
    [Code::InvalidParams, Code::MethodNotFound, Code::MissingCapability]
        .iter()
        .any(|code| error.code == code.number())
}

fn rest(asked: Option<u64>, growing: &mut Duration, settings: &Settings) -> Duration {
    let (min, max) =
        (settings.tasks.poll_min, settings.tasks.poll_max.max(settings.tasks.poll_min));
    if let Some(asked) = asked {
        return Duration::from_millis(asked).clamp(min, max);
    }
    let rest = (*growing).clamp(min, max);
    *growing = rest.saturating_mul(2).min(max);
    rest
}

impl Drop for UpstreamTask {
    fn drop(&mut self) {
        // A daemon that stops leaves the task: the next one may go on with it.
        if !self.ended && !self.shared.is_stopping() {
            self.cancel();
        }
    }
}

impl fmt::Debug for UpstreamTask {
    /// Without what is asked and answered, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamTask")
            .field("server", &self.place.server.def.key)
            .field("id", &self.id)
            .field("status", &self.seen.status)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
