//! What goes into and comes out of an upstream session, as values.

use std::time::Duration;

use super::exchange::{Exchange, HttpConfig, HttpFailure};
use crate::protocol::Notice;
use crate::protocol::era_record::{EraRecord, EraSource};
use crate::protocol::jsonrpc::{Frame, Method, RawJson, RpcError};
use crate::protocol::model::logging::LogMessage;
use crate::protocol::model::questions::Question;
use crate::protocol::model::tasks::Support;
use crate::protocol::revision::Revision;
use crate::protocol::session::Limit;
use crate::protocol::session::pending::{CallLimits, LogWant};
use crate::protocol::session::probe::Preference;

/// What a connection is opened with.
#[derive(Debug, Clone)]
pub struct UpstreamConfig {
    /// Which request goes first (U-05).
    pub preference: Preference,
    /// A version pin: only this revision is offered and accepted (U-02).
    pub pin: Option<Revision>,
    /// What the era cache remembers of this server; ignored by force values (U-17).
    pub remembered: Option<EraRecord>,
    /// Our identity as `clientInfo`, newest shape.
    pub info: RawJson,
    /// What we declare at a handshake, newest shape (U-34, U-36). A modern upstream is told with each
    /// call what can be asked in its course ([`Call::declared`]), and nothing otherwise.
    pub capabilities: RawJson,
    /// Most questions of the upstream that may be open at a time (`elicit.max_open`).
    pub most_questions: usize,
    /// Limits of the opening and of lists.
    pub timings: OpeningTimings,
    /// Set where the server is reached over Streamable HTTP; the session then puts out
    /// [`UpstreamOutput::Exchange`] and never [`UpstreamOutput::Send`].
    pub http: Option<HttpConfig>,
}

/// Limits of the opening and of lists; each names its setting when it fires.
#[derive(Debug, Clone)]
pub struct OpeningTimings {
    /// How long a stdio probe waits before `initialize` is tried beside it (`upstream.probe_patience`).
    pub probe_patience: Duration,
    /// Longest opening in all, from the start of the process (`upstream.handshake_timeout`).
    pub handshake: Duration,
    /// Longest reading of one list, all pages together (`upstream.list_timeout`).
    pub list: Duration,
    /// Most pages of one list (`upstream.list_max_pages`).
    pub list_max_pages: usize,
    /// Most tools of one list (`upstream.list_max_items`).
    pub list_max_items: usize,
    /// How often each version is offered after -32022 (`upstream.version_attempts`, U-14).
    pub version_attempts: u32,
    /// The rest before a listen stream that has ended is opened again
    /// (`upstream.listen_reopen_delay`, U-43).
    pub listen_reopen: Duration,
    /// How long after the idle limit of a call the wedge check waits for an answer
    /// (`upstream.ping_timeout`, P-13).
    pub ping: Duration,
}

/// A call in newest shape.
#[derive(Debug)]
pub struct Call<S> {
    /// From [`super::Pending::take_id`].
    pub id: u64,
    /// What is asked.
    pub method: Method,
    /// Newest-shape parameters, without envelope keys and without a progress token.
    pub params: RawJson,
    /// Whether progress is wanted; only then is a token sent (F37).
    pub wants_progress: bool,
    /// What its caller wants to hear of the log.
    pub log: Option<LogWant>,
    /// Whose call it is: a question that does not say to which call it belongs is put to one of a
    /// host. None where the call is all that there is of its host.
    pub host: Option<u64>,
    /// What can be asked in its course, newest shape: told to a modern upstream, while a legacy one
    /// was told at its handshake (U-35).
    pub declared: Option<RawJson>,
    /// That it may be answered by a task.
    pub task: Option<TaskWant>,
    /// Its limits.
    pub limits: CallLimits,
    /// Where its news go.
    pub sink: S,
}

/// That a call may be answered by a task; without it no server is asked for one, and one that cannot
/// do otherwise refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskWant {
    /// How long the task is to be kept from its creation on. Only 2025-11-25 can be told; a server may
    /// choose another time.
    pub ttl: Duration,
    /// What its tool says of tasks, which 2025-11-25 goes by.
    pub support: Support,
    /// Asks for one wherever there may be one; else only where there is no other way, and the caller
    /// waits for it.
    pub eager: bool,
}

/// What the opening settled.
#[derive(Debug, Clone)]
pub struct Settled {
    /// The revision agreed.
    pub revision: Revision,
    /// How the era became known (`probe`, `cache`, `forced`).
    pub source: EraSource,
    /// To be remembered; `None` where a force value or a pin ignores the cache. The remembered record
    /// itself where it was right, else a new one, without its time ([`EraRecord::learned_at`]).
    pub record: Option<EraRecord>,
    /// The cached era was wrong (`server.era.stale`).
    pub stale: bool,
    /// `serverInfo` as it came, from the right place per era (U-53).
    pub info: Option<RawJson>,
    /// Server capabilities as they came, newest shape.
    pub capabilities: RawJson,
    /// The server's instructions.
    pub instructions: Option<String>,
    /// The session that a legacy HTTP server opened, cut short for people.
    pub session: Option<String>,
}

