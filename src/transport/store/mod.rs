//! Everything durable: small files written whole, and the embedded transactional store.
//!
//! The store is a few named tables from names to bytes; what they mean is their owners' affair.
//! Whatever is wrong with its file, the daemon starts: a file that cannot be read, or that a newer
//! mcpx has written, is put aside under a name that says so, and an empty one takes its place. Where the
//! disk takes none (it is full, say), what there is to keep is kept in memory, and that is said.

pub mod blobs;
pub mod connection;
pub mod hostfile;
pub mod statefile;

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition,
    TableError,
};

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
    /// None only where it could not be opened again after a failure of the disk.
    database: RwLock<Option<Database>>,
    disk: Box<dyn Disk>,
}

/// Where a database is.
trait Disk: Send + Sync + 'static {
    /// Opens it, making it where there is none.
    fn open(&self) -> Result<Database, DatabaseError>;
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    builder
}

/// A file.
struct Filed(PathBuf);

impl Disk for Filed {
    fn open(&self) -> Result<Database, DatabaseError> {
        // With the right mode from the first moment on.
        let mut options = std::fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.read(true).write(true).create(true).truncate(false).open(&self.0);
        let file = file.map_err(|error| DatabaseError::Storage(StorageError::Io(error)))?;
        builder().create_with_backend(FileBackend::new(file)?)
    }
}

/// None: what is kept there is gone with the daemon.
struct Memory;

impl Disk for Memory {
    fn open(&self) -> Result<Database, DatabaseError> {
        builder().create_with_backend(InMemoryBackend::new())
    }
}

/// What opening came to.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Where an earlier file was put that could not be used, and why.
    pub set_aside: Option<(PathBuf, String)>,
    /// Why nothing is kept beyond this daemon's life, where the disk refuses.
    pub unkept: Option<String>,
}

/// Opens the store, making it where there is none. Whatever the disk refuses, there is one: the only
/// error is another daemon that has it.
pub fn open(path: &Path) -> Result<Opened, StoreError> {
    let failed = |source| StoreError::Io { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        statefile::private_folder(folder).map_err(failed)?;
    }
    let mut set_aside = None;
    let opened = match Embedded::open(path) {
        Err(Unusable::Content(why)) => match statefile::set_aside(path) {
            Ok(aside) => {
                tracing::warn!(
                    path = %path.display(), aside = %aside.display(), why,
                    "the state file could not be read and was put aside; an empty one takes its place"
                );
                set_aside = Some((aside, why));
                Embedded::open(path)
            }
            Err(error) => {
                Err(Unusable::Content(format!("{why}, and cannot be put aside: {error}")))
            }
        },
        opened => opened,
    };
    let (database, unkept) = match opened {
        Ok(database) => (database, None),
        Err(Unusable::Now(error @ StoreError::InUse(_))) => return Err(error),
        Err(Unusable::Now(error)) => (Embedded::in_memory()?, Some(error.to_string())),
        Err(Unusable::Content(why)) => {
            (Embedded::in_memory()?, Some(format!("{}: {why}", path.display())))
        }
    };
    Ok(Opened { store: Arc::new(database), set_aside, unkept })
}

/// Why a file was not opened.
#[derive(Debug)]
enum Unusable {
    /// Because of what is in it.
    Content(String),
    /// For a reason that may pass, or that a new file would meet too.
    Now(StoreError),
}

impl Unusable {
    fn of(error: redb::Error, path: &Path) -> Self {
        match error {
            redb::Error::DatabaseAlreadyOpen => Self::Now(StoreError::InUse(path.to_owned())),
            redb::Error::Io(source)
                if !matches!(
                    source.kind(),
                    ErrorKind::InvalidData | ErrorKind::PermissionDenied
                ) =>
            {
                Self::Now(StoreError::Io { path: path.to_owned(), source })
            }
            error => Self::Content(error.to_string()),
        }
    }
}

