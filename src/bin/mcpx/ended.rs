//! How a command ends; one exit code each (product.md 2).

use std::process::ExitCode;

use mcpx::settings::Mistake;

use crate::hosts::plain;

/// Everything but success.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The operation failed; 1.
    Failed(String),
    /// It failed, and what there is to say has been said; 1.
    Told,
    /// The arguments make no sense; 2.
    Usage(String),
    /// No daemon runs; 3.
    NoDaemon(String),
    /// The configuration was refused; 4.
    Refused(Vec<Mistake>),
    /// The same, in words; 4.
    RefusedText(String),
    /// As another process ended that was to do it, and has said why.
    As(u8),
    /// Whoever read our output has gone; that is no failure.
    NobodyReads,
}

/// What commands return.
pub(crate) type Outcome = Result<(), Ended>;

impl Ended {
    /// What a person reads, where there is something to read.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Failed(text)
            | Self::Usage(text)
            | Self::NoDaemon(text)
            | Self::RefusedText(text) => Some(text.clone()),
            Self::Refused(mistakes) => {
                // They quote what stands in files.
                let lines = mistakes.iter().map(|mistake| plain(&mistake.to_string()));
                Some(lines.collect::<Vec<_>>().join("\n"))
            }
            Self::Told | Self::As(_) | Self::NobodyReads => None,
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::NobodyReads => 0,
            Self::As(code) => *code,
            Self::Failed(_) | Self::Told => 1,
            Self::Usage(_) => 2,
            Self::NoDaemon(_) => 3,
            Self::Refused(_) | Self::RefusedText(_) => 4,
        })
    }
}
