//! What the daemon and a sandbox say to each other: one JSON object a line, on the sandbox's stdin and
//! stdout. Pure.
//!
//! A sandbox runs one script: it says [`FromSandbox::Ready`], is given [`ToSandbox::Run`], and ends with
//! [`FromSandbox::Done`] or [`FromSandbox::Failed`]. Between the two it makes calls, several at once as the
//! script likes, and each is answered. To give a script up, its process is killed.

use serde::{Deserialize, Serialize};

use crate::protocol::jsonrpc::{RawJson, present};

/// What the daemon says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToSandbox {
    /// The one script.
    Run(Run),
    /// What came of a call.
    Answer(Answer),
    /// What there is to call: a list of [`Offered`].
    Offered(RawJson),
}

/// A script and what it may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// TypeScript or JavaScript, as it was given.
    pub source: String,
    /// The value of `input`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub input: Option<RawJson>,
    /// What it may use.
    pub limits: Limits,
}

/// What one run may use inside its process. Wall time is watched from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The script, in bytes.
    pub source: usize,
    /// Memory of the engine, in bytes.
    pub memory: usize,
    /// Depth of the engine's stack, in bytes; of more than 14 MiB, these.
    pub stack: usize,
    /// Processor time, in milliseconds.
    pub cpu_ms: u64,
    /// The returned value as JSON, in bytes.
    pub output: usize,
    /// Everything that `console` is told, in bytes; what comes after it is dropped and counted.
    pub log: usize,
    /// Calls in all.
    pub calls: usize,
    /// Calls at once; more wait in the sandbox.
    pub concurrent: usize,
}

/// A server that scripts can call, and its tools.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Offered {
    /// Its namespace.
    pub name: String,
    /// What stands for it after a dot.
    pub member: String,
    /// Its tools, as far as they are known.
    pub tools: Vec<OfferedTool>,
}

/// See [`Offered`].
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct OfferedTool {
    /// Its server's name for it.
    pub name: String,
    /// What stands for it after a dot.
    pub member: String,
}

/// What came of a call.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The number of [`Call`].
    pub call: u64,
    /// Its value, or what is thrown.
    pub outcome: Outcome,
}

/// See [`Answer`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The promise is fulfilled.
    Value(RawJson),
    /// It is rejected.
    Thrown(Thrown),
}

/// An error that a script can catch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thrown {
    /// `ToolError` where a tool said so, else the class that fits.
    pub name: String,
    /// Its message.
    pub message: String,
    /// Content blocks of the tool's result (`error.content`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<RawJson>,
    /// Why mcpx itself refused or lost it: `dev.mcpx/reason` (`error.reason`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a sandbox says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromSandbox {
    /// The engine stands.
    Ready,
    /// Something is wanted.
    Call(Call),
    /// The script looks around: what there is to call is to be said, before anything else is done.
    Offered,
    /// `console` was told something.
    Log(Log),
    /// The script has ended; its value, where it gave one.
    Done {
        /// The value as JSON; numbers beyond 2^53 are exact.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        value: Option<RawJson>,
    },
    /// The script did not end well.
    Failed(Failure),
}

/// Something that is wanted of the daemon.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Its number in this run, from 1.
    pub call: u64,
    /// Of whom.
    pub target: Target,
    /// With what: an object.
    pub arguments: RawJson,
}

/// Who is called.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// `tools.<namespace>.<tool>(arguments)`, both as the script wrote them.
    Tool {
        /// A namespace, or the name of one after a dot.
        namespace: String,
        /// A tool, or the name of one after a dot.
        tool: String,
    },
    /// `mcpx.search({query})`, `mcpx.types({namespace})`, `mcpx.read({uri})`: mcpx's own tools of these names.
    Own {
        /// `search`, `types` or `read`.
        name: String,
    },
    /// `artifacts.write(name, data, type)`. Arguments: `name`, `type`, and `text` or `base64`.
    Artifact,
}

