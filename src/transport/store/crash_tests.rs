//! The store on a disk that fails: at every write and every sync of a history, with what was written
//! since the last sync kept, lost, or torn. Whatever is left, the next start reads it, and finds all
//! that was acknowledged and nothing that was half done (F47, D-23).

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

use super::*;

/// What becomes of writes that no sync has confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsynced {
    Kept,
    Lost,
    /// Every other one is lost, and each that is kept has its first half only.
    Torn,
}

#[derive(Debug, Default)]
struct State {
    /// As a reader sees it.
    bytes: Vec<u8>,
    synced: Vec<u8>,
    /// Since the last sync.
    writes: Vec<(usize, Vec<u8>)>,
    /// Writes and syncs so far.
    steps: usize,
    /// The step that fails, and what it says; and whether the disk is gone from then on.
    fails: Option<(usize, ErrorKind, bool)>,
}

/// A disk of which several databases are opened, one after the other.
#[derive(Debug, Clone, Default)]
struct Disk(Arc<Mutex<State>>);

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// One more step; the write `data` at `offset` where it is one. The step that fails has done half.
    fn step(&self, write: Option<(usize, &[u8])>) -> Result<(), io::Error> {
        let mut state = self.state();
        state.steps += 1;
        let step = state.steps;
        let fails = state.fails.filter(|(at, _, gone)| step == *at || (*gone && step > *at));
        let half = |data: &[u8]| data.len() / if fails.is_some() { 2 } else { 1 };
        let late = fails.is_some_and(|(at, ..)| step > at);
        match write {
            Some((offset, data)) if !late => {
                let data = &data[..half(data)];
                let end = offset + data.len();
                if state.bytes.len() < end {
                    state.bytes.resize(end, 0);
                }
                state.bytes[offset..end].copy_from_slice(data);
                state.writes.push((offset, data.to_vec()));
            }
            None if fails.is_none() => {
                state.synced = state.bytes.clone();
                state.writes.clear();
            }
            _ => {}
        }
        match fails {
            Some((_, kind, _)) => Err(io::Error::from(kind)),
            None => Ok(()),
        }
    }

    /// The power has failed: what the disk holds afterwards.
    fn after(&self, unsynced: Unsynced) -> Self {
        let state = self.state();
        let mut bytes = state.synced.clone();
        bytes.resize(state.bytes.len(), 0);
        for (number, (offset, data)) in state.writes.iter().enumerate() {
            let length = match unsynced {
                Unsynced::Kept => data.len(),
                Unsynced::Torn if number % 2 == 0 => data.len() / 2,
                Unsynced::Lost | Unsynced::Torn => 0,
            };
            bytes[*offset..offset + length].copy_from_slice(&data[..length]);
        }
        if unsynced == Unsynced::Lost && !state.synced.is_empty() {
            bytes.truncate(state.synced.len());
        }
        let synced = bytes.clone();
        Self(Arc::new(Mutex::new(State { bytes, synced, ..State::default() })))
    }

    fn store(&self) -> Result<Embedded, Unusable> {
        Embedded::on(Box::new(self.clone()), Path::new("disk"))
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64, io::Error> {
        Ok(self.state().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        let (state, offset) = (self.state(), usize::try_from(offset).unwrap());
        let Some(bytes) = state.bytes.get(offset..offset + out.len()) else {
            return Err(io::Error::from(ErrorKind::UnexpectedEof));
        };
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        let len = usize::try_from(len).unwrap();
        let end = self.state().bytes.len().min(len);
        self.step(Some((end, &[])))?;
        self.state().bytes.resize(len, 0);
        Ok(())
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.step(None)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.step(Some((usize::try_from(offset).unwrap(), data)))
    }
}

impl super::Disk for Disk {
    fn open(&self) -> Result<Database, DatabaseError> {
        builder().create_with_backend(self.clone())
    }
}

type Contents = BTreeMap<(&'static str, String), Vec<u8>>;

const TABLES: [&str; 4] = ["sessions", "tasks", "questions", "catalog"];

/// What a daemon writes in a busy minute: sessions that come and go, tasks that end with large results,
/// questions, lists.
fn history() -> Vec<(&'static str, Vec<Change>)> {
    let put = |key: String, size: usize| {
        let value = key.bytes().cycle().take(size).collect();
        Change::Put { key, value }
    };
    let mut history = Vec::new();
    for round in 0..8 {
        history.push(("sessions", vec![put(format!("session {round}"), 300)]));
        history.push(("tasks", vec![put(format!("task {round}"), 200)]));
        history
            .push(("catalog", (0..3).map(|at| put(format!("list {at}"), 900 + round)).collect()));
        history.push(("tasks", vec![put(format!("task {round}"), 20_000 * (round % 3))]));
        history.push(("questions", vec![put(format!("question {round}"), 100)]));
        let gone = |what: &str| Change::Remove { key: format!("{what} {}", round / 2) };
        history.push(("questions", vec![gone("question")]));
        history.push(("sessions", vec![gone("session"), put(format!("session {round}"), 350)]));
    }
    history
}

fn apply(contents: &mut Contents, (table, changes): &(&'static str, Vec<Change>)) {
    for change in changes {
        match change {
            Change::Put { key, value } => contents.insert((table, key.clone()), value.clone()),
            Change::Remove { key } => contents.remove(&(*table, key.clone())),
        };
    }
}

fn contents(store: &Embedded) -> Contents {
    let mut contents = Contents::new();
    for table in TABLES {
        for (key, value) in store.all(table).unwrap() {
            contents.insert((table, key), value);
        }
    }
    contents
}

/// Runs the history until something fails: the contents after what was acknowledged, and after one
/// more.
fn live(disk: &Disk) -> (Contents, Contents) {
    let (mut before, mut after) = (Contents::new(), Contents::new());
    let Ok(store) = disk.store() else { return (before, after) };
    for transaction in history() {
        apply(&mut after, &transaction);
        if store.change(transaction.0, &transaction.1).is_err() {
            break;
        }
        apply(&mut before, &transaction);
    }
    (before, after)
}

fn failing(at: usize, kind: ErrorKind, gone: bool) -> Disk {
    Disk(Arc::new(Mutex::new(State { fails: Some((at, kind, gone)), ..State::default() })))
}

fn steps() -> usize {
    let disk = Disk::default();
    let (all, _) = live(&disk);
    assert_eq!(all.len(), contents(&disk.store().unwrap()).len());
    disk.state().steps
}

/// The points that a run looks at: each of the first 24, where the file is made, and as many of the rest.
fn points(steps: usize) -> impl Iterator<Item = usize> {
    const EACH: usize = 24;
    assert!(steps >= 2 * EACH, "{steps}");
    (1..=EACH).chain((EACH + 1..=steps).step_by((steps - EACH).div_ceil(EACH)))
}

/// F47: the power fails at points all over the history, in three ways.
#[test]
fn f47_every_crash_point_recovers() {
    let steps = steps();
    for at in points(steps) {
        for unsynced in [Unsynced::Kept, Unsynced::Lost, Unsynced::Torn] {
            let disk = failing(at, ErrorKind::BrokenPipe, true);
            let (before, after) = live(&disk);
            let left = disk.after(unsynced);
            let again = match left.store() {
                Ok(store) => store,
                // Torn as it was made for the first time: nothing was acknowledged, nothing is lost.
                Err(Unusable::Content(_)) if before.is_empty() && after.len() <= 1 => continue,
                Err(error) => panic!("step {at}, {unsynced:?}: {error:?}"),
            };
            let found = contents(&again);
            assert!(found == before || found == after, "step {at}, {unsynced:?}");
            again.put("sessions", "next", b"x").unwrap();
        }
    }
}

/// F47: the disk is full for one step. What was not acknowledged may be missing, nothing else is, and
/// the same daemon writes on when there is room again.
#[test]
fn f47_a_full_disk_costs_one_change() {
    let steps = steps();
    for at in points(steps) {
        let disk = failing(at, ErrorKind::StorageFull, false);
        let store = match disk.store() {
            Ok(store) => store,
            // The caller keeps in memory what there is to keep; the file is not put aside.
            Err(Unusable::Now(StoreError::Io { source, .. })) => {
                assert_eq!(source.kind(), ErrorKind::StorageFull);
                continue;
            }
            Err(error) => panic!("step {at}: {error:?}"),
        };
        let (mut sure, mut failed) = (Contents::new(), 0);
        for transaction in history() {
            if store.change(transaction.0, &transaction.1).is_ok() {
                apply(&mut sure, &transaction);
            } else {
                failed += 1;
                // Whether it came about is not known; done again it is the same.
                store.change(transaction.0, &transaction.1).unwrap();
                apply(&mut sure, &transaction);
            }
        }
        assert!(failed <= 1, "step {at}: {failed}");
        drop(store);
        assert_eq!(contents(&disk.store().unwrap()), sure, "step {at}");
    }
}
