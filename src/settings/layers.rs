//! Layers: which value of a setting is in force, and who said so.
//!
//! Later wins: built-in defaults, the system's file, the user's file, `conf.d`, environment, flags,
//! and what was set at run time. figment merges; each layer reaches it as checked values under
//! canonical names, because figment's own readers of files and environment lose lines, order and
//! the case of names, and turn text into numbers (crates.md 7).

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

use figment::value::{Dict, Map};
use figment::{Figment, Metadata, Profile, Provider, Source};

use super::defs::{DEFS, Def};
use super::mistake::{Mistake, Place};
use super::projects::{self, Trust};
use super::value::Value;

/// Where values come from, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// `config/defaults.toml`, built in.
    Default,
    /// Files under `/etc/mcpx`.
    System,
    /// The user's file, or the one that `--config` names.
    User,
    /// `conf.d` beside the user's file.
    Extra,
    /// `MCPX_…` variables.
    Environment,
    /// Command-line flags.
    Flag,
    /// `PUT /v1/settings`, kept in the state folder.
    Runtime,
}

impl Layer {
    /// Its name as shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::System => "system file",
            Self::User => "user file",
            Self::Extra => "conf.d",
            Self::Environment => "environment",
            Self::Flag => "flag",
            Self::Runtime => "runtime",
        }
    }
}

/// Who said a value: layer and place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The layer.
    pub layer: Layer,
    /// The place in it; the built-in file for defaults.
    pub place: Place,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.layer {
            Layer::Default => f.write_str("default"),
            _ => write!(f, "{}", self.place),
        }
    }
}

/// The checked values of one layer (of one file, where a layer has several).
#[derive(Debug, Clone)]
pub struct LayerValues {
    /// Which layer.
    pub layer: Layer,
    /// Settings with their places.
    pub values: Vec<(&'static Def, Value, Place)>,
}

/// A layer on its way into figment; `index` finds its places again afterwards.
struct Merging<'a> {
    index: usize,
    values: &'a LayerValues,
}

impl Provider for Merging<'_> {
    fn metadata(&self) -> Metadata {
        Metadata::from(self.values.layer.as_str(), Source::Custom(self.index.to_string()))
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let mut sections = Dict::new();
        for (def, value, _) in &self.values.values {
            let (section, name) = def.key.split_once('.').unwrap_or(("", def.key));
            let mut table = match sections.remove(section) {
                Some(figment::value::Value::Dict(_, table)) => table,
                _ => Dict::new(),
            };
            table.insert(name.to_owned(), value.kept().into());
            sections.insert(section.to_owned(), table.into());
        }
        Ok(Profile::Default.collect(sections))
    }
}

/// A value in force and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Its meaning.
    pub def: &'static Def,
    /// The value.
    pub value: Value,
    /// Who said so.
    pub origin: Origin,
}

/// Every setting with the value in force, in the order of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// All of them.
    pub all: Vec<InForce>,
}

impl Resolved {
    /// Merges layers, weakest first.
    pub fn merge(layers: &[LayerValues]) -> Result<Self, Mistake> {
        let figment = layers.iter().enumerate().fold(Figment::new(), |figment, (index, values)| {
            figment.merge(Merging { index, values })
        });
        let all = DEFS.iter().map(|def| winner(&figment, layers, def)).collect::<Result<_, _>>()?;
        Ok(Self { all })
    }

    /// The value in force of one setting.
    pub fn get(&self, key: &str) -> Option<&InForce> {
        self.all.iter().find(|in_force| in_force.def.key == key)
    }
}

fn winner(
    figment: &Figment,
    layers: &[LayerValues],
    def: &'static Def,
) -> Result<InForce, Mistake> {
    let lost = || {
        let text = format!("the setting `{}` has no value", def.key);
        Mistake::of_file(Path::new("config/defaults.toml"), text)
    };
    let value = figment.find_value(def.key).map_err(|_| lost())?;
    let metadata = figment.get_metadata(value.tag()).ok_or_else(lost)?;
    let index = metadata.source.as_ref().and_then(Source::custom).ok_or_else(lost)?;
    let layer = index.parse().ok().and_then(|index: usize| layers.get(index)).ok_or_else(lost)?;
    // A key that stands twice in one layer (two flags) is decided by its last value.
    let found = layer.values.iter().rev().find(|(of, _, _)| of.key == def.key);
    let (_, value, place) = found.ok_or_else(lost)?;
    let origin = Origin { layer: layer.layer, place: place.clone() };
    Ok(InForce { def, value: value.clone(), origin })
}

