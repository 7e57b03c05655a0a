//! The rows. Each shows its feature in a cell, or that it ends as the reason says.

mod offers;
mod plain;
mod questions;
mod tasks;

use std::future::Future;
use std::pin::Pin;

use crate::cell::{Cell, Peer};
use crate::rules::{self, Expect};

type Run = for<'a> fn(&'a mut Cell, Expect) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A row.
pub struct Feature {
    /// For the filter and for complaints.
    pub name: &'static str,
    /// For the table.
    pub title: &'static str,
    /// What is expected of it where.
    pub expect: fn(Peer, Peer) -> Expect,
    /// Shows it.
    pub run: Run,
}

macro_rules! rows {
    ($($name:literal, $title:literal, $expect:ident, $run:path;)+) => {
        [$(Feature {
            name: $name,
            title: $title,
            expect: rules::$expect,
            run: |cell, expect| Box::pin($run(cell, expect)),
        }),+]
    };
}

/// All rows.
pub const FEATURES: [Feature; 25] = rows! {
    "call", "a call", everywhere, plain::call;
    "structured", "structured content", structured, plain::structured;
    "is_error", "`isError`", everywhere, plain::is_error;
    "progress", "progress", everywhere, plain::progress;
    "log", "log messages by level", everywhere, plain::log;
    "cancel", "cancellation", everywhere, plain::cancel;
    "ping", "`ping`", ping, plain::ping;
    "list_changed", "`list_changed`", everywhere, offers::list_changed;
    "resources", "resources: list, read", everywhere, offers::resources;
    "template", "resource templates", everywhere, offers::template;
    "updates", "resource updates", everywhere, offers::updates;
    "prompts", "prompts", everywhere, offers::prompts;
    "completion", "completion", everywhere, offers::completion;
    "form", "elicitation: form", form, questions::form;
    "url", "elicitation: url", url, questions::url;
    "sampling", "sampling", everywhere, questions::sampling;
    "sample_tools", "sampling with tools", sampling_tools, questions::sampling_tools;
    "roots", "roots", everywhere, questions::roots;
    "two", "two questions at once", form, questions::two;
    "rounds", "three rounds of questions", form, questions::rounds;
    "from_prompt", "a question from a prompt", form, questions::from_prompt;
    "from_resource", "a question from a resource", form, questions::from_resource;
    "url_required", "url elicitation required (-32042)", url, questions::url_required;
    "task", "a task", tasks, tasks::task;
    "task_question", "a task with a question", tasks, tasks::with_question;
};
