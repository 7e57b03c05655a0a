//! Ops that run scripts, from parameters and back.

use super::{Given, Values, bad};
use crate::control::types::{ApiError, ExecRequest, RunRequest, ScriptRunRequest};
use crate::protocol::jsonrpc::RawJson;

impl ExecRequest {
    pub(super) fn read(values: &Values<'_>) -> Result<Self, ApiError> {
        let (code, input) = (values.needed("code"), values.raw("input").cloned());
        Ok(Self { code, input, run: RunRequest::read(values)? })
    }

    pub(super) fn given(&self) -> Given {
        let mut given = vec![("code", RawJson::write(&self.code))];
        given.extend(self.input.clone().map(|input| ("input", input)));
        given.extend(self.run.given());
        given
    }
}

impl ScriptRunRequest {
    pub(super) fn read(values: &Values<'_>) -> Result<Self, ApiError> {
        let (name, arguments) = (values.needed("name"), values.raw("arguments").cloned());
        Ok(Self { name, arguments, run: RunRequest::read(values)? })
    }

    pub(super) fn given(&self) -> Given {
        let mut given = vec![("name", RawJson::write(&self.name))];
        given.extend(self.arguments.clone().map(|arguments| ("arguments", arguments)));
        given.extend(self.run.given());
        given
    }
}

impl RunRequest {
    /// Whether it is answered by a stream of events.
    pub(super) const fn streams(&self) -> bool {
        self.progress || self.questions.is_some()
    }

    fn read(values: &Values<'_>) -> Result<Self, ApiError> {
        let timeout = values.read("timeout");
        if timeout == Some(0) {
            return Err(bad("`timeout` is a number of seconds, at least 1, not 0".to_owned()));
        }
        Ok(Self {
            timeout,
            project: values.text("project"),
            progress: values.read("progress").unwrap_or(false),
            questions: values.questions()?,
        })
    }

    fn given(&self) -> impl Iterator<Item = (&'static str, RawJson)> {
        let timeout = self.timeout.map(|timeout| ("timeout", RawJson::write(&timeout)));
        let project = self.project.as_ref().map(|project| ("project", RawJson::write(project)));
        let progress = self.progress.then(|| ("progress", RawJson::write(&true)));
        let questions = self.questions.map(|who| ("questions", RawJson::write(who.as_str())));
        [timeout, project, progress, questions].into_iter().flatten()
    }
}
