//! The hosts that are known: one row each.
//!
//! What a row says is taken from the host's own documentation or source, named in `source` and on its
//! page under `docs/hosts`.

use std::path::{Path, PathBuf};

use super::document::Format;

/// Whom a configuration file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// One person, in all projects.
    User,
    /// One project, often shared by version control.
    Project,
}

impl Reach {
    /// As shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// What a path of the table begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The home folder.
    Home,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    Config,
    /// Where programs with a window keep their settings: as `Config`, on a Mac
    /// `~/Library/Application Support`.
    Application,
    /// The project.
    Project,
    /// The folder that a variable names, else this one in the home folder.
    Variable(&'static str, &'static str),
    /// The file that a variable names; nothing without it.
    File(&'static str),
}

/// A file of a host, or a folder (with `/` at its end) whose files are all read.
#[derive(Debug, Clone, Copy)]
pub struct Spot {
    /// Whom it is for.
    pub reach: Reach,
    /// Where `path` begins.
    pub base: Base,
    /// The path.
    pub path: &'static str,
}

const fn user(base: Base, path: &'static str) -> Spot {
    Spot { reach: Reach::User, base, path }
}

const fn project(path: &'static str) -> Spot {
    Spot { reach: Reach::Project, base: Base::Project, path }
}

/// How a host spells what is not literal in its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Nothing: every value is literal.
    Literal,
    /// `{env:NAME}` and `{file:PATH}`.
    Braces,
    /// `${NAME}` and `${NAME:-text}`.
    Shell,
    /// `${env:NAME}`, `${input:ID}`, `${workspaceFolder}`, `${userHome}`.
    Code,
    /// `$NAME` and `${NAME}`.
    Bare,
    /// `${{ secrets.NAME }}`.
    Doubled,
    /// A file of unknown origin: `Shell` and `Code`.
    Any,
}

/// How our own entry is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// `{"type":"local","command":[…]}` under `mcp`; under `mcp.servers` with `protocol` where the file is
    /// of opencode 2.x.
    Opencode,
    /// `{"command":…,"args":[…]}`, with this `type` in front where there is one.
    Split(Option<&'static str>),
}

/// How an entry says that it is an address.
#[derive(Debug, Clone, Copy)]
pub struct Remote {
    /// Its `type`, where it has one.
    pub kind: Option<&'static str>,
    /// The key of the address.
    pub url: &'static str,
    /// How the token is given.
    pub token: Token,
}

/// How a host is given the token (product.md 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// `{file:PATH}`: the host reads our file itself.
    File,
    /// A variable of the host's environment, spelled so in the header.
    Variable(&'static str),
    /// The name of a variable under this key.
    Named(&'static str),
    /// `${input:ID}`: the host asks once and keeps it.
    Input,
    /// The host can refer to nothing: the token itself, in a file that only its owner reads.
    Literal,
}

/// One host.
#[derive(Debug)]
pub struct Host {
    /// As typed.
    pub name: &'static str,
    /// As shown.
    pub title: &'static str,
    /// Its files; the first of each reach is written where none is there.
    pub spots: &'static [Spot],
    /// Where servers stand in a file that `connect` writes.
    pub at: &'static [&'static str],
    /// The spelling of references.
    pub dialect: Dialect,
    /// The spelling of our entry.
    pub entry: Entry,
    /// The same for an address; `None` where its files hold programs only.
    pub remote: Option<Remote>,
    /// An entry says which of its tools there are: all.
    pub all_tools: bool,
    /// What a new file holds beside our entry.
    pub begin: &'static str,
    /// Files with permission rules beside those with servers.
    pub rules: &'static [Spot],
    /// How the host names a tool, for people; `KEY` is the server's key.
    pub names: &'static str,
    /// Where this was found out.
    pub source: &'static str,
}

/// A new file of a host that needs nothing in it.
const EMPTY: &str = "{\n}\n";

const SERVERS: &[&str] = &["mcpServers"];

