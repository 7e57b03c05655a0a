//! `mcpx man`: manual pages, made from the tree of commands and the table of settings, for `man` to find.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use mcpx::settings::generated::reference::{self, Section};
use mcpx::settings::parse;
use mcpx::settings::profiles::PROFILE_KEYS;
use mcpx::settings::servers::{SERVER_KEYS, TableKey};
use mcpx::transport::environment;
use mcpx::transport::store::statefile;

use crate::cli;
use crate::ended::{Ended, Outcome};
use crate::output;

/// The manual that the pages are a part of, and who it is of.
const MANUAL: &str = "mcpx manual";
const SOURCE: &str = concat!("mcpx ", env!("CARGO_PKG_VERSION"));

/// What a process ends with; for mcpx(1).
const EXITS: [(&str, &str); 5] = [
    ("0", "done"),
    ("1", "the operation failed; so did a tool that says so of itself"),
    ("2", "the command was not understood"),
    ("3", "no daemon runs"),
    ("4", "the configuration is refused"),
];

/// Variables that are no settings; for mcpx(1).
const VARIABLES: [(&str, &str); 4] = [
    ("MCPX_CONFIG", "the configuration file, as `--config` has it"),
    ("MCPX_STATE_DIR", "the folder of what is kept, in place of `$XDG_STATE_HOME/mcpx`"),
    ("MCPX_RUNTIME_DIR", "the folder of the socket, in place of `$XDG_RUNTIME_DIR/mcpx`"),
    ("MCPX_LOG", "what the daemon logs: `debug`, `mcpx=trace`; `info` where it is not set"),
];

/// Where a configuration is read; for mcpx.toml(5).
const FILES: [(&str, &str); 4] = [
    ("/etc/mcpx/config.toml", "the system's"),
    ("/etc/mcpx/conf.d/*.toml", "the same, in the order of their names"),
    ("~/.config/mcpx/config.toml", "the user's; `$XDG_CONFIG_HOME` moves it"),
    ("~/.config/mcpx/conf.d/*.toml", "the same, in the order of their names"),
];

/// What the page on the configuration begins with.
const ABOUT_FILE: [&str; 4] = [
    "The file says which servers mcpx fronts, what may be called of them, and how mcpx behaves. It is TOML; \
     `config.json` and `config.jsonc` are read as well, as JSON with comments. `mcpx config check` finds \
     mistakes, with line and column; a daemon that runs reads a changed file by itself.",
    "Later wins: built-in values, the system's files, the user's files, `conf.d`, variables of the environment \
     (`MCPX_CALL_IDLE_TIMEOUT` for `call.idle_timeout`), flags, and what `mcpx settings set` has set. \
     `mcpx settings` shows each value with who said it. A table `[servers.NAME]` of a later file takes the \
     place of an earlier one as a whole.",
    "Values of `command`, `env`, `url`, `headers` and `auth`, and settings that are secrets, may hold \
     references: `${env:NAME}` (or `${NAME}`; `${NAME:-TEXT}` where it may be missing), `${file:PATH}`, \
     `${cmd:COMMAND}`. They are looked up when the server starts, in one pass; `$$` is a dollar sign.",
    "Times are written as `500ms`, `30s`, `5m`, `1h30m`, `7d`, sizes as `64KiB`, `5MiB`, `1GiB`.",
];

/// The command.
pub(crate) fn command() -> Command {
    Command::new("man")
        .about("Write the manual pages to where `man` finds them")
        .long_about(
            "Write the manual pages, of mcpx, of each of its commands and of its configuration file, to \
             where `man` finds them: ~/.local/share/man, or the folder that is named. Pages of the same \
             name are replaced.",
        )
        .arg(
            Arg::new("folder")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("The folder, in which man1 and man5 are made"),
        )
        .arg(
            Arg::new("remove")
                .long("remove")
                .action(ArgAction::SetTrue)
                .help("Take the pages away again"),
        )
}

/// Writes the pages, or takes them away.
pub(crate) fn run(arguments: &ArgMatches) -> Outcome {
    let folder = match arguments.get_one::<PathBuf>("folder") {
        Some(folder) => folder.clone(),
        None => usual_folder()?,
    };
    let pages = pages()?;
    let failed =
        |path: &Path, error: std::io::Error| Ended::Failed(format!("{}: {error}", path.display()));
    let mut done = 0;
    for page in &pages {
        let path = folder.join(format!("man{}", page.section)).join(page.file());
        if !arguments.get_flag("remove") {
            write(&path, &page.text).map_err(|error| failed(&path, error))?;
            done += 1;
        } else if path.exists() {
            std::fs::remove_file(&path).map_err(|error| failed(&path, error))?;
            done += 1;
        }
    }
    let did = if arguments.get_flag("remove") { "removed from" } else { "written to" };
    output::line(&format!("{done} pages {did} {}", folder.display()))
}

/// Manual pages are for everybody to read.
fn write(path: &Path, text: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
    statefile::write(path, text)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
}

