//! Setting up `fakemcp` as an upstream, and reading what it wrote down.

use std::fs;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::schema::{Facing, FrameLog};

/// The environment key by which the processes of one test are found again.
pub const MARK_KEY: &str = "FAKEMCP_MARK";

/// One fake upstream: its arguments (see `tests/fakemcp/main.rs`) and where it keeps its notes.
#[derive(Debug, Clone)]
pub struct Fake {
    /// Name in the configuration.
    pub name: String,
    /// Path of the executable.
    pub exe: PathBuf,
    /// Arguments.
    pub args: Vec<String>,
    /// More lines for its table in the configuration (`scope = "global"`).
    pub lines: Vec<String>,
    folder: PathBuf,
    mark: String,
    /// Where it serves, over HTTP.
    url: Option<String>,
}

impl Fake {
    /// A fake that keeps its notes in `folder` and whose processes bear `mark`.
    pub fn new(name: &str, exe: &Path, folder: &Path, mark: &str) -> Self {
        Self {
            name: name.to_owned(),
            exe: exe.to_owned(),
            args: Vec::new(),
            lines: Vec::new(),
            folder: folder.to_owned(),
            mark: mark.to_owned(),
            url: None,
        }
    }

    /// Adds arguments, split at spaces; use `arg` for one that holds a space.
    #[must_use]
    pub fn args(mut self, args: &str) -> Self {
        self.args.extend(args.split_whitespace().map(str::to_owned));
        self
    }

    /// Adds one argument as it is.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds a line to the server's table in the configuration.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Starts it as a server over HTTP of its own, which ends when it is dropped; its table in the
    /// configuration names its address from here on.
    pub fn serve(mut self) -> (Self, FakeServer) {
        let mut command = Command::new(&self.exe);
        command.args(["--http", "127.0.0.1:0"]).args(&self.args);
        // Without the mark: it is no process of the daemon's, and may outlive it.
        command.env("FAKEMCP_LOG", self.log_path()).env("FAKEMCP_LEDGER", self.ledger_path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufReader::new(out).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ");
        let address = address.unwrap_or_else(|| panic!("fakemcp does not listen: {line:?}"));
        self.url = Some(format!("http://{address}/mcp"));
        (self, FakeServer(child))
    }

    /// Where it serves over HTTP, see [`Self::serve`].
    pub fn url(&self) -> &str {
        self.url.as_deref().expect("it does not serve over HTTP")
    }

    /// Its table in the configuration.
    pub fn toml(&self) -> String {
        if let Some(url) = &self.url {
            let lines = self.lines.join("\n");
            return format!("[servers.{}]\nurl = {}\n{lines}\n\n", quote(&self.name), quote(url));
        }
        let mut command = vec![quote(&self.exe.display().to_string())];
        command.extend(self.args.iter().map(|arg| quote(arg)));
        let mut text =
            format!("[servers.{}]\ncommand = [{}]\n", quote(&self.name), command.join(", "));
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        let environment = [
            (MARK_KEY, self.mark.clone()),
            ("FAKEMCP_LOG", self.log_path().display().to_string()),
            ("FAKEMCP_LEDGER", self.ledger_path().display().to_string()),
        ];
        let values = environment.map(|(key, value)| format!("{key} = {}", quote(&value)));
        text.push_str(&format!("env = {{ {} }}\n\n", values.join(", ")));
        text
    }

    /// Where it writes every line that it reads and writes.
    pub fn log_path(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.name))
    }

    /// Where it writes a line for each side effect.
    pub fn ledger_path(&self) -> PathBuf {
        self.folder.join(format!("{}.ledger", self.name))
    }

    /// What was said so far.
    pub fn transcript(&self) -> Transcript {
        Transcript::read(&self.log_path())
    }

    /// The ledger's lines; those that start with `kind`, where it is not empty.
    pub fn ledger(&self, kind: &str) -> Vec<String> {
        let text = fs::read_to_string(self.ledger_path()).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(kind)).map(str::to_owned).collect()
    }

    /// How often it was started.
    pub fn starts(&self) -> usize {
        self.ledger("start ").len()
    }
}

