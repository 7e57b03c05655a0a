//! The era cache's key, record and file format (S4, U-15, U-16).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::revision::{Era, Revision};
use crate::protocol::hex::hex;

/// How an era became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EraSource {
    /// By the opening itself.
    Probe,
    /// From the cache.
    Cache,
    /// By a force value.
    Forced,
}

impl EraSource {
    /// The word for people and programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Cache => "cache",
            Self::Forced => "forced",
        }
    }
}

/// What is remembered of one process definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraRecord {
    /// `legacy` or `modern`.
    pub era: String,
    /// The revision agreed.
    pub revision: String,
    /// Seconds since 1970 when it was learned. 0 in a record that a session has just made: it has
    /// no calendar, so whoever stores the record writes the time in.
    pub learned_at: u64,
    /// How it was learned.
    pub source: EraSource,
    /// `http+sse` where that matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}

impl EraRecord {
    /// A record just learned; [`Self::learned_at`] is still to be written in.
    pub fn learned(revision: Revision, source: EraSource) -> Self {
        Self {
            era: revision.era().to_string(),
            revision: revision.as_str().to_owned(),
            learned_at: 0,
            source,
            transport: None,
        }
    }

    /// What to open a server with that ended on the probe (F25 f): `initialize` first. Such an
    /// opening counts as probed, not as cached.
    pub fn ended_on_probe() -> Self {
        Self::learned(Revision::NEWEST_LEGACY, EraSource::Probe)
    }

    /// The era, where the text names one; a record with any other text is as good as none.
    pub fn known_era(&self) -> Option<Era> {
        [Era::Legacy, Era::Modern].into_iter().find(|era| era.to_string() == self.era)
    }

    /// Whether it describes a server that agreed on `revision`.
    pub fn describes(&self, revision: Revision) -> bool {
        self.known_era() == Some(revision.era()) && self.revision == revision.as_str()
    }
}

/// What makes a server the same server: how it is started or reached, and nothing about how it is
/// shared (U-15). References such as `${file:…}` stand as written, so that no secret is hashed
/// and a renewed one does not forget the era.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProcessDefinition {
    /// The program.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, sorted by name (P-10).
    pub env: BTreeMap<String, String>,
    /// Its folder.
    pub cwd: Option<String>,
    /// The transport where it is configured.
    pub transport: Option<String>,
    /// The address of an HTTP server.
    pub url: Option<String>,
    /// Configured headers, sorted by name (P-10).
    pub headers: BTreeMap<String, String>,
    /// The configured credential's members by name; left out where there is none, so that records
    /// from before there were any are found.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub auth: BTreeMap<String, String>,
}

impl ProcessDefinition {
    /// The cache key: SHA-256, in hexadecimal, over a fixed order of named members, so that it is
    /// the same in every run and on every machine (U-15, P-10).
    pub fn key(&self) -> String {
        // Only strings, lists and string maps: this always has a JSON form.
        let text = serde_json::to_vec(self).unwrap_or_default();
        hex(&Sha256::digest(&text))
    }
}

/// The only layout of the file so far.
const FILE_VERSION: u32 = 1;

/// All that is remembered, by [`ProcessDefinition::key`].
pub type EraRecords = BTreeMap<String, EraRecord>;

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    servers: EraRecords,
}

/// Reads the file's text. Truncated, not JSON, of another version: empty, and rewritten at the next
/// occasion (U-16); a cache must never keep a server from starting.
pub fn read_records(text: &[u8]) -> EraRecords {
    match serde_json::from_slice::<File>(text) {
        Ok(file) if file.version == FILE_VERSION => file.servers,
        _ => EraRecords::new(),
    }
}

/// The file's text.
pub fn write_records(records: &EraRecords) -> Vec<u8> {
    let file = File { version: FILE_VERSION, servers: records.clone() };
    let mut text = serde_json::to_vec_pretty(&file).unwrap_or_default();
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> ProcessDefinition {
        ProcessDefinition {
            command: Some("npx".into()),
            args: vec!["-y".into(), "server".into()],
            env: [("TOKEN", "${file:/run/token}"), ("A", "1")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..ProcessDefinition::default()
        }
    }

    /// U-15, P-10: the key is this very text in every run; changing it forgets every era.
    #[test]
    fn u15_the_key_is_stable_and_tells_definitions_apart() {
        let key = definition().key();
        assert_eq!(key, "2ab371809b65e19ee7cdc580008b7d2082ae72f6c9ad63652e44c7e6071302e8");
        let mut others = vec![key];
        let changes: [fn(&mut ProcessDefinition); 7] = [
            |d| d.command = Some("uvx".into()),
            |d| d.args = vec!["-y server".into()],
            |d| _ = d.env.insert("A".into(), "2".into()),
            |d| d.cwd = Some(".".into()),
            |d| d.transport = Some("http".into()),
            |d| d.url = Some("http://localhost".into()),
            |d| _ = d.headers.insert("A".into(), "1".into()),
        ];
        for change in changes {
            let mut other = definition();
            change(&mut other);
            assert!(!others.contains(&other.key()), "{other:?}");
            others.push(other.key());
        }
    }

    /// U-16: written and read back; anything unreadable is empty.
    #[test]
    fn u16_the_file_reads_back_and_rubbish_is_empty() {
        let mut records = EraRecords::new();
        let mut record = EraRecord::learned(Revision::NEWEST, EraSource::Probe);
        record.learned_at = 1_790_000_000;
        record.transport = Some("http+sse".into());
        records.insert(definition().key(), record);
        let text = write_records(&records);
        assert_eq!(read_records(&text), records);
        let truncated = text.split_at(text.len() / 2).0;
        let newer =
            String::from_utf8(text.clone()).unwrap().replace("\"version\": 1", "\"version\": 2");
        for bad in [b"".as_slice(), b"{}", b"[]", b"\xff\xfe", truncated, newer.as_bytes()] {
            assert!(read_records(bad).is_empty());
        }
    }

    /// U-16: a record with an era of another name decides nothing.
    #[test]
    fn u16_an_odd_era_is_none() {
        let mut record = EraRecord::learned(Revision::NEWEST, EraSource::Probe);
        assert!(record.describes(Revision::NEWEST));
        record.era = "stone".into();
        assert_eq!(record.known_era(), None);
    }
}
