//! Reading the lists to their ends, and again when the upstream says that one changed (F38, F39).
//!
//! One reading of each at a time; asked for again meanwhile means once more afterwards, however
//! often. What was good stays: a page that fails after the first leaves a list that is marked
//! incomplete. The lists do not wait for each other.

use std::collections::HashSet;
use std::time::Instant;

use super::{Asked, ListKind, ListRead, Phase, UpstreamEvent, UpstreamSession, refusal};
use crate::protocol::edge;
use crate::protocol::jsonrpc::{Code, Method, Object, RawJson, scan};
use crate::protocol::revision::Revision;
use crate::protocol::session::pending::{CallSink, classify};
use crate::protocol::session::timers::{Timer, after};
use crate::protocol::session::{Answer, Limit, Outcome};

/// The state of all lists.
#[derive(Debug, Default)]
pub(super) struct Lists([List; ListKind::ALL.len()]);

/// The state of one list.
#[derive(Debug, Default)]
struct List {
    /// The upstream declared it; one that did not is not asked (2025-11-25 lifecycle page: only
    /// negotiated capabilities are used) and has none.
    declared: bool,
    /// A reading was asked for before the opening settled.
    wanted: bool,
    reading: Option<Reading>,
    /// Once more after this reading.
    again: bool,
}

#[derive(Debug, Default)]
struct Reading {
    items: Vec<RawJson>,
    /// What tells the items from each other ([`ListKind::item_key`]).
    names: HashSet<String>,
    /// Names that came more than once, the later ones left out (F40).
    doubled: Vec<String>,
    /// Items that cannot be told from others: no object, or without a name.
    nameless: usize,
    cursors: HashSet<String>,
    pages: usize,
    ttl_ms: Option<u64>,
    /// When it has taken too long.
    ends_at: Option<Instant>,
}

impl Lists {
    fn of(&mut self, kind: ListKind) -> &mut List {
        let [tools, resources, templates, prompts] = &mut self.0;
        match kind {
            ListKind::Tools => tools,
            ListKind::Resources => resources,
            ListKind::Templates => templates,
            ListKind::Prompts => prompts,
        }
    }

    /// The opening said what there is.
    pub(super) fn declare(&mut self, capabilities: &RawJson) {
        for kind in ListKind::ALL {
            // `null` is how some say that they have none.
            let declared = capabilities.member(kind.capability());
            self.of(kind).declared = declared.is_some_and(|declared| !declared.is_null());
        }
    }
}

/// What follows a page.
enum Step {
    Next(String),
    Done,
    Incomplete(String),
}

impl Reading {
    /// Takes a page in and says what follows.
    fn take(
        &mut self,
        kind: ListKind,
        revision: Revision,
        page: &RawJson,
        limits: &super::OpeningTimings,
    ) -> Result<Step, String> {
        let items = page.member(Self::member(kind)).and_then(|items| items.elements());
        let items = items.ok_or_else(|| format!("no list of {}", kind.noun()))?;
        self.pages += 1;
        self.ttl_ms = page.member("ttlMs").and_then(|raw| raw.as_str().parse().ok());
        let mut new = 0_usize;
        let doubled = self.doubled.len();
        for item in items {
            if self.items.len() >= limits.list_max_items {
                let limit = Limit::count("upstream.list_max_items", limits.list_max_items);
                return Ok(Step::Incomplete(over("items", &limit)));
            }
            new += usize::from(self.add(kind, &item));
        }
        let cursor = match page.member("nextCursor").filter(|cursor| !cursor.is_null()) {
            None => return Ok(Step::Done),
            Some(cursor) => match cursor.read::<String>() {
                Ok(cursor) => cursor,
                Err(_) => return Ok(Step::Incomplete("its nextCursor is no string".to_owned())),
            },
        };
        if cursor.is_empty() && !revision.empty_cursor_continues() {
            return Ok(Step::Done);
        }
        if !self.cursors.insert(cursor.clone()) {
            // The page it names was read already and is not read again (U-29). A server that means
            // the end by "" has just given its first page once more: nothing is missing then.
            if new == 0 {
                self.doubled.truncate(doubled);
            }
            return Ok(if new == 0 && cursor.is_empty() {
                Step::Done
            } else {
                Step::Incomplete(format!("the cursor {cursor:.40?} came twice"))
            });
        }
        if self.pages >= limits.list_max_pages {
            let limit = Limit::count("upstream.list_max_pages", limits.list_max_pages);
            return Ok(Step::Incomplete(over("pages", &limit)));
        }
        Ok(Step::Next(cursor))
    }

