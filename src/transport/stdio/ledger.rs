//! What child processes this daemon has started, on disk: so that the next daemon finds and ends
//! those that a killed one left behind, by what was recorded and never by name.
//!
//! A record is pid, process start time, process group, and a random marker that stands in the
//! child's environment (`MCPX_SPAWN`); descendants that left the group still carry the marker.
