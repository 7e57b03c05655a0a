//! Ops on what goes on inside: events, the audit, traces of frames, the supervision tree.

use super::{
    Needs, Op, OpName, Param, ParamKind, Place, READ, SERVER, SOME_SERVER, Verb, follow, text,
};

pub(super) const EVENTS: Op = Op {
    name: OpName::Events,
    id: "events",
    command: Some(&["events"]),
    verb: Verb::Get,
    route: "/v1/events",
    params: &[
        follow("Go on with new events, as a stream; on unless `false` is given."),
        SOME_SERVER,
        text(
            "kind",
            Place::Query,
            false,
            "Only events of this kind, as in `server.crashed`, or of this family, as in `server`.",
        ),
    ],
    effect: READ,
    title: "Show events",
    summary: "Shows what happened: starts, ends, failures and warnings.",
    needs: Needs::Running,
    answer: "EventsAnswer",
};

pub(super) const AUDIT: Op = Op {
    name: OpName::Audit,
    id: "audit",
    command: Some(&["audit"]),
    verb: Verb::Get,
    route: "/v1/audit",
    params: &[
        text("since", Place::Query, false, "Only calls of this time before now, as in 10m or 1d."),
        SOME_SERVER,
        text(
            "outcome",
            Place::Query,
            false,
            "Only calls that ended so: ok, tool_error, error, asked, busy, timeout, unavailable, \
             outcome_unknown, not_confirmed or cancelled.",
        ),
        text("id", Place::Query, false, "Only the call of this id, which errors of mcpx carry."),
        Param {
            name: "limit",
            kind: ParamKind::Count,
            place: Place::Query,
            required: false,
            doc: "The last so many; `cli.log_lines` where it is not given, 0 for all.",
        },
        follow("Go on with new calls, as a stream of events."),
    ],
    effect: READ,
    title: "Show the audit",
    summary: "Shows which calls were made: by whom, of what, when, how long, and how they ended.",
    needs: Needs::Running,
    answer: "AuditAnswer",
};

pub(super) const TRACE: Op = Op {
    name: OpName::Trace,
    id: "trace",
    command: Some(&["trace"]),
    verb: Verb::Get,
    route: "/v1/servers/{server}/trace",
    params: &[
        SERVER,
        Param {
            name: "frames",
            kind: ParamKind::Count,
            place: Place::Query,
            required: false,
            doc: "The last so many; all that are kept where it is not given.",
        },
        follow("Go on with new frames, as a stream of events."),
    ],
    effect: READ,
    title: "Show messages to and from a server",
    summary: "Shows the last messages to and from a server, with secrets masked. They are kept from \
              the first time on that this is asked (`trace.linger`), or always (`trace.keep`).",
    needs: Needs::Running,
    answer: "TraceAnswer",
};

pub(super) const TREE: Op = Op {
    name: OpName::Tree,
    id: "tree",
    // `mcpx ps --tree`.
    command: None,
    verb: Verb::Get,
    route: "/v1/tree",
    params: &[],
    effect: READ,
    title: "Show the supervision tree",
    summary: "Shows the daemon's actors as they supervise each other, with states, and restarts with \
              their reasons.",
    needs: Needs::Running,
    answer: "TreeAnswer",
};