    /// Whether the item is one of a new name.
    fn add(&mut self, kind: ListKind, item: &RawJson) -> bool {
        let name = scan::member(item.as_bytes(), kind.item_key())
            .and_then(|raw| serde_json::from_slice::<String>(raw).ok());
        let Some(name) = name else {
            self.nameless += 1;
            return false;
        };
        if !self.names.insert(name.clone()) {
            self.doubled.push(name);
            return false;
        }
        // Kept for long, unlike the page it came in.
        self.items.push(item.detached());
        true
    }

    /// The member of a page that holds the items.
    const fn member(kind: ListKind) -> &'static str {
        match kind {
            ListKind::Tools => "tools",
            ListKind::Resources => "resources",
            ListKind::Templates => "resourceTemplates",
            ListKind::Prompts => "prompts",
        }
    }
}

fn over(what: &str, limit: &Limit) -> String {
    format!("it has more than {} {what} (setting {})", limit.value, limit.setting)
}

impl<S: CallSink> UpstreamSession<S> {
    /// Reads a list, all pages; one reading at a time, asked again after its first page has come means
    /// once more.
    pub fn read_list(&mut self, now: Instant, kind: ListKind) {
        let list = self.lists.of(kind);
        match self.phase {
            Phase::Ended(ref why) => {
                let error = format!("the {} cannot be read: {why}", kind.noun());
                self.out.event(UpstreamEvent::Listed(kind, Err(error)));
            }
            Phase::New | Phase::Opening => list.wanted = true,
            // Nothing of it has come yet: that one will do.
            Phase::Open(_) if list.reading.as_ref().is_some_and(|it| it.pages == 0) => {}
            Phase::Open(_) => self.reread_list(now, kind),
        }
    }

    /// Reads a list unless it is being read; only once the opening has settled.
    pub(super) fn read_list_once(&mut self, now: Instant, kind: ListKind) {
        if self.lists.of(kind).reading.is_none() {
            self.start_list(now, kind);
        }
    }

    /// Reads a list from its first page; only once the opening has settled.
    pub(super) fn reread_list(&mut self, now: Instant, kind: ListKind) {
        let list = self.lists.of(kind);
        if list.reading.is_some() {
            list.again = true;
        } else {
            self.start_list(now, kind);
        }
    }

    /// Reads all lists.
    pub fn read_lists(&mut self, now: Instant) {
        for kind in ListKind::ALL {
            self.read_list(now, kind);
        }
    }

    /// The opening has settled.
    pub(super) fn start_wanted_lists(&mut self, now: Instant) {
        for kind in ListKind::ALL {
            if std::mem::take(&mut self.lists.of(kind).wanted) {
                self.start_list(now, kind);
            }
        }
    }

    /// A `list_changed`; the news above, and the list read again. While a reading that will be
    /// repeated anyway is under way, more of them change nothing (F38).
    pub(super) fn list_changed(&mut self, now: Instant, kind: ListKind) {
        if self.revision().is_none() || self.lists.of(kind).again {
            return;
        }
        self.out.event(UpstreamEvent::Changed(kind));
        self.changed_list(now, kind);
        if kind == ListKind::Resources {
            self.changed_list(now, ListKind::Templates);
        }
    }

    fn changed_list(&mut self, now: Instant, kind: ListKind) {
        self.lists.of(kind).declared = true;
        self.reread_list(now, kind);
    }

    fn start_list(&mut self, now: Instant, kind: ListKind) {
        let ends_at = after(now, self.config.timings.list);
        let list = self.lists.of(kind);
        if !list.declared {
            if kind == ListKind::Tools {
                self.marks_read(Some(Vec::new()));
            }
            self.out.event(UpstreamEvent::Listed(kind, Ok(ListRead::default())));
            return;
        }
        list.reading = Some(Reading { ends_at, ..Reading::default() });
        self.timers.set_earlier(Timer::List, ends_at);
        self.ask_page(kind, None);
    }

    fn ask_page(&mut self, kind: ListKind, cursor: Option<&str>) {
        let Some(revision) = self.revision() else { return };
        let mut params = Object::new();
        if let Some(cursor) = cursor {
            params.set("cursor", RawJson::write(cursor));
        }
        // A first page of a legacy list needs no parameters at all.
        let params = (!params.is_empty() || revision.is_modern()).then(|| {
            let method = Method::known(kind.method());
            edge::downgrade_params(revision, &method, &params.write(), &self.calls.envelope)
        });
        self.ask(Asked::ListPage(kind), kind.method(), params);
    }

