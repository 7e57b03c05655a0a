//! JSON-RPC 2.0 as the specification uses it: ids kept as written, payloads kept as raw text.

mod code;
mod id;
mod message;
mod object;
mod parse;
mod raw;
pub mod scan;

pub use code::{Code, RpcError};
pub use id::{BadId, Id};
pub use message::{Message, Method, Notification, Request, Response};
pub use object::Object;
pub use parse::{Incoming, Malformed, parse};
pub use raw::{BadJson, RawJson};
