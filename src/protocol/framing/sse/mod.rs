//! Event streams, `text/event-stream` (WHATWG HTML, "Server-sent events").

pub mod decode;
