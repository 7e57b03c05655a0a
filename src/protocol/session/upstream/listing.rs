//! Reading `tools/list` to its end, and again when the upstream says that it changed (F38, F39).
//!
//! One reading at a time; asked for again meanwhile means once more afterwards, however often. What
//! was good stays: a page that fails after the first leaves a list that is marked incomplete.

use std::collections::HashSet;
use std::time::Instant;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Asked, ListRead, Phase, UpstreamEvent, UpstreamSession, refusal};
use crate::protocol::edge;
use crate::protocol::jsonrpc::{Method, Object, RawJson, scan};
use crate::protocol::revision::Revision;
use crate::protocol::session::pending::{CallSink, classify};
use crate::protocol::session::timers::{Timer, after};
use crate::protocol::session::{Answer, Limit, Outcome};

const METHOD: &str = "tools/list";

/// The state of the tool list.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// The upstream declared tools; one that did not is not asked (2025-11-25 lifecycle page: only
    /// negotiated capabilities are used) and has none.
    pub declared: bool,
    /// A reading was asked for before the opening settled.
    wanted: bool,
    reading: Option<Reading>,
    /// Once more after this reading.
    again: bool,
}

#[derive(Debug, Default)]
struct Reading {
    items: Vec<RawJson>,
    names: HashSet<String>,
    /// Names that came more than once, the later ones left out (F40).
    doubled: Vec<String>,
    /// Items that are no tools: no object, or without a name.
    nameless: usize,
    cursors: HashSet<String>,
    pages: usize,
    ttl_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    next_cursor: Option<&'a RawValue>,
    #[serde(borrow, default)]
    ttl_ms: Option<&'a RawValue>,
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
        revision: Revision,
        result: &RawJson,
        limits: &super::OpeningTimings,
    ) -> Result<Step, String> {
        let text = result.bytes();
        let page: Page<'_> =
            serde_json::from_slice(&text).map_err(|error| format!("no list of tools: {error}"))?;
        self.pages += 1;
        self.ttl_ms = page.ttl_ms.and_then(|raw| raw.get().parse().ok());
        let mut new = 0_usize;
        let doubled = self.doubled.len();
        for item in page.tools {
            if self.items.len() >= limits.list_max_items {
                let limit = Limit::count("upstream.list_max_items", limits.list_max_items);
                return Ok(Step::Incomplete(over("tools", &limit)));
            }
            new += usize::from(self.add(&RawJson::slice_of(&text, item)));
        }
        let cursor = match page.next_cursor.map(|raw| serde_json::from_str::<String>(raw.get())) {
            None => return Ok(Step::Done),
            Some(Ok(cursor)) => cursor,
            Some(Err(_)) => return Ok(Step::Incomplete("its nextCursor is no string".to_owned())),
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

    /// Whether the item is a tool of a new name.
    fn add(&mut self, item: &RawJson) -> bool {
        let name = scan::member(item.as_bytes(), "name")
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
}

fn over(what: &str, limit: &Limit) -> String {
    format!("it has more than {} {what} (setting {})", limit.value, limit.setting)
}

impl<S: CallSink> UpstreamSession<S> {
    /// Reads `tools/list`, all pages; one reading at a time, asked again during it means once more.
    pub fn read_tools(&mut self, now: Instant) {
        match self.phase {
            Phase::Ended(ref why) => {
                let error = format!("the tools cannot be read: {why}");
                self.out.event(UpstreamEvent::Tools(Err(error)));
            }
            Phase::New | Phase::Opening => self.tools.wanted = true,
            Phase::Open(_) if self.tools.reading.is_some() => self.tools.again = true,
            Phase::Open(_) => self.start_list(now),
        }
    }

    /// The opening has settled.
    pub(super) fn start_wanted_list(&mut self, now: Instant) {
        if std::mem::take(&mut self.tools.wanted) {
            self.start_list(now);
        }
    }

    /// `notifications/tools/list_changed`; the news above, and the list read again. While a reading
    /// that will be repeated anyway is under way, more of them change nothing (F38).
    pub(super) fn tools_changed(&mut self, now: Instant) {
        if self.revision().is_none() || self.tools.again {
            return;
        }
        self.out.event(UpstreamEvent::ToolsChanged);
        self.tools.declared = true;
        self.read_tools(now);
    }

    fn start_list(&mut self, now: Instant) {
        if !self.tools.declared {
            let none = ListRead { items: Vec::new(), incomplete: None, ttl_ms: None };
            self.out.event(UpstreamEvent::Tools(Ok(none)));
            return;
        }
        self.tools.reading = Some(Reading::default());
        self.timers.set(Timer::List, after(now, self.config.timings.list));
        self.ask_page(None);
    }

    fn ask_page(&mut self, cursor: Option<&str>) {
        let Some(revision) = self.revision() else { return };
        let mut params = Object::new();
        if let Some(cursor) = cursor {
            params.set("cursor", RawJson::write(cursor));
        }
        // A first page of a legacy list needs no parameters at all.
        let params = (!params.is_empty() || revision.is_modern()).then(|| {
            let method = Method::known(METHOD);
            edge::downgrade_params(revision, &method, &params.write(), &self.calls.envelope)
        });
        self.ask(Asked::ListPage, METHOD, params);
    }

    pub(super) fn page_answered(&mut self, now: Instant, outcome: &Outcome) {
        let (Some(revision), Some(mut reading)) = (self.revision(), self.tools.reading.take())
        else {
            return;
        };
        let step = match classify(revision, &Method::known(METHOD), outcome.clone()) {
            Answer::Complete(page) => reading.take(revision, &page, &self.config.timings),
            Answer::Error(error) => Err(refusal(&error)),
            Answer::Invalid(text) => Err(text),
            _ => Err("it wants more than a list request can give".to_owned()),
        };
        match step {
            Ok(Step::Next(cursor)) => {
                self.tools.reading = Some(reading);
                self.ask_page(Some(&cursor));
            }
            Ok(Step::Done) => self.finish_list(now, reading, None),
            Ok(Step::Incomplete(why)) => self.finish_list(now, reading, Some(why)),
            Err(why) => {
                let why = format!("page {} of tools/list: {why}", reading.pages + 1);
                self.finish_list(now, reading, Some(why));
            }
        }
    }

    /// The list took too long.
    pub(super) fn list_over(&mut self, now: Instant) {
        let Some(reading) = self.tools.reading.take() else { return };
        let page =
            self.asked.iter().find(|(_, asked)| *asked == Asked::ListPage).map(|(id, _)| *id);
        if let Some(id) = page {
            self.forget(Asked::ListPage);
            self.send_cancelled(id, "the list took too long");
        }
        let limit = Limit::time(Timer::List.setting(), self.config.timings.list);
        let why = format!(
            "page {} of tools/list did not come within {} (setting {})",
            reading.pages + 1,
            limit.value,
            limit.setting
        );
        self.finish_list(now, reading, Some(why));
    }

    fn finish_list(&mut self, now: Instant, reading: Reading, incomplete: Option<String>) {
        self.timers.clear(Timer::List);
        self.remark(&reading);
        let read = match incomplete {
            Some(why) if reading.pages == 0 => Err(why),
            incomplete => {
                if let Some(why) = &incomplete {
                    self.out.warn(format!("the list of tools is incomplete: {why}"));
                }
                Ok(ListRead { items: reading.items, incomplete, ttl_ms: reading.ttl_ms })
            }
        };
        self.out.event(UpstreamEvent::Tools(read));
        if std::mem::take(&mut self.tools.again) {
            self.start_list(now);
        }
    }

    /// Says what was left out (F40).
    fn remark(&mut self, reading: &Reading) {
        if let Some(first) = reading.doubled.first() {
            let more = reading.doubled.len() - 1;
            let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
            self.out.warn(format!(
                "tools/list names {first:.80?}{more} more than once; the first of each is kept"
            ));
        }
        if reading.nameless > 0 {
            let count = reading.nameless;
            self.out
                .warn(format!("tools/list has {count} items without a name; they are left out"));
        }
    }

    /// The connection ended: a reading under way, or wanted, comes to nothing.
    pub(super) fn list_ended(&mut self, why: &str) {
        self.tools.again = false;
        let wanted = std::mem::take(&mut self.tools.wanted);
        if self.tools.reading.take().is_some() || wanted {
            let error = format!("the tools cannot be read: {why}");
            self.out.event(UpstreamEvent::Tools(Err(error)));
        }
    }
}
