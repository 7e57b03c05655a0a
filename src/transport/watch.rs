//! Folders that are watched: that something in them may have changed, never what.
//!
//! A thread of the watching crate sleeps in the kernel; whoever waits here costs nothing meanwhile.
//! Reading what is there is no change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

/// Why folders are not watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchFailed {
    /// The system has no watch to give.
    #[error("the system gives no watch on folders")]
    None(#[source] notify::Error),
    /// This one cannot be watched; the others are.
    #[error("{} cannot be watched", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: notify::Error,
    },
}

/// Watched folders.
#[derive(Debug)]
pub struct Watch {
    watcher: RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
    changed: mpsc::Receiver<()>,
}

impl Watch {
    /// Watches nothing as yet.
    pub fn new() -> Result<Self, WatchFailed> {
        // One that waits says everything.
        let (tell, changed) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.as_ref().map_or(true, may_change) {
                let _ = tell.try_send(());
            }
        });
        let watcher = watcher.map_err(WatchFailed::None)?;
        Ok(Self { watcher, folders: BTreeSet::new(), changed })
    }

    /// Watches these folders and no others, none of them with what is below it. What a folder held before
    /// it was watched is for the caller to look at, after this.
    pub fn set(&mut self, folders: BTreeSet<PathBuf>) -> Result<(), WatchFailed> {
        for folder in self.folders.difference(&folders) {
            // It may be gone, and its watch with it.
            let _ = self.watcher.unwatch(folder);
        }
        self.folders.retain(|folder| folders.contains(folder));
        let mut failed = Ok(());
        for folder in folders {
            if self.folders.contains(&folder) {
                continue;
            }
            match self.watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.folders.insert(folder);
                }
                Err(source) => failed = Err(WatchFailed::Folder { folder, source }),
            }
        }
        failed
    }

    /// Resolves when something may have changed since it resolved last.
    pub async fn changed(&mut self) {
        // The other end lives as long as the watcher, which is ours.
        let _ = self.changed.recv().await;
    }
}

/// Opening and reading change nothing, and we do both ourselves.
fn may_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

/// The folders to watch for a file that is there or may come: its own, and the one of what it is a link
/// to. Where a folder is not there, the nearest above it that is.
pub fn folders_of(file: &Path) -> impl Iterator<Item = PathBuf> {
    let nearest =
        |path: &Path| path.ancestors().skip(1).find(|folder| folder.is_dir()).map(Path::to_owned);
    let real = std::fs::canonicalize(file).ok();
    [nearest(file), real.as_deref().and_then(nearest)].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What is long enough here to have been told, and short enough to wait for nothing.
    const TOLD: Duration = Duration::from_secs(5);
    const QUIET: Duration = Duration::from_millis(100);

    async fn told(watch: &mut Watch, limit: Duration) -> bool {
        let told = tokio::time::timeout(limit, watch.changed()).await.is_ok();
        // One change is several events.
        while tokio::time::timeout(QUIET, watch.changed()).await.is_ok() {}
        told
    }

    #[expect(clippy::disallowed_methods, reason = "a test does what an editor does")]
    fn write(file: &Path, text: &str) {
        std::fs::write(file, text).unwrap();
    }

    #[tokio::test]
    async fn f49_every_way_to_change_a_file_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (file, other) = (folder.join("c.toml"), folder.join("new"));
        write(&file, "a");
        let mut watch = Watch::new().unwrap();
        watch.set(folders_of(&file).collect()).unwrap();
        assert!(!told(&mut watch, QUIET).await);
        write(&file, "b");
        assert!(told(&mut watch, TOLD).await);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "b");
        assert!(!told(&mut watch, QUIET).await, "reading is no change");
        write(&other, "c");
        std::fs::rename(&other, &file).unwrap();
        assert!(told(&mut watch, TOLD).await);
        std::fs::remove_file(&file).unwrap();
        assert!(told(&mut watch, TOLD).await);
        watch.set(BTreeSet::new()).unwrap();
        write(&file, "d");
        assert!(!told(&mut watch, QUIET).await);
    }

    /// A link leads elsewhere, and what is missing may come.
    #[tokio::test]
    async fn f49_links_and_missing_folders() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let (real, link) = (root.join("dotfiles/c.toml"), root.join("config/c.toml"));
        for file in [&real, &link] {
            std::fs::create_dir(file.parent().unwrap()).unwrap();
        }
        write(&real, "a");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let found: BTreeSet<_> = folders_of(&link).collect();
        assert_eq!(found, [root.join("config"), root.join("dotfiles")].into());
        let missing = root.join("none/mcpx/c.toml");
        assert!(folders_of(&missing).eq([root.clone()]));
        let mut watch = Watch::new().unwrap();
        let gone = root.join("gone");
        assert!(watch.set([gone, root.join("dotfiles")].into()).is_err());
        write(&real, "b");
        assert!(told(&mut watch, TOLD).await, "one that fails does not hinder the others");
    }
}
