//! Command lines of hosts' files: what is one word and what is several, what will not run here, and
//! which words are secrets (C3, C4, C5, C7).

use std::path::Path;

use super::secret;
use super::words::Told;

/// A word of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// As its file has it.
    Text(String),
    /// A script for a shell.
    Script(String),
    /// In mcpx's spelling already.
    Done(String),
}

impl Word {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Script(text) | Self::Done(text) => text,
        }
    }
}

/// A secret among the words.
#[derive(Debug)]
pub(super) struct Kept {
    /// Which word.
    pub word: usize,
    /// What stands in front of it in that word, in mcpx's spelling.
    pub before: String,
    /// What it is called.
    pub name: String,
    /// The secret.
    pub value: String,
}

/// Program and arguments, each a word.
pub(super) fn words(command: Vec<String>, args: Vec<String>, told: &mut Told) -> Vec<Word> {
    let mut all = command;
    if let [line] = all.as_slice()
        && line.contains(char::is_whitespace)
        && args.is_empty()
        && !Path::new(line).exists()
    {
        told.note("`command` was one text; cut at its spaces, as a shell would");
        all = split(line);
    }
    all.extend(args);
    unwrap_cmd(&mut all, told);
    let script = script_at(&all);
    all.into_iter()
        .enumerate()
        .map(
            |(index, word)| {
                if Some(index) == script { Word::Script(word) } else { Word::Text(word) }
            },
        )
        .collect()
}

/// Cuts a line at its spaces; quotes hold words together.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => (quote, begun) = (Some(c), true),
            (None, c) if c.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (_, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

fn program(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).to_ascii_lowercase();
    name.strip_suffix(".exe").or_else(|| name.strip_suffix(".cmd")).unwrap_or(&name).to_owned()
}

/// `cmd /c npx …` is `npx …` where there is no `cmd`.
fn unwrap_cmd(words: &mut Vec<String>, told: &mut Told) {
    let [first, second, _, ..] = words.as_slice() else { return };
    if cfg!(windows) || program(first) != "cmd" || !second.eq_ignore_ascii_case("/c") {
        return;
    }
    words.drain(..2);
    if let [line] = words.as_slice() {
        *words = split(line);
    }
    told.note("`cmd /c` is of Windows and was taken away");
}