    pub(super) fn page_answered(&mut self, now: Instant, kind: ListKind, outcome: &Outcome) {
        let revision = self.revision();
        let reading = self.lists.of(kind).reading.take();
        let (Some(revision), Some(mut reading)) = (revision, reading) else { return };
        let step = match classify(revision, &Method::known(kind.method()), outcome.clone()) {
            Answer::Complete(page) => reading.take(kind, revision, &page, &self.config.timings),
            // Many declare resources and know nothing of templates: they have none.
            Answer::Error(error)
                if kind == ListKind::Templates && error.code == Code::MethodNotFound.number() =>
            {
                Ok(Step::Done)
            }
            Answer::Error(error) => Err(refusal(&error)),
            Answer::Invalid(text) => Err(text),
            _ => Err("it wants more than a list request can give".to_owned()),
        };
        match step {
            Ok(Step::Next(cursor)) => {
                self.lists.of(kind).reading = Some(reading);
                self.ask_page(kind, Some(&cursor));
            }
            Ok(Step::Done) => self.finish_list(now, kind, reading, None),
            Ok(Step::Incomplete(why)) => self.finish_list(now, kind, reading, Some(why)),
            Err(why) => {
                let why = format!("page {} of {}: {why}", reading.pages + 1, kind.method());
                self.finish_list(now, kind, reading, Some(why));
            }
        }
    }

    /// The time of a list may be over.
    pub(super) fn lists_over(&mut self, now: Instant) {
        let over = |ends_at: Option<Instant>| ends_at.is_some_and(|at| at <= now);
        for kind in ListKind::ALL {
            let list = self.lists.of(kind);
            if let Some(reading) = list.reading.take_if(|reading| over(reading.ends_at)) {
                self.list_over(now, kind, reading);
            }
        }
        self.arm_lists();
    }

    /// The list took too long.
    fn list_over(&mut self, now: Instant, kind: ListKind, reading: Reading) {
        let page = self.asked.iter().find(|(_, asked)| *asked == Asked::ListPage(kind));
        if let Some(id) = page.map(|(id, _)| *id) {
            self.forget(Asked::ListPage(kind));
            self.withdraw(id, "the list took too long");
        }
        let limit = Limit::time(Timer::List.setting(), self.config.timings.list);
        let why = format!(
            "page {} of {} did not come within {} (setting {})",
            reading.pages + 1,
            kind.method(),
            limit.value,
            limit.setting
        );
        self.finish_list(now, kind, reading, Some(why));
    }

    /// Arms the timer for the reading that ends first, if there is one.
    fn arm_lists(&mut self) {
        let readings = self.lists.0.iter().filter_map(|list| list.reading.as_ref());
        self.timers.set(Timer::List, readings.filter_map(|reading| reading.ends_at).min());
    }

    fn finish_list(
        &mut self,
        now: Instant,
        kind: ListKind,
        reading: Reading,
        incomplete: Option<String>,
    ) {
        self.arm_lists();
        self.remark(kind, &reading);
        let read = match incomplete {
            Some(why) if reading.pages == 0 => {
                if kind == ListKind::Tools {
                    self.marks_read(None);
                }
                Err(why)
            }
            incomplete => {
                if let Some(why) = &incomplete {
                    self.out.warn(format!("the list of {} is incomplete: {why}", kind.noun()));
                }
                let items = match kind {
                    ListKind::Tools => self.marks_read(Some(reading.items)),
                    _ => reading.items,
                };
                Ok(ListRead { items, incomplete, ttl_ms: reading.ttl_ms })
            }
        };
        self.out.event(UpstreamEvent::Listed(kind, read));
        if std::mem::take(&mut self.lists.of(kind).again) {
            self.start_list(now, kind);
        } else if kind == ListKind::Tools {
            self.send_held(now);
        }
    }

    /// Says what was left out (F40).
    fn remark(&mut self, kind: ListKind, reading: &Reading) {
        let method = kind.method();
        if let Some(first) = reading.doubled.first() {
            let more = reading.doubled.len() - 1;
            let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
            self.out.warn(format!(
                "{method} names {first:.80?}{more} more than once; the first of each is kept"
            ));
        }
        if reading.nameless > 0 {
            let (count, key) = (reading.nameless, kind.item_key());
            self.out.warn(format!("{method} has {count} items without `{key}`; they are left out"));
        }
    }

    /// The connection ended: readings under way, or wanted, come to nothing.
    pub(super) fn lists_ended(&mut self, why: &str) {
        for kind in ListKind::ALL {
            let list = self.lists.of(kind);
            list.again = false;
            let wanted = std::mem::take(&mut list.wanted);
            if list.reading.take().is_some() || wanted {
                let error = format!("the {} cannot be read: {why}", kind.noun());
                self.out.event(UpstreamEvent::Listed(kind, Err(error)));
            }
        }
    }
}
