//! Whether a process is wedged: work is under way, no byte has come for long, and it has not used the processor either. One
//! that is silent and busy is never killed, nor one of which nobody can tell.

use std::time::{Duration, Instant};

/// A process that uses less than this share of one processor is idle: those that wait still wake up now and then.
const IDLE: u32 = 100;

/// What is known of a process from look to look.
#[derive(Debug)]
pub struct Watch {
    silence: Duration,
    looked: Instant,
    processor: Option<Duration>,
    busy: Instant,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It gets on, or has nothing to do.
    Well,
    /// It does not.
    Wedged,
}

impl Watch {
    /// As of now it gets on; `silence` is what it may be silent and idle for.
    pub fn new(silence: Duration, now: Instant) -> Watch {
        Watch { silence, looked: now, processor: None, busy: now }
    }

    /// How long to the next look.
    pub fn pause(&self) -> Duration {
        self.silence / 8
    }

    /// Looks: `last` is the last sign of life where work is under way, `processor` the time it has used so far.
    pub fn look(&mut self, now: Instant, last: Option<Instant>, processor: Option<Duration>) -> Verdict {
        let since = now.saturating_duration_since(self.looked);
        let used = match (self.processor, processor) {
            (Some(before), Some(after)) => Some(after.saturating_sub(before)),
            (None, _) | (_, None) => None,
        };
        (self.looked, self.processor) = (now, processor);
        if used.is_none_or(|used| used >= since / IDLE) {
            self.busy = now;
        }
        let Some(last) = last else { return Verdict::Well };
        let still = now.saturating_duration_since(last.max(self.busy));
        if still >= self.silence { Verdict::Wedged } else { Verdict::Well }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The look, in steps of ten seconds, at which a process is found wedged; `used` is the processor time between two.
    fn found(used: Option<Duration>, work: bool, signs: bool) -> Option<u32> {
        let start = Instant::now();
        let mut watch = Watch::new(SECOND * 120, start);
        (1..40).find(|&look| {
            let now = start + SECOND * 10 * look;
            let last = if signs { now } else { start };
            watch.look(now, work.then_some(last), used.map(|used| used * look)) == Verdict::Wedged
        })
    }

    #[test]
    fn silent_and_idle_with_work_for_so_long_is_wedged() {
        // The first look cannot tell idle from busy, so the silence counts from there.
        assert_eq!(found(Some(Duration::from_millis(1)), true, false), Some(13));
    }

    #[test]
    fn who_is_busy_or_speaks_or_has_nothing_to_do_or_cannot_be_seen_is_well() {
        assert_eq!(found(Some(SECOND), true, false), None, "busy");
        assert_eq!(found(Some(Duration::ZERO), true, true), None, "bytes come");
        assert_eq!(found(Some(Duration::ZERO), false, false), None, "nothing to do");
        assert_eq!(found(None, true, false), None, "unseen");
    }
}