impl Embedded {
    fn open(path: &Path) -> Result<Self, Unusable> {
        Self::on(Box::new(Filed(path.to_owned())), path)
    }

    fn in_memory() -> Result<Self, StoreError> {
        Self::on(Box::new(Memory), Path::new("memory")).map_err(|unusable| match unusable {
            Unusable::Content(why) => StoreError::Failed(why),
            Unusable::Now(error) => error,
        })
    }

    fn on(disk: Box<dyn Disk>, path: &Path) -> Result<Self, Unusable> {
        // The library panics on some damaged files; that, too, is a file that cannot be read.
        let opened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| disk.open()));
        let damaged = |_| Unusable::Content("it is damaged".to_owned());
        let database =
            opened.map_err(damaged)?.map_err(|error| Unusable::of(error.into(), path))?;
        let store = Self { database: RwLock::new(Some(database)), disk };
        match store.layout() {
            Ok(layout) if layout <= LAYOUT => Ok(store),
            Ok(layout) => Err(Unusable::Content(format!(
                "a newer mcpx has written it (layout {layout}, this one knows {LAYOUT})"
            ))),
            Err(error) => Err(Unusable::of(error, path)),
        }
    }

    /// The layout that the file has; written where it has none.
    fn layout(&self) -> Result<u64, redb::Error> {
        let found = self.run(|database| {
            let transaction = database.begin_read()?;
            let meta = match transaction.open_table(META) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(None),
                meta => meta?,
            };
            Ok(meta.get("layout")?.map(|layout| layout.value()))
        })?;
        if let Some(found) = found {
            return Ok(found);
        }
        self.run(|database| {
            let transaction = database.begin_write()?;
            transaction.open_table(META)?.insert("layout", LAYOUT)?;
            transaction.commit()?;
            Ok(LAYOUT)
        })
    }

    /// Runs one transaction. After a failure of the disk the library refuses everything until the file
    /// is opened anew: so it is, and what failed before it began is tried once more.
    fn run<T>(&self, work: impl Fn(&Database) -> Result<T, redb::Error>) -> Result<T, redb::Error> {
        {
            let open = self.database.read().unwrap_or_else(PoisonError::into_inner);
            match open.as_ref().map(&work) {
                None | Some(Err(redb::Error::PreviousIo)) => {}
                Some(done) => return done,
            }
        }
        let mut open = self.database.write().unwrap_or_else(PoisonError::into_inner);
        // Its lock on the file is let go first.
        drop(open.take());
        let database = self.disk.open()?;
        let done = work(&database);
        *open = Some(database);
        done
    }
}

impl Store for Embedded {
    fn get(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let read = |database: &Database| {
            let transaction = database.begin_read()?;
            let table = match transaction.open_table(definition(table)) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(None),
                table => table?,
            };
            Ok(table.get(key)?.map(|value| value.value().to_vec()))
        };
        self.run(read).map_err(failed)
    }

    fn all(&self, table: &str) -> Result<Entries, StoreError> {
        let read = |database: &Database| {
            let transaction = database.begin_read()?;
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
        self.run(read).map_err(failed)
    }

    fn change(&self, table: &str, changes: &[Change]) -> Result<(), StoreError> {
        let write = |database: &Database| {
            let transaction = database.begin_write()?;
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
        self.run(write).map_err(failed)
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
mod crash_tests;

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

    /// D-23: a file that may not be read is put aside, and one that cannot even be that is left alone:
    /// the daemon has a store all the same.
    #[test]
    fn d23_whatever_the_disk_refuses_there_is_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcpx.redb");
        std::fs::create_dir(&path).unwrap();
        let opened = open(&path).unwrap();
        let why = opened.unkept.unwrap();
        assert!(why.contains("mcpx.redb") && why.contains("directory"), "{why}");
        opened.store.put("t", "k", b"v").unwrap();
        assert_eq!(opened.store.get("t", "k").unwrap().unwrap(), b"v");
        assert!(path.is_dir() && opened.set_aside.is_none());
    }
}
