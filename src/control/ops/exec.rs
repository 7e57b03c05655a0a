//! The op that runs a script.

use super::{Needs, OUTSIDE, Op, OpName, Param, ParamKind, Place, Verb, text};

/// What every run of a script may be told; saved ones as well.
pub(super) const TIMEOUT: Param = Param {
    name: "timeout",
    kind: ParamKind::Count,
    place: Place::Body,
    required: false,
    doc: "How long it may run, in seconds from 1; at most exec.timeout.",
};
pub(super) const PROJECT: Param =
    text("project", Place::Body, false, "The project folder on whose behalf it runs.");
pub(super) const PROGRESS: Param = Param {
    name: "progress",
    kind: ParamKind::Switch,
    place: Place::Body,
    required: false,
    doc: "Whether progress, and what the script tells `console`, is sent as events before the result.",
};
pub(super) const QUESTIONS: Param = text(
    "questions",
    Place::Body,
    false,
    "Questions of its calls are sent as events and kept: `here` where a person at this end answers \
     them, `elsewhere` where they are only shown.",
);

const PARAMS: &[Param] = &[
    text("code", Place::Body, true, "The script: TypeScript or JavaScript."),
    Param {
        name: "input",
        kind: ParamKind::Any,
        place: Place::Body,
        required: false,
        doc: "The value of `input` in the script.",
    },
    TIMEOUT,
    PROJECT,
    PROGRESS,
    QUESTIONS,
];

pub(super) const EXEC: Op = Op {
    name: OpName::Exec,
    id: "exec",
    command: Some(&["exec"]),
    verb: Verb::Post,
    route: "/v1/exec",
    params: PARAMS,
    effect: OUTSIDE,
    title: "Run a script",
    summary: "Runs a script that calls tools, and gives the value that it returns.",
    needs: Needs::Start,
    answer: "CallToolResult",
};
