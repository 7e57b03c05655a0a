//! References: from a host's spelling to mcpx's.
//!
//! What is no reference of that host stays the text that it is, with its `$` doubled where mcpx would
//! read one; if it looks like a reference of another program, a warning says so, with what to write.

use std::fmt::{self, Write as _};
use std::path::Path;

use super::table::Dialect;
use crate::settings::references;

/// What is said about one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Told {
    /// What was assumed, or left out.
    pub notes: Vec<String>,
    /// What will not work as it is.
    pub warnings: Vec<String>,
    /// Values that somebody has to give, with what to do.
    pub needs: Vec<String>,
}

impl Told {
    /// Adds a note, once.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        once(&mut self.notes, text.into());
    }

    /// Adds a warning, once.
    pub(super) fn warn(&mut self, text: impl Into<String>) {
        once(&mut self.warnings, text.into());
    }

    /// Adds a value that is missing, once.
    pub(super) fn need(&mut self, text: impl Into<String>) {
        once(&mut self.needs, text.into());
    }
}

fn once(all: &mut Vec<String>, text: String) {
    if !all.contains(&text) {
        all.push(text);
    }
}

/// What a shell's script is called: the dollar signs in it are the shell's.
pub(super) const SCRIPT: &str = "script";

/// What the words of a file are read with.
pub(super) struct Reader<'a> {
    /// Its host's spelling.
    pub dialect: Dialect,
    /// The folder of the file: what relative paths in `{file:…}` are relative to.
    pub folder: &'a Path,
    /// Where secrets go.
    pub secrets: &'a Path,
    /// The environment.
    pub lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    /// The file of a secret with this name.
    pub(super) fn secret_file(&self, name: &str) -> std::path::PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        self.secrets.join(name.chars().map(plain).collect::<String>())
    }

    /// Whether a text has references in this host's spelling.
    pub(super) fn refers(&self, text: &str) -> bool {
        let mut told = Told::default();
        let read = self.read("", "", text, &mut told);
        !references::references(&read).is_empty()
    }

    /// The text in mcpx's spelling. `what` says what it is: `env.TOKEN`.
    pub(super) fn read(&self, server: &str, what: &str, text: &str, told: &mut Told) -> String {
        let mut reading = Reading { reader: self, server, what, told, out: String::new() };
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            let (before, after) = rest.split_at(at);
            reading.out.push_str(before);
            rest = reading.at(after);
        }
        reading.out.push_str(rest);
        reading.out
    }
}

struct Reading<'a, 'b> {
    reader: &'a Reader<'a>,
    server: &'a str,
    what: &'a str,
    told: &'b mut Told,
    out: String,
}

