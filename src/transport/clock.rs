//! The only place that reads clocks and draws randomness.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::protocol::hex::hex;

/// The monotonic clock, derived from tokio's so that a paused test clock holds.
#[expect(clippy::disallowed_methods, reason = "the one sanctioned use")]
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Wall-clock time since 1970.
#[expect(clippy::disallowed_methods, reason = "the one sanctioned use")]
pub fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The system's monotonic clock, as other programs read it.
pub fn monotonic() -> Duration {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    // Every system that we run on has it.
    now.map(Duration::from).unwrap_or_default()
}

/// Random bytes for a secret: none where the system has none.
pub fn secret<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

/// Random bytes from the operating system.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Failing entropy leaves zeros: jitter and ids stay valid, only less random.
    let _ = getrandom::fill(&mut bytes);
    bytes
}

/// A name of 128 random bits in hexadecimal, which nobody guesses.
pub fn random_name() -> String {
    const BYTES: usize = 16;
    hex(&random::<BYTES>())
}
