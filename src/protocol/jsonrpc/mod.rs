//! JSON-RPC 2.0 as the specification uses it: ids kept as written, payloads kept as raw text.

mod code;
mod frame;
mod id;
mod message;
mod object;
mod parse;
mod pretty;
mod raw;
pub mod scan;
pub(crate) mod skim;
pub(super) mod tokens;

pub use code::{Code, RESERVED_CODES, RpcError, URL_ELICITATION_REQUIRED};
pub use frame::Frame;
pub use id::{BadId, Id};
pub use message::{Message, Method, Notification, Request, Response};
pub use object::Object;
pub use parse::{Incoming, Malformed, parse, parse_noting, salvage_cut_id, salvage_id};
pub use pretty::pretty;
pub use raw::{BadJson, RawJson, present};
