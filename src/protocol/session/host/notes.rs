//! What a host is told without having asked for it now: changes of lists, updates of resources, log
//! messages. Said only to whom it may be said, in the notification that its revision has.
//!
//! A modern host hears of changes and updates on its own `subscriptions/listen` streams alone
//! (`listen`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{HostOutput, HostSession, OK, PostId};
use crate::protocol::Notice;
use crate::protocol::edge;
use crate::protocol::jsonrpc::{Method, Notification, Object, RawJson};
use crate::protocol::session::upstream::ListKind;
use crate::protocol::session::{CallKey, LogLevel};

/// Something that a host did not ask for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostNote {
    /// A list that this host sees is another one. Once for many changes.
    Changed(ListKind),
    /// A resource that this host subscribed to has changed.
    ResourceUpdated {
        /// As the host spelled it when it subscribed.
        uri: String,
    },
    /// What a server that is exposed alone says, and no revision knows.
    Foreign {
        /// Which server.
        server: Arc<str>,
        /// Its method.
        method: Method,
        /// Its parameters, as they came.
        params: Option<RawJson>,
    },
    /// How a task of this host's stands (2025-11-25 tasks page, "Task Status Notification").
    Task {
        /// The whole task, newest shape.
        task: RawJson,
    },
    /// What a person was sent to do at a url is done (2025-11-25, client/elicitation).
    Completed {
        /// The question's `elicitationId`, as its server wrote it.
        id: RawJson,
    },
    /// A log message of an upstream.
    Log {
        /// Its level.
        level: LogLevel,
        /// Parameters of `notifications/message` in newest shape, with the level in them.
        params: RawJson,
        /// The request of this host during which it was written; none where it is about none.
        about: Option<CallKey>,
    },
}

/// How many log messages went out in this second.
#[derive(Debug, Default)]
pub(super) struct LogShare {
    since: Option<Instant>,
    used: usize,
    /// It was said once that some are dropped.
    told: bool,
}

impl LogShare {
    /// Whether one more may go out.
    fn take(&mut self, now: Instant, rate: usize) -> bool {
        let second = Duration::new(1, 0);
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= second) {
            self.since = Some(now);
            self.used = 0;
        }
        let may = self.used < rate;
        self.used += usize::from(may);
        may
    }
}

impl HostSession {
    /// Something to tell the host, as far as it may be told.
    pub fn host_note(&mut self, now: Instant, note: HostNote) {
        if let HostNote::Log { level, params, about } = note {
            self.log(now, level, &params, about);
        } else if let HostNote::Foreign { method, params, .. } = note {
            self.foreign(method, params);
        } else if self.may_be_told(&note) {
            // 2025-11-25 lifecycle page: before `initialized` there are only pings and log messages.
            if self.handshake.as_ref().is_some_and(|handshake| handshake.initialized) {
                self.tell(&note);
            } else if !self.untold.contains(&note) {
                self.untold.push(note);
            }
        }
    }

    /// `notifications/initialized` came.
    pub(super) fn tell_untold(&mut self) {
        for note in std::mem::take(&mut self.untold) {
            self.tell(&note);
        }
    }

    /// Whether it was declared; what was not is not sent (capability negotiation of all revisions).
    fn may_be_told(&self, note: &HostNote) -> bool {
        let (capability, flag) = match note {
            HostNote::Changed(kind) => (kind.capability(), "listChanged"),
            HostNote::ResourceUpdated { .. } => ("resources", "subscribe"),
            // 2025-11-25 elicitation page: only who was sent there, and with the id it was given.
            HostNote::Completed { id } => return self.urls.knows(id),
            HostNote::Task { task } => return self.spell_task(task).is_some(),
            HostNote::Log { .. } | HostNote::Foreign { .. } => return false,
        };
        !self.is_only_modern() && self.declares(capability, flag)
    }

    fn spell_task(&self, task: &RawJson) -> Option<RawJson> {
        edge::tasks::status(self.handshake.as_ref()?.peer.revision, task)
    }

    /// A modern host has no place for what belongs to none of its requests and streams.
    fn foreign(&mut self, method: Method, params: Option<RawJson>) {
        if self.handshake.as_ref().is_some_and(|handshake| handshake.initialized) {
            let frame = Notification { method, params }.to_frame();
            self.outputs.push_back(HostOutput::Send { frame, post: None, status: OK });
        }
    }

    pub(super) fn declares(&self, capability: &str, flag: &str) -> bool {
        let declared = self.config.capabilities.member(capability);
        let flag = declared.and_then(|declared| declared.member(flag));
        flag.is_some_and(|flag| flag.as_bytes() == b"true")
    }

    fn tell(&mut self, note: &HostNote) {
        let (method, params) = match note {
            HostNote::Changed(kind) => (kind.changed_method(), None),
            HostNote::ResourceUpdated { uri } => {
                let params = serde_json::json!({ "uri": uri });
                ("notifications/resources/updated", Some(RawJson::write(&params)))
            }
            HostNote::Completed { id } => {
                self.urls.forget(id);
                let mut params = Object::new();
                params.set("elicitationId", id.clone());
                ("notifications/elicitation/complete", Some(params.write()))
            }
            HostNote::Task { task } => ("notifications/tasks/status", self.spell_task(task)),
            HostNote::Log { .. } | HostNote::Foreign { .. } => return,
        };
        self.outputs.push_back(notification(method, params, None));
    }

    /// H-41, H-42: a modern request hears what it asked for itself and nothing after its answer; a
    /// legacy host hears what `logging/setLevel` let through, which may be before `initialized`.
    fn log(&mut self, now: Instant, level: LogLevel, params: &RawJson, about: Option<CallKey>) {
        let open = about.and_then(|key| self.calls.get(&key));
        let wanted = match open {
            Some(open) if open.revision.is_modern() => open.log_level,
            None if self.is_only_modern() => None,
            _ => self.log_level,
        };
        let post = open.and_then(|open| open.to.post);
        if wanted.is_none_or(|wanted| level < wanted) {
            return;
        }
        if self.log_share.take(now, self.config.log_rate) {
            let params = edge::downgrade_log(params);
            self.outputs.push_back(notification("notifications/message", Some(params), post));
        } else if !self.log_share.told {
            self.log_share.told = true;
            let text = format!(
                "servers log more than {} messages in a second; this host is not sent the rest \
                 (setting host.log_rate)",
                self.config.log_rate
            );
            self.outputs.push_back(HostOutput::Notice(Notice::host(text)));
        }
    }
}

fn notification(method: &'static str, params: Option<RawJson>, post: Option<PostId>) -> HostOutput {
    let frame = Notification { method: Method::known(method), params }.to_frame();
    HostOutput::Send { frame, post, status: OK }
}
