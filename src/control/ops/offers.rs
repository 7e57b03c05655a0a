//! Ops on what servers offer that have more to say than a row of the table has room for.

use super::{Needs, Op, OpName, PROBE, Param, ParamKind, Place, Verb, text};

pub(super) const SEARCH: Op = Op {
    name: OpName::Search,
    id: "search",
    command: Some(&["search"]),
    verb: Verb::Get,
    route: "/v1/search",
    params: &[
        text("query", Place::Query, true, "Words that say what a tool is to do."),
        text("namespace", Place::Query, false, "Only tools of this namespace."),
        Param {
            name: "limit",
            kind: ParamKind::Count,
            place: Place::Query,
            required: false,
            doc: "At most so many tools; `search.results` where it is not given.",
        },
        text("project", Place::Query, false, "The project folder for which servers are started."),
    ],
    effect: PROBE,
    title: "Search tools",
    summary: "Finds the tools of all servers, or of one, that fit some words, the best first. A \
              server that was never listed is started for it; no other needs to run.",
    needs: Needs::Start,
    answer: "SearchAnswer",
};

pub(super) const TYPES: Op = Op {
    name: OpName::Types,
    id: "types",
    command: Some(&["types"]),
    verb: Verb::Post,
    route: "/v1/types",
    params: &[
        text("namespace", Place::Body, false, "The namespace of the server."),
        Param {
            name: "tools",
            kind: ParamKind::Texts,
            place: Place::Body,
            required: false,
            doc: "Only these of its tools.",
        },
        Param {
            name: "all",
            kind: ParamKind::Switch,
            place: Place::Body,
            required: false,
            doc: "The tools of all servers, with everything else that scripts find.",
        },
        text("project", Place::Body, false, "The project folder for which servers are started."),
    ],
    effect: PROBE,
    title: "Show tools as TypeScript",
    summary: "Declares the tools of a server as TypeScript, as scripts call them; without a server, \
              what else scripts find. A server that was never listed is started for it.",
    needs: Needs::Start,
    answer: "TypesAnswer",
};
