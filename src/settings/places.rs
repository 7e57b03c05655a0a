//! Where the daemon keeps things: the state folder and the runtime folder.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The two folders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// What must survive: eras, the catalog, what was set at run time, logs of a daemon that a
    /// command started.
    pub state: PathBuf,
    /// What lives as long as the daemon: its lock and its socket.
    pub runtime: PathBuf,
}

/// Neither `HOME` nor anything else says where to keep things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no place for the state folder: set MCPX_STATE_DIR, XDG_STATE_HOME or HOME")]
pub struct NoPlace;

impl Places {
    /// By `MCPX_STATE_DIR` and `MCPX_RUNTIME_DIR`, else by the XDG folders; the runtime folder is
    /// in the state folder where the system gives no better one (product.md 5).
    pub fn usual(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, NoPlace> {
        let set = |name: &str| lookup(name).filter(|text| !text.is_empty()).map(PathBuf::from);
        // The XDG specification: relative paths are to be ignored.
        let xdg = |name: &str| set(name).filter(|path| path.is_absolute());
        let state = set("MCPX_STATE_DIR")
            .or_else(|| Some(xdg("XDG_STATE_HOME")?.join("mcpx")))
            .or_else(|| Some(set("HOME")?.join(".local/state/mcpx")))
            .ok_or(NoPlace)?;
        let runtime = set("MCPX_RUNTIME_DIR")
            .or_else(|| Some(xdg("XDG_RUNTIME_DIR")?.join("mcpx")))
            .unwrap_or_else(|| state.join("run"));
        Ok(Self { state, runtime })
    }

    /// The log of a daemon that a command started.
    pub fn daemon_log(&self) -> PathBuf {
        self.state.join("daemon.log")
    }

    /// What was set at run time; see [`super::runtime`].
    pub fn runtime_settings(&self) -> PathBuf {
        self.state.join("settings.json")
    }

    /// Which projects are trusted; see [`super::projects`].
    pub fn trust(&self) -> PathBuf {
        self.state.join("trusted.json")
    }
}

/// The marks of a project's top folder: its own servers, or version control.
const MARKS: [&str; 6] = [super::projects::FILE, ".git", ".hg", ".jj", ".svn", ".bzr"];

/// The project that a folder belongs to: the nearest folder at or above it with a `.mcpx.toml` or a mark
/// of version control, else itself (product.md 3).
pub fn project_of(folder: &Path) -> PathBuf {
    let marked = |folder: &&Path| MARKS.iter().any(|mark| folder.join(mark).exists());
    folder.ancestors().find(marked).unwrap_or(folder).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(variables: &[(&str, &str)]) -> Result<Places, NoPlace> {
        Places::usual(&|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn folders_are_found_in_order() {
        let places = |state: &str, runtime: &str| {
            Ok(Places { state: PathBuf::from(state), runtime: PathBuf::from(runtime) })
        };
        let home = ("HOME", "/h");
        assert_eq!(usual(&[home]), places("/h/.local/state/mcpx", "/h/.local/state/mcpx/run"));
        let xdg = [home, ("XDG_STATE_HOME", "/s"), ("XDG_RUNTIME_DIR", "/r")];
        assert_eq!(usual(&xdg), places("/s/mcpx", "/r/mcpx"));
        let own =
            [home, ("XDG_STATE_HOME", "/s"), ("MCPX_STATE_DIR", "/a"), ("MCPX_RUNTIME_DIR", "b")];
        assert_eq!(usual(&own), places("/a", "b"));
        assert_eq!(usual(&[home, ("XDG_STATE_HOME", "rel")]), usual(&[home]));
        assert_eq!(usual(&[("HOME", "")]), Err(NoPlace));
    }

    #[test]
    fn a_project_begins_at_its_mark() {
        let top = tempfile::tempdir().unwrap();
        let inner = top.path().join("a/b/c");
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(project_of(&inner), inner);
        std::fs::create_dir(top.path().join("a/.git")).unwrap();
        assert_eq!(project_of(&inner), top.path().join("a"));
        std::fs::create_dir(top.path().join("a/b/.mcpx.toml")).unwrap();
        assert_eq!(project_of(&inner), top.path().join("a/b"));
    }
}
