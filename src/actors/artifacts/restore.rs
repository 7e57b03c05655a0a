//! What an earlier daemon has left: records in the store and files in the folder, which a crash, a lost
//! store or a person's hand may have parted. Blocks; run once, before the daemon serves.

use std::collections::HashMap;

use super::record::{Record, Table};
use super::{TABLE, lines_of};
use crate::actors::events::{Event, EventsHandle};
use crate::protocol::uri;
use crate::transport::store::blobs::{Blobs, Found};
use crate::transport::store::{Change, Store};

/// All that is whole; the rest is told of, and taken away or put aside.
pub(super) fn table(blobs: &Blobs, store: &dyn Store, events: &EventsHandle) -> Table {
    let warn = |text: String| events.emit(Event::new("daemon.warning", text));
    let kept = store.all(TABLE).unwrap_or_else(|error| {
        warn(format!("the records of artifacts could not be read: {error}"));
        Vec::new()
    });
    let found = blobs.look(uri::is_artifact_id).unwrap_or_else(|error| {
        warn(format!("{} could not be looked into: {error}", blobs.path("").display()));
        Vec::new()
    });
    let mut files: HashMap<String, Found> =
        found.into_iter().map(|file| (file.name.clone(), file)).collect();
    let (mut table, mut changes) = (Table::default(), Vec::new());
    for (id, bytes) in kept {
        let record = serde_json::from_slice::<Record>(&bytes).ok().filter(|record| record.id == id);
        let file = record.as_ref().and_then(|record| Some((record, files.remove(&record.id)?)));
        let trouble = match (&record, file) {
            (Some(record), Some((_, file))) if file.size == record.size => {
                table.insert(record.clone());
                continue;
            }
            (Some(record), Some((_, file))) => {
                let aside = blobs.set_aside(&id);
                let aside =
                    aside.map_or_else(|error| error.to_string(), |to| to.display().to_string());
                format!("{record:?} has {} bytes now and was put aside: {aside}", file.size)
            }
            (Some(record), None) => format!("{record:?} is forgotten: its file is gone"),
            // Its file, where there is one, is found below.
            (None, _) => "the record of an artifact could not be read".to_owned(),
        };
        warn(trouble);
        changes.push(Change::Remove { key: id });
    }
    for file in files.into_values() {
        match adopt(blobs, &file) {
            Ok(record) => {
                let value = serde_json::to_vec(&record).unwrap_or_default();
                changes.push(Change::Put { key: record.id.clone(), value });
                table.insert(record);
            }
            Err(error) => {
                warn(format!("{} could not be read: {error}", blobs.path(&file.name).display()));
            }
        }
    }
    if !changes.is_empty()
        && let Err(error) = store.change(TABLE, &changes)
    {
        warn(format!("the records of artifacts could not be put in order: {error}"));
    }
    table
}

/// A record for a whole file that has none: the daemon ended between the two, or the store was lost. It
/// can be read by whoever knows its address, and goes when its time is over, like any other.
fn adopt(blobs: &Blobs, file: &Found) -> std::io::Result<Record> {
    let lines = lines_of("", &std::fs::read(blobs.path(&file.name))?);
    let kind = if lines.is_some() { "text/plain" } else { "application/octet-stream" };
    Ok(Record {
        id: file.name.clone(),
        name: "unnamed".to_owned(),
        kind: kind.to_owned(),
        size: file.size,
        lines,
        maker: "an earlier daemon".to_owned(),
        owner: None,
        created_ms: file.written_ms,
    })
}
