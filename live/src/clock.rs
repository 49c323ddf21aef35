//! The time since the run began.

use std::time::{Duration, Instant, SystemTime};

use windtunnel_core::Time;

/// A monotonic clock whose zero is the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    wall: SystemTime,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Clock {
        Clock { started: Instant::now(), wall: SystemTime::now() }
    }

    /// The time since the start.
    pub fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// The time from the start to `moment`; zero for moments before it.
    pub fn at(&self, moment: Instant) -> Time {
        let since = moment.saturating_duration_since(self.started).as_nanos();
        Time::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// When the run will be at `time`.
    pub fn moment(&self, time: Time) -> Option<Instant> {
        self.started.checked_add(Duration::from_nanos(time.as_nanos()))
    }

    /// The start in seconds since 1970.
    pub fn wall_clock(&self) -> f64 {
        self.wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_times_are_the_same_axis() {
        let clock = Clock::start();
        let later = Time::from_nanos(5_000_000_000);
        let moment = clock.moment(later).expect("five seconds are not far");
        assert_eq!(clock.at(moment), later);
        assert!(clock.now() < later);
    }
}
