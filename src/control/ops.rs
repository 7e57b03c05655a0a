//! The table of ops. A row is written once; command, route, description and MCP tool follow (D-10).

mod exec;
mod inside;
mod offers;
mod questions;
mod scripts;
mod tasks;

/// An op, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpName {
    /// Servers, instances and hosts.
    Status,
    /// A fresh start of a server.
    Restart,
    /// No instances until it is started again.
    Stop,
    /// The end of `Stop` and of parking.
    Start,
    /// The configuration is read again.
    Reload,
    /// The catalog.
    Tools,
    /// The tools that fit some words.
    Search,
    /// Tools as TypeScript.
    Types,
    /// The resources of the catalog.
    Resources,
    /// One resource is read.
    Read,
    /// The prompts of the catalog.
    Prompts,
    /// One prompt is filled in.
    Prompt,
    /// One tool is called.
    Call,
    /// The same, for callers who want the error flag beside the result.
    Ask,
    /// A script is run.
    Exec,
    /// The questions that wait for a person.
    ElicitList,
    /// One of them.
    ElicitShow,
    /// One is answered.
    ElicitAnswer,
    /// One is declined.
    ElicitDecline,
    /// One is dismissed.
    ElicitCancel,
    /// Saved scripts.
    Scripts,
    /// One of them.
    Script,
    /// One is run.
    ScriptRun,
    /// One is saved.
    ScriptSave,
    /// One is removed.
    ScriptRemove,
    /// Calls that nobody waits for.
    Tasks,
    /// One of them.
    Task,
    /// One of them is given up.
    TaskCancel,
    /// What servers wrote to stderr.
    Logs,
    /// What happened.
    Events,
    /// Which calls were made.
    Audit,
    /// Messages to and from a server.
    Trace,
    /// The supervision tree.
    Tree,
    /// Settings in force.
    SettingsGet,
    /// Settings changed at run time.
    SettingsSet,
    /// The configuration in force.
    Config,
    /// How servers are spoken to.
    Protocol,
    /// Where and how hosts are served over HTTP.
    Http,
    /// Whether the daemon is well.
    Health,
    /// What does not work.
    Doctor,
    /// The daemon's version.
    Version,
    /// The end of the daemon.
    Shutdown,
}

/// HTTP methods of the control API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads.
    Get,
    /// Acts.
    Post,
    /// Sets.
    Put,
}

impl Verb {
    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// Where a parameter stands in the HTTP request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A segment of the path.
    Path,
    /// The query.
    Query,
    /// A member of the body.
    Body,
}

/// What a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// Text.
    Text,
    /// On or off.
    Switch,
    /// A whole number from 0.
    Count,
    /// A JSON object.
    Object,
    /// Any JSON.
    Any,
    /// A list of texts.
    Texts,
}

/// One parameter.
#[derive(Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: ParamKind,
    /// Where it stands.
    pub place: Place,
    /// Whether it must be given.
    pub required: bool,
    /// What it does.
    pub doc: &'static str,
}

/// What an op does to the world; becomes the annotations of its MCP tool (H-50, H-51).
#[expect(clippy::struct_excessive_bools, reason = "the four hints of an MCP tool")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    /// Changes nothing.
    pub read_only: bool,
    /// May undo or end something.
    pub destructive: bool,
    /// Doing it twice is doing it once.
    pub idempotent: bool,
    /// Reaches beyond the daemon.
    pub open_world: bool,
}

/// What the command does where no daemon runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Starts one (`shim.autostart`).
    Start,
    /// Says so, and exits with 3.
    Running,
}

/// One row.
#[derive(Debug, PartialEq, Eq)]
pub struct Op {
    /// The op.
    pub name: OpName,
    /// Its name as text: of the `OpenAPI` operation, and after `mcpx_` of the MCP tool.
    pub id: &'static str,
    /// The command's words, where it has a command.
    pub command: Option<&'static [&'static str]>,
    /// The HTTP method.
    pub verb: Verb,
    /// The route; `{name}` is a path parameter.
    pub route: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// What it does to the world.
    pub effect: Effect,
    /// A few words.
    pub title: &'static str,
    /// A sentence or two.
    pub summary: &'static str,
    /// What its command does where no daemon runs.
    pub needs: Needs,
    /// The type in [`super::types`] of its answer.
    pub answer: &'static str,
}

const READ: Effect =
    Effect { read_only: true, destructive: false, idempotent: true, open_world: false };
const CHANGE: Effect =
    Effect { read_only: false, destructive: false, idempotent: true, open_world: false };
const END: Effect =
    Effect { read_only: false, destructive: true, idempotent: true, open_world: false };
