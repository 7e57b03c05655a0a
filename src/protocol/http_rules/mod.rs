//! What HTTP adds to MCP, as pure rules over headers: which a request carries, which a server must
//! refuse, who may ask. Nothing here knows a socket; `http` lends its types and no more.

pub mod headers;
pub mod origin;
pub mod param_headers;
pub mod post;
