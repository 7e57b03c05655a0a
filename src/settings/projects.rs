//! Projects: the servers that a folder's own `.mcpx.toml` adds, for hosts in that folder alone.
//!
//! Whoever can write such a file can have programs run, and it comes with a checkout; so it counts only
//! once its person has said so (`mcpx trust`), and only as long as it is what was looked at then: its
//! digest is remembered, and a file that has changed is left out until it is trusted again. What it
//! says narrows or adds: its servers come beside the person's own, one of the same namespace in that
//! one's place, and its `[policy]` opens nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::layers::{Layer, Sources};
use super::mistake::Mistake;
use super::parse::{self, FileContent};
use super::policy::{self, PolicyRule};
use super::profiles::{self, Profile, ProfileDef};
use super::servers::{self, ServerDef, ServerDraft};
use super::tree::SourceText;
use super::typed::Settings;
use crate::protocol::hex::hex;

/// The name of the file, in the top folder of a project.
pub const FILE: &str = ".mcpx.toml";

/// The only layout so far.
const VERSION: u32 = 1;

/// The folders whose file is trusted, each with the digest of what was looked at, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    version: u32,
    /// Absolute folders.
    pub folders: BTreeMap<PathBuf, String>,
}

impl Default for Trust {
    fn default() -> Self {
        Self { version: VERSION, folders: BTreeMap::new() }
    }
}

impl Trust {
    /// Reads the file of the state folder. One that cannot be read trusts nothing, and says why.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let trust: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if trust.version == VERSION {
            Ok(trust)
        } else {
            Err(format!("it has layout {}, this mcpx knows {VERSION}", trust.version))
        }
    }

    /// The file's text.
    pub fn write(&self) -> Vec<u8> {
        // Text alone: this always has a JSON form.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// The trust of a file of the state folder; none where there is no such file.
    pub(super) fn of_file(file: &Path, warnings: &mut Vec<Mistake>) -> Self {
        let read = match std::fs::read(file) {
            Ok(text) => Self::read(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error.to_string()),
        };
        read.unwrap_or_else(|why| {
            let text = format!(
                "cannot be read ({why}), so no project is trusted; without it all are asked about anew"
            );
            warnings.push(Mistake::of_file(file, text));
            Self::default()
        })
    }

    /// How a folder's file stands, which is read where it has no more than `max` bytes.
    pub fn standing(&self, folder: &Path, max: usize) -> Standing {
        match (read(folder, max), self.folders.get(folder)) {
            (Ok(None), _) => Standing::Absent,
            (Err(why), _) => Standing::Unusable(why),
            (Ok(Some(text)), Some(digest)) if *digest == digest_of(&text) => Standing::Trusted,
            (Ok(Some(_)), Some(_)) => Standing::Changed,
            (Ok(Some(_)), None) => Standing::Unknown,
        }
    }
}

/// How a folder's `.mcpx.toml` stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// There is none.
    Absent,
    /// There is something of this name that is not read; why.
    Unusable(String),
    /// Nobody has said anything about it.
    Unknown,
    /// It is not what was trusted.
    Changed,
    /// It is in force, unless it has mistakes.
    Trusted,
}

impl Standing {
    /// What somebody is told who works there, where there is something to tell.
    pub fn remark(&self, folder: &Path) -> Option<String> {
        let (file, folder) = (folder.join(FILE), folder.display());
        let what = match self {
            Self::Absent | Self::Trusted => return None,
            Self::Unusable(why) => {
                return Some(format!("{} {why}, so its servers are left out", file.display()));
            }
            Self::Unknown => "is not trusted",
            Self::Changed => "has changed since it was trusted",
        };
        Some(format!(
            "{} {what}, so its servers are left out; look at it, then run `mcpx trust {folder}`",
            file.display()
        ))
    }
}

/// One file, as somebody who is to trust it sees it.
#[derive(Debug)]
pub struct Offered {
    /// What is remembered of it.
    pub digest: String,
    /// The file itself: all of it counts, down to a header with a command in it.
    pub text: String,
    /// The servers that it adds.
    pub servers: Vec<ServerDef>,
}

