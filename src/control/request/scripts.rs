//! Ops that run scripts, from parameters and back.

use super::{Given, Values};
use crate::control::types::{ApiError, ExecRequest, ScriptRunRequest, WhoAnswers};
use crate::protocol::jsonrpc::RawJson;

impl ExecRequest {
    pub(super) fn read(values: &Values<'_>) -> Result<Self, ApiError> {
        Ok(Self {
            code: values.needed("code"),
            input: values.raw("input").cloned(),
            timeout: values.read("timeout"),
            project: values.text("project"),
            progress: values.read("progress").unwrap_or(false),
            questions: values.questions()?,
        })
    }

    pub(super) fn given(&self) -> Given {
        let mut given = vec![("code", RawJson::write(&self.code))];
        given.extend(self.input.clone().map(|input| ("input", input)));
        given.extend(run(self.timeout, self.project.as_ref(), self.progress, self.questions));
        given
    }
}

impl ScriptRunRequest {
    pub(super) fn read(values: &Values<'_>) -> Result<Self, ApiError> {
        Ok(Self {
            name: values.needed("name"),
            arguments: values.raw("arguments").cloned(),
            timeout: values.read("timeout"),
            project: values.text("project"),
            progress: values.read("progress").unwrap_or(false),
            questions: values.questions()?,
        })
    }

    pub(super) fn given(&self) -> Given {
        let mut given = vec![("name", RawJson::write(&self.name))];
        given.extend(self.arguments.clone().map(|arguments| ("arguments", arguments)));
        given.extend(run(self.timeout, self.project.as_ref(), self.progress, self.questions));
        given
    }
}

/// What both have.
fn run(
    timeout: Option<u64>,
    project: Option<&String>,
    progress: bool,
    questions: Option<WhoAnswers>,
) -> impl Iterator<Item = (&'static str, RawJson)> {
    let timeout = timeout.map(|timeout| ("timeout", RawJson::write(&timeout)));
    let project = project.map(|project| ("project", RawJson::write(project)));
    let progress = progress.then(|| ("progress", RawJson::write(&true)));
    let questions = questions.map(|who| ("questions", RawJson::write(who.as_str())));
    [timeout, project, progress, questions].into_iter().flatten()
}
