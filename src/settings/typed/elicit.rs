//! Questions to hosts and people: how many, and how long they wait.

use std::time::Duration;

use super::Values;

/// Questions to hosts and people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElicitSettings {
    /// `elicit.hold`: how long a question is kept although nobody listens.
    pub hold: Duration,
    /// `elicit.linger`: how long a question is kept after the last who saw it has gone.
    pub linger: Duration,
    /// `elicit.timeout`: how long an answer is waited for.
    pub timeout: Duration,
    /// `elicit.max_open`: questions that may be open at once, of each connection and of all that wait
    /// for a person.
    pub max_open: usize,
    /// `elicit.keep_lost`: how long a daemon shows what an earlier one lost.
    pub keep_lost: Duration,
    /// `elicit.confirm_destructive`: whether calls that may destroy are confirmed (E-10).
    pub confirm_destructive: bool,
    /// `elicit.max_rounds`: how often a call may be asked.
    pub max_rounds: usize,
    /// `elicit.max_parked`: calls that wait for a host's next request.
    pub max_parked: usize,
    /// `elicit.state_ttl`: how long they wait.
    pub state_ttl: Duration,
    /// `elicit.turn`: how long they wait where others wait for them.
    pub turn: Duration,
    /// `elicit.gather`: how long further questions are waited for.
    pub gather: Duration,
}

impl ElicitSettings {
    pub(super) fn of(values: &Values<'_>) -> Self {
        Self {
            hold: values.time("elicit.hold"),
            linger: values.time("elicit.linger"),
            timeout: values.time("elicit.timeout"),
            max_open: values.count("elicit.max_open"),
            keep_lost: values.time("elicit.keep_lost"),
            confirm_destructive: values.switch("elicit.confirm_destructive"),
            max_rounds: values.count("elicit.max_rounds"),
            max_parked: values.count("elicit.max_parked"),
            state_ttl: values.time("elicit.state_ttl"),
            turn: values.time("elicit.turn"),
            gather: values.time("elicit.gather"),
        }
    }
}
