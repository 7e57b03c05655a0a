//! Files written whole, on a disk that fails: at every step of a history, with what no sync has confirmed
//! kept, lost or torn. Whatever is left, the next start reads the old file or the new one, and the new one
//! where writing it was acknowledged (D-23).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::PathBuf;

use super::*;

/// What becomes of bytes that no sync has confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bytes {
    Kept,
    Lost,
    Torn,
}

/// The bytes of a file, whatever its name.
#[derive(Debug, Clone, Default)]
struct Node {
    live: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Debug, Default)]
struct State {
    nodes: Vec<Node>,
    /// Names with the numbers of their files.
    live: BTreeMap<PathBuf, usize>,
    synced: BTreeMap<PathBuf, usize>,
    steps: usize,
    /// The step that fails, and whether the disk is gone from then on.
    fails: Option<(usize, bool)>,
}

/// A folder on a disk that fails.
#[derive(Debug, Default)]
struct Failing {
    state: RefCell<State>,
    /// It says that it has synced, and has not.
    lies: bool,
}

impl Failing {
    /// One more step; a step that fails does what `half` of it does.
    fn step(&self, act: impl FnOnce(&mut State, bool)) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        state.steps += 1;
        let step = state.steps;
        match state.fails {
            Some((at, true)) if step > at => return Err(Error::from(ErrorKind::BrokenPipe)),
            Some((at, _)) if step == at => {
                act(&mut state, true);
                return Err(Error::from(ErrorKind::StorageFull));
            }
            _ => act(&mut state, false),
        }
        Ok(())
    }

    /// The file's bytes when the power has failed: `names` says whether names without a sync are kept.
    fn after(&self, path: &Path, bytes: Bytes, names: bool) -> Option<Vec<u8>> {
        let state = self.state.borrow();
        let number = *if names { &state.live } else { &state.synced }.get(path)?;
        let node = state.nodes.get(number).unwrap();
        Some(match bytes {
            _ if node.live == node.synced => node.live.clone(),
            Bytes::Kept => node.live.clone(),
            Bytes::Lost => node.synced.clone(),
            Bytes::Torn => node.live[..node.live.len() / 2].to_vec(),
        })
    }
}

impl Disk for Failing {
    type File = usize;

    fn create(&self, path: &Path) -> io::Result<usize> {
        let number = self.state.borrow().nodes.len();
        self.step(|state, fails| {
            if !fails {
                state.nodes.push(Node::default());
                state.live.insert(path.to_owned(), number);
            }
        })?;
        Ok(number)
    }

    fn fill(&self, file: &mut usize, bytes: &[u8]) -> io::Result<()> {
        self.step(|state, fails| {
            let length = if fails { bytes.len() / 2 } else { bytes.len() };
            state.nodes[*file].live.extend_from_slice(&bytes[..length]);
        })
    }

    fn sync(&self, file: &usize) -> io::Result<()> {
        self.step(|state, fails| {
            let node = &mut state.nodes[*file];
            if !fails && !self.lies {
                node.synced = node.live.clone();
            }
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|state, fails| {
            if !fails && let Some(number) = state.live.remove(from) {
                state.live.insert(to.to_owned(), number);
            }
        })
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        self.step(|state, fails| {
            if !fails {
                state.synced = state.live.clone();
            }
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(|state, fails| {
            if !fails {
                state.live.remove(path);
            }
        })
    }
}

const FILE: &str = "/state/upstream-eras.json";
const VERSIONS: [&[u8]; 3] = [b"{\"version\":1}", b"{\"version\":1,\"servers\":{}}", b"{}"];

/// Writes each version in turn until one is not acknowledged; how many were.
fn history(disk: &Failing) -> usize {
    let path = Path::new(FILE);
    VERSIONS.iter().take_while(|bytes| write_to(disk, path, bytes).is_ok()).count()
}

/// The histories with a failure at each of their steps.
fn histories(lies: bool) -> Vec<(usize, bool, Failing, usize)> {
    let whole = Failing::default();
    assert_eq!(history(&whole), VERSIONS.len());
    let steps = whole.state.borrow().steps;
    assert_eq!(steps, STEPS * VERSIONS.len());
    let mut all = Vec::new();
    for at in 1..=steps {
        for gone in [false, true] {
            let disk = Failing { lies, ..Failing::default() };
            disk.state.borrow_mut().fails = Some((at, gone));
            let acknowledged = history(&disk);
            all.push((at, gone, disk, acknowledged));
        }
    }
    all
}

/// Steps of one file: create, fill, sync, rename, sync of the folder.
const STEPS: usize = 5;

/// What the next start may read after so many acknowledged versions: the last of them, or the next, which
/// was being written; and the one before, where the last step was the sync of the folder and that failed,
/// which is not waited for because some file systems refuse it.
fn is_whole(read: Option<&[u8]>, acknowledged: usize, failed: usize) -> bool {
    let least = acknowledged - usize::from(failed == STEPS * acknowledged);
    match read {
        None => least == 0,
        Some(bytes) => VERSIONS
            .iter()
            .take(acknowledged + 1)
            .skip(least.saturating_sub(1))
            .any(|it| *it == bytes),
    }
}

#[test]
fn d23_a_crash_at_any_step_leaves_the_old_file_or_the_new_one() {
    for (at, gone, disk, acknowledged) in histories(false) {
        for bytes in [Bytes::Kept, Bytes::Lost, Bytes::Torn] {
            for names in [false, true] {
                let read = disk.after(Path::new(FILE), bytes, names);
                assert!(
                    is_whole(read.as_deref(), acknowledged, at),
                    "step {at} gone {gone} {bytes:?} names {names}: {read:?}"
                );
            }
        }
        // Without a power failure, everybody sees the last one that was acknowledged, or the next.
        let seen = disk.after(Path::new(FILE), Bytes::Kept, true);
        let seen = seen.and_then(|seen| VERSIONS.iter().position(|whole| *whole == seen));
        let seen = seen.map_or(0, |number| number + 1);
        assert!(seen == acknowledged || seen == acknowledged + 1, "step {at}: {seen}");
    }
}

#[test]
fn d23_a_step_that_fails_leaves_no_temporary_file() {
    for (at, gone, disk, _) in histories(false) {
        let state = disk.state.borrow();
        let temporary = state.live.keys().any(|path| path.as_path() != Path::new(FILE));
        assert!(gone || !temporary, "step {at}: {:?}", state.live);
    }
}

/// What the test above would find, if a sync were missing.
#[test]
fn d23_a_missing_sync_would_be_found() {
    let torn = histories(true).iter().any(|(at, _, disk, acknowledged)| {
        let read = disk.after(Path::new(FILE), Bytes::Torn, true);
        !is_whole(read.as_deref(), *acknowledged, *at)
    });
    assert!(torn);
}