/// `man` looks there for programs of `~/.local/bin`, and many for all.
fn usual_folder() -> Result<PathBuf, Ended> {
    let set = |name: &str| {
        let value = environment::own().get(std::ffi::OsStr::new(name))?.clone();
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")));
    data.map(|data| data.join("man")).ok_or_else(|| {
        Ended::Failed("neither XDG_DATA_HOME nor HOME is set; name a folder".to_owned())
    })
}

/// One page.
#[derive(Debug)]
pub(crate) struct Page {
    name: String,
    section: u8,
    text: Vec<u8>,
}

impl Page {
    fn file(&self) -> String {
        format!("{}.{}", self.name, self.section)
    }
}

/// All pages: of every command that is shown, under each of its names, and of the file.
pub(crate) fn pages() -> Result<Vec<Page>, Ended> {
    let mut root = cli::tree().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    of_command(&root, "mcpx", &mut pages)?;
    pages.push(Page { name: "mcpx.toml".to_owned(), section: 5, text: of_file()? });
    Ok(pages)
}

/// The page of a command, and those of its own commands.
fn of_command(command: &Command, name: &str, pages: &mut Vec<Page>) -> Result<(), Ended> {
    let page = Man::new(command.clone()).title(name).source(SOURCE).manual(MANUAL);
    let mut text = Vec::new();
    let wrong = |error: std::io::Error| Ended::Failed(format!("{name}: {error}"));
    page.render(&mut text).map_err(wrong)?;
    let mut more = Roff::new();
    if name == "mcpx" {
        listed(&mut more, "EXIT STATUS", &EXITS);
        listed(&mut more, "ENVIRONMENT", &VARIABLES);
    }
    more.control("SH", ["SEE ALSO"]);
    let parent = name.rsplit_once('-').map(|(parent, _)| parent);
    let others = parent.into_iter().map(|parent| format!("{parent}(1)"));
    let others: Vec<String> = others.chain(["mcpx.toml(5)".to_owned()]).collect();
    more.text([roman(others.join(", "))]);
    more.to_writer(&mut text).map_err(wrong)?;
    pages.push(Page { name: name.to_owned(), section: 1, text });
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        let own = format!("{name}-{}", inner.get_name());
        of_command(inner, &own, pages)?;
        for alias in inner.get_visible_aliases() {
            let text = format!(".so man1/{own}.1\n").into_bytes();
            pages.push(Page { name: format!("{name}-{alias}"), section: 1, text });
        }
    }
    Ok(())
}

/// mcpx.toml(5).
fn of_file() -> Result<Vec<u8>, Ended> {
    let defaults = parse::defaults().map_err(Ended::Refused)?;
    let sections =
        reference::sections(&defaults).map_err(|mistake| Ended::Refused(vec![mistake]))?;
    let mut page = Roff::new();
    page.control("TH", ["mcpx.toml", "5", "", SOURCE, MANUAL]);
    page.control("SH", ["NAME"]);
    page.text([roman("mcpx.toml - the configuration of mcpx")]);
    page.control("SH", ["DESCRIPTION"]);
    for paragraph in ABOUT_FILE {
        page.control("PP", []);
        page.text(marked(paragraph));
    }
    listed(&mut page, "FILES", &FILES);
    page.control("SH", ["SETTINGS"]);
    for section in &sections {
        of_section(&mut page, section);
    }
    of_keys(&mut page, "SERVERS", "What may stand in `[servers.NAME]`.", SERVER_KEYS);
    of_keys(&mut page, "PROFILES", "What may stand in `[profiles.NAME]`.", PROFILE_KEYS);
    page.control("SH", ["POLICY"]);
    page.text(marked(
        "`[policy]` says what may be called: NAMESPACE.TOOL, with `*` and `?` as wildcards, is `allow` (the \
         default), `ask` (only once somebody has agreed) or `deny` (it is hidden). The most specific rule \
         decides, wherever it stands.",
    ));
    page.control("SH", ["SEE ALSO"]);
    page.text([roman("mcpx(1), mcpx-config(1), mcpx-settings(1)")]);
    Ok(page.to_roff().into_bytes())
}

fn of_section(page: &mut Roff, section: &Section) {
    let title = format!("[{}]: {}", section.name, section.about.replace('`', ""));
    page.control("SS", [title.as_str()]);
    for row in &section.rows {
        page.control("TP", []);
        page.text([bold(row.name()), roman(" = "), roman(row.default.as_str())]);
        page.text(marked(&format!("{}{}", row.def.doc, row.notes())));
        page.control("br", []);
        page.text([italic("Takes "), roman(format!("{}.", row.def.kind.expected()))]);
    }
}

fn of_keys(page: &mut Roff, title: &str, about: &str, keys: &[TableKey]) {
    page.control("SH", [title]);
    page.text(marked(about));
    for key in keys {
        page.control("TP", []);
        page.text([bold(key.name)]);
        page.text(marked(key.doc));
    }
}

fn listed(page: &mut Roff, title: &str, rows: &[(&str, &str)]) {
    page.control("SH", [title]);
    for (name, what) in rows {
        page.control("TP", []);
        page.text([bold(*name)]);
        page.text(marked(what));
    }
}

/// A sentence whose words between backticks are code.
fn marked(text: &str) -> Vec<Inline> {
    let part = |(at, part): (usize, &str)| if at % 2 == 0 { roman(part) } else { bold(part) };
    text.split('`').enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_shown_has_a_page() {
        fn expected(command: &Command, name: &str, names: &mut Vec<String>) {
            names.push(name.to_owned());
            for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
                let aliases = inner.get_visible_aliases().map(str::to_owned);
                names.extend(aliases.map(|alias| format!("{name}-{alias}")));
                expected(inner, &format!("{name}-{}", inner.get_name()), names);
            }
        }
        let mut wanted = vec!["mcpx.toml".to_owned()];
        expected(&cli::tree(), "mcpx", &mut wanted);
        wanted.sort();
        let mut names: Vec<_> = pages().unwrap().into_iter().map(|page| page.name).collect();
        names.sort();
        assert_eq!(names, wanted);
        assert!(names.iter().any(|name| name == "mcpx-ps"), "{names:?}");
    }

    #[test]
    fn the_page_of_the_file_has_every_setting() {
        let text = String::from_utf8(of_file().unwrap()).unwrap();
        for def in mcpx::settings::defs::DEFS {
            let (_, name) = def.key.split_once('.').unwrap();
            assert!(text.contains(&format!("\\fB{name}\\fR = ")), "{}", def.key);
        }
    }
}
