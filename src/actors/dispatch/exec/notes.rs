//! Progress of a run: one that only grows, made of the calls that are done and of what those under way
//! say of themselves.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

use crate::actors::support::progress::{self, CallNote, ProgressReceiver, ProgressSender, Wants};
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::settings::typed::CallSettings;

/// Where it goes, and how far the run is.
pub(super) struct Notes {
    sender: Option<ProgressSender>,
    queue: (usize, usize),
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    done: u32,
    /// How far the calls under way are, between 0 and 1.
    parts: BTreeMap<u64, f64>,
}

#[derive(Deserialize)]
struct Note {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Notes {
    pub(super) fn new(sender: Option<ProgressSender>, limits: &CallSettings) -> Self {
        let queue = (limits.progress_queue, limits.log_queue);
        Self { sender, queue, state: Mutex::default() }
    }

    /// What a call is given, and what is to be heard of it then: nothing where nobody wants progress, so
    /// that no server is asked for it.
    pub(super) fn of_call(&self) -> (Option<ProgressSender>, Option<ProgressReceiver>) {
        match &self.sender {
            Some(sender) if sender.wants_progress() => {
                let (progress_queue, log_queue) = self.queue;
                let log = sender.log_want();
                let wants = Wants { progress: true, log, progress_queue, log_queue };
                let (inner, heard) = progress::channel(wants);
                (Some(inner), Some(heard))
            }
            other => (other.clone(), None),
        }
    }

    /// Passes on what was heard of a call.
    pub(super) fn heard(&self, call: u64, name: &str, note: CallNote) {
        let Some(sender) = &self.sender else { return };
        match note {
            CallNote::Log(message) => sender.log(message),
            CallNote::Progress(params) => {
                let Ok(note) = params.read::<Note>() else { return };
                let message = match note.message {
                    Some(message) => format!("{name}: {message}"),
                    None => name.to_owned(),
                };
                let value = self.change(|state| {
                    let part = state.parts.entry(call).or_default();
                    *part = part_of(note.progress, note.total).max(*part);
                });
                sender.send(written(value, &message));
            }
        }
    }

    /// A call is over.
    pub(super) fn done(&self, call: u64) {
        let Some(sender) = self.sender.as_ref().filter(|sender| sender.wants_progress()) else {
            return;
        };
        let mut done = 0;
        let value = self.change(|state| {
            state.parts.remove(&call);
            state.done += 1;
            done = state.done;
        });
        let calls = if done == 1 { "call" } else { "calls" };
        sender.send(written(value, &format!("{done} {calls} made")));
    }

    fn change(&self, change: impl FnOnce(&mut State)) -> f64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        f64::from(state.done) + state.parts.values().sum::<f64>()
    }
}

/// How much of a call is done: never all of it before its end, and growing with what is said also where
/// nobody knows of how much.
fn part_of(progress: f64, total: Option<f64>) -> f64 {
    const NEARLY: f64 = 0.99;
    let progress = progress.max(0.0);
    let part = match total {
        Some(total) if total > 0.0 => progress / total,
        _ => progress / (progress + 1.0),
    };
    // NaN is none.
    if part.is_finite() { part.min(NEARLY) } else { 0.0 }
}

fn written(value: f64, message: &str) -> RawJson {
    let mut params = Object::new();
    params.set("progress", RawJson::write(&value));
    params.set("message", RawJson::write(message));
    params.write()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(text: &str) -> CallNote {
        CallNote::Progress(RawJson::parse(text.to_owned().into()).unwrap())
    }

    #[test]
    fn progress_only_grows_whatever_the_calls_say() {
        let (sender, heard) = progress::channel(Wants::progress(64));
        let wants = CallSettings {
            progress_queue: 64,
            ..crate::settings::Settings::load(
                &crate::settings::Sources::default(),
                std::path::Path::new("mcpx"),
            )
            .unwrap()
            .settings
            .call
        };
        let notes = Notes::new(Some(sender), &wants);
        notes.heard(1, "a.b", progress(r#"{"progress":1,"total":2,"message":"half"}"#));
        notes.heard(2, "a.c", progress(r#"{"progress":100}"#));
        notes.heard(1, "a.b", progress(r#"{"progress":0}"#));
        notes.done(1);
        notes.heard(3, "a.d", progress(r#"{"progress":7,"total":0.5}"#));
        notes.done(2);
        notes.done(3);
        let (mut last, mut seen) = (0.0, Vec::new());
        while let Some(CallNote::Progress(params)) = heard.try_next() {
            let note: Note = params.read().unwrap();
            assert!(note.progress >= last, "{} < {last}", note.progress);
            last = note.progress;
            seen.push(note.message.unwrap());
        }
        assert_eq!(
            seen,
            ["a.b: half", "a.c", "a.b", "1 call made", "a.d", "2 calls made", "3 calls made"]
        );
        assert!((last - 3.0).abs() < f64::EPSILON);
    }
}
