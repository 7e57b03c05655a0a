//! The environment: the daemon's own and the one a login shell would give (F34).
//!
//! The only reader of environment variables. The login environment is captured once, in the
//! background, by running the user's login shell with a limit; a daemon under systemd has a bare
//! PATH, and `npx` lives in `~/.nvm`.
