//! How late the load generator was itself.

use windtunnel_core::{Span, Time};
use windtunnel_reports::metrics::{Histogram, Quantile};

/// A generator whose p99 is later than this distorts what it measures.
const DISTORTING: f64 = 1e6;

/// Times from when requests were to be sent until they were.
#[derive(Clone, Debug, Default)]
pub struct Lag {
    times: Histogram,
}

impl Lag {
    pub(super) fn record(&mut self, due: Time, sent: Time) {
        self.times.record(sent.since(due).as_nanos());
    }

    /// A quantile of the lag in nanoseconds; `None` before the first request.
    pub fn quantile(&self, p: Quantile) -> Option<f64> {
        self.times.quantile(p)
    }

    /// The longest lag; `None` before the first request.
    pub fn max(&self) -> Option<Span> {
        self.times.max().map(Span::from_nanos)
    }

    /// Whether latencies tell of the generator as well as of the endpoint.
    pub fn distorts(&self) -> bool {
        self.quantile(Quantile::P99).is_some_and(|p99| p99 > DISTORTING)
    }

    /// The lag in words; `None` before the first request.
    pub fn in_words(&self) -> Option<String> {
        let millis = |nanos: f64| format!("{:.3} ms", nanos / 1e6);
        let (p50, p99) = (self.quantile(Quantile::P50)?, self.quantile(Quantile::P99)?);
        let max = self.max()?.as_nanos() as f64;
        let (p50, p99, max) = (millis(p50), millis(p99), millis(max));
        let mut words = format!("requests were sent {p50} (p50), {p99} (p99), {max} (max) after their time");
        if self.distorts() {
            words.push_str(
                ": the load generator itself was too slow for this load, and latencies, which count from the intended \
                 time, contain that",
            );
        }
        Some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lag(millis: impl Iterator<Item = u64>) -> Lag {
        let mut lag = Lag::default();
        millis.for_each(|late| lag.record(Time::from_nanos(5), Time::from_nanos(5 + late * 100_000)));
        lag
    }

    #[test]
    fn only_a_late_generator_is_said_to_distort() {
        assert_eq!(Lag::default().in_words(), None);
        let swift = lag((0..1000).map(|number| number % 5)).in_words().unwrap();
        assert!(swift.contains("0.400 ms (max)") && !swift.contains("too slow"), "{swift}");
        let slow = lag((0..1000).map(|number| if number % 20 == 0 { 30 } else { 1 })).in_words().unwrap();
        assert!(slow.contains("0.100 ms (p50)") && slow.contains("too slow"), "{slow}");
    }
}