const OUTSIDE: Effect =
    Effect { read_only: false, destructive: true, idempotent: false, open_world: true };
/// Starts servers, which may reach anywhere, but changes nothing by itself.
const PROBE: Effect =
    Effect { read_only: true, destructive: false, idempotent: true, open_world: true };

const fn text(name: &'static str, place: Place, required: bool, doc: &'static str) -> Param {
    Param { name, kind: ParamKind::Text, place, required, doc }
}

const SERVER: Param = text("server", Place::Path, true, "The server's key or namespace.");
const SOME_SERVER: Param =
    text("server", Place::Query, false, "Only this server, by key or namespace.");

const fn follow(doc: &'static str) -> Param {
    Param { name: "follow", kind: ParamKind::Switch, place: Place::Query, required: false, doc }
}

/// Of every list of what servers offer.
const LIST_PARAMS: &[Param] = &[
    text("namespace", Place::Query, false, "Only what this namespace offers."),
    text("project", Place::Query, false, "The project folder for which servers are started."),
];

const CALL_PARAMS: &[Param] = &[
    text("namespace", Place::Body, true, "The namespace of the server."),
    text("tool", Place::Body, true, "The tool, by the server's own name for it."),
    Param {
        name: "arguments",
        kind: ParamKind::Object,
        place: Place::Body,
        required: false,
        doc: "The tool's arguments.",
    },
    text("project", Place::Body, false, "The project folder on whose behalf it is called."),
    Param {
        name: "progress",
        kind: ParamKind::Switch,
        place: Place::Body,
        required: false,
        doc: "Whether progress is sent as events before the result.",
    },
    text(
        "questions",
        Place::Body,
        false,
        "Questions of this call are sent as events and kept: `here` where a person at this end answers \
         them, `elsewhere` where they are only shown.",
    ),
];

