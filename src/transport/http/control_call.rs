//! Requests to the control socket, for the command line and the shim.