/// Reads a folder's file, which has no more than `max` bytes, and with it the digest of what was read.
pub fn offered(folder: &Path, max: usize) -> Result<Offered, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let path = folder.join(FILE);
    let text = read(folder, max).and_then(|text| text.ok_or_else(|| "is not there".to_owned()));
    let text = text.map_err(|why| vec![Mistake::of_file(&path, why)])?;
    let content = content(&path, &text, &mut mistakes);
    let (Some(content), true) = (content, mistakes.is_empty()) else { return Err(mistakes) };
    let servers = content.servers.into_iter().map(|draft| draft.def).collect();
    let (digest, text) = (digest_of(&text), String::from_utf8_lossy(&text).into_owned());
    Ok(Offered { digest, text, servers })
}

/// A folder's file; `None` where there is none. It comes with a checkout, and so may be anything: what is
/// no plain file would be waited for without end, or has none.
fn read(folder: &Path, max: usize) -> Result<Option<Vec<u8>>, String> {
    let path = folder.join(FILE);
    let about = match std::fs::metadata(&path) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    if !about.is_file() {
        return Err("is no plain file".to_owned());
    }
    let mut text = Vec::new();
    let most = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    let read = std::fs::File::open(&path).and_then(|file| file.take(most).read_to_end(&mut text));
    read.map_err(|error| format!("cannot be read: {error}"))?;
    if text.len() > max {
        return Err(format!("is longer than {max} bytes (setting config.max_project)"));
    }
    Ok(Some(text))
}

/// What tells that a project's file may be another, without reading it.
pub(super) fn mark_of(file: &Path) -> Vec<u8> {
    let Ok(about) = std::fs::metadata(file) else { return Vec::new() };
    let changed = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let changed = changed.unwrap_or_default().as_nanos();
    format!("{} {} {changed}", about.is_file(), about.len()).into_bytes()
}

/// How a server is called in the file of its project, of what it is called among all.
pub fn key_in_file(key: &str) -> &str {
    key.split_once("@/").map_or(key, |(key, _)| key)
}

fn digest_of(text: &[u8]) -> String {
    hex(&Sha256::digest(text))
}

/// What such a file says; `None` where it is no text.
fn content(path: &Path, text: &[u8], mistakes: &mut Vec<Mistake>) -> Option<FileContent> {
    let Ok(text) = std::str::from_utf8(text) else {
        mistakes.push(Mistake::of_file(path, "is not UTF-8 text".to_owned()));
        return None;
    };
    let content = parse::read_source(&SourceText::new(path, text), Layer::User, mistakes);
    let only = "a project's file has [servers.NAME] and [policy] alone; this belongs in your own";
    for (def, _, place) in &content.values.values {
        let text = format!("`{}` is no project's: {only}", def.key);
        mistakes.push(Mistake { place: place.clone(), text });
    }
    for profile in &content.profiles {
        let text = format!("`profiles.{}` is no project's: {only}", profile.name);
        mistakes.push(Mistake { place: profile.place.clone(), text });
    }
    servers::check_names(&content.servers, mistakes);
    Some(content)
}

/// A project whose file is in force.
#[derive(Debug, Clone)]
pub struct Project {
    /// Its folder.
    pub folder: Arc<Path>,
    /// What is in force for hosts in it.
    pub settings: Arc<Settings>,
    /// What is in force for those of them that come in by a profile, as in [`super::Loaded`].
    pub profiles: Vec<Profile>,
    /// The keys of the servers that it adds.
    pub own: BTreeSet<String>,
}

impl Project {
    /// The definitions of the servers that it adds.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<ServerDef>> {
        self.settings.servers.iter().filter(|def| self.own.contains(&def.key))
    }
}

/// What is in force for everybody, of which a project's own is made.
pub(super) struct Everybody<'a> {
    pub(super) settings: &'a Arc<Settings>,
    pub(super) policy: &'a [PolicyRule],
    pub(super) profiles: &'a [ProfileDef],
}

