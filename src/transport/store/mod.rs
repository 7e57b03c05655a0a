//! Everything durable: small files written whole, and the embedded transactional store.
//!
//! The store is a few named tables from names to bytes; what they mean is their owners' affair.
//! Whatever is wrong with its file, the daemon starts: a file that cannot be read, or that a newer
//! mcpx has written, is put aside under a name that says so, and an empty one takes its place.

pub mod blobs;
pub mod connection;
pub mod hostfile;
pub mod statefile;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};

/// The layout of the tables. Raised when an older mcpx could not read what this one writes.
const LAYOUT: u64 = 1;
/// Where the layout stands.
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("mcpx_meta");
/// Memory for pages, in bytes: the store is written at human speed and read at start.
const CACHE: usize = 256 << 10;

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file or folder cannot be used; what it holds is not the reason.
    #[error("{} cannot be used: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process has it open.
    #[error(
        "{} is in use by another process: another daemon with this state folder runs, from another \
         runtime folder; set MCPX_STATE_DIR for one of the two", .0.display()
    )]
    InUse(PathBuf),
    /// A transaction failed; nothing of it was kept.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// One change in a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Sets a value.
    Put {
        /// The key.
        key: String,
        /// The value.
        value: Vec<u8>,
    },
    /// Takes a key out.
    Remove {
        /// The key.
        key: String,
    },
}

/// Entries of a table, in the order of their keys.
pub type Entries = Vec<(String, Vec<u8>)>;

/// Durable tables. Calls block for as long as the disk does: they belong on a blocking thread.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// One value.
    fn get(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError>;
    /// All of a table.
    fn all(&self, table: &str) -> Result<Entries, StoreError>;
    /// All changes or none of them; on disk when it returns.
    fn change(&self, table: &str, changes: &[Change]) -> Result<(), StoreError>;

    /// Sets one value.
    fn put(&self, table: &str, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.change(table, &[Change::Put { key: key.to_owned(), value: value.to_owned() }])
    }

    /// Takes one key out, if it is there.
    fn remove(&self, table: &str, key: &str) -> Result<(), StoreError> {
        self.change(table, &[Change::Remove { key: key.to_owned() }])
    }
}

/// The embedded store.
pub struct Embedded {
    database: Database,
}

/// What opening came to.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Where an earlier file was put that could not be used, and why.
    pub set_aside: Option<(PathBuf, String)>,
}

/// Opens the store, making it where there is none.
pub fn open(path: &Path) -> Result<Opened, StoreError> {
    let failed = |source| StoreError::Io { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        statefile::private_folder(folder).map_err(failed)?;
    }
    let mut set_aside = None;
    let database = match Embedded::open(path) {
        Ok(database) => database,
        Err(Unusable::Now(error)) => return Err(error),
        Err(Unusable::Content(why)) => {
            let aside = statefile::set_aside(path).map_err(failed)?;
            tracing::warn!(
                path = %path.display(), aside = %aside.display(), why,
                "the state file could not be read and was put aside; an empty one takes its place"
            );
            set_aside = Some((aside, why));
            Embedded::open(path).map_err(|error| match error {
                Unusable::Now(error) => error,
                Unusable::Content(why) => StoreError::Failed(why),
            })?
        }
    };
    Ok(Opened { store: Arc::new(database), set_aside })
}

/// Why a file was not opened.
enum Unusable {
    /// Because of what is in it.
    Content(String),
    /// For a reason that may pass, or that a new file would meet too.
    Now(StoreError),
}

impl Embedded {
    fn open(path: &Path) -> Result<Self, Unusable> {
        let io = |source| Unusable::Now(StoreError::Io { path: path.to_owned(), source });
        // With the right mode from the first moment on.
        let mut options = std::fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file =
            options.read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE);
        // The library panics on some damaged files; that, too, is a file that cannot be read.
        let opened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            builder.create_with_backend(FileBackend::new(file)?)
        }));
        let database = match opened {
            Ok(Ok(database)) => database,
            Ok(Err(redb::DatabaseError::DatabaseAlreadyOpen)) => {
                return Err(Unusable::Now(StoreError::InUse(path.to_owned())));
            }
            Ok(Err(redb::DatabaseError::Storage(redb::StorageError::Io(source))))
                if source.kind() != std::io::ErrorKind::InvalidData =>
            {
                return Err(io(source));
            }
            Ok(Err(error)) => return Err(Unusable::Content(error.to_string())),
            Err(_) => return Err(Unusable::Content("it is damaged".to_owned())),
        };
        let store = Self { database };
        store.check_layout()?;
        Ok(store)
    }

    fn check_layout(&self) -> Result<(), Unusable> {
        let write = || -> Result<u64, redb::Error> {
            let transaction = self.database.begin_write()?;
            let layout = {
                let mut meta = transaction.open_table(META)?;
                let found = meta.get("layout")?.map(|layout| layout.value());
                if found.is_none() {
                    meta.insert("layout", LAYOUT)?;
                }
                found.unwrap_or(LAYOUT)
            };
            transaction.commit()?;
            Ok(layout)
        };
        match write() {
            Ok(layout) if layout <= LAYOUT => Ok(()),
            Ok(layout) => Err(Unusable::Content(format!(
                "a newer mcpx has written it (layout {layout}, this one knows {LAYOUT})"
            ))),
            Err(error) => Err(Unusable::Content(error.to_string())),
        }
    }
}

