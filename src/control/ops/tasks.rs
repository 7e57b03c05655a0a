//! The ops on tasks.

use super::{END, Needs, Op, OpName, Param, Place, READ, Verb, text};

const TASK: Param = text("task", Place::Path, true, "The task's id, or enough of its beginning.");

pub(super) const LIST: Op = Op {
    name: OpName::Tasks,
    id: "tasks",
    command: Some(&["tasks", "list"]),
    verb: Verb::Get,
    route: "/v1/tasks",
    params: &[],
    effect: READ,
    title: "List tasks",
    summary: "Lists the calls that run as tasks, and those that have ended and are still kept.",
    needs: Needs::Running,
    answer: "TasksAnswer",
};

pub(super) const GET: Op = Op {
    name: OpName::Task,
    id: "task_get",
    command: Some(&["tasks", "get"]),
    verb: Verb::Get,
    route: "/v1/tasks/{task}",
    params: &[TASK],
    effect: READ,
    title: "Show a task",
    summary: "Shows how a task stands: what it asks, its result, or what it failed with.",
    needs: Needs::Running,
    answer: "TaskAnswer",
};

pub(super) const CANCEL: Op = Op {
    name: OpName::TaskCancel,
    id: "task_cancel",
    command: Some(&["tasks", "cancel"]),
    verb: Verb::Post,
    route: "/v1/tasks/{task}/cancel",
    params: &[TASK],
    effect: END,
    title: "Cancel a task",
    summary: "Gives a task up and cancels the call behind it; one that has ended stays as it is.",
    needs: Needs::Running,
    answer: "TaskCancelled",
};