/// Which word is a script for a shell.
fn script_at(words: &[String]) -> Option<usize> {
    let shell = words.iter().position(|word| {
        matches!(program(word).as_str(), "sh" | "bash" | "zsh" | "dash" | "ksh" | "fish")
    })?;
    let option = words
        .iter()
        .skip(shell + 1)
        .position(|word| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c'))?;
    Some(shell + option + 2).filter(|at| *at < words.len())
}

/// What is worth knowing before it runs.
pub(super) fn look(words: &[Word], runs: &dyn Fn(&str) -> bool, told: &mut Told) {
    let texts: Vec<&str> = words.iter().map(Word::text).collect();
    let Some((first, rest)) = texts.split_first() else { return };
    let name = program(first);
    let drive = first.as_bytes().get(1..3).is_some_and(|two| two == b":/" || two == b":\\");
    if drive && !cfg!(windows) {
        told.warn(format!("{first} is a path of Windows: it does not run here"));
    } else if !first.contains(['$', '{']) && !runs(first) {
        told.warn(format!("{first} is not found here; `mcpx doctor` looks again"));
    }
    let has = |start: &str| rest.iter().any(|word| word.starts_with(start));
    let slow = (name == "npx" && (has("github:") || has("git+"))) || has("git+");
    if slow {
        told.note(
            "is built from a repository when it starts, which can take minutes the first time",
        );
    }
    if matches!(name.as_str(), "docker" | "podman") && rest.first() == Some(&"run") {
        told.note(
            "ending `docker run` does not always end its container: `--init` and `--rm` help, and `docker \
             ps` shows what is left",
        );
    }
    let here = |word: &&&str| **word == "." || word.starts_with("./") || word.starts_with("../");
    if let Some(word) = rest.iter().find(here) {
        told.note(format!("{word:?} is relative to the project: it keeps the scope `project`"));
    }
    for (index, word) in words.iter().enumerate() {
        let Word::Script(script) = word else { continue };
        let login = texts.get(index.wrapping_sub(1)).is_some_and(|option| option.contains('l'));
        if login {
            told.note("a login shell may print before the server does; mcpx skips such lines");
        }
        if script.contains("git rev-parse") || script.contains("$PWD") || script.contains("$(pwd)")
        {
            told.note("its script depends on the folder it runs in: it keeps the scope `project`");
        }
    }
}

/// The secrets among the words, by the option in front of them, by `NAME=value`, by themselves.
pub(super) fn secrets(words: &[Word]) -> Vec<Kept> {
    let mut found = Vec::new();
    let mut option: Option<String> = None;
    for (index, word) in words.iter().enumerate() {
        let Word::Text(text) = word else {
            option = None;
            continue;
        };
        let before = option.take();
        if let Some(kept) = secret_in(index, text, before.as_deref()) {
            found.push(kept);
        } else if text.starts_with('-') && !text.contains(['=', ' ']) {
            option = Some(text.trim_start_matches('-').to_owned());
        }
    }
    found
}

fn secret_in(word: usize, text: &str, option: Option<&str>) -> Option<Kept> {
    let kept = |before: &str, name: &str, value: &str| {
        let name = name.trim_start_matches('-').to_owned();
        let before = crate::settings::references::escape(before);
        Some(Kept { word, before, name, value: value.to_owned() })
    };
    // `--header "Authorization: Bearer …"`
    if let Some((name, value)) = text.split_once(": ").or_else(|| text.split_once(':')) {
        let (_, credential) = secret::credential(value.trim_start());
        let header = option.is_some_and(|option| matches!(option, "header" | "H"));
        if header && secret::is(name, credential) {
            let start = text.len() - credential.len();
            return kept(text.get(..start)?, name, credential);
        }
    }
    // `--api-key=…`, `-e NAME=…`
    if let Some((name, value)) = text.split_once('=')
        && secret::is(name, value)
        && !name.contains(['/', '?', ' '])
    {
        return kept(&format!("{name}="), name, value);
    }
    let by_option = option.is_some_and(|option| secret::telling(option) && !text.starts_with('-'));
    if by_option && secret::is(option?, text) || secret::is("", text) {
        return kept("", option.unwrap_or("secret"), text);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[Word]) -> Vec<&str> {
        words.iter().map(Word::text).collect()
    }

    #[test]
    fn lines_become_words() {
        let mut told = Told::default();
        let line = |text: &str| vec![text.to_owned()];
        let read = words(line("npx -y 'a b' \"\""), vec![], &mut told);
        assert_eq!(texts(&read), ["npx", "-y", "a b", ""]);
        let read = words(line("/opt/My Tools/x"), line("y"), &mut told);
        assert_eq!(texts(&read), ["/opt/My Tools/x", "y"]);
        let read = words(line("cmd"), vec!["/C".into(), "npx".into(), "-y".into()], &mut told);
        assert_eq!(texts(&read), ["npx", "-y"]);
        let read = words(line("bash"), vec!["-lc".into(), "exec $X".into()], &mut told);
        assert!(matches!(read.last(), Some(Word::Script(_))));
    }

    #[test]
    fn secrets_of_a_command_line_are_found() {
        let of = |all: &[&str]| {
            let words: Vec<Word> = all.iter().map(|text| Word::Text((*text).to_owned())).collect();
            let found = secrets(&words);
            found
                .into_iter()
                .map(|kept| format!("{}|{}", kept.before, kept.value))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&["x", "--api-key", "abcdefgh1"]), ["|abcdefgh1"]);
        assert_eq!(of(&["x", "--token=abcdefgh1"]), ["--token=|abcdefgh1"]);
        assert_eq!(
            of(&["x", "--header", "Authorization: Bearer abcdefgh1"]),
            ["Authorization: Bearer |abcdefgh1"]
        );
        assert_eq!(of(&["docker", "run", "-e", "API_KEY=abcdefgh1"]), ["API_KEY=|abcdefgh1"]);
        assert!(of(&["docker", "run", "-e", "API_KEY", "--port", "8080"]).is_empty());
        assert_eq!(of(&["x", "ghp_0123456789abcdefABCD"]), ["|ghp_0123456789abcdefABCD"]);
    }
}
