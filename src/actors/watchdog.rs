//! What the service manager is told of the daemon: that it is ready, reloads, stops, and is alive.
//!
//! The watchdog is fed only while every permanent part answers: a process whose parts hang is not
//! alive, however well its threads run. Without a service manager nothing is done here.

use std::sync::Arc;

use super::events::Event;
use super::root::Parts;
use super::support::task::{TaskGuard, spawn_guarded};
use crate::transport::systemd::Notify;

/// The service manager, where there is one. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Systemd(Option<Arc<Notify>>);

impl Systemd {
    /// The one that reads `notify`.
    pub fn new(notify: Option<Notify>) -> Self {
        Self(notify.map(Arc::new))
    }

    fn tell(&self, state: &str) {
        if let Some(notify) = &self.0 {
            notify.tell(state);
        }
    }

    /// What is configured is in force, and hosts are served.
    pub(crate) fn ready(&self, parts: &Parts) {
        if self.0.is_some() {
            let count = parts.settings.everywhere().servers.len();
            self.tell(&format!("READY=1\nSTATUS=Serving hosts; {count} servers are configured"));
        }
    }

    /// The configuration is being read again; [`Self::ready`] follows.
    pub(crate) fn reloading(&self) {
        if let Some(notify) = &self.0 {
            notify.reloading();
        }
    }

    /// The daemon is on its way out.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=Hosts are asked to finish");
    }
}

/// Feeds the watchdog until the guard falls: twice in the time that the service manager gives.
pub(crate) fn feed(manager: Systemd, parts: Parts) -> Option<TaskGuard> {
    let notify = manager.0?;
    let pause = notify.watchdog()? / 2;
    Some(spawn_guarded(async move {
        loop {
            tokio::time::sleep(pause).await;
            match parts.silent(pause / 2).await {
                None => notify.tell("WATCHDOG=1"),
                Some(part) => {
                    let text = format!("{part} does not answer; the watchdog is not fed");
                    parts.events.emit(Event::new("daemon.warning", text));
                }
            }
        }
    }))
}
