//! What a server prints that is no message, beyond a rate (F04, F06, F32).
//!
//! Within `process.noise_rate` each such line is looked at for what may be in it and shown in the
//! server's log. Beyond it, until the second is over, lines without the mark of a message are only
//! counted; beyond `process.noise_bytes` nothing is read: whoever prints without end is held up by
//! its pipe and costs no more than that. Never an answer: those have the mark.

use bytes::Bytes;

use crate::protocol::jsonrpc::scan::may_be_message;
use crate::settings::typed::ProcessSettings;
use crate::transport::clock;
use crate::transport::stdio::flood::Rate;
use crate::transport::stdio::ring::StderrRing;

/// See the module.
#[derive(Debug)]
pub(super) struct NoiseGate {
    lines: Rate,
    bytes: Rate,
    dropped: u64,
    ring: StderrRing,
}

impl NoiseGate {
    pub(super) fn new(settings: &ProcessSettings, ring: StderrRing) -> Self {
        let lines = Rate::new(settings.noise_rate);
        Self { lines, bytes: Rate::new(settings.noise_bytes), dropped: 0, ring }
    }

    /// Whether a frame is only counted. Before anything else is done with it.
    pub(super) fn drops(&mut self, frame: &Bytes) -> bool {
        if !self.lines.is_over() {
            return false;
        }
        self.next_second();
        if !self.lines.is_over() || may_be_message(frame) {
            return false;
        }
        self.dropped += 1;
        self.bytes.add(frame.len());
        true
    }

    /// A frame that answered no call goes on to be looked at.
    pub(super) fn passes(&mut self, frame: &Bytes) {
        if !may_be_message(frame) {
            self.next_second();
            self.lines.add(1);
            self.bytes.add(frame.len());
        }
    }

    fn next_second(&mut self) {
        let now = clock::now();
        if self.lines.at(now) {
            self.bytes.at(now);
            self.tell();
        }
    }

    /// Says in the server's log what was left out of it.
    pub(super) fn tell(&mut self) {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            self.ring.note(&format!(
                "[stdout] {dropped} more lines that are no messages were dropped here (setting \
                 process.noise_rate)"
            ));
        }
    }

    /// Resolves when there is something to [`Self::tell`].
    pub(super) async fn due(&self) {
        match self.lines.ends() {
            Some(end) if self.dropped > 0 => tokio::time::sleep_until(end.into()).await,
            _ => std::future::pending().await,
        }
    }

    /// Waits for the next second where this one's share is used up. What was dropped is told before,
    /// so that it is the last line of the log while the flood lasts.
    pub(super) async fn pause(&mut self) {
        if let Some(end) = self.bytes.ends().filter(|_| self.bytes.is_over()) {
            self.tell();
            tokio::time::sleep_until(end.into()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::settings::Settings;
    use crate::transport::stdio::ring::RingLimits;

    fn gate() -> NoiseGate {
        let loaded = Settings::defaults(std::path::Path::new("/bin/mcpx")).unwrap();
        let settings =
            ProcessSettings { noise_rate: 2, noise_bytes: 20, ..loaded.settings.process };
        let limits = RingLimits { lines: 9, line_bytes: 200, log_rate: 9, bytes: 1 << 20 };
        NoiseGate::new(&settings, StderrRing::new(limits))
    }

    /// Whether the line is looked at.
    fn seen(gate: &mut NoiseGate, line: &'static str) -> bool {
        let frame = Bytes::from_static(line.as_bytes());
        let seen = !gate.drops(&frame);
        if seen {
            gate.passes(&frame);
        }
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn f04_beyond_the_rate_noise_is_counted_and_messages_pass() {
        let mut gate = gate();
        let message = r#"[INFO] {"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert!((0..9).all(|_| seen(&mut gate, message)), "no message is noise");
        assert!(seen(&mut gate, "noise") && seen(&mut gate, "{}"));
        assert!(!seen(&mut gate, "noise") && !seen(&mut gate, "{}"));
        assert!(seen(&mut gate, message), "an answer in the middle of a flood");
        assert!(gate.ring.tail(9).is_empty());
        tokio::time::timeout(Duration::from_secs(2), gate.due()).await.unwrap();
        gate.tell();
        assert!(gate.ring.tail(1)[0].contains(" 2 more lines "), "{:?}", gate.ring.tail(9));
        assert!(seen(&mut gate, "noise"), "the next second");
    }

    #[tokio::test(start_paused = true)]
    async fn f32_an_endless_flood_is_read_at_a_rate() {
        let mut gate = gate();
        let start = clock::now();
        gate.pause().await;
        assert_eq!(clock::now(), start);
        while seen(&mut gate, "noise") {}
        while !gate.bytes.is_over() {
            seen(&mut gate, "noise");
        }
        gate.pause().await;
        assert!(gate.ring.tail(1)[0].contains("dropped"), "{:?}", gate.ring.tail(9));
        assert!(clock::now() >= start + Duration::from_secs(1));
        assert!(seen(&mut gate, "noise"));
    }
}
