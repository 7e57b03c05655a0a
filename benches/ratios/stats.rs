//! Percentiles and medians.

use std::time::Duration;

/// Latencies of one series, in nanoseconds.
#[derive(Debug, Default)]
pub struct Latencies(Vec<u64>);

impl Latencies {
    /// Room for so many.
    pub fn with_capacity(count: usize) -> Self {
        Latencies(Vec::with_capacity(count))
    }

    /// Adds one.
    pub fn push(&mut self, one: Duration) {
        self.0.push(u64::try_from(one.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Takes another series in.
    pub fn absorb(&mut self, mut other: Latencies) {
        self.0.append(&mut other.0);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The value that this share (0 to 1) of the latencies does not exceed, in microseconds.
    pub fn percentile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() as f64 * share).ceil() as usize;
        sorted.get(place.saturating_sub(1)).map_or(f64::NAN, |nanos| *nanos as f64 / 1000.0)
    }
}

/// The middle value; the mean of the two middle ones where their number is even.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}