/// Where the layers are read from. Nothing in it is read before [`super::Settings::load`].
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The system's folder, `/etc/mcpx`: `config.toml` and `conf.d` in it.
    pub system: Option<PathBuf>,
    /// The user's folder, `$XDG_CONFIG_HOME/mcpx`: `config.toml` and `conf.d` in it.
    pub user: Option<PathBuf>,
    /// `--config` or `MCPX_CONFIG`: this file in place of the user's folder. It must be there.
    pub file: Option<PathBuf>,
    /// Values of the settings table's variables, already looked up: name and text.
    pub variables: Vec<(String, String)>,
    /// Flags.
    pub flags: Vec<FlagValue>,
    /// What was set at run time: canonical key and text. What no longer fits is left out with a
    /// warning, because a daemon must start after an upgrade.
    pub runtime: Vec<(String, String)>,
    /// Which projects are trusted: a file of the state folder, see [`super::projects`].
    pub trusted: Option<PathBuf>,
}

/// A setting given as a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagValue {
    /// The flag as typed, for messages: `--upstream-protocol`.
    pub flag: String,
    /// The setting.
    pub key: String,
    /// Its text.
    pub text: String,
}

/// The system's folder.
const SYSTEM_FOLDER: &str = "/etc/mcpx";

impl Sources {
    /// The usual places, found through `lookup` (the environment). `file` is `--config`.
    pub fn usual(lookup: &dyn Fn(&str) -> Option<String>, file: Option<PathBuf>) -> Self {
        let set = |name: &str| lookup(name).filter(|text| !text.is_empty());
        let file = file.or_else(|| set("MCPX_CONFIG").map(PathBuf::from));
        let home = || set("HOME").map(|home| PathBuf::from(home).join(".config"));
        let user = set("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
        let variables = DEFS.iter().map(Def::variable).filter_map(|name| {
            let text = lookup(&name)?;
            Some((name, text))
        });
        Self {
            system: Some(PathBuf::from(SYSTEM_FOLDER)),
            user: user.map(|folder| folder.join("mcpx")),
            file,
            variables: variables.collect(),
            flags: Vec::new(),
            runtime: Vec::new(),
            trusted: None,
        }
    }

    /// The projects whose files are trusted.
    pub(super) fn trust(&self, warnings: &mut Vec<Mistake>) -> Trust {
        let file = self.trusted.as_deref();
        file.map(|file| Trust::of_file(file, warnings)).unwrap_or_default()
    }

    /// The files of the projects that are trusted, there or not.
    pub fn project_files(&self) -> Vec<PathBuf> {
        // What is wrong with it is said when it is loaded.
        let trust = self.trust(&mut Vec::new());
        trust.folders.keys().map(|folder| folder.join(projects::FILE)).collect()
    }

    /// The files that are there, weakest first, and the one that must be.
    pub fn files(&self) -> Vec<(Layer, PathBuf)> {
        let mut files = Vec::new();
        if let Some(folder) = &self.system {
            files.extend(main_file(folder).map(|file| (Layer::System, file)));
            files.extend(extra_files(folder).into_iter().map(|file| (Layer::System, file)));
        }
        if let Some(file) = &self.file {
            files.push((Layer::User, file.clone()));
        } else if let Some(folder) = &self.user {
            files.extend(main_file(folder).map(|file| (Layer::User, file)));
            files.extend(extra_files(folder).into_iter().map(|file| (Layer::Extra, file)));
        }
        files
    }

    /// What the files hold, and which there are: another after every change that counts.
    pub fn digest(&self) -> [u8; 32] {
        let mut all = Sha256::new();
        for file in self.project_files() {
            all.update(Sha256::digest(projects::mark_of(&file)));
        }
        let files = self.files().into_iter().map(|(_, file)| file);
        for file in files.chain(self.trusted.clone()) {
            let text = std::fs::read(&file).map_err(|error| error.kind().to_string());
            all.update(Sha256::digest(file.as_os_str().as_encoded_bytes()));
            all.update(Sha256::digest(text.unwrap_or_else(String::into_bytes)));
        }
        all.finalize().into()
    }

    /// The folders and files whose change may change the result, for `mcpx config path`.
    pub fn places(&self) -> Vec<PathBuf> {
        let main = |folder: &PathBuf| {
            main_file(folder).unwrap_or_else(|| folder.join(MAIN_NAMES.first().unwrap_or(&"")))
        };
        let mut places = Vec::new();
        if let Some(folder) = &self.system {
            places.extend([main(folder), folder.join(EXTRA_FOLDER)]);
        }
        match (&self.file, &self.user) {
            (Some(file), _) => places.push(file.clone()),
            (None, Some(folder)) => places.extend([main(folder), folder.join(EXTRA_FOLDER)]),
            (None, None) => {}
        }
        places
    }
}

/// The first of these that is there is the folder's file.
const MAIN_NAMES: [&str; 3] = ["config.toml", "config.json", "config.jsonc"];

const EXTRA_FOLDER: &str = "conf.d";

fn main_file(folder: &Path) -> Option<PathBuf> {
    MAIN_NAMES.iter().map(|name| folder.join(name)).find(|file| file.exists())
}

/// The files of `conf.d` in the order of their names; backups and other leftovers are no files of
/// ours.
fn extra_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder.join(EXTRA_FOLDER)) else { return Vec::new() };
    let ours = |path: &PathBuf| {
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        let extension = path.extension().and_then(|extension| extension.to_str());
        !hidden && matches!(extension, Some("toml" | "json" | "jsonc"))
    };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(ours).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::defs;

    fn layer(layer: Layer, values: &[(&str, &str)]) -> LayerValues {
        let read = |(key, text): &(&str, &str)| {
            let def = defs::find(key).unwrap();
            let place = Place::Flag(format!("{layer:?}"));
            (def, def.kind.read_text(text).unwrap(), place)
        };
        LayerValues { layer, values: values.iter().map(read).collect() }
    }

    #[test]
    fn later_layers_win_and_are_named() {
        let defaults = crate::settings::parse::defaults().unwrap();
        let layers = [
            defaults,
            layer(Layer::User, &[("call.idle_timeout", "2m"), ("pool.queue", "9")]),
            layer(Layer::Environment, &[("call.idle_timeout", "3m")]),
            layer(Layer::Flag, &[("pool.queue", "7"), ("pool.queue", "8")]),
        ];
        let resolved = Resolved::merge(&layers).unwrap();
        assert_eq!(resolved.all.len(), DEFS.len());
        let of = |key: &str| {
            let in_force = resolved.get(key).unwrap();
            (in_force.value.to_string(), in_force.origin.layer)
        };
        assert_eq!(of("call.idle_timeout"), ("3m".to_owned(), Layer::Environment));
        assert_eq!(of("pool.queue"), ("8".to_owned(), Layer::Flag));
        assert_eq!(of("call.total_timeout"), ("1h".to_owned(), Layer::Default));
    }

    #[test]
    fn variables_are_looked_up_from_the_table() {
        let environment = |name: &str| match name {
            "MCPX_POOL_QUEUE" => Some("5".to_owned()),
            "MCPX_SOMETHING_ELSE" | "MCPX_POOL" => Some("x".to_owned()),
            "HOME" => Some("/home/p".to_owned()),
            _ => None,
        };
        let sources = Sources::usual(&environment, None);
        assert_eq!(sources.variables, [("MCPX_POOL_QUEUE".to_owned(), "5".to_owned())]);
        assert_eq!(sources.user, Some(PathBuf::from("/home/p/.config/mcpx")));
    }

    #[test]
    fn conf_d_leaves_backups_alone() {
        let folder = tempfile::tempdir().unwrap();
        let extra = folder.path().join(EXTRA_FOLDER);
        std::fs::create_dir(&extra).unwrap();
        for name in ["20-b.toml", "10-a.json", "10-a.json.bak", ".30-c.toml", "notes.txt"] {
            #[expect(clippy::disallowed_methods, reason = "a test writes its own input")]
            std::fs::File::create(extra.join(name)).unwrap();
        }
        let names: Vec<_> = extra_files(folder.path())
            .iter()
            .map(|file| file.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["10-a.json", "20-b.toml"]);
    }
}
