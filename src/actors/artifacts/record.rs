//! What is known of one artifact, in memory and in the store; and all of them with the room they take.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One stored result, or one file of a script.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its id, which is its file's name and the end of its address: whoever knows it may read it. So it
    /// is a secret, and never shown whole in events and logs.
    pub id: String,
    /// What it was called: words to show, never a path.
    pub name: String,
    /// Its media type.
    pub kind: String,
    /// Bytes.
    pub size: u64,
    /// How many lines it has, where it is text.
    pub lines: Option<u64>,
    /// What made it, as in "tool `t` of server `s`".
    pub maker: String,
    /// The session that it was made for; none where its caller had none.
    pub owner: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
}

impl Record {
    /// As much of the id as tells artifacts apart in events.
    fn short_id(&self) -> &str {
        const SHOWN: usize = 8;
        self.id.get(..SHOWN).unwrap_or_default()
    }

    /// When it is forgotten, in milliseconds since 1970, where each is kept for `keep`.
    pub(super) fn ends_ms(&self, keep: Duration) -> u64 {
        let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
        self.created_ms.saturating_add(keep)
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "artifact {}… ({:?}, {} bytes, of {})",
            self.short_id(),
            self.name,
            self.size,
            self.maker
        )
    }
}

/// All that are kept. Pure.
#[derive(Debug, Default)]
pub(super) struct Table {
    kept: HashMap<String, Arc<Record>>,
    /// By age, oldest first.
    order: BTreeSet<(u64, String)>,
    total: u64,
}

impl Table {
    pub(super) fn insert(&mut self, record: Record) {
        self.total += record.size;
        self.order.insert((record.created_ms, record.id.clone()));
        self.kept.insert(record.id.clone(), Arc::new(record));
    }

    pub(super) fn get(&self, id: &str) -> Option<&Arc<Record>> {
        self.kept.get(id)
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<Record>> {
        let record = self.kept.remove(id)?;
        self.order.remove(&(record.created_ms, record.id.clone()));
        self.total -= record.size;
        Some(record)
    }

    /// Oldest first.
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = &Arc<Record>> {
        self.order.iter().filter_map(|(_, id)| self.kept.get(id))
    }

    /// When the next one is to be forgotten.
    pub(super) fn next_end(&self, keep: Duration) -> Option<u64> {
        self.all().next().map(|record| record.ends_ms(keep))
    }

    /// Takes out what has been kept long enough at `now`.
    pub(super) fn expire(&mut self, now: u64, keep: Duration) -> Vec<Arc<Record>> {
        self.take_oldest(|table| table.next_end(keep).is_some_and(|end| end <= now))
    }

    /// Takes out the oldest until there are no more than `most` with `bytes` in all. The newest stays.
    pub(super) fn make_room(&mut self, most: usize, bytes: u64) -> Vec<Arc<Record>> {
        self.take_oldest(|table| {
            table.kept.len() > 1 && (table.kept.len() > most || table.total > bytes)
        })
    }

    fn take_oldest(&mut self, goes_on: impl Fn(&Self) -> bool) -> Vec<Arc<Record>> {
        let mut taken = Vec::new();
        while goes_on(self)
            && let Some((_, id)) = self.order.first().cloned()
        {
            taken.extend(self.remove(&id));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, created_ms: u64, size: u64) -> Record {
        let (name, kind, maker) = ("n".to_owned(), "text/plain".to_owned(), "m".to_owned());
        Record { id: id.into(), name, kind, size, lines: None, maker, owner: None, created_ms }
    }

    fn ids(records: &[Arc<Record>]) -> Vec<&str> {
        records.iter().map(|record| record.id.as_str()).collect()
    }

    #[test]
    fn the_oldest_go_by_age_number_and_bytes() {
        let mut table = Table::default();
        for (id, created, size) in [("c", 30, 5), ("a", 10, 5), ("b", 20, 5), ("d", 40, 5)] {
            table.insert(record(id, created, size));
        }
        assert_eq!(table.next_end(Duration::from_millis(100)), Some(110));
        assert_eq!(ids(&table.expire(110, Duration::from_millis(100))), ["a"]);
        assert_eq!(ids(&table.make_room(2, 99)), ["b"]);
        assert_eq!(ids(&table.make_room(9, 6)), ["c"]);
        assert!(table.make_room(9, 1).is_empty(), "the newest stays");
        assert!(table.get("d").is_some() && table.get("a").is_none());
        assert_eq!(table.remove("d").unwrap().id, "d");
        assert_eq!((table.total, table.next_end(Duration::ZERO)), (0, None));
    }

    /// The id is a secret: who knows it may read.
    #[test]
    fn an_id_is_not_shown_whole() {
        let shown = format!("{:?}", record("0123456789abcdef", 1, 2));
        assert_eq!(shown, "artifact 01234567… (\"n\", 2 bytes, of m)");
    }
}