/// All of them.
pub const HOSTS: &[Host] = &[
    Host {
        name: "opencode",
        title: "opencode",
        spots: &[
            user(Base::Config, "opencode/opencode.json"),
            user(Base::Config, "opencode/opencode.jsonc"),
            user(Base::Config, "opencode/config.json"),
            user(Base::File("OPENCODE_CONFIG"), ""),
            project("opencode.json"),
            project("opencode.jsonc"),
            project(".opencode/opencode.json"),
            project(".opencode/opencode.jsonc"),
        ],
        at: &["mcp"],
        dialect: Dialect::Braces,
        entry: Entry::Opencode,
        remote: Some(Remote { kind: Some("remote"), url: "url", token: Token::File }),
        all_tools: false,
        // opencode writes this into a file that has none.
        begin: "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n",
        rules: &[],
        names: "KEY_TOOL",
        source: "https://opencode.ai/docs/mcp-servers",
    },
    Host {
        name: "claude-code",
        title: "Claude Code",
        spots: &[
            user(Base::Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json"),
            project(".mcp.json"),
        ],
        at: SERVERS,
        dialect: Dialect::Shell,
        entry: Entry::Split(Some("stdio")),
        remote: Some(Remote {
            kind: Some("http"),
            url: "url",
            token: Token::Variable("${MCPX_TOKEN}"),
        }),
        all_tools: false,
        begin: EMPTY,
        rules: &[
            user(Base::Variable("CLAUDE_CONFIG_DIR", ".claude"), "settings.json"),
            project(".claude/settings.json"),
            project(".claude/settings.local.json"),
        ],
        names: "mcp__KEY__TOOL",
        source: "https://code.claude.com/docs/en/mcp",
    },
    Host {
        name: "claude-desktop",
        title: "Claude Desktop",
        spots: &[user(Base::Application, "Claude/claude_desktop_config.json")],
        at: SERVERS,
        dialect: Dialect::Literal,
        entry: Entry::Split(None),
        remote: None,
        all_tools: false,
        begin: EMPTY,
        rules: &[],
        names: "TOOL",
        source: "https://modelcontextprotocol.io/quickstart/user",
    },
    Host {
        name: "cursor",
        title: "Cursor",
        spots: &[user(Base::Home, ".cursor/mcp.json"), project(".cursor/mcp.json")],
        at: SERVERS,
        dialect: Dialect::Code,
        entry: Entry::Split(None),
        remote: Some(Remote {
            kind: None,
            url: "url",
            token: Token::Variable("${env:MCPX_TOKEN}"),
        }),
        all_tools: false,
        begin: EMPTY,
        rules: &[],
        names: "TOOL",
        source: "https://cursor.com/docs/mcp",
    },
    Host {
        name: "vscode",
        title: "VS Code",
        spots: &[
            user(Base::Application, "Code/User/mcp.json"),
            user(Base::Application, "Code/User/settings.json"),
            project(".vscode/mcp.json"),
        ],
        at: &["servers"],
        dialect: Dialect::Code,
        entry: Entry::Split(Some("stdio")),
        remote: Some(Remote { kind: Some("http"), url: "url", token: Token::Input }),
        all_tools: false,
        begin: EMPTY,
        rules: &[],
        names: "mcp_KEY_TOOL",
        source: "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
    },
    Host {
        name: "windsurf",
        title: "Windsurf",
        spots: &[user(Base::Home, ".codeium/windsurf/mcp_config.json")],
        at: SERVERS,
        dialect: Dialect::Code,
        entry: Entry::Split(None),
        remote: Some(Remote {
            kind: None,
            url: "serverUrl",
            token: Token::Variable("${env:MCPX_TOKEN}"),
        }),
        all_tools: false,
        begin: EMPTY,
        rules: &[],
        names: "TOOL",
        source: "https://docs.windsurf.com/windsurf/cascade/mcp",
    },
    Host {
        name: "antigravity",
        title: "Antigravity",
        spots: &[
            user(Base::Home, ".gemini/config/mcp_config.json"),
            user(Base::Home, ".gemini/antigravity/mcp_config.json"),
            project(".agents/mcp_config.json"),
        ],
        at: SERVERS,
        dialect: Dialect::Literal,
        entry: Entry::Split(None),
        remote: Some(Remote { kind: None, url: "serverUrl", token: Token::Literal }),
        all_tools: false,
        begin: EMPTY,
        rules: &[],
        names: "TOOL",
        source: "https://antigravity.google/docs/mcp",
    },
    Host {
        name: "gemini",
        title: "Gemini CLI",
        spots: &[user(Base::Home, ".gemini/settings.json"), project(".gemini/settings.json")],
        at: SERVERS,
        dialect: Dialect::Bare,
        entry: Entry::Split(None),
        remote: Some(Remote { kind: None, url: "httpUrl", token: Token::Variable("$MCPX_TOKEN") }),
        all_tools: false,
        begin: EMPTY,
        rules: &[],
        names: "mcp_KEY_TOOL",
        source: "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
    },
    Host {
        name: "cline",
        title: "Cline",
        spots: &[
            user(
                Base::Application,
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            user(Base::Home, ".cline/data/settings/cline_mcp_settings.json"),
        ],
        at: SERVERS,
        dialect: Dialect::Literal,
        entry: Entry::Split(None),
        remote: Some(Remote { kind: Some("streamableHttp"), url: "url", token: Token::Literal }),
        all_tools: false,
        begin: EMPTY,
        rules: &[],
        names: "TOOL",
        source: "https://docs.cline.bot/mcp/configuring-mcp-servers",
    },
    Host {
        name: "copilot",
        title: "GitHub Copilot CLI",
        spots: &[
            user(Base::Variable("COPILOT_HOME", ".copilot"), "mcp-config.json"),
            project(".github/mcp.json"),
            project(".mcp.json"),
        ],
        at: SERVERS,
        dialect: Dialect::Shell,
        entry: Entry::Split(Some("local")),
        remote: Some(Remote { kind: Some("http"), url: "url", token: Token::Literal }),
        all_tools: true,
        begin: EMPTY,
        rules: &[],
        names: "KEY-TOOL",
        source: "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers",
    },
    Host {
        name: "continue",
        title: "Continue",
        spots: &[
            user(Base::Home, ".continue/mcpServers/mcpx.json"),
            user(Base::Home, ".continue/mcpServers/"),
            user(Base::Home, ".continue/config.yaml"),
            project(".continue/mcpServers/mcpx.json"),
            project(".continue/mcpServers/"),
        ],
        at: SERVERS,
        dialect: Dialect::Doubled,
        entry: Entry::Split(None),
        remote: None,
        all_tools: false,
        begin: EMPTY,
        rules: &[],
        names: "TOOL",
        source: "https://docs.continue.dev/customize/deep-dives/mcp",
    },
    Host {
        name: "codex",
        title: "Codex",
        spots: &[
            user(Base::Variable("CODEX_HOME", ".codex"), "config.toml"),
            project(".codex/config.toml"),
        ],
        at: &["mcp_servers"],
        dialect: Dialect::Literal,
        entry: Entry::Split(None),
        remote: Some(Remote {
            kind: None,
            url: "url",
            token: Token::Named("bearer_token_env_var"),
        }),
        all_tools: false,
        begin: EMPTY,
        rules: &[],
        names: "mcp__KEY__TOOL",
        source: "https://developers.openai.com/codex/mcp",
    },
    Host {
        name: "zed",
        title: "Zed",
        spots: &[user(Base::Config, "zed/settings.json"), project(".zed/settings.json")],
        at: &["context_servers"],
        dialect: Dialect::Literal,
        entry: Entry::Split(None),
        remote: Some(Remote { kind: None, url: "url", token: Token::Literal }),
        all_tools: false,
        begin: EMPTY,
        rules: &[],
        names: "TOOL",
        source: "https://zed.dev/docs/ai/mcp",
    },
];

/// The host of this name, in any case.
pub fn find(name: &str) -> Option<&'static Host> {
    HOSTS.iter().find(|host| host.name.eq_ignore_ascii_case(name))
}

/// Where a person and a project are.
pub struct Around<'a> {
    /// The environment.
    pub lookup: &'a dyn Fn(&str) -> Option<String>,
    /// The project's folder.
    pub project: &'a Path,
}

