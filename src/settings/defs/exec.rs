//! Rows of the table: what scripts may use.

use super::{Def, GIB, HOUR, KIB, MIB, MS, NOW, WEEK, count, live, size, time};

pub(super) const ROWS: &[Def] = &[
    live(
        "exec.timeout",
        time(MS, WEEK),
        "Longest run of a script in all, without the time in which a modern host answers its questions; \
         longer than call.total_timeout, so that a call's own limit strikes first.",
    ),
    live(
        "exec.cpu_time",
        time(MS, HOUR),
        "Processor time that a script may use; waiting for calls costs none.",
    ),
    live("exec.max_source", size(KIB, 4 * MIB), "Longest script; data is given to it as `input`."),
    live("exec.memory", size(MIB, 16 * GIB), "Memory that a script may use."),
    live(
        "exec.stack",
        size(64 * KIB, 64 * MIB),
        "Stack that a script may use; deep recursion ends there.",
    ),
    live("exec.max_calls", count(1, 1_000_000), "Calls that one script may make in all."),
    live(
        "exec.concurrent_calls",
        count(1, 4096),
        "Calls of one script at once; more wait for their turn.",
    ),
    live("exec.output_limit", size(KIB, GIB), "Longest value, as JSON, that a script may return."),
    live(
        "exec.log_limit",
        size(0, GIB),
        "How much of what a script tells `console` is kept; what comes after it is dropped and counted.",
    ),
    live("exec.max_artifacts", count(0, 10_000), "Artifacts that one script may write."),
    live("exec.max_running", count(1, 4096), "Scripts that run at once; more wait."),
    live(
        "exec.max_waiting",
        count(0, 65_536),
        "Scripts that may wait for others to end; beyond it they are refused as busy.",
    ),
    live(
        "exec.warm",
        count(0, 64),
        "Sandboxes that are kept ready for the next scripts, from the first script on.",
    ),
    live(
        "exec.warm_idle",
        time(NOW, WEEK),
        "How long sandboxes are kept ready while no script is run.",
    ),
    live(
        "exec.warm_delay",
        time(NOW, HOUR),
        "How long after a script has begun a sandbox for the next one is started: the script goes first.",
    ),
    live("exec.start_timeout", time(MS, HOUR), "How long a sandbox may take to start."),
];
