//! Bytes to frames over real IO, and the lives of processes and sockets.
//!
//! Its whole vocabulary: frame, byte, header, process, socket, file. It can say "the peer closed" or
//! "the frame is too large"; it never knows methods, tools, namespaces or revisions, and never
//! decides anything by a frame's meaning.

pub mod autostart;
pub mod clock;
pub mod environment;
pub mod http;
pub mod journal;
pub mod link;
pub mod process;
pub mod socket;
pub mod stdio;
pub mod store;
pub mod systemd;
pub mod task;
pub mod watch;

pub use link::{Link, LinkCloser, LinkEvent, LinkReader, LinkSender, LinkWriter};
