//! Server-sent events (WHATWG HTML, 9.2): the stream that carries frames over HTTP.

pub mod decode;
pub mod encode;
