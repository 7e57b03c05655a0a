//! Saved scripts: one file each in the state folder, for people to edit and for agents to run.
//!
//! No actor: the folder is what holds them. They are read when they are used, so that a file that a person
//! has edited is what runs; one that cannot be used is shown with the reason.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use super::settings::Current;
use crate::control::types::ScriptView;
use crate::protocol::jsonrpc::RawJson;
use crate::script::saved::{self, About};
use crate::script::{sandbox, without_fence};
use crate::settings::mistake::hint;
use crate::settings::typed::ScriptSettings;
use crate::settings::value::size_text;
use crate::transport::store::statefile;

/// The ending of their files.
const ENDING: &str = "ts";
/// Characters of a name.
const NAME: usize = 64;

/// How others reach saved scripts.
#[derive(Debug, Clone)]
pub struct ScriptsHandle {
    folder: Arc<Path>,
    settings: watch::Receiver<Arc<Current>>,
}

/// A saved script as it lies on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// What it is; empty where it cannot be read.
    pub source: String,
    /// What it says of itself, or why it cannot be used.
    pub about: Result<About, String>,
}

impl Saved {
    /// As it is shown.
    pub fn view(&self) -> ScriptView {
        let about = self.about.as_ref();
        ScriptView {
            name: self.name.clone(),
            file: self.path.display().to_string(),
            description: about.map(|about| about.description.clone()).unwrap_or_default(),
            signature: about.map_or_else(|_| "(…)".to_owned(), About::signature),
            problem: about.err().cloned(),
        }
    }

    /// What there is to say of it in a line.
    pub fn line(&self) -> String {
        match &self.about {
            Ok(about) if about.description.is_empty() => {
                format!("{}{}", self.name, about.signature())
            }
            Ok(about) => format!("{}{} | {}", self.name, about.signature(), about.description),
            Err(why) => format!("{} | cannot be used: {why}", self.name),
        }
    }
}

/// Why something was not done with a saved script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// There is none of this name.
    Missing(String),
    /// It cannot be used, or what was to be saved cannot be.
    Unfit(String),
    /// A limit, or the disk.
    Failed(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Missing(text) | Self::Unfit(text) | Self::Failed(text)) = self;
        f.write_str(text)
    }
}

impl ScriptsHandle {
    /// Those in `folder`, which is made when the first is saved.
    pub fn new(folder: PathBuf, settings: watch::Receiver<Arc<Current>>) -> Self {
        Self { folder: folder.into(), settings }
    }

    /// All of them by name.
    pub async fn all(&self) -> Result<Vec<Saved>, Trouble> {
        self.at_folder(|folder, limits| {
            let names = names(folder).map_err(|error| failed(folder, &error))?;
            Ok(names.into_iter().map(|name| read(folder, name, limits)).collect())
        })
        .await
    }

    /// The one of this name; also one that cannot be used.
    pub async fn find(&self, name: &str) -> Result<Saved, Trouble> {
        let name = name.to_owned();
        self.at_folder(move |folder, limits| {
            let names = names(folder).map_err(|error| failed(folder, &error))?;
            if names.contains(&name) {
                Ok(read(folder, name, limits))
            } else {
                Err(missing(&name, &names))
            }
        })
        .await
    }

    /// Source and `input` of a script that is to run with these arguments.
    pub async fn runnable(
        &self,
        name: &str,
        arguments: Option<&RawJson>,
    ) -> Result<(String, RawJson), Trouble> {
        let saved = self.find(name).await?;
        let unfit = |why| Trouble::Unfit(format!("the saved script `{name}` cannot run: {why}"));
        let about = saved.about.map_err(unfit)?;
        let input = about.input(arguments).map_err(unfit)?;
        Ok((saved.source, input))
    }

    /// Saves a script under this name; whether there was one before, which it replaces. One that cannot run
    /// is refused.
    pub async fn save(&self, name: &str, source: &str) -> Result<(Saved, bool), Trouble> {
        let (name, source) = (name.to_owned(), without_fence(source).into_owned());
        self.at_folder(move |folder, limits| {
            let about = checked_name(&name).and_then(|()| understood(&source, limits));
            let about = about.map_err(Trouble::Unfit)?;
            let names = names(folder).map_err(|error| failed(folder, &error))?;
            let replaced = names.contains(&name);
            if !replaced && names.len() >= limits.most {
                return Err(Trouble::Failed(format!(
                    "there are {} saved scripts, which is the limit (setting scripts.max); remove one first",
                    names.len()
                )));
            }
            let path = file(folder, &name);
            let written = statefile::private_folder(folder)
                .and_then(|()| statefile::write(&path, source.as_bytes()));
            written.map_err(|error| failed(&path, &error))?;
            Ok((Saved { name, path, source, about: Ok(about) }, replaced))
        })
        .await
    }

    /// Removes the one of this name.
    pub async fn remove(&self, name: &str) -> Result<(), Trouble> {
        let name = name.to_owned();
        self.at_folder(move |folder, _| {
            let names = names(folder).map_err(|error| failed(folder, &error))?;
            if !names.contains(&name) {
                return Err(missing(&name, &names));
            }
            let path = file(folder, &name);
            std::fs::remove_file(&path).map_err(|error| failed(&path, &error))
        })
        .await
    }