/// A fake that serves over HTTP; it ends when this is dropped.
#[derive(Debug)]
pub struct FakeServer(Child);

impl Drop for FakeServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A basic TOML string.
pub fn quote(text: &str) -> String {
    // JSON's escapes are TOML's, but for the slash and surrogates, which serde_json never writes.
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// One line in a fake's log.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The fake's process.
    pub pid: u64,
    /// The conversation in it, over HTTP.
    pub session: String,
    /// Milliseconds since that process began.
    pub millis: u64,
    /// True for what the fake read, that is, what mcpx sent.
    pub from_mcpx: bool,
    /// The line as text, without its end.
    pub line: String,
    /// Its length in bytes; a very long line is cut in the log.
    pub bytes: u64,
}

impl Entry {
    /// The line as JSON; null where it is none.
    pub fn json(&self) -> Value {
        super::lenient::parse(self.line.as_bytes()).unwrap_or_default()
    }
}

/// A fake's log.
#[derive(Debug, Clone)]
pub struct Transcript {
    /// Its lines in the order they were written.
    pub entries: Vec<Entry>,
}

impl Transcript {
    /// Reads a log; a file that is not there is an empty one.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let entries = text.lines().filter_map(|line| {
            let entry: Value = serde_json::from_str(line).ok()?;
            Some(Entry {
                pid: entry["pid"].as_u64()?,
                session: entry["session"].as_str().unwrap_or_default().to_owned(),
                millis: entry["ms"].as_u64()?,
                from_mcpx: entry["dir"] == "in",
                line: entry["line"].as_str()?.to_owned(),
                bytes: entry["bytes"].as_u64()?,
            })
        });
        Self { entries: entries.collect() }
    }

    /// What mcpx sent, in order.
    pub fn seen(&self) -> Vec<Value> {
        self.entries.iter().filter(|entry| entry.from_mcpx).map(Entry::json).collect()
    }

    /// The lines that mcpx sent, in order, as they came.
    pub fn seen_lines(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|entry| entry.from_mcpx).map(|entry| entry.line.as_str())
    }

    /// The methods that mcpx sent, in order; an answer counts as `(answer)`, rubbish as `(none)`.
    pub fn methods(&self) -> Vec<String> {
        let name = |message: &Value| match message["method"].as_str() {
            Some(method) => method.to_owned(),
            None if message.get("id").is_some() => "(answer)".to_owned(),
            None => "(none)".to_owned(),
        };
        self.seen().iter().map(name).collect()
    }

    /// What mcpx sent with this method.
    pub fn with_method(&self, method: &str) -> Vec<Value> {
        self.seen().into_iter().filter(|message| message["method"] == method).collect()
    }

    /// Checks every frame that mcpx sent, conversation by conversation; returns how many there were.
    ///
    /// # Panics
    /// On the first frame that is not valid in its revision.
    pub fn check_frames(&self) -> usize {
        self.check_frames_with(|_| {})
    }

    /// As [`Self::check_frames`]; `prepare` may allow foreign keys.
    pub fn check_frames_with(&self, prepare: impl Fn(&mut FrameLog)) -> usize {
        let place = |entry: &Entry| (entry.pid, entry.session.clone());
        let mut places: Vec<(u64, String)> = self.entries.iter().map(place).collect();
        places.sort_unstable();
        places.dedup();
        let mut count = 0;
        for at in places {
            let mut log = FrameLog::new(Facing::Upstream);
            prepare(&mut log);
            for entry in self.entries.iter().filter(|entry| place(entry) == at) {
                if entry.bytes != entry.line.len() as u64 {
                    continue;
                }
                if entry.from_mcpx {
                    count += 1;
                    log.outgoing(entry.line.as_bytes()).unwrap_or_else(|why| panic!("{why}"));
                } else {
                    log.incoming(entry.line.as_bytes());
                }
            }
        }
        count
    }
}