impl Reading<'_, '_> {
    /// Reads what begins here with `$` or `{`; gives the rest.
    fn at<'t>(&mut self, text: &'t str) -> &'t str {
        if let Some(inner) = text.strip_prefix("${{")
            && let Some((name, rest)) = inner.split_once("}}")
        {
            self.doubled(name.trim());
            return rest;
        }
        if let Some(inner) = text.strip_prefix("${") {
            // In braces, a dollar sign in front of a reference is a dollar sign.
            let braces = self.reader.dialect == Dialect::Braces
                && ["env:", "file:"].iter().any(|start| inner.starts_with(start));
            if let Some((name, rest)) = inner.split_once('}').filter(|_| !braces) {
                if !self.dollar(name) {
                    self.literal(&format!("${{{name}}}"));
                    self.unexpanded(&format!("${{{name}}}"), name);
                }
                return rest;
            }
        }
        if let Some(after) = text.strip_prefix('$') {
            let end =
                after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            let (name, rest) = after.split_at(end);
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if is_name && self.reader.dialect == Dialect::Bare {
                self.variable(name, None);
            } else if is_name && self.what == SCRIPT {
                // The shell's own, which mcpx leaves alone.
                self.push(format_args!("${name}"));
            } else if is_name {
                self.literal(&format!("${name}"));
                self.unexpanded(&format!("${name}"), name);
            } else {
                // Before anything but these a dollar sign stands for itself, and `$(…)` stays readable.
                let doubled = after.starts_with(['$', '{']);
                self.out.push_str(if doubled { "$$" } else { "$" });
                return after;
            }
            return rest;
        }
        if self.reader.dialect == Dialect::Braces {
            for (start, read) in
                [("{env:", Self::braces_env as fn(&mut Self, &str)), ("{file:", Self::file)]
            {
                if let Some((inner, rest)) =
                    text.strip_prefix(start).and_then(|text| text.split_once('}'))
                {
                    read(self, inner);
                    return rest;
                }
            }
        }
        self.out.push('{');
        text.strip_prefix('{').unwrap_or_default()
    }

    fn push(&mut self, text: fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(text);
    }

    /// A text that is itself.
    fn literal(&mut self, text: &str) {
        self.out.push_str(&references::escape(text));
    }

    fn braces_env(&mut self, name: &str) {
        self.variable(name, None);
    }

    fn variable(&mut self, name: &str, otherwise: Option<&str>) {
        let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !fits {
            self.literal(&format!("${{env:{name}}}"));
            self.told.warn(format!("{}: {name:?} is no name of a variable", self.what));
            return;
        }
        if otherwise.is_none() && (self.reader.lookup)(name).is_none() && !self.server.is_empty() {
            self.told.warn(format!(
                "{} of `{}` needs the variable {name}, which is not set here; the daemon looks for it in \
                 its own environment and in that of a login",
                self.what, self.server
            ));
        }
        match otherwise {
            Some(text) => self.push(format_args!("${{env:{name}:-{text}}}")),
            None => self.push(format_args!("${{env:{name}}}")),
        }
    }

    fn file(&mut self, path: &str) {
        let path = match path.strip_prefix("~/") {
            Some(rest) => {
                let home = (self.reader.lookup)("HOME").unwrap_or_default();
                Path::new(&home).join(rest)
            }
            None => self.reader.folder.join(path),
        };
        let path: std::path::PathBuf = path.components().collect();
        if !path.exists() {
            self.told.warn(format!("{}: the file {} is not there", self.what, path.display()));
        }
        self.told.note(format!(
            "{} is read from {} (relative paths begin at the folder of the file)",
            self.what,
            path.display()
        ));
        self.push(format_args!("${{file:{}}}", path.display()));
    }

    /// A value that its host asks a person for.
    fn asked_for(&mut self, id: &str) {
        let file = self.reader.secret_file(&format!("{}-{id}", self.server));
        self.told.need(format!(
            "{} is {id:?}, which its host asks for: write the value into {}, mode 0600",
            self.what,
            file.display()
        ));
        self.push(format_args!("${{file:{}}}", file.display()));
    }

    /// `${{ secrets.NAME }}` of Continue.
    fn doubled(&mut self, name: &str) {
        if let Some(name) = name.strip_prefix("secrets.").or_else(|| name.strip_prefix("inputs.")) {
            self.asked_for(name);
        } else {
            self.literal(&format!("${{{{ {name} }}}}"));
            self.told.warn(format!("{}: ${{{{ {name} }}}} is not understood", self.what));
        }
    }

    /// `${…}`; whether its host would read it.
    fn dollar(&mut self, inner: &str) -> bool {
        use Dialect::{Any, Bare, Code, Shell};
        let dialect = self.reader.dialect;
        let code = matches!(dialect, Code | Any);
        if let Some(id) = inner.strip_prefix("input:") {
            self.asked_for(id);
        } else if let Some(name) = inner.strip_prefix("env:").filter(|_| code) {
            self.variable(name, None);
        } else if let Some(path) = inner.strip_prefix("file:").filter(|_| code) {
            self.file(path);
        } else if code && matches!(inner, "workspaceFolder" | "workspaceRoot" | "cwd") {
            self.told.note(format!("{}: ${{{inner}}} is the project; `.` here", self.what));
            self.out.push('.');
        } else if code && inner == "userHome" {
            self.variable("HOME", None);
        } else if code && matches!(inner, "pathSeparator" | "/") {
            self.out.push('/');
        } else if matches!(dialect, Shell | Bare | Any) && !inner.contains(':') {
            self.variable(inner, None);
        } else if let (Shell | Any, Some((name, otherwise))) = (dialect, inner.split_once(":-")) {
            self.variable(name, Some(otherwise));
        } else {
            return false;
        }
        true
    }

    fn unexpanded(&mut self, written: &str, inner: &str) {
        if self.what == SCRIPT {
            return;
        }
        let name = inner.strip_prefix("env:").unwrap_or(inner);
        self.told.warn(format!(
            "{}: {written} looks like an unexpanded variable; its host takes it as it stands, and so does \
             mcpx. If a variable is meant, write ${{env:{name}}}",
            self.what
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dialect: Dialect, text: &str) -> (String, Told) {
        let lookup = |name: &str| (name == "SET").then(|| "x".to_owned());
        let reader = Reader {
            dialect,
            folder: Path::new("/conf"),
            secrets: Path::new("/secrets"),
            lookup: &lookup,
        };
        let mut told = Told::default();
        let read = reader.read("s", "env.X", text, &mut told);
        (read, told)
    }

    #[test]
    fn each_host_has_its_spelling() {
        use Dialect::{Any, Bare, Braces, Code, Doubled, Literal, Shell};
        for (dialect, text, expected) in [
            (Braces, "a{env:SET}b", "a${env:SET}b"),
            (Braces, "{file:./s/x}", "${file:/conf/s/x}"),
            (Braces, "${SET}", "$${SET}"),
            (Braces, "{\"json\": 1}", "{\"json\": 1}"),
            (Shell, "${SET:-d}", "${env:SET:-d}"),
            (Shell, "Bearer ${SET}", "Bearer ${env:SET}"),
            (Code, "${env:SET}/${workspaceFolder}/a", "${env:SET}/./a"),
            (Code, "${userHome}", "${env:HOME}"),
            (Code, "${input:my key}", "${file:/secrets/s-my-key}"),
            (Bare, "$SET-${SET}", "${env:SET}-${env:SET}"),
            (Doubled, "${{ secrets.T }}", "${file:/secrets/s-T}"),
            (Any, "${SET}${env:SET}", "${env:SET}${env:SET}"),
            (Literal, "$SET {env:SET} $$ $5", "$$SET {env:SET} $$$ $5"),
            (Literal, "cd \"$(git rev-parse)\"", "cd \"$(git rev-parse)\""),
            (Braces, "${env:SET}", "$$${env:SET}"),
        ] {
            assert_eq!(read(dialect, text).0, expected, "{text}");
        }
    }

    #[test]
    fn what_is_meant_otherwise_is_told() {
        let (text, told) = read(Dialect::Braces, "$NAME");
        assert_eq!(text, "$$NAME");
        assert!(
            told.warnings[0].contains("unexpanded") && told.warnings[0].contains("${env:NAME}")
        );
        let (_, told) = read(Dialect::Shell, "${GONE}");
        assert!(told.warnings[0].contains("GONE") && told.warnings[0].contains("`s`"), "{told:?}");
        let (_, told) = read(Dialect::Code, "${input:key}");
        assert!(told.needs[0].contains("/secrets/s-key"));
    }
}
