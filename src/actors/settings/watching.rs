//! The files of the configuration are watched, and read again when what is in them is another (F49).
//!
//! What counts is what the files hold that the next start would read: neither a backup beside them nor
//! a file written anew with the same text is a change. An editor may take several steps to save, so
//! that nothing is read before it was quiet for `config.watch_delay`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::time::timeout;

use super::{Seat, SettingsHandle, Shared};
use crate::actors::events::Event;
use crate::settings::layers::Sources;
use crate::transport::clock;
use crate::transport::watch::{Watch, WatchFailed, folders_of};

/// How often quiet is waited for where it does not come: then something else writes into the folder.
const PATIENCE: u32 = 20;

/// Goes on until it is dropped, or the system watches nothing.
pub(super) async fn watch(shared: Arc<Shared>) {
    let mut seen = shared.current.borrow().loaded.digest;
    let mut watch = match Watch::new() {
        Ok(watch) => watch,
        Err(failed) => return say(&shared, &failed),
    };
    let handle = SettingsHandle { shared: Arc::clone(&shared), seat: Seat::default() };
    let mut warned = false;
    loop {
        let (folders, _) = look(&shared).await;
        if let Err(failed) = watch.set(folders)
            && !std::mem::replace(&mut warned, true)
        {
            say(&shared, &failed);
        }
        // Read after they are watched: what changes from here on is told.
        let (_, now) = look(&shared).await;
        let settings = handle.settings();
        if now != seen {
            seen = now;
            if settings.config.watch {
                // What is wrong with it is said by the keeper.
                let _ = handle.reload(settings.daemon.ask).await;
            }
            continue;
        }
        watch.changed().await;
        let delay = settings.config.watch_delay;
        let latest = clock::now() + delay * PATIENCE;
        while timeout(delay, watch.changed()).await.is_ok() && clock::now() < latest {}
    }
}

fn say(shared: &Shared, failed: &WatchFailed) {
    let why = std::error::Error::source(failed).map(|why| format!(": {why}")).unwrap_or_default();
    let text =
        format!("{failed}{why}; after a change, `mcpx reload` reads the configuration again");
    shared.events.emit(Event::new("daemon.warning", text));
}

/// The folders to watch, and what the files hold.
async fn look(shared: &Shared) -> (BTreeSet<PathBuf>, [u8; 32]) {
    let sources = shared.sources.clone();
    let looked = tokio::task::spawn_blocking(move || (folders(&sources), sources.digest())).await;
    looked.unwrap_or_default()
}

fn folders(sources: &Sources) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::new();
    let files = sources.files().into_iter().map(|(_, file)| file);
    for place in files.chain(sources.places()).chain(sources.project_files()) {
        folders.extend(folders_of(&place));
        // Of a folder of files, what is in it.
        folders.extend(place.is_dir().then_some(place));
    }
    folders
}