    /// `work`, on a thread that may block.
    async fn at_folder<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path, ScriptSettings) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Trouble> {
        let folder = Arc::clone(&self.folder);
        let limits = self.settings.borrow().loaded.settings.scripts;
        let done = tokio::task::spawn_blocking(move || work(&folder, limits)).await;
        done.unwrap_or_else(|error| Err(Trouble::Failed(error.to_string())))
    }
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(name).with_extension(ENDING)
}

fn failed(path: &Path, error: &io::Error) -> Trouble {
    Trouble::Failed(format!("{}: {error}", path.display()))
}

fn missing(name: &str, names: &[String]) -> Trouble {
    let near = if names.is_empty() {
        "none is saved yet".to_owned()
    } else {
        hint(name, names.iter().map(String::as_str))
    };
    Trouble::Missing(format!("there is no saved script `{name}`; {near}"))
}

/// The names of all files that are scripts by theirs.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_script = path.extension().is_some_and(|ending| ending == ENDING);
        let name = path.file_stem().and_then(|name| name.to_str());
        names.extend(name.filter(|name| is_script && !name.starts_with('.')).map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

fn read(folder: &Path, name: String, limits: ScriptSettings) -> Saved {
    let path = file(folder, &name);
    let (mut source, about) = (String::new(), checked_name(&name));
    let about = about.and_then(|()| {
        let size = std::fs::metadata(&path).map_err(|error| error.to_string())?.len();
        small_enough(size, limits)?;
        source = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        understood(&source, limits)
    });
    Saved { name, path, source, about }
}

/// A name is safe in a path and easy to say.
fn checked_name(name: &str) -> Result<(), String> {
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    if !name.is_empty() && name.len() <= NAME && name.bytes().all(plain) {
        return Ok(());
    }
    Err(format!(
        "a saved script's name has small letters, digits, `_` and `-`, at most {NAME} of them, which \
         {name:?} has not"
    ))
}

fn small_enough(size: u64, limits: ScriptSettings) -> Result<(), String> {
    let limit = u64::try_from(limits.max_size).unwrap_or(u64::MAX);
    if size <= limit {
        return Ok(());
    }
    let limit = size_text(limit);
    Err(format!(
        "it has {size} bytes; a saved script has {limit} at most (setting scripts.max_size)"
    ))
}

/// What a script says of itself, if it can run at all.
fn understood(source: &str, limits: ScriptSettings) -> Result<About, String> {
    small_enough(u64::try_from(source.len()).unwrap_or(u64::MAX), limits)?;
    let about = saved::about(source).map_err(|wrong| wrong.to_string())?;
    sandbox::check(source).map_err(|failure| match (failure.line, failure.column) {
        (Some(line), Some(column)) => format!("line {line}, column {column}: {}", failure.message),
        _ => failure.message,
    })?;
    Ok(about)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests write their files")]

    use super::*;

    #[test]
    fn names_are_no_paths() {
        for good in ["a", "weekly-report_2"] {
            assert_eq!(checked_name(good), Ok(()));
        }
        for bad in ["", "A", "a.b", "../a", "a/b", "ä", &"a".repeat(65)] {
            assert!(checked_name(bad).unwrap_err().contains("small letters"), "{bad}");
        }
    }

    const LIMITS: ScriptSettings = ScriptSettings { agent_write: false, most: 9, max_size: 200 };

    #[test]
    fn what_cannot_run_is_told_with_its_place() {
        let wrong = |source: &str| understood(source, LIMITS).unwrap_err();
        assert!(
            wrong("const a = 1;\nlet = ;").starts_with("line 2, column "),
            "{}",
            wrong("let = ;")
        );
        assert!(wrong("/** @param {odd} a */").starts_with("line 1: `odd`"));
        assert!(wrong(&" ".repeat(201)).contains("scripts.max_size"));
        let about = understood("/** Adds. @x */ return await 1 as number", LIMITS).unwrap();
        assert_eq!(about.description, "Adds. @x");
    }

    /// What a person has put into the folder is shown as it is.
    #[test]
    fn a_folder_of_files() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path();
        assert_eq!(names(&folder.join("none")).unwrap(), Vec::<String>::new());
        for (name, text) in
            [("b.ts", "return 1"), ("Bad.ts", ""), ("a.ts", "let ="), ("x.txt", ""), (".h.ts", "")]
        {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let all: Vec<_> =
            names(folder).unwrap().into_iter().map(|name| read(folder, name, LIMITS)).collect();
        let told: Vec<_> =
            all.iter().map(|saved| (saved.name.as_str(), saved.about.is_ok())).collect();
        assert_eq!(told, [("Bad", false), ("a", false), ("b", true)]);
        assert_eq!(all[2].line(), "b(…)");
        assert!(all[1].line().starts_with("a | cannot be used: line 1, column "));
    }
}
