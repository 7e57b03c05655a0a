//! Projects: the servers that a folder's own `.mcpx.toml` adds, for hosts in that folder alone.
//!
//! Whoever can write such a file can have programs run, and it comes with a checkout; so it counts only
//! once its person has said so (`mcpx trust`), and only as long as it is what was looked at then: its
//! digest is remembered, and a file that has changed is left out until it is trusted again. What it
//! says narrows or adds: its servers come beside the person's own, one of the same namespace in that
//! one's place, and its `[policy]` opens nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
            let text = format!("cannot be read ({why}), so no project is trusted");
            warnings.push(Mistake::of_file(file, text));
            Self::default()
        })
    }

    /// How a folder's file stands.
    pub fn standing(&self, folder: &Path) -> Standing {
        let Ok(text) = std::fs::read(folder.join(FILE)) else { return Standing::Absent };
        match self.folders.get(folder) {
            Some(digest) if *digest == digest_of(&text) => Standing::Trusted,
            Some(_) => Standing::Changed,
            None => Standing::Unknown,
        }
    }
}

/// How a folder's `.mcpx.toml` stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// There is none.
    Absent,
    /// Nobody has said anything about it.
    Unknown,
    /// It is not what was trusted.
    Changed,
    /// It is in force, unless it has mistakes.
    Trusted,
}

impl Standing {
    /// What somebody is told who works there, where there is something to tell.
    pub fn remark(self, folder: &Path) -> Option<String> {
        let what = match self {
            Self::Absent | Self::Trusted => return None,
            Self::Unknown => "is not trusted",
            Self::Changed => "has changed since it was trusted",
        };
        let (file, folder) = (folder.join(FILE), folder.display());
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
    /// The servers that it adds.
    pub servers: Vec<ServerDef>,
    /// Its rules.
    pub policy: Vec<PolicyRule>,
}

/// Reads a folder's file, and with it the digest of what was read.
pub fn offered(folder: &Path) -> Result<Offered, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let path = folder.join(FILE);
    let read = std::fs::read(&path);
    let text =
        read.map_err(|error| vec![Mistake::of_file(&path, format!("cannot be read: {error}"))])?;
    let content = content(&path, &text, &mut mistakes);
    let (Some(content), true) = (content, mistakes.is_empty()) else { return Err(mistakes) };
    let servers = content.servers.into_iter().map(|draft| draft.def).collect();
    Ok(Offered { digest: digest_of(&text), servers, policy: content.policy })
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
        // One that is not there adds nothing, and is nothing to speak of.
        let Ok(text) = std::fs::read(&path) else { continue };
        if digest_of(&text) != *digest {
            let remark = Standing::Changed.remark(folder);
            let remark = remark.as_deref().and_then(|text| text.split_once(' '));
            let text = remark.map_or_else(String::new, |(_, text)| text.to_owned());
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