/// All projects whose files are in force. What is wrong with one leaves out its servers and nothing else.
pub(super) fn assemble(
    sources: &Sources,
    everybody: &Everybody<'_>,
    warnings: &mut Vec<Mistake>,
) -> Vec<Project> {
    let trust = sources.trust(warnings);
    let mut projects = Vec::new();
    for (folder, digest) in &trust.folders {
        let path = folder.join(FILE);
        let text = match read(folder, everybody.settings.config.max_project) {
            // One that is not there adds nothing, and is nothing to speak of.
            Ok(None) => continue,
            Ok(Some(text)) => text,
            Err(why) => {
                warnings.push(Mistake::of_file(&path, why));
                continue;
            }
        };
        if digest_of(&text) != *digest {
            let text = "has changed since it was trusted, so its servers are left out";
            let text = format!("{text}; look at it, then run `mcpx trust {}`", folder.display());
            warnings.push(Mistake::of_file(&path, text));
            continue;
        }
        let mut mistakes = Vec::new();
        let content = content(&path, &text, &mut mistakes);
        let project = content.map(|content| everybody.with(folder, content, &mut mistakes));
        match project {
            Some(project) if mistakes.is_empty() => projects.push(project),
            _ => warnings.append(&mut mistakes),
        }
    }
    projects
}

impl Everybody<'_> {
    fn with(&self, folder: &Path, content: FileContent, mistakes: &mut Vec<Mistake>) -> Project {
        let FileContent { servers: drafts, policy, .. } = content;
        let kept = self.beside(&drafts);
        clashes(&kept, &drafts, mistakes);
        let names: BTreeSet<String> = drafts.iter().map(|draft| draft.def.key.clone()).collect();
        let max = self.settings.pool.max;
        let own = drafts.into_iter().map(|draft| {
            let mut def = draft.finish(max);
            def.tools.govern(&def.namespace, self.policy);
            def
        });
        let all = kept.into_iter().chain(own).map(|mut def| {
            def.tools.narrow(&def.namespace, &policy);
            Arc::new(def)
        });
        let settings = Settings { servers: all.collect(), ..Settings::clone(self.settings) };
        // By the keys of its file: those are what a profile names.
        let profiles = profiles::assemble(self.profiles.to_vec(), &settings).into_iter();
        let profiles = profiles.map(|profile| Profile {
            settings: Arc::new(named(&profile.settings, folder, &names)),
            ..profile
        });
        let namespaces: Vec<&str> =
            settings.servers.iter().map(|def| def.namespace.as_str()).collect();
        mistakes.extend(policy::about_nothing(&policy, &namespaces));
        Project {
            folder: Arc::from(folder),
            profiles: profiles.collect(),
            own: names.iter().map(|key| key_in(key, folder)).collect(),
            settings: Arc::new(named(&settings, folder, &names)),
        }
    }

    /// The person's own servers that are there beside a project's: one of the same namespace gives way,
    /// and the built-in one stands for none at all.
    fn beside(&self, drafts: &[ServerDraft]) -> Vec<ServerDef> {
        let gives_way = |def: &ServerDef| {
            let same = |draft: &ServerDraft| {
                draft.def.namespace == def.namespace || draft.def.key == def.key
            };
            drafts.iter().any(same) || (def.builtin && !drafts.is_empty())
        };
        let kept = self.settings.servers.iter().filter(|def| !gives_way(def));
        kept.map(|def| ServerDef::clone(def)).collect()
    }
}

/// Two servers under one prefix would take each other's names.
fn clashes(kept: &[ServerDef], drafts: &[ServerDraft], mistakes: &mut Vec<Mistake>) {
    for draft in drafts {
        let prefix = draft.def.shown_prefix();
        if let Some(other) = kept.iter().find(|def| def.shown_prefix() == prefix) {
            let text = format!(
                "server `{}` has the prefix {prefix:?} of your own server `{}`; only one may have it",
                draft.def.key, other.key
            );
            mistakes.push(Mistake { place: draft.place.clone(), text });
        }
    }
}

/// The same settings, where the servers that the project adds have keys that nobody else's have.
fn named(settings: &Settings, folder: &Path, own: &BTreeSet<String>) -> Settings {
    let servers = settings.servers.iter().map(|def| {
        if !own.contains(&def.key) {
            return Arc::clone(def);
        }
        Arc::new(ServerDef { key: key_in(&def.key, folder), ..ServerDef::clone(def) })
    });
    Settings { servers: servers.collect(), ..settings.clone() }
}

/// How a project's server is called among those of all projects.
fn key_in(key: &str, folder: &Path) -> String {
    format!("{key}@{}", folder.display())
}

#[cfg(test)]
mod tests;