impl std::fmt::Debug for Around<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Around").field("project", &self.project).finish_non_exhaustive()
    }
}

impl Around<'_> {
    fn variable(&self, name: &str) -> Option<PathBuf> {
        (self.lookup)(name).filter(|text| !text.is_empty()).map(PathBuf::from)
    }

    /// The home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.variable("HOME")
    }

    fn config(&self) -> Option<PathBuf> {
        let xdg = self.variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        xdg.or_else(|| Some(self.home()?.join(".config")))
    }

    /// A path of the table on this machine.
    pub fn path(&self, spot: &Spot) -> Option<PathBuf> {
        let base = match spot.base {
            Base::Home => self.home()?,
            Base::Application if cfg!(target_os = "macos") => {
                self.home()?.join("Library/Application Support")
            }
            Base::Config | Base::Application => self.config()?,
            Base::Project => self.project.to_owned(),
            Base::Variable(name, folder) => match self.variable(name) {
                Some(folder) => folder,
                None => self.home()?.join(folder),
            },
            Base::File(name) => return self.variable(name),
        };
        Some(base.join(spot.path))
    }
}

/// A file of a host that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// Whom it is for.
    pub reach: Reach,
}

impl Host {
    /// Its files that are there, with those in its folders, each once.
    pub fn files(&self, around: &Around<'_>) -> Vec<Found> {
        existing(self.spots, around)
    }

    /// Its files with rules that are there.
    pub fn rule_files(&self, around: &Around<'_>) -> Vec<Found> {
        existing(self.rules, around)
    }

    /// The file that `connect` writes: the first that is there, else the first of the table.
    pub fn target(&self, around: &Around<'_>, reach: Reach) -> Option<PathBuf> {
        let mut paths = self
            .spots
            .iter()
            .filter(|spot| spot.reach == reach && self.writes(spot))
            .filter_map(|spot| around.path(spot));
        let first = paths.next()?;
        let there = std::iter::once(first.clone()).chain(paths).find(|path| path.exists());
        Some(there.unwrap_or(first))
    }

    /// Whether `connect` may write this one: a file, and one whose servers stand where it writes them.
    fn writes(&self, spot: &Spot) -> bool {
        let odd = spot.path.ends_with('/')
            || Format::of(Path::new(spot.path)) == Format::Yaml
            || (self.name == "vscode" && spot.path.ends_with("settings.json"));
        !odd
    }
}

fn existing(spots: &[Spot], around: &Around<'_>) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for spot in spots {
        let Some(path) = around.path(spot) else { continue };
        let paths = if spot.path.ends_with('/') { files_in(&path) } else { vec![path] };
        for path in paths {
            if path.is_file() && found.iter().all(|known| known.path != path) {
                found.push(Found { path, reach: spot.reach });
            }
        }
    }
    found
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let known = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("json" | "yaml" | "yml"))
    };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(known).collect();
    files.sort();
    files
}