/// Every op, in the order of the help.
pub const OPS: &[Op] = &[
    Op {
        name: OpName::Status,
        id: "status",
        command: Some(&["status"]),
        verb: Verb::Get,
        route: "/v1/status",
        params: &[SOME_SERVER],
        effect: READ,
        title: "Status",
        summary: "Shows the servers with state, instances, processes and restarts, and the hosts.",
        needs: Needs::Running,
        answer: "StatusAnswer",
    },
    Op {
        name: OpName::Restart,
        id: "restart",
        command: Some(&["restart"]),
        verb: Verb::Post,
        route: "/v1/servers/{server}/restart",
        params: &[SERVER],
        effect: END,
        title: "Restart a server",
        summary: "Stops a server's instances and forgets its failures; the next call starts it \
                  afresh. Leaves the parked state.",
        needs: Needs::Running,
        answer: "ServerChanged",
    },
    Op {
        name: OpName::Stop,
        id: "stop",
        command: Some(&["stop"]),
        verb: Verb::Post,
        route: "/v1/servers/{server}/stop",
        params: &[SERVER],
        effect: END,
        title: "Stop a server",
        summary: "Stops a server's instances; calls are refused until it is started again.",
        needs: Needs::Running,
        answer: "ServerChanged",
    },
    Op {
        name: OpName::Start,
        id: "start",
        command: Some(&["start"]),
        verb: Verb::Post,
        route: "/v1/servers/{server}/start",
        params: &[SERVER],
        effect: CHANGE,
        title: "Start a server",
        summary: "Lets a stopped or parked server take calls again.",
        needs: Needs::Start,
        answer: "ServerChanged",
    },
    Op {
        name: OpName::Reload,
        id: "reload",
        command: Some(&["reload"]),
        verb: Verb::Post,
        route: "/v1/reload",
        params: &[],
        effect: CHANGE,
        title: "Reload the configuration",
        summary: "Reads the configuration again; only servers that changed are restarted. One \
                  with mistakes leaves the present one in force.",
        needs: Needs::Running,
        answer: "ReloadAnswer",
    },
    Op {
        name: OpName::Tools,
        id: "tools",
        command: Some(&["tools"]),
        verb: Verb::Get,
        route: "/v1/tools",
        params: LIST_PARAMS,
        effect: PROBE,
        title: "List tools",
        summary: "Lists the tools of all servers, or of one, with their schemas. A server that \
                  was never listed is started for it.",
        needs: Needs::Start,
        answer: "ToolsAnswer",
    },
    offers::SEARCH,
    offers::TYPES,
    Op {
        name: OpName::Resources,
        id: "resources",
        command: Some(&["resources"]),
        verb: Verb::Get,
        route: "/v1/resources",
        params: LIST_PARAMS,
        effect: PROBE,
        title: "List resources",
        summary: "Lists the resources and resource templates of all servers, or of one, with the \
                  addresses to read them by. A server that was never listed is started for it.",
        needs: Needs::Start,
        answer: "ResourcesAnswer",
    },
    Op {
        name: OpName::Read,
        id: "read",
        command: Some(&["read"]),
        verb: Verb::Post,
        route: "/v1/read",
        params: &[
            text("uri", Place::Body, true, "Its address, as `resources` gives it."),
            text("project", Place::Body, false, "The project folder on whose behalf it is read."),
        ],
        effect: PROBE,
        title: "Read a resource",
        summary: "Reads one resource and gives its contents as the server sent them.",
        needs: Needs::Start,
        answer: "ReadResourceResult",
    },
    Op {
        name: OpName::Prompts,
        id: "prompts",
        command: Some(&["prompts"]),
        verb: Verb::Get,
        route: "/v1/prompts",
        params: LIST_PARAMS,
        effect: PROBE,
        title: "List prompts",
        summary: "Lists the prompts of all servers, or of one, with their arguments. A server that \
                  was never listed is started for it.",
        needs: Needs::Start,
        answer: "PromptsAnswer",
    },
    Op {
        name: OpName::Prompt,
        id: "prompt",
        command: Some(&["prompt"]),
        verb: Verb::Post,
        route: "/v1/prompt",
        params: &[
            text("namespace", Place::Body, true, "The namespace of the server."),
            text("prompt", Place::Body, true, "The prompt, by the server's own name for it."),
            Param {
                name: "arguments",
                kind: ParamKind::Object,
                place: Place::Body,
                required: false,
                doc: "The prompt's arguments, all of them texts.",
            },
            text("project", Place::Body, false, "The project folder on whose behalf it is asked."),
        ],
        effect: PROBE,
        title: "Fill in a prompt",
        summary: "Has a server fill in one of its prompts and gives the messages as it sent them.",
        needs: Needs::Start,
        answer: "GetPromptResult",
    },
    Op {
        name: OpName::Call,
        id: "call",
        command: Some(&["call"]),
        verb: Verb::Post,
        route: "/v1/call",
        params: CALL_PARAMS,
        effect: OUTSIDE,
        title: "Call a tool",
        summary: "Calls one tool and gives its result as the server sent it, `isError` included.",
        needs: Needs::Start,
        answer: "CallToolResult",
    },
    Op {
        name: OpName::Ask,
        id: "ask",
        // `mcpx call` does the same for people.
        command: None,
        verb: Verb::Post,
        route: "/v1/ask",
        params: CALL_PARAMS,
        effect: OUTSIDE,
        title: "Call a tool, told apart",
        summary: "Calls one tool and gives its result with a flag beside it that says whether \
                  the tool failed.",
        needs: Needs::Start,
        answer: "AskAnswer",
    },
    exec::EXEC,
    scripts::LIST,
    scripts::SHOW,
    scripts::RUN,
    scripts::SAVE,
    scripts::REMOVE,
    tasks::LIST,
    tasks::GET,
    tasks::CANCEL,
    questions::LIST,
    questions::SHOW,
    questions::ANSWER,
    questions::DECLINE,
    questions::CANCEL,
    Op {
        name: OpName::Logs,
        id: "logs",
        command: Some(&["logs"]),
        verb: Verb::Get,
        route: "/v1/logs",
        params: &[
            SOME_SERVER,
            Param {
                name: "lines",
                kind: ParamKind::Count,
                place: Place::Query,
                required: false,
                doc: "So many lines of each instance; `cli.log_lines` where it is not given.",
            },
            follow("Go on with new lines, as a stream of events."),
        ],
        effect: READ,
        title: "Show logs",
        summary: "Shows what servers wrote to stderr.",
        needs: Needs::Running,
        answer: "LogsAnswer",
    },
    inside::EVENTS,
    inside::AUDIT,
    inside::TRACE,
    inside::TREE,
    Op {
        name: OpName::SettingsGet,
        id: "settings_get",
        command: Some(&["settings", "get"]),
        verb: Verb::Get,
        route: "/v1/settings",
        params: &[text("key", Place::Query, false, "Only this setting, or this section.")],
        effect: READ,
        title: "Show settings",
        summary: "Shows settings with their values in force and who said so.",
        needs: Needs::Running,
        answer: "SettingsAnswer",
    },
    Op {
        name: OpName::SettingsSet,
        id: "settings_set",
        command: Some(&["settings", "set"]),
        verb: Verb::Put,
        route: "/v1/settings",
        params: &[Param {
            name: "settings",
            kind: ParamKind::Object,
            place: Place::Body,
            required: true,
            doc: "Names and values; null forgets what was set before.",
        }],
        effect: CHANGE,
        title: "Change settings",
        summary: "Changes settings of the running daemon and keeps them for its next starts.",
        needs: Needs::Running,
        answer: "SettingsChanged",
    },
    Op {
        name: OpName::Config,
        id: "config",
        command: Some(&["config", "show"]),
        verb: Verb::Get,
        route: "/v1/config",
        params: &[],
        effect: READ,
        title: "Show the configuration",
        summary: "Shows the configuration in force in canonical form.",
        needs: Needs::Running,
        answer: "ConfigAnswer",
    },
    Op {
        name: OpName::Protocol,
        id: "protocol",
        command: Some(&["protocol"]),
        verb: Verb::Get,
        route: "/v1/protocol",
        params: &[],
        effect: READ,
        title: "Show protocol eras",
        summary: "Shows for each server which era and revision it is spoken to in, and how that \
                  became known.",
        needs: Needs::Running,
        answer: "ProtocolAnswer",
    },
    Op {
        name: OpName::Http,
        id: "http",
        // `mcpx status --http`.
        command: None,
        verb: Verb::Get,
        route: "/v1/http",
        params: &[],
        effect: READ,
        title: "Hosts over HTTP",
        summary: "Shows the address for hosts over HTTP and the token that they need.",
        needs: Needs::Running,
        answer: "HttpAnswer",
    },
    Op {
        name: OpName::Health,
        id: "health",
        command: Some(&["health"]),
        verb: Verb::Get,
        route: "/v1/health",
        params: &[],
        effect: READ,
        title: "Health",
        summary: "Says whether the daemon serves hosts and which servers are in trouble.",
        needs: Needs::Running,
        answer: "HealthAnswer",
    },
    Op {
        name: OpName::Doctor,
        id: "doctor",
        command: Some(&["doctor"]),
        verb: Verb::Post,
        route: "/v1/doctor",
        params: &[SOME_SERVER],
        effect: PROBE,
        title: "Find what does not work",
        summary: "Starts each server and looks at programs, folders and socket as the daemon \
                  sees them; each finding says how it is mended.",
        needs: Needs::Start,
        answer: "DoctorAnswer",
    },
    Op {
        name: OpName::Version,
        id: "version",
        command: Some(&["version"]),
        verb: Verb::Get,
        route: "/v1/version",
        params: &[],
        effect: READ,
        title: "Version",
        summary: "Shows the versions of this program and of the running daemon.",
        needs: Needs::Running,
        answer: "VersionAnswer",
    },
    Op {
        name: OpName::Shutdown,
        id: "shutdown",
        // `mcpx stop --daemon`.
        command: None,
        verb: Verb::Post,
        route: "/v1/shutdown",
        params: &[],
        effect: END,
        title: "Stop the daemon",
        summary: "Ends the daemon after hosts' calls have finished, and every server with it.",
        needs: Needs::Running,
        answer: "ShutdownAnswer",
    },
];

