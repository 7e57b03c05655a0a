//! The ops on saved scripts.

use super::exec::{PROGRESS, PROJECT, QUESTIONS, TIMEOUT};
use super::{CHANGE, END, Needs, OUTSIDE, Op, OpName, Param, ParamKind, Place, READ, Verb, text};

const NAME: Param = text("name", Place::Path, true, "The script's name.");

pub(super) const LIST: Op = Op {
    name: OpName::Scripts,
    id: "scripts",
    command: Some(&["scripts", "list"]),
    verb: Verb::Get,
    route: "/v1/scripts",
    params: &[],
    effect: READ,
    title: "List saved scripts",
    summary: "Lists the saved scripts with their parameters, and those that cannot be used with the reason.",
    needs: Needs::Start,
    answer: "ScriptsAnswer",
};

pub(super) const SHOW: Op = Op {
    name: OpName::Script,
    id: "script_show",
    command: Some(&["scripts", "show"]),
    verb: Verb::Get,
    route: "/v1/scripts/{name}",
    params: &[NAME],
    effect: READ,
    title: "Show a saved script",
    summary: "Shows a saved script: what it does, its parameters and its source.",
    needs: Needs::Start,
    answer: "ScriptAnswer",
};

pub(super) const RUN: Op = Op {
    name: OpName::ScriptRun,
    id: "script_run",
    command: Some(&["scripts", "run"]),
    verb: Verb::Post,
    route: "/v1/scripts/{name}/run",
    params: &[
        NAME,
        Param {
            name: "arguments",
            kind: ParamKind::Object,
            place: Place::Body,
            required: false,
            doc: "The script's arguments: members of its `input`.",
        },
        TIMEOUT,
        PROJECT,
        PROGRESS,
        QUESTIONS,
    ],
    effect: OUTSIDE,
    title: "Run a saved script",
    summary: "Runs a saved script with arguments that fit its parameters, and gives the value that it returns.",
    needs: Needs::Start,
    answer: "CallToolResult",
};

pub(super) const SAVE: Op = Op {
    name: OpName::ScriptSave,
    id: "script_save",
    command: Some(&["scripts", "save"]),
    verb: Verb::Put,
    route: "/v1/scripts/{name}",
    params: &[NAME, text("code", Place::Body, true, "The script: TypeScript or JavaScript.")],
    effect: CHANGE,
    title: "Save a script",
    summary: "Saves a script under a name, in the place of an earlier one. A script that cannot run is \
              refused with line and column.",
    needs: Needs::Start,
    answer: "ScriptSaved",
};

pub(super) const REMOVE: Op = Op {
    name: OpName::ScriptRemove,
    id: "script_remove",
    command: Some(&["scripts", "remove"]),
    verb: Verb::Post,
    route: "/v1/scripts/{name}/remove",
    params: &[NAME],
    effect: END,
    title: "Remove a saved script",
    summary: "Removes a saved script.",
    needs: Needs::Start,
    answer: "ScriptRemoved",
};
