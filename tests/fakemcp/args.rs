//! The script: `--flag` and `--key value`, checked against one list.

use std::collections::BTreeMap;

/// Options without a value.
const FLAGS: [&str; 33] = [
    "batch",
    "blank-lines",
    "bom",
    "bom-lines",
    "cr-tokens",
    "crlf",
    "empty-result",
    "grandchild",
    "grandchild-pipe",
    "grandchild-setsid",
    "http-sse",
    "ignore-eof",
    "ignore-term",
    "initialize-silent",
    "json-noise",
    "list-silent",
    "log-per-line",
    "never-read",
    "odd-names",
    "odd-schemas",
    "offer-missing",
    "serial",
    "setsid",
    "sleeper",
    "stop-at-start",
    "string-ids",
    "wrapper",
    "wrapper-wait",
    "no-list-changed",
    "no-templates",
    "offers",
    "questions",
    "tasks",
];

/// Options with a value.
const KEYS: [&str; 44] = [
    "blob-size",
    "capabilities",
    "chunk",
    "chunk-us",
    "die-after",
    "die-after-calls",
    "die-on",
    "discover-delay",
    "discover-error",
    "era",
    "exit",
    "exit-first",
    "glue",
    "http",
    "info",
    "initialize-delay",
    "initialize-error",
    "instructions",
    "list-delay",
    "list-error",
    "listen-decline",
    "missing",
    "modern-versions",
    "name",
    "noise",
    "offer",
    "on-ready",
    "pages",
    "ping",
    "poll-interval",
    "probe",
    "prompt",
    "probe-stderr",
    "refuse",
    "resource",
    "start-delay",
    "stderr-start",
    "stderr-text",
    "supports",
    "template",
    "tool",
    "tool-count",
    "tool-file",
    "tools",
];

/// What the command line said.
#[derive(Debug, Clone)]
pub struct Args {
    values: BTreeMap<String, Vec<String>>,
    /// As given, to start ourselves again.
    pub all: Vec<String>,
}

impl Args {
    /// Reads them; a mistake ends the process with code 2, since a script with a misspelt option
    /// would be a test that tests nothing.
    pub fn parse(args: impl Iterator<Item = String>) -> Self {
        let all: Vec<String> = args.collect();
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut rest = all.iter();
        while let Some(arg) = rest.next() {
            let name = arg.strip_prefix("--").unwrap_or_else(|| refuse(arg));
            let value = if FLAGS.contains(&name) {
                String::new()
            } else if KEYS.contains(&name) {
                rest.next().unwrap_or_else(|| refuse(arg)).clone()
            } else {
                refuse(arg)
            };
            values.entry(name.to_owned()).or_default().push(value);
        }
        Self { values, all }
    }

    /// True where the flag (or key) was given.
    pub fn flag(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The last value given.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.last().map(String::as_str)
    }

    /// All values given.
    pub fn all_of(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// The value as a number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        let text = self.get(name)?;
        Some(text.parse().unwrap_or_else(|_| refuse(&format!("--{name} {text}"))))
    }
}

fn refuse(arg: &str) -> ! {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "fakemcp: I do not understand {arg}");
    std::process::exit(2)
}
