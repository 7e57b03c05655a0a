//! What `mcpx doctor` finds.

use serde::{Deserialize, Serialize};

/// `POST /v1/doctor`, and what `mcpx doctor` shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorAnswer {
    /// In the order in which they were looked at.
    pub findings: Vec<Finding>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Works, but look at it.
    Warning,
    /// Does not work.
    Error,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was looked at: `configuration`, `socket`, `server github`, …
    pub subject: String,
    /// How it is.
    pub severity: Severity,
    /// What was found, in one sentence.
    pub text: String,
    /// Of a server: the step at which it failed, or which took longest: `start`, `handshake` or `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// How long that took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// How it is mended, where it needs mending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

impl Finding {
    /// Something is as it should be.
    pub fn ok(subject: impl Into<String>, text: impl Into<String>) -> Self {
        let (subject, text) = (subject.into(), text.into());
        Self { subject, severity: Severity::Ok, text, step: None, took_ms: None, mend: None }
    }

    /// Something needs a look or a hand; `mend` says what to do.
    pub fn bad(
        severity: Severity,
        subject: impl Into<String>,
        text: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        let (subject, text) = (subject.into(), text.into());
        Self { subject, severity, text, step: None, took_ms: None, mend: Some(mend.into()) }
    }

    /// At this step, which took so long.
    #[must_use]
    pub fn at(self, step: &str, took_ms: u64) -> Self {
        Self { step: Some(step.to_owned()), took_ms: Some(took_ms), ..self }
    }
}
