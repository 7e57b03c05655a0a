//! The log in the journal's own form: levels and fields, where systemd runs the daemon
//! (`systemd.journal-fields(7)`, "Native Journal Protocol").
//!
//! Lines on stderr would carry a level at most. A datagram carries the fields, and one that is not
//! taken is dropped and counted, like a line of the log elsewhere: a journal that hangs costs lines and
//! nothing else.

use std::fmt::{self, Write as _};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Where the journal reads.
const SOCKET: &str = "/run/systemd/journal/socket";
/// Longest entry, in bytes: below what a datagram holds everywhere.
const LONGEST: usize = 48 << 10;

/// Writes events to the journal.
#[derive(Debug)]
pub struct Journal {
    socket: UnixDatagram,
    lost: AtomicU64,
}

impl Journal {
    /// The journal, where it reads `stream` already: `JOURNAL_STREAM` names its device and inode.
    pub fn behind(stream: &impl std::os::fd::AsFd, named: Option<&str>) -> Option<Self> {
        let found =
            std::fs::File::from(stream.as_fd().try_clone_to_owned().ok()?).metadata().ok()?;
        let (device, inode) = named?.split_once(':')?;
        let same = device.parse() == Ok(found.dev()) && inode.parse() == Ok(found.ino());
        if !same {
            return None;
        }
        Self::at(Path::new(SOCKET)).ok()
    }

    fn at(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, lost: AtomicU64::new(0) })
    }

    fn send(&self, entry: &Entry) {
        if self.socket.send(&entry.0).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let mut note = Entry::new(Level::WARN);
            note.put("MESSAGE", &format!("… {lost} entries of the log were lost here"));
            self.send(&note);
        }
        let mut entry = Entry::new(*event.metadata().level());
        entry.put("TARGET", event.metadata().target());
        event.record(&mut entry);
        self.send(&entry);
    }
}

/// One entry as it is sent.
struct Entry(Vec<u8>);

impl Entry {
    fn new(level: Level) -> Self {
        // As syslog numbers them.
        let priority = match level {
            Level::ERROR => "3",
            Level::WARN => "4",
            Level::INFO => "6",
            Level::DEBUG | Level::TRACE => "7",
        };
        let mut entry = Self(Vec::with_capacity(256));
        entry.put("PRIORITY", priority);
        entry.put("SYSLOG_IDENTIFIER", "mcpx");
        entry
    }

    fn put(&mut self, name: &str, value: &str) {
        let room = LONGEST.saturating_sub(self.0.len() + name.len());
        let value = value.get(..value.floor_char_boundary(room)).unwrap_or_default();
        self.0.extend_from_slice(name.as_bytes());
        if value.contains('\n') {
            // A value of more lines says how long it is.
            self.0.push(b'\n');
            self.0.extend_from_slice(&u64::try_from(value.len()).unwrap_or(0).to_le_bytes());
        } else {
            self.0.push(b'=');
        }
        self.0.extend_from_slice(value.as_bytes());
        self.0.push(b'\n');
    }

    fn put_field(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            return self.put("MESSAGE", value);
        }
        let mut name = String::from("MCPX_");
        for letter in field.name().chars() {
            let known = letter.is_ascii_alphanumeric();
            name.push(if known { letter.to_ascii_uppercase() } else { '_' });
        }
        self.put(&name, value);
    }
}

impl Visit for Entry {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_field(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        // Into memory, which takes everything.
        let _ = write!(text, "{value:?}");
        self.put_field(field, &text);
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn d21_levels_and_fields_arrive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let reader = UnixDatagram::bind(&path).unwrap();
        let subscriber = tracing_subscriber::registry().with(Journal::at(&path).unwrap());
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(kind = "host.opened", count = 3, "one\ntwo");
        });
        let mut buffer = [0; 1000];
        let length = reader.recv(&mut buffer).unwrap();
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        assert!(text.starts_with("PRIORITY=4\nSYSLOG_IDENTIFIER=mcpx\nTARGET=mcpx::"), "{text}");
        assert!(text.contains("\nMCPX_KIND=host.opened\nMCPX_COUNT=3\n"), "{text}");
        assert!(text.contains("MESSAGE\n\u{7}\0\0\0\0\0\0\0one\ntwo\n"), "{text:?}");
    }

    #[test]
    fn a_stream_that_is_not_the_journals_is_none() {
        let file = tempfile::tempfile().unwrap();
        for named in [None, Some("1:2"), Some("rubbish")] {
            assert!(Journal::behind(&file, named).is_none());
        }
    }

    /// A journal that does not read costs entries only, and says so.
    #[test]
    fn a_journal_that_hangs_costs_entries_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let reader = UnixDatagram::bind(&path).unwrap();
        let subscriber = tracing_subscriber::registry().with(Journal::at(&path).unwrap());
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..2_000 {
                tracing::info!("{}", "x".repeat(5_000));
            }
            let mut buffer = vec![0; LONGEST * 2];
            reader.set_nonblocking(true).unwrap();
            while reader.recv(&mut buffer).is_ok() {}
            tracing::info!("after");
            let length = reader.recv(&mut buffer).unwrap();
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            assert!(text.contains("entries of the log were lost here"), "{text}");
        });
    }
}
