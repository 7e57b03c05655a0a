//! Typed views, in newest shape, of what mcpx itself writes or decides on. Unknown keys are kept.

pub mod answers;
pub mod extensions;
pub mod forms;
pub mod implementation;
pub mod links;
pub mod logging;
pub mod offer;
pub mod questions;
pub mod tasks;
pub mod tool;
pub mod tool_result;
pub mod trace_context;
