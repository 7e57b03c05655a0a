//! Our own stdin and stdout as a link. The only writer to stdout outside `bin/mcpx/output.rs`.
