//! Rules for MCP over HTTP that need no connection: who may ask, what headers say.

pub mod origin;