impl OpName {
    /// Its row.
    pub fn row(self) -> &'static Op {
        // Every name has a row: a test holds it. The first row is never reached for another name.
        OPS.iter().find(|op| op.name == self).unwrap_or(FIRST)
    }
}

const FIRST: &Op = match OPS.first() {
    Some(op) => op,
    None => panic!("the table of ops has rows"),
};

/// The op of a name as text.
pub fn find(id: &str) -> Option<&'static Op> {
    OPS.iter().find(|op| op.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_routes_and_commands_are_unambiguous() {
        let ids: BTreeSet<_> = OPS.iter().map(|op| op.id).collect();
        let routes: BTreeSet<_> = OPS.iter().map(|op| (op.verb.as_str(), op.route)).collect();
        let commands: Vec<_> = OPS.iter().filter_map(|op| op.command).collect();
        let distinct: BTreeSet<_> = commands.iter().collect();
        assert_eq!((ids.len(), routes.len()), (OPS.len(), OPS.len()));
        assert_eq!(distinct.len(), commands.len());
        for op in OPS {
            assert_eq!(op.name.row().id, op.id);
            assert!(op.route.starts_with("/v1/"), "{}", op.route);
        }
    }

    #[test]
    fn path_parameters_stand_in_the_route_and_reading_ops_have_no_body() {
        for op in OPS {
            for param in op.params {
                let in_route = op.route.contains(&format!("{{{}}}", param.name));
                assert_eq!(in_route, param.place == Place::Path, "{} {}", op.id, param.name);
                assert!(op.verb != Verb::Get || param.place != Place::Body, "{}", op.id);
            }
            assert!(!op.effect.read_only || !op.effect.destructive, "{}", op.id);
        }
    }
}
