//! The two pipes to the daemon: whole lines in, whole frames out.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::script::wire::FromSandbox;

/// How much is read at once, in bytes.
const CHUNK: usize = 64 * 1024;

/// How much may wait to be written before it is, in bytes.
const GATHERED: usize = 32 * 1024;

/// Lines of stdin.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Where the next line begins, and up to where there is no end of it.
    start: usize,
    searched: usize,
}

impl Lines {
    /// The next line, where all of it has been read.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        let unsearched = self.buffer.get(self.searched..)?;
        let Some(length) = memchr::memchr(b'\n', unsearched) else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = (self.start, self.searched + length);
        self.start = line.1 + 1;
        self.searched = self.start;
        self.buffer.get(line.0..line.1)
    }

    /// Waits for more for as long as this, or without an end; `false` once stdin has ended.
    pub(super) fn fill(&mut self, wait: Option<Duration>) -> io::Result<bool> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
        } else {
            self.buffer.drain(..self.start);
        }
        self.searched -= self.start;
        self.start = 0;
        let stdin = io::stdin();
        if let Some(wait) = wait {
            let mut watched = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            if retried(|| poll(&mut watched, timeout(wait)))? == 0 {
                return Ok(true);
            }
        }
        let old = self.buffer.len();
        self.buffer.resize(old + CHUNK, 0);
        let free = self.buffer.get_mut(old..).unwrap_or_default();
        let read = retried(|| nix::unistd::read(stdin.as_fd(), free));
        self.buffer.truncate(old + *read.as_ref().unwrap_or(&0));
        Ok(read? > 0)
    }

    /// Reads until there is a whole line; `None` once stdin has ended.
    pub(super) fn wait(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            if memchr::memchr(b'\n', self.buffer.get(self.searched..).unwrap_or_default()).is_some()
            {
                return Ok(self.next());
            }
            self.searched = self.buffer.len();
            if !self.fill(None)? {
                return Ok(None);
            }
        }
    }
}

/// Frames to stdout. Two threads write: the one that runs the script, and the one that watches it.
#[derive(Debug, Default)]
pub(super) struct Out {
    gathered: Mutex<Gathered>,
}

#[derive(Debug, Default)]
struct Gathered {
    bytes: Vec<u8>,
    ended: bool,
}

impl Out {
    /// Puts a frame to the others; they are written when they are many, or by [`Self::flush`].
    pub(super) fn say(&self, frame: &FromSandbox) -> io::Result<()> {
        let mut gathered = self.lock();
        gathered.put(frame)?;
        if gathered.bytes.len() > GATHERED { gathered.write() } else { Ok(()) }
    }

    /// Writes what has been gathered.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.lock().write()
    }

    /// Says the last frame. Nothing follows it, whoever tries.
    pub(super) fn end(&self, frame: &FromSandbox) -> io::Result<()> {
        let mut gathered = self.lock();
        gathered.put(frame)?;
        gathered.ended = true;
        gathered.write()
    }

    fn lock(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gathered {
    fn put(&mut self, frame: &FromSandbox) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        let old = self.bytes.len();
        let put = serde_json::to_writer(&mut self.bytes, frame);
        if put.is_err() {
            self.bytes.truncate(old);
        } else {
            self.bytes.push(b'\n');
        }
        put.map_err(io::Error::other)
    }

    fn write(&mut self) -> io::Result<()> {
        let stdout = io::stdout();
        let mut rest = self.bytes.as_slice();
        while !rest.is_empty() {
            let written = retried(|| nix::unistd::write(stdout.as_fd(), rest))?;
            rest = rest.get(written..).unwrap_or_default();
        }
        self.bytes.clear();
        Ok(())
    }
}

fn retried<T>(mut call: impl FnMut() -> nix::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            other => return Ok(other?),
        }
    }
}

/// The time for `poll`, whole milliseconds: rounded up, else the last one would be spent in a circle.
pub(super) fn timeout(wait: Duration) -> PollTimeout {
    let milliseconds = wait.as_nanos().div_ceil(1_000_000);
    u32::try_from(milliseconds)
        .ok()
        .and_then(|wait| PollTimeout::try_from(wait).ok())
        .unwrap_or(PollTimeout::MAX)
}
