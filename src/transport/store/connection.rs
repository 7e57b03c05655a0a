//! `mcpx connect` and `mcpx disconnect` up to the question whether to write: what a host's file says
//! now, what it would say, and what comes back later.

use std::path::{Path, PathBuf};

use super::hostfile::{Journal, Record, Undone, resolved};
use super::statefile;
use crate::settings::hosts::connect::{self, Standing, Way, Where};
use crate::settings::hosts::{Around, Host, Own, Reach};

/// What is asked of a host's file.
#[derive(Debug)]
pub struct Wish<'a> {
    /// Whose file.
    pub host: &'static Host,
    /// Which of its files.
    pub reach: Reach,
    /// The key of our entry.
    pub key: &'a str,
    /// How the host gets to us.
    pub way: &'a Way,
    /// The layout of opencode 2.x.
    pub second: bool,
}

/// A change that is ready to be made.
#[derive(Debug)]
pub struct Change {
    record: Record,
    before: Option<Vec<u8>>,
    after: String,
    mode: u32,
    /// The file as it was typed by its host: links unresolved.
    pub file: PathBuf,
    /// Whether it is made.
    pub new: bool,
    /// What changes, line by line; empty where nothing does.
    pub difference: Vec<String>,
    /// What a person has to know or do.
    pub notes: Vec<String>,
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("{} cannot be read: {error}", path.display())
}

fn text_of(path: &Path, bytes: &[u8]) -> Result<String, String> {
    std::str::from_utf8(bytes)
        .map(str::to_owned)
        .map_err(|_| format!("{} is not UTF-8 text; nothing was changed", path.display()))
}

/// Makes a change ready.
pub fn prepare(
    journal: &Journal,
    wish: &Wish<'_>,
    around: &Around<'_>,
    own: &Own<'_>,
) -> Result<Change, String> {
    let Some(path) = wish.host.target(around, wish.reach) else {
        return Err(match wish.reach {
            Reach::Project => format!("{} has no file for a project", wish.host.title),
            Reach::User => format!("no home folder, and {}'s file is in it", wish.host.title),
        });
    };
    let file = resolved(&path);
    let present = statefile::read(&file).map_err(|error| unreadable(&file, &error))?;
    let now = present.as_deref().map(|bytes| text_of(&file, bytes)).transpose()?;
    let now_text = now.clone().unwrap_or_default();
    let refused = |mistake: crate::settings::Mistake| format!("{mistake}; nothing was changed");
    let (source, top) = connect::readable(&path, &now_text).map_err(refused)?;
    free(wish, &path, connect::standing(&source, &top, wish.key, own))?;
    let kept = journal.record(&file);
    let base = base(journal, kept.as_ref(), &path, present.as_deref(), &now_text)?;
    let before = base.text.clone().unwrap_or_default();
    let (_, base_top) = connect::readable(&path, &before).map_err(refused)?;
    let ours = connect::ours(wish.host, wish.way, wish.reach, &base_top, wish.second)?;
    let put = connect::put(&path, &before, wish.key, &ours).map_err(refused)?;
    let hidden = match wish.way {
        Way::Http { token: Some(held), .. } => held.text.as_deref(),
        _ => None,
    };
    let mut notes = ours.notes;
    let others = connect::others(&source, &top, own);
    if others > 0 {
        notes.push(format!(
            "{others} other servers stay in it; `mcpx import {}` shows how mcpx would take them over",
            wish.host.name
        ));
    }
    let put_where =
        Where { at: ours.at, key: wish.key.to_owned(), made: put.made, input: put.input };
    Ok(Change {
        difference: connect::difference(&now_text, &put.text, hidden),
        new: present.is_none(),
        mode: if wish.reach == Reach::Project && !ours.secret { 0o644 } else { 0o600 },
        record: Record {
            host: wish.host.name.to_owned(),
            file,
            put: put_where,
            existed: base.text.is_some(),
            folders: kept.map(|record| record.folders).unwrap_or_default(),
            left: String::new(),
        },
        before: base.bytes,
        after: put.text,
        file: path,
        notes,
    })
}

/// Whether the key may be ours.
fn free(wish: &Wish<'_>, path: &Path, standing: Standing) -> Result<(), String> {
    let path = path.display();
    match standing {
        Standing::Free | Standing::Ours => Ok(()),
        Standing::Taken => Err(format!(
            "{path} has another server under `{}`; choose a key of its own with --key NAME",
            wish.key
        )),
        Standing::Elsewhere(key) => Err(format!(
            "{path} has mcpx under `{key}` already; --key {key} changes that entry, `mcpx disconnect {}` takes \
             it out",
            wish.host.name
        )),
    }
}

/// What a file is when we are out of it.
struct Base {
    /// `None` where there is no file then.
    text: Option<String>,
    bytes: Option<Vec<u8>>,
}