impl Store for Embedded {
    fn get(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            let transaction = self.database.begin_read()?;
            let table = match transaction.open_table(definition(table)) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(None),
                table => table?,
            };
            Ok(table.get(key)?.map(|value| value.value().to_vec()))
        };
        read().map_err(failed)
    }

    fn all(&self, table: &str) -> Result<Entries, StoreError> {
        let read = || -> Result<Entries, redb::Error> {
            let transaction = self.database.begin_read()?;
            let table = match transaction.open_table(definition(table)) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(Entries::new()),
                table => table?,
            };
            let mut entries = Entries::new();
            for entry in table.iter()? {
                let (key, value) = entry?;
                entries.push((key.value().to_owned(), value.value().to_vec()));
            }
            Ok(entries)
        };
        read().map_err(failed)
    }

    fn change(&self, table: &str, changes: &[Change]) -> Result<(), StoreError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            {
                let mut table = transaction.open_table(definition(table))?;
                for change in changes {
                    match change {
                        Change::Put { key, value } => {
                            table.insert(key.as_str(), value.as_slice())?;
                        }
                        Change::Remove { key } => {
                            table.remove(key.as_str())?;
                        }
                    }
                }
            }
            transaction.commit()?;
            Ok(())
        };
        write().map_err(failed)
    }
}

fn definition(name: &str) -> TableDefinition<'_, &'static str, &'static [u8]> {
    TableDefinition::new(name)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` asks for")]
fn failed(error: redb::Error) -> StoreError {
    StoreError::Failed(error.to_string())
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Embedded")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn put(key: &str, value: &str) -> Change {
        Change::Put { key: key.into(), value: value.into() }
    }

    #[test]
    fn what_was_changed_is_there_after_opening_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/mcpx.redb");
        let opened = open(&path).unwrap();
        assert!(opened.set_aside.is_none());
        assert_eq!(opened.store.get("settings", "a").unwrap(), None);
        assert_eq!(opened.store.all("settings").unwrap(), []);
        opened.store.change("settings", &[put("b", "2"), put("a", "1"), put("c", "3")]).unwrap();
        opened
            .store
            .change("settings", &[Change::Remove { key: "c".into() }, put("a", "")])
            .unwrap();
        assert!(matches!(open(&path), Err(StoreError::InUse(_))));
        opened.store.put("settings", "d", b"4").unwrap();
        opened.store.remove("settings", "d").unwrap();
        opened.store.remove("settings", "never there").unwrap();
        drop(opened);
        let store = open(&path).unwrap().store;
        assert_eq!(store.get("settings", "a").unwrap(), Some(vec![]));
        let all = store.all("settings").unwrap();
        assert_eq!(all, [("a".to_owned(), vec![]), ("b".to_owned(), b"2".to_vec())]);
        assert_eq!(store.all("other").unwrap(), []);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcpx.redb");
        let whole = {
            let store = open(&path).unwrap().store;
            store.change("t", &[put("k", "v")]).unwrap();
            drop(store);
            std::fs::read(&path).unwrap()
        };
        let mut torn = whole.clone();
        torn.truncate(whole.len() / 2);
        let mut zeroed = whole.clone();
        zeroed.get_mut(64..4096).unwrap().fill(0);
        for bytes in [b"no database at all".to_vec(), torn, zeroed] {
            statefile::write(&path, &bytes).unwrap();
            let opened = open(&path).unwrap();
            let (aside, why) = opened.set_aside.unwrap();
            assert!(aside.exists() && !why.is_empty(), "{why}");
            assert_eq!(opened.store.all("t").unwrap(), []);
            std::fs::remove_file(aside).unwrap();
        }
    }

    #[test]
    fn a_file_of_a_newer_version_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcpx.redb");
        {
            let database = Database::create(&path).unwrap();
            let transaction = database.begin_write().unwrap();
            transaction.open_table(META).unwrap().insert("layout", LAYOUT + 1).unwrap();
            transaction.commit().unwrap();
        }
        let (_, why) = open(&path).unwrap().set_aside.unwrap();
        assert_eq!(why, "a newer mcpx has written it (layout 2, this one knows 1)");
    }
}
