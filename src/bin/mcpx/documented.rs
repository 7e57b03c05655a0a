//! Every `mcpx …` of the pages for people is a command that there is, with options that it has (X-04).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Command;
use clap::error::ErrorKind;

use crate::cli;

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs", "docs/hosts"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        pages.extend(files.filter(|file| file.extension().is_some_and(|ending| ending == "md")));
    }
    assert!(pages.len() > 20, "the pages are not where they should be");
    pages
}

/// The commands of code blocks, whole, without comments, prompts and what a shell does with them.
fn whole_commands(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        let indented = line.strip_prefix("    ").filter(|line| line.starts_with("mcpx "));
        let line = line.trim();
        if line.starts_with("```") {
            inside = !inside;
        } else if let (false, Some(line)) = (inside, indented) {
            // What it does stands behind it, with a gap between.
            let end = ["  ", " #"].iter().filter_map(|end| line.find(end)).min();
            found.push(line[..end.unwrap_or(line.len())].to_owned());
        } else if inside {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let line = line.strip_prefix("sudo ").unwrap_or(line);
            if line.starts_with("mcpx ") {
                let ends = [" #", " | ", " > ", " < ", " && ", " &"];
                let end = ends.iter().filter_map(|end| line.find(end)).min();
                found.push(line[..end.unwrap_or(line.len())].trim().to_owned());
            }
        }
    }
    found
}

/// Words as a shell cuts them, as far as the pages need it.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => (quote, begun) = (Some(letter), true),
            (None, ' ') => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            _ => word.push(letter),
        }
    }
    if begun || !word.is_empty() {
        words.push(word);
    }
    words
}

/// What is wrong with a command in running text, which may be without what it needs.
fn wrong_in_text(tree: &Command, inline: &str) -> Option<String> {
    let mut command = tree;
    let mut rest = inline.split_whitespace().skip(1).peekable();
    while let Some(inner) = rest.peek().and_then(|word| command.find_subcommand(word)) {
        command = inner;
        rest.next();
    }
    let first = rest.peek().copied().unwrap_or_default();
    let is_name =
        |word: &str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_lowercase() || c == b'-');
    if command.has_subcommands() && is_name(first) && !first.starts_with('-') {
        return Some(format!("`{}` has no command `{first}`", command.get_name()));
    }
    rest.filter_map(|word| word.strip_prefix("--")).find_map(|option| {
        let option = option.split(['=', ']', '…', ',']).next().unwrap_or_default();
        let known =
            |command: &Command| command.get_arguments().any(|arg| arg.get_long() == Some(option));
        let general = ["help", "version", "json", "config", ""].contains(&option);
        (!general && !known(command)).then(|| format!("there is no option --{option}"))
    })
}

#[test]
fn x04_every_command_of_the_pages_is_one() {
    let tree = cli::tree();
    let (mut report, mut count) = (String::new(), 0);
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let name = page.file_name().unwrap().to_string_lossy();
        for line in whole_commands(&text) {
            count += 1;
            if let Err(error) = tree.clone().try_get_matches_from(words(&line)) {
                let shown = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion];
                if !shown.contains(&error.kind()) {
                    let _ = writeln!(report, "{name}: {line}: {error}");
                }
            }
        }
        // What mcpx says stands in headings.
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let prose = lines.collect::<Vec<_>>().join("\n");
        for inline in prose.split('`').skip(1).step_by(2).filter(|part| part.starts_with("mcpx ")) {
            count += 1;
            if let Some(why) = wrong_in_text(&tree, inline) {
                let _ = writeln!(report, "{name}: `{inline}`: {why}");
            }
        }
    }
    assert!(report.is_empty(), "documented, and not there:\n{report}");
    assert!(count > 100, "only {count} commands were found in the pages");
}

#[test]
fn what_is_not_there_is_found() {
    let tree = cli::tree();
    let text = "```\n$ mcpx nothing   # no\n```\nmcpx ps\n    mcpx trust --yes   does\n";
    assert_eq!(whole_commands(text), ["mcpx nothing", "mcpx trust --yes"]);
    assert_eq!(
        words("mcpx call a b '{\"x\": 1}' c=\"d e\""),
        ["mcpx", "call", "a", "b", "{\"x\": 1}", "c=d e"]
    );
    for wrong in ["mcpx nothing", "mcpx settings sett x=y", "mcpx ps --leaves"] {
        assert!(wrong_in_text(&tree, wrong).is_some(), "{wrong}");
    }
    for right in ["mcpx", "mcpx ps --tree", "mcpx settings set a=b", "mcpx logs NAME", "mcpx stop"]
    {
        assert_eq!(wrong_in_text(&tree, right), None, "{right}");
    }
}
