//! The only file that prints.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use crate::ended::{Ended, Outcome};

/// Where and how to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    /// `--json`: answers as the daemon sent them.
    pub(crate) json: bool,
    /// Colour on stdout: only on a terminal, and not where `NO_COLOR` is set.
    pub(crate) colour: bool,
    /// Whether stderr is a terminal: only then is there a spinner.
    pub(crate) lively: bool,
}

impl Printer {
    /// By what our streams are.
    pub(crate) fn new(json: bool, plain: bool) -> Self {
        let colour = !plain && !json && io::stdout().is_terminal();
        Self { json, colour, lively: io::stderr().is_terminal() }
    }
}

/// One line, or several, on stdout.
pub(crate) fn line(text: &str) -> Outcome {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")))
}

/// Bytes on stdout, with a line break behind them where they have none.
pub(crate) fn bytes(bytes: &[u8]) -> Outcome {
    let end: &[u8] = if bytes.ends_with(b"\n") { b"" } else { b"\n" };
    let mut out = io::stdout().lock();
    written(out.write_all(bytes).and_then(|()| out.write_all(end)).and_then(|()| out.flush()))
}

/// Bytes on stdout, and nothing else.
pub(crate) fn raw(bytes: &[u8]) -> Outcome {
    let mut out = io::stdout().lock();
    written(out.write_all(bytes).and_then(|()| out.flush()))
}

/// A value of ours as JSON on stdout.
pub(crate) fn as_json(value: &impl serde::Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value);
    line(&text.map_err(|error| Ended::Failed(format!("no JSON: {error}")))?)
}

/// A remark on stderr.
pub(crate) fn remark(text: &str) {
    // Nobody reads stderr: then nobody misses it.
    let _ = writeln!(io::stderr(), "{text}");
}

/// A prompt on stderr, with the cursor behind it.
pub(crate) fn prompt(text: &str) {
    let mut err = io::stderr().lock();
    // Nobody reads stderr: then nobody misses it.
    let _ = write!(err, "{text}: ").and_then(|()| err.flush());
}

fn written(result: io::Result<()>) -> Outcome {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ended::NobodyReads,
        _ => Ended::Failed(format!("the output cannot be written: {error}")),
    })
}

/// Says how a command ended, and gives its exit code.
pub(crate) fn end(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(ended) => {
            if let Some(text) = ended.text() {
                let _ = writeln!(io::stderr(), "{text}");
            }
            ended.code()
        }
    }
}

/// Help and version go to stdout and are no failure; everything else is a misuse.
pub(crate) fn usage(message: &clap::Error) -> ExitCode {
    let _ = message.print();
    if message.use_stderr() { Ended::Usage(String::new()).code() } else { ExitCode::SUCCESS }
}
