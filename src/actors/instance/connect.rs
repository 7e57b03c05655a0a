//! How an instance comes by its connection: a child process, or a memory link in tests.

use std::fmt;
use std::pin::Pin;

use crate::transport::http::client::HttpClient;
use crate::transport::http::mask::Mask;
use crate::transport::link::Link;
use crate::transport::stdio::child::{
    ChildHandle, ExitReport, SpawnError, SpawnSpec, StopLadder, spawn_recorded,
};
use crate::transport::stdio::ledger::Ledger;
use crate::transport::stdio::ring::{StderrDrain, StderrRing};

/// A future of how a process ended.
pub type Exiting<'a> = Pin<Box<dyn Future<Output = ExitReport> + Send + 'a>>;

/// What a start came to.
#[derive(Debug)]
pub enum Reached {
    /// A process runs; what is kept of its words is without these secrets.
    Process(Connected, Mask),
    /// A client is ready; nothing was sent yet.
    Http(HttpClient),
}

/// Makes connections.
pub trait Connect: fmt::Debug + Send + Sync + 'static {
    /// Starts what `spec` says.
    fn connect(&self, spec: &SpawnSpec) -> Result<Connected, SpawnError>;
}

/// What was started.
#[derive(Debug)]
pub struct Connected {
    /// Its frames.
    pub link: Link,
    /// What fills the ring of its stderr, where it has any: to be run as a task.
    pub drain: Option<StderrDrain>,
    /// The process behind them. Dropped without being stopped, it is killed with all of its group.
    pub process: Box<dyn Process>,
}

/// The process behind a link.
pub trait Process: fmt::Debug + Send + 'static {
    /// Its id, where it is one of the operating system.
    fn pid(&self) -> Option<u32>;
    /// Its stderr.
    fn stderr(&self) -> StderrRing;
    /// Resolves when the leader has exited. Cancel-safe.
    fn exited(&mut self) -> Exiting<'_>;
    /// Walks the stop ladder to its end.
    fn stop(self: Box<Self>, ladder: StopLadder) -> Exiting<'static>;
}

/// Real child processes.
#[derive(Debug, Clone, Default)]
pub struct Children {
    /// Where they are recorded, so that the next daemon finds what a killed one left behind.
    pub ledger: Option<Ledger>,
}

impl Connect for Children {
    fn connect(&self, spec: &SpawnSpec) -> Result<Connected, SpawnError> {
        let child = spawn_recorded(spec, self.ledger.as_ref())?;
        let (link, drain) = (child.link, Some(child.drain));
        Ok(Connected { link, drain, process: Box::new(child.handle) })
    }
}

impl Process for ChildHandle {
    fn pid(&self) -> Option<u32> {
        Some(Self::pid(self))
    }

    fn stderr(&self) -> StderrRing {
        Self::stderr(self).clone()
    }

    fn exited(&mut self) -> Exiting<'_> {
        Box::pin(Self::exited(self))
    }

    fn stop(self: Box<Self>, ladder: StopLadder) -> Exiting<'static> {
        Box::pin((*self).stop(ladder))
    }
}