fn base(
    journal: &Journal,
    kept: Option<&Record>,
    path: &Path,
    present: Option<&[u8]>,
    now: &str,
) -> Result<Base, String> {
    let as_is =
        || Base { text: present.map(|_| now.to_owned()), bytes: present.map(<[u8]>::to_vec) };
    let (Some(record), Some(bytes)) = (kept, present) else { return Ok(as_is()) };
    if Journal::is_as_left(record, bytes) {
        let before =
            journal.before(&record.file).map_err(|error| unreadable(&record.file, &error))?;
        let before = before.filter(|_| record.existed);
        let text = before.as_deref().map(|bytes| text_of(&record.file, bytes)).transpose()?;
        return Ok(Base { text, bytes: before });
    }
    // Changed since: without our entry it is what comes back.
    let taken = connect::take(path, now, &record.put).map_err(|mistake| mistake.to_string())?;
    Ok(match taken {
        Some(text) => Base { bytes: Some(text.clone().into_bytes()), text: Some(text) },
        None => as_is(),
    })
}

impl Change {
    /// Makes it.
    pub fn make(self, journal: &Journal) -> Result<(), String> {
        let file = self.record.file.clone();
        journal
            .change(self.record, self.before.as_deref(), self.after.as_bytes(), self.mode)
            .map_err(|error| format!("{} cannot be written: {error}", file.display()))
    }
}

/// A change that can be undone.
#[derive(Debug)]
pub struct Undoing {
    record: Option<Record>,
    /// The text without our entry, where the file is not as we left it.
    without: Option<String>,
    /// The file.
    pub file: PathBuf,
    /// What changes, line by line.
    pub difference: Vec<String>,
}

/// What there is to undo for a host: what `connect` wrote, and entries that somebody wrote by hand.
pub fn undoings(
    journal: &Journal,
    host: &'static Host,
    reach: Option<Reach>,
    around: &Around<'_>,
    own: &Own<'_>,
) -> Result<Vec<Undoing>, String> {
    let mut all: Vec<Undoing> = Vec::new();
    for spot in host.spots.iter().filter(|spot| reach.is_none_or(|reach| spot.reach == reach)) {
        let Some(path) = around.path(spot).filter(|_| !spot.path.ends_with('/')) else { continue };
        let file = resolved(&path);
        if all.iter().any(|known| known.file == file) {
            continue;
        }
        all.extend(undoing(journal, host, &path, &file, own)?);
    }
    Ok(all)
}

fn undoing(
    journal: &Journal,
    host: &Host,
    path: &Path,
    file: &Path,
    own: &Own<'_>,
) -> Result<Option<Undoing>, String> {
    let present = statefile::read(file).map_err(|error| unreadable(file, &error))?;
    let record = journal.record(file).filter(|record| record.host == host.name);
    let Some(bytes) = present else {
        // The file is gone, and our entry with it.
        if record.is_some() {
            journal.forget(file).map_err(|error| unreadable(file, &error))?;
        }
        return Ok(None);
    };
    if let Some(record) = record.clone().filter(|record| Journal::is_as_left(record, &bytes)) {
        let before =
            journal.before(file).map_err(|error| unreadable(file, &error))?.unwrap_or_default();
        let (before, now) = (String::from_utf8_lossy(&before), String::from_utf8_lossy(&bytes));
        let difference = connect::difference(&now, &before, None);
        return Ok(Some(Undoing {
            record: Some(record),
            without: None,
            file: file.to_owned(),
            difference,
        }));
    }
    let now = text_of(file, &bytes)?;
    let refused = |mistake: crate::settings::Mistake| format!("{mistake}; nothing was changed");
    let (source, top) = connect::readable(path, &now).map_err(refused)?;
    let places: Vec<Where> = match &record {
        Some(record) => vec![record.put.clone()],
        None => by_hand(host, &source, &top, own),
    };
    for place in &places {
        if let Some(text) = connect::take(path, &now, place).map_err(refused)? {
            let difference = connect::difference(&now, &text, None);
            let file = file.to_owned();
            let ours_alone = record.as_ref().is_some_and(|record| !record.existed);
            if ours_alone && connect::holds_nothing(&text) {
                return Ok(Some(Undoing { record, without: None, file, difference }));
            }
            return Ok(Some(Undoing { record, without: Some(text), file, difference }));
        }
    }
    if record.is_some() {
        journal.forget(file).map_err(|error| unreadable(file, &error))?;
    }
    Ok(None)
}

/// Where an entry of ours may stand that `connect` has no record of.
fn by_hand(
    host: &Host,
    source: &crate::settings::tree::SourceText,
    top: &[crate::settings::tree::Entry],
    own: &Own<'_>,
) -> Vec<Where> {
    let mut places = Vec::new();
    let key = match connect::standing(source, top, connect::KEY, own) {
        Standing::Ours => connect::KEY.to_owned(),
        Standing::Elsewhere(key) => key,
        Standing::Free | Standing::Taken => return places,
    };
    let at: Vec<String> = host.at.iter().map(|&name| name.to_owned()).collect();
    let nested = [at.clone(), vec!["servers".to_owned()]].concat();
    for at in [nested, at] {
        places.push(Where { at, key: key.clone(), made: 0, input: false });
    }
    places
}

impl Undoing {
    /// Undoes it.
    pub fn undo(self, journal: &Journal) -> Result<Undone, String> {
        let file = self.file.clone();
        let done = match (self.without, self.record) {
            (Some(text), _) => journal.replace(&file, text.as_bytes()),
            (None, Some(record)) => journal.restore(&record),
            (None, None) => Ok(Undone::Gone),
        };
        done.map_err(|error| format!("{} cannot be written: {error}", file.display()))
    }
}
