//! The reserved `_meta` keys, and finders for names that the edge looks for before it opens a text.

use std::sync::LazyLock;

use crate::protocol::jsonrpc::skim::KeyFinder;

/// Opts a request into progress; the only envelope key that legacy revisions have, too.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The revision of a modern request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Who sends a modern request.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// What the sender of a modern request can do.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The least level of log messages wanted for a modern request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Who gave a modern result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Which listen stream a modern notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Our own: a shim opens a listen stream once more, which broke with the daemon before.
pub const AGAIN: &str = "dev.mcpx/again";

/// The keys by which a request shows that it is a modern one (H-13).
pub(super) const ENVELOPE: [&str; 4] =
    [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL];

macro_rules! finders {
    ($($name:ident = $quoted:literal;)*) => {
        $(pub(super) static $name: LazyLock<KeyFinder> = LazyLock::new(|| KeyFinder::new($quoted));)*
    };
}

finders! {
    META = "_meta\"";
    OUTPUT_SCHEMA = "outputSchema\"";
    RESOURCE_LINK = "resource_link\"";
    AUDIO = "audio\"";
    ICONS = "icons\"";
    LAST_MODIFIED = "lastModified\"";
}
