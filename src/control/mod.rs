//! What can be operated: the table of ops, and the requests and answers of the control API.
//!
//! One row of [`ops`] yields the command line's command, the `/v1` route with its `OpenAPI` description
//! and, behind `expose.ops`, an MCP tool (D-10). [`request`] turns a request of any of the three into
//! one typed [`OpCall`]; the actors execute it and answer with [`types`].

pub mod attach;
pub mod openapi;
pub mod ops;
pub mod request;
pub mod route;
mod samples;
pub mod types;
pub mod views;

pub use ops::{OPS, Op, OpName};
pub use request::OpCall;
pub use types::{ApiError, Failure};
