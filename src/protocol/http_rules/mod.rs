//! What HTTP adds to MCP, as pure rules over headers: which a request carries, and which a server must
//! refuse. Nothing here knows a socket; `http` lends its types and no more.

pub mod headers;