/// A line of `console`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// `debug`, `info`, `log`, `warn` or `error`.
    pub level: String,
    /// What it was told, as text.
    pub text: String,
}

/// How a script failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// `SyntaxError`, `TypeError`, `ToolError`, …
    pub name: String,
    /// What is wrong.
    pub message: String,
    /// Line in the script as it was given, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The setting whose limit ended it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Box<str>>,
    /// Content blocks, where a tool's error was not caught.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<RawJson>,
}

impl std::fmt::Display for Failure {
    /// `TypeError: what is wrong (line 3, column 7) (setting exec.stack)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, " (line {line}, column {column})")?,
            (Some(line), None) => write!(f, " (line {line})")?,
            (None, _) => {}
        }
        match &self.limit {
            Some(setting) if !self.message.contains(&**setting) => {
                write!(f, " (setting {setting})")
            }
            _ => Ok(()),
        }
    }
}

/// Names of the settings whose limits end a run: [`Failure::limit`].
pub mod limit {
    /// [`Limits::source`](super::Limits::source).
    pub const SOURCE: &str = "exec.max_source";
    /// [`Limits::memory`](super::Limits::memory).
    pub const MEMORY: &str = "exec.memory";
    /// [`Limits::stack`](super::Limits::stack).
    pub const STACK: &str = "exec.stack";
    /// [`Limits::cpu_ms`](super::Limits::cpu_ms).
    pub const CPU_TIME: &str = "exec.cpu_time";
    /// [`Limits::output`](super::Limits::output).
    pub const OUTPUT: &str = "exec.output_limit";
    /// [`Limits::log`](super::Limits::log).
    pub const LOG: &str = "exec.log_limit";
    /// [`Limits::calls`](super::Limits::calls).
    pub const CALLS: &str = "exec.max_calls";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    #[test]
    fn lines_read_back_with_numbers_as_written() {
        let target = Target::Tool { namespace: "a".to_owned(), tool: "b".to_owned() };
        let arguments = raw(r#"{"n":12345678901234567890,"x":1.0}"#);
        let call = FromSandbox::Call(Call { call: 7, target, arguments });
        let line = serde_json::to_string(&call).unwrap();
        let expected = r#"{"call":{"call":7,"target":{"tool":{"namespace":"a","tool":"b"}},"arguments":{"n":12345678901234567890,"x":1.0}}}"#;
        assert_eq!(line, expected);
        assert_eq!(serde_json::from_str::<FromSandbox>(&line).unwrap(), call);
        let ready = serde_json::to_string(&FromSandbox::Ready).unwrap();
        assert_eq!(ready, r#""ready""#);
    }

    /// `null` is a value; none is told apart from it.
    #[test]
    fn null_is_a_value() {
        for (value, line) in
            [(Some(RawJson::null()), r#"{"done":{"value":null}}"#), (None, r#"{"done":{}}"#)]
        {
            let done = FromSandbox::Done { value };
            assert_eq!(serde_json::to_string(&done).unwrap(), line);
            assert_eq!(serde_json::from_str::<FromSandbox>(line).unwrap(), done);
        }
    }

    #[test]
    fn failures_in_words() {
        let failure = |message: &str, line, column, limit: Option<&str>| {
            let (name, message, limit) =
                ("E".to_owned(), message.to_owned(), limit.map(str::to_owned));
            Failure {
                name,
                message,
                line,
                column,
                limit: limit.map(String::into_boxed_str),
                content: None,
            }
            .to_string()
        };
        assert_eq!(failure("", None, None, None), "E");
        assert_eq!(failure("x", Some(3), Some(7), None), "E: x (line 3, column 7)");
        assert_eq!(failure("x", Some(3), None, Some("a.b")), "E: x (line 3) (setting a.b)");
        assert_eq!(failure("x (a.b)", None, None, Some("a.b")), "E: x (a.b)");
    }
}