/// Why an opening failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The server answered with a revision mcpx does not speak (U-03, F26).
    #[error("the server answered with revision {answered:?}; mcpx speaks {}", spoken())]
    Version {
        /// What it said, `""` where nothing.
        answered: String,
    },
    /// Pinned to a revision the server does not accept.
    #[error("pinned to revision {pinned}, but the server offers {offered}")]
    Pinned {
        /// The pin.
        pinned: Revision,
        /// What the server said.
        offered: String,
    },
    /// `initialize` (and, where tried, `server/discover`) was refused.
    #[error("the server refused the handshake: {code} {message}")]
    Refused {
        /// The peer's code.
        code: i64,
        /// The peer's words.
        message: String,
    },
    /// An answer that cannot be one: no object, no `protocolVersion`.
    #[error("the server's handshake answer is unusable: {0}")]
    Unusable(String),
    /// A limit struck.
    #[error("no usable handshake answer within {} (setting {})", .0.value, .0.setting)]
    TimedOut(Limit),
    /// The link ended first.
    #[error("the connection ended during the handshake: {0}")]
    Closed(String),
    /// A failing HTTP status, to the handshake or to the probe where no other opening is left.
    #[error("the server refused the handshake: {0}")]
    Http(HttpFailure),
    /// The server could not be reached over HTTP, or broke off; no era can be told from that (U-11).
    #[error("the server could not be reached: {0}")]
    Unreachable(String),
    /// Neither opening is known at this address: it may be a server of 2024-11-05's HTTP+SSE; open it
    /// again that way (U-41).
    #[error("the server refused both openings ({0}); it may speak HTTP+SSE")]
    TrySse(HttpFailure),
    /// The server ends its process on the probe; start it again with
    /// [`EraRecord::ended_on_probe`] as what is remembered, so that `initialize` goes first (F25 f).
    #[error("the server ended on `server/discover`; it is to be started again without the probe")]
    RestartLegacy,
}

fn spoken() -> String {
    Revision::ALL.map(Revision::as_str).join(", ")
}

/// The lists that an upstream may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListKind {
    /// `tools/list`.
    Tools,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
    /// `prompts/list`.
    Prompts,
}

impl ListKind {
    /// All of them; tools first, which most callers wait for.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    /// The request that reads it.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The capability that a server with such a list declares.
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::Templates => "resources",
            Self::Prompts => "prompts",
        }
    }

    /// The notification that it has changed; templates have none of their own.
    pub const fn changed_method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
        }
    }

    /// The member of an item that tells it from the others.
    pub const fn item_key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// The items in texts.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resource templates",
            Self::Prompts => "prompts",
        }
    }
}

/// A list as read from an upstream.
#[derive(Debug, Clone, Default)]
pub struct ListRead {
    /// The items, each as it came (lifted), in the server's order; duplicates removed (F40).
    pub items: Vec<RawJson>,
    /// Why it is not whole, where it is not (F39): a bad page, a repeated cursor, a limit.
    pub incomplete: Option<String>,
    /// The last page's `ttlMs` / `cacheScope`, where given.
    pub ttl_ms: Option<u64>,
}

/// What the owner must do.
#[derive(Debug)]
pub enum UpstreamOutput {
    /// Write this frame to the upstream.
    Send(Frame),
    /// Make this request to the upstream and report what comes of it.
    Exchange(Exchange),
    /// End an exchange at once, its connection with it; nothing more of it is reported.
    Drop {
        /// Which.
        tag: u64,
    },
    /// Act on this.
    Event(UpstreamEvent),
    /// Log this, and emit it as an event.
    Notice(Notice),
    /// End the link.
    Close(String),
}

/// What the upstream did.
#[derive(Debug)]
pub enum UpstreamEvent {
    /// The opening succeeded; calls are admitted from now on.
    Settled(Settled),
    /// The server had given its HTTP session up, and another was opened (U-40): what it remembered is
    /// gone (subscriptions, log level), and what it offers may be different.
    Renewed(Settled),
    /// The opening failed; the link is of no more use.
    OpenFailed(OpenError),
    /// A list was read (asked by [`super::UpstreamSession::read_list`] or after a `list_changed`).
    /// One that the upstream did not declare is empty.
    Listed(ListKind, Result<ListRead, String>),
    /// The upstream says that a list changed; the session reads it again by itself, single flight.
    /// Resources stand for their templates, too, which have no notification of their own.
    Changed(ListKind),
    /// A legacy upstream logged something while no call was on the wire.
    Log(LogMessage),
    /// Whether it tells of a resource from now on, for each one that is new in
    /// [`super::UpstreamSession::watch`]; once more where that changes.
    Watched {
        /// Which.
        uri: String,
        /// What it said.
        outcome: Result<(), RpcError>,
    },
    /// A resource has changed; it may be one below one that is watched.
    Updated {
        /// Which.
        uri: String,
    },
    /// It said something by itself that is none of the protocol's notifications.
    Foreign {
        /// Its method.
        method: Method,
        /// Its parameters, as they came.
        params: Option<RawJson>,
    },
    /// A legacy upstream asks something that is about no call, or about nobody knows which. Answered
    /// by [`super::UpstreamSession::answer_question`]; one that asks in the course of a call is
    /// heard by that call's sink.
    Asked {
        /// The connection's number for it.
        number: u64,
        /// It.
        question: Question,
    },
    /// It no longer wants an answer to such a question.
    Withdrawn {
        /// Which.
        number: u64,
    },
    /// What a person was sent to do at a url is done (2025-11-25, client/elicitation).
    Completed {
        /// The question's `elicitationId`.
        id: RawJson,
    },
    /// It asks in the course of calls without saying of which (product.md 8); told once.
    Interactive,
    /// It said something of a task by itself.
    TaskChanged {
        /// Which.
        id: String,
    },
    /// A line on its standard output that is no message, for its log (F04); the head of it.
    Noise(String),
    /// It did not answer a liveness check within its limit (P-13): restart it.
    Wedged(Limit),
}
