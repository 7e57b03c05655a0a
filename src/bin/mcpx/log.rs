//! The daemon's log: to the journal where systemd runs it, else to stderr, by a writer that neither fails nor waits for long.
//!
//! A full disk or a pipe that nobody reads costs lines of the log, never a part of the daemon: what
//! cannot be written is dropped, counted, and told once lines go through again.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcpx::transport::environment;
use mcpx::transport::journal::Journal;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// What is logged where `MCPX_LOG` does not say, or cannot be read.
const USUAL: &str = "info";
/// A pipe that says it is ready takes so many bytes at once (`PIPE_BUF`).
const PIECE: usize = 4096;
/// How long a reader of our stderr may keep one line waiting, in milliseconds.
const PATIENCE: u8 = 100;

/// From here on; `MCPX_LOG` chooses what. ractor wraps every actor in a span of its own, which is
/// noise.
pub(crate) fn init() {
    let own = environment::own();
    let wanted = own.get(OsStr::new("MCPX_LOG")).and_then(|text| text.to_str()).unwrap_or(USUAL);
    let filter = |wanted: &str| EnvFilter::try_new(format!("{wanted},ractor=off"));
    let (chosen, refused) = match filter(wanted) {
        Ok(chosen) => (Ok(chosen), None),
        Err(refused) => (filter(USUAL), Some(refused)),
    };
    let stream = own.get(OsStr::new("JOURNAL_STREAM")).and_then(|text| text.to_str());
    if let Some(journal) = Journal::behind(&io::stderr(), stream) {
        tracing_subscriber::registry().with(journal.with_filter(chosen.unwrap_or_default())).init();
    } else {
        tracing_subscriber::fmt()
            .with_env_filter(chosen.unwrap_or_default())
            .with_ansi(io::stderr().is_terminal())
            .with_writer(Lines::new(io::stderr()))
            // Its own complaint about a line that was not written is a panic where stderr is broken.
            .log_internal_errors(false)
            .init();
    }
    if let Some(refused) = refused {
        tracing::warn!(%refused, "MCPX_LOG={wanted} is not understood; the log is that of `{USUAL}`");
    }
}

/// Takes lines and never fails.
struct Lines<W>(Mutex<State<W>>);

struct State<W> {
    out: W,
    lost: u64,
}

impl<W> Lines<W> {
    const fn new(out: W) -> Self {
        Self(Mutex::new(State { out, lost: 0 }))
    }
}

impl<'a, W: Write + AsFd + 'a> MakeWriter<'a> for Lines<W> {
    type Writer = Line<'a, W>;

    fn make_writer(&'a self) -> Line<'a, W> {
        Line(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One line on its way.
struct Line<'a, W>(MutexGuard<'a, State<W>>);

impl<W: Write + AsFd> Write for Line<'_, W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let state = &mut *self.0;
        if state.lost > 0 {
            let note = format!("… {} lines of the log were lost here\n", state.lost);
            // A reader that did not read before is not waited for again.
            if put(&mut state.out, note.as_bytes(), PollTimeout::ZERO).is_err() {
                state.lost += 1;
                return Ok(line.len());
            }
            state.lost = 0;
        }
        if put(&mut state.out, line, PollTimeout::from(PATIENCE)).is_err() {
            state.lost = 1;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn put(out: &mut (impl Write + AsFd), line: &[u8], patience: PollTimeout) -> io::Result<()> {
    for piece in line.chunks(PIECE) {
        let mut asked = [PollFd::new(out.as_fd(), PollFlags::POLLOUT)];
        if poll(&mut asked, patience)? == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        out.write_all(piece)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    fn log<W: Write + AsFd>(lines: &Lines<W>, line: &str) {
        lines.make_writer().write_all(line.as_bytes()).unwrap();
    }

    #[test]
    fn a_full_disk_costs_lines_only() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let lines = Lines::new(full);
        log(&lines, "one\n");
        log(&lines, "two\n");
        let mut file = tempfile::NamedTempFile::new().unwrap();
        lines.0.lock().unwrap().out = file.reopen().unwrap();
        log(&lines, "three\n");
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "… 2 lines of the log were lost here\nthree\n");
    }

    /// A write to it would wait for ever.
    #[test]
    fn a_pipe_that_nobody_reads_costs_lines_only() {
        let (mut reader, writer) = io::pipe().unwrap();
        let lines = Lines::new(writer);
        let line = format!("{}\n", "x".repeat(9_999));
        for _ in 0..20 {
            log(&lines, &line);
        }
        assert!(lines.0.lock().unwrap().lost > 5);
        let mut taken = vec![0; 40_000];
        reader.read_exact(&mut taken).unwrap();
        log(&lines, "after\n");
        drop(lines);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("lines of the log were lost here\nafter\n"), "{rest}");
    }

    #[test]
    fn a_reader_that_is_gone_is_no_failure() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        log(&Lines::new(writer), "x\n");
    }
}
