//! The control socket: where it is, who may connect, and the stale file of a dead daemon.
