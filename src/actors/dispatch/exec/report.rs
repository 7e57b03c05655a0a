//! What became of a run, as the result of a tool: written for a model, and for a person who reads it in a
//! terminal.

use std::fmt::Write as _;

use super::drive::{End, Run};
use crate::actors::artifacts::Stored;
use crate::actors::upstreams::Reason;
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::model::tool_result::{REASON_KEY, text_block};
use crate::protocol::session::Limit;
use crate::settings::Settings;

/// The result. Of one that failed it says what the script had done by then.
pub(super) fn result(run: &Run, end: End, settings: &Settings) -> RawJson {
    let (text, reason) = match end {
        End::Value(value) => return succeeded(run, value),
        End::Failed(failure) => (run.named(failure.to_string()), None),
        End::Late => (late(run, settings), Some(Reason::Timeout)),
        End::Refused(refused) => (refused.text, Some(refused.reason)),
        End::Died(how, last) => {
            let last = last.map(|line| format!(": {line}")).unwrap_or_default();
            let text = format!("the sandbox of the script ended before it did ({how}{last})");
            (text, Some(Reason::Unavailable))
        }
        End::Stopped => {
            let text = "outcome unknown: the mcpx daemon stopped while the script ran; what it did may \
                        have taken effect, check before trying again";
            (text.to_owned(), Some(Reason::OutcomeUnknown))
        }
        End::Broken(why) => {
            (format!("the sandbox of the script was given up: {why}"), Some(Reason::Unavailable))
        }
    };
    let mut result = Object::new();
    let mut blocks = vec![text_block(&format!("{text}{}", done(run)))];
    blocks.extend(console(run));
    blocks.extend(files(run));
    result.set("content", RawJson::array(&blocks));
    result.set("isError", RawJson::write(&true));
    if let Some(reason) = reason {
        let mut meta = Object::new();
        meta.set(REASON_KEY, RawJson::write(reason.as_str()));
        result.set("_meta", meta.write());
    }
    result.write()
}

fn succeeded(run: &Run, value: Option<RawJson>) -> RawJson {
    let mut result = Object::new();
    let text = match &value {
        // Text is more use to its reader as it is.
        Some(value) => value.text().unwrap_or_else(|| value.as_str().to_owned()),
        None => "The script returned nothing.".to_owned(),
    };
    let mut blocks = vec![text_block(&text)];
    blocks.extend(console(run));
    blocks.extend(files(run));
    result.set("content", RawJson::array(&blocks));
    if let Some(value) = value.filter(RawJson::is_object) {
        result.set("structuredContent", value);
    }
    result.write()
}

fn late(run: &Run, settings: &Settings) -> String {
    let longest = settings.exec.timeout;
    let limit = Limit::time("exec.timeout", run.limit);
    let which = if run.limit < longest {
        format!("`timeout` of the call; the setting {} admits more", limit.setting)
    } else {
        format!("setting {}", limit.setting)
    };
    if !run.begun {
        return format!(
            "the script was not run: it waited for its turn for {} ({which}), because \
             {} scripts run already (setting exec.max_running); nothing has happened",
            limit.value, settings.exec.max_running
        );
    }
    format!(
        "the script ran longer than {} ({which}) and was ended; a call that takes long on its own has \
         limits of its own, call.idle_timeout and call.total_timeout",
        limit.value
    )
}

/// What the script had done.
fn done(run: &Run) -> String {
    if run.calls == 0 {
        let none = if run.begun { "\nIt had made no calls." } else { "" };
        return none.to_owned();
    }
    let mut names: Vec<String> = run
        .made
        .iter()
        .map(|(name, times)| if *times > 1 { format!("{name} × {times}") } else { name.clone() })
        .collect();
    if run.made.iter().map(|(_, times)| times).sum::<usize>() < run.calls {
        names.push("…".to_owned());
    }
    let so = if run.reached || run.open > 0 {
        "What these did is done: do not run the whole script again without need."
    } else {
        "No tool has run by these."
    };
    let open = match run.open {
        0 => String::new(),
        open => format!("; {open} had no answer yet and were cancelled"),
    };
    format!("\nIt had made {} ({}{open}). {so}", counted(run.calls), names.join(", "))
}

fn counted(calls: usize) -> String {
    if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") }
}

/// What it has written: in words, because some hosts drop links, and as links (C-14, C-15).
fn files(run: &Run) -> Vec<RawJson> {
    let files = run.files();
    if files.is_empty() {
        return Vec::new();
    }
    let mut text = "Artifacts (mcpx_read reads them):".to_owned();
    for file in &files {
        let Stored { uri, name, kind, size, .. } = file;
        let _ = write!(text, "\n{name}: {uri} ({kind}, {size} bytes)");
    }
    let links = files.iter().map(|file| file.link("Written by the script"));
    std::iter::once(text_block(&text)).chain(links).collect()
}

/// A block of its own, so that it is not taken for the value.
fn console(run: &Run) -> Option<RawJson> {
    // Whoever heard it as it came does not want it twice.
    if run.logs.is_empty() || run.is_heard() {
        return None;
    }
    let mut text = "console:".to_owned();
    for log in &run.logs {
        text.push('\n');
        if log.level != "log" {
            let _ = write!(text, "[{}] ", log.level);
        }
        text.push_str(&log.text);
    }
    Some(text_block(&text))
}
