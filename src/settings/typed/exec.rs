//! How scripts are run, and what they may use.

use std::time::Duration;

use super::Values;

/// Scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecSettings {
    /// `exec.timeout`: one run in all.
    pub timeout: Duration,
    /// `exec.cpu_time`.
    pub cpu_time: Duration,
    /// `exec.max_source`: a script, in bytes.
    pub max_source: usize,
    /// `exec.memory`, in bytes.
    pub memory: usize,
    /// `exec.stack`, in bytes.
    pub stack: usize,
    /// `exec.max_calls`: calls of one run.
    pub max_calls: usize,
    /// `exec.concurrent_calls`: of these at once.
    pub concurrent_calls: usize,
    /// `exec.output_limit`: the returned value, in bytes.
    pub output_limit: usize,
    /// `exec.log_limit`: what `console` is told, in bytes.
    pub log_limit: usize,
    /// `exec.max_artifacts`: of one run.
    pub max_artifacts: usize,
    /// `exec.max_running`: runs at once.
    pub max_running: usize,
    /// `exec.max_waiting`: runs that wait for others.
    pub max_waiting: usize,
    /// `exec.warm`: sandboxes that stand ready.
    pub warm: usize,
    /// `exec.warm_idle`: for how long, while no run begins.
    pub warm_idle: Duration,
    /// `exec.warm_delay`: from the begin of a script to the start of the next sandbox.
    pub warm_delay: Duration,
    /// `exec.start_timeout`: until a sandbox has started.
    pub start: Duration,
}

impl ExecSettings {
    pub(super) fn of(values: &Values<'_>) -> Self {
        Self {
            timeout: values.time("exec.timeout"),
            cpu_time: values.time("exec.cpu_time"),
            max_source: values.count("exec.max_source"),
            memory: values.count("exec.memory"),
            stack: values.count("exec.stack"),
            max_calls: values.count("exec.max_calls"),
            concurrent_calls: values.count("exec.concurrent_calls"),
            output_limit: values.count("exec.output_limit"),
            log_limit: values.count("exec.log_limit"),
            max_artifacts: values.count("exec.max_artifacts"),
            max_running: values.count("exec.max_running"),
            max_waiting: values.count("exec.max_waiting"),
            warm: values.count("exec.warm"),
            warm_idle: values.time("exec.warm_idle"),
            warm_delay: values.time("exec.warm_delay"),
            start: values.time("exec.start_timeout"),
        }
    }
}
