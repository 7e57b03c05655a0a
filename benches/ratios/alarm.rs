//! Breaks off what hangs. Blocking calls stay plain blocking calls, so that no timer stands in the
//! measured path; one thread looks once a second whether a time limit has passed, and ends the
//! process or shuts the socket that the bench waits for, whereupon the read ends.

use std::collections::HashMap;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long one answer, or a stretch of fast ones, may take before it counts as hung.
pub const HANG: Duration = Duration::from_secs(20);

/// How a connection is broken off.
#[derive(Debug)]
pub enum Breaker {
    /// The process that we speak to.
    Kill(Pid),
    /// The socket that we speak over.
    Shut(UnixStream),
}

impl Breaker {
    /// A second handle on the same thing; nothing where descriptors have run out.
    pub fn another(&self) -> Option<Breaker> {
        match self {
            Breaker::Kill(pid) => Some(Breaker::Kill(*pid)),
            Breaker::Shut(socket) => socket.try_clone().ok().map(Breaker::Shut),
        }
    }

    fn pull(&self) {
        match self {
            Breaker::Kill(pid) => drop(kill(*pid, Signal::SIGKILL)),
            Breaker::Shut(socket) => drop(socket.shutdown(Shutdown::Both)),
        }
    }
}

#[derive(Default)]
struct Table {
    next: u64,
    armed: HashMap<u64, (Instant, Breaker)>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(|| {
    thread::spawn(watch);
    Mutex::default()
});

/// Disarmed when dropped.
#[derive(Debug)]
pub struct Alarm(u64);

impl Alarm {
    /// Arms an alarm that goes off after [`HANG`].
    pub fn set(breaker: Breaker) -> Alarm {
        let mut table = TABLE.lock().unwrap();
        table.next += 1;
        let number = table.next;
        table.armed.insert(number, (Instant::now() + HANG, breaker));
        Alarm(number)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        TABLE.lock().unwrap().armed.remove(&self.0);
    }
}

fn watch() {
    loop {
        thread::sleep(Duration::from_secs(1));
        let now = Instant::now();
        let table = TABLE.lock().unwrap();
        for (_, breaker) in table.armed.values().filter(|(due, _)| *due < now) {
            breaker.pull();
        }
    }
}
