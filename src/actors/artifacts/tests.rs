//! Tests of artifacts: what a daemon finds of those before it, and how they make room.

#![expect(clippy::disallowed_methods, reason = "tests write their files")]

use super::*;
use crate::transport::store;

struct Folder {
    top: tempfile::TempDir,
    store: Arc<dyn Store>,
}

impl Folder {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let store = store::open(&top.path().join("mcpx.redb")).unwrap().store;
        Self { top, store }
    }

    fn blobs(&self) -> Blobs {
        Blobs::new(self.top.path().join("artifacts"))
    }

    /// What the next daemon finds, and what it says of that.
    fn next(&self) -> (Table, Vec<String>) {
        let events = EventsHandle::new(100);
        let table = restore::table(&self.blobs(), &*self.store, &events);
        (table, events.listen(0).0.iter().map(|event| event.text.clone()).collect())
    }

    /// Writes a file and its record as they are written.
    fn write(&self, digit: &str, text: &str) -> Record {
        let new = NewArtifact {
            name: "a\nname".to_owned(),
            kind: String::new(),
            bytes: Bytes::from(text.to_owned()),
            maker: "a test".to_owned(),
            owner: None,
        };
        let (record, bytes) = describe(digit.repeat(ID_BYTES * 2), new, 7);
        self.blobs().write(&record.id, &bytes).unwrap();
        self.store.put(TABLE, &record.id, RawJson::write(&record).as_bytes()).unwrap();
        record
    }
}

#[test]
fn what_is_whole_is_found_again() {
    let folder = Folder::new();
    let record = folder.write("a", "one\ntwo\n");
    assert_eq!(
        (record.lines, record.kind.as_str(), record.name.as_str()),
        (Some(2), "text/plain", "aname")
    );
    let (table, said) = folder.next();
    assert_eq!((table.get(&record.id).unwrap().as_ref(), said), (&record, vec![]));
}

/// A kill between the file and its record leaves the file: it can be read, and goes in its time.
#[test]
fn a_file_without_a_record_gets_one() {
    let folder = Folder::new();
    let id = "b".repeat(ID_BYTES * 2);
    folder.blobs().write(&id, b"\xff\xfe").unwrap();
    folder.blobs().write("not-an-id", b"x").unwrap();
    for _ in 0..2 {
        let (table, said) = folder.next();
        let record = table.get(&id).unwrap();
        assert_eq!(
            (record.size, record.lines, record.kind.as_str()),
            (2, None, "application/octet-stream")
        );
        assert!(record.created_ms > 1_000_000 && said.is_empty(), "{said:?}");
        assert_eq!(table.all().count(), 1);
    }
}

#[test]
fn what_is_torn_missing_or_unreadable_is_told() {
    let folder = Folder::new();
    let (torn, gone) = (folder.write("c", "whole"), folder.write("d", "gone"));
    std::fs::write(folder.blobs().path(&torn.id), "wh").unwrap();
    folder.blobs().remove(&gone.id).unwrap();
    folder.store.put(TABLE, "odd", b"{").unwrap();
    let (table, said) = folder.next();
    assert_eq!(table.all().count(), 0);
    let said = said.join("\n");
    for words in [
        "artifact cccccccc…",
        "put aside",
        "artifact dddddddd…",
        "its file is gone",
        "could not be read",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let (table, said) = folder.next();
    assert_eq!((table.all().count(), said), (0, vec![]), "it is in order now");
}

/// C-16: names are words, never paths, and ids are drawn.
#[test]
fn c16_names_are_data() {
    let new = |name: &str, kind: &str, bytes: &'static [u8]| NewArtifact {
        name: name.to_owned(),
        kind: kind.to_owned(),
        bytes: Bytes::from_static(bytes),
        maker: "a test".to_owned(),
        owner: None,
    };
    let told = |name: &str| describe(String::new(), new(name, "a/b", b"x"), 0).0.name;
    assert_eq!(told("../../etc/passwd\u{0}"), "../../etc/passwd");
    assert_eq!((told("\u{1b}[2J").as_str(), told("").as_str()), ("[2J", "unnamed"));
    assert_eq!(told(&"x".repeat(999)).len(), NAME);
    let one = draw_id().unwrap();
    assert!(uri::is_artifact_id(&one) && one != draw_id().unwrap());
}
