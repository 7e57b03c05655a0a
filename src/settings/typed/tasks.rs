//! How calls become tasks, and how long tasks are kept.

use std::time::Duration;

use super::Values;

/// Tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskSettings {
    /// `tasks.eager`: how long a call has to end or to ask before it becomes a task (T-04).
    pub eager: Duration,
    /// `tasks.after`: the same for tools that say nothing of tasks (T-07); zero never.
    pub after: Duration,
    /// `tasks.ttl`.
    pub ttl: Duration,
    /// `tasks.max_ttl`.
    pub max_ttl: Duration,
    /// `tasks.max`: tasks that are kept.
    pub most: usize,
    /// `tasks.poll_interval`.
    pub poll: Duration,
    /// `tasks.poll_min`: the shortest rest between two looks after a task of an upstream.
    pub poll_min: Duration,
    /// `tasks.poll_max`: the longest.
    pub poll_max: Duration,
    /// `tasks.page`: tasks on one page of `tasks/list`.
    pub page: usize,
}

impl TaskSettings {
    pub(super) fn of(values: &Values<'_>) -> Self {
        Self {
            eager: values.time("tasks.eager"),
            after: values.time("tasks.after"),
            ttl: values.time("tasks.ttl"),
            max_ttl: values.time("tasks.max_ttl"),
            most: values.count("tasks.max"),
            poll: values.time("tasks.poll_interval"),
            poll_min: values.time("tasks.poll_min"),
            poll_max: values.time("tasks.poll_max"),
            page: values.count("tasks.page"),
        }
    }
}
