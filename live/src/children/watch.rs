//! Whether a process is wedged: work is under way, no byte has come for long, and it has not used the processor either. One
//! that is silent and busy is never killed, nor one of which nobody can tell.

use std::time::{Duration, Instant};

use crate::progress::Sight;

/// A process that uses less than this share of one processor is idle: those that wait still wake up now and then.
const IDLE: u32 = 100;

/// What is known of a process from look to look.
#[derive(Debug)]
pub struct Watch {
    silence: Duration,
    looked: Instant,
    processor: Option<Duration>,
    sight: Sight,
    /// How long somebody has waited for it while it did nothing.
    still: Duration,
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
        Watch { silence, looked: now, processor: None, sight: Sight::default(), still: Duration::ZERO }
    }

    /// How long to the next look.
    pub fn pause(&self) -> Duration {
        self.silence / 8
    }

    /// Looks: `sight` is what can be seen of its work, `processor` the time it has used so far.
    ///
    /// Only time counts in which somebody waited, however many one after the other: clients that lose their patience sooner
    /// than we do must not make a dead process look well.
    pub fn look(&mut self, now: Instant, sight: Sight, processor: Option<Duration>) -> Verdict {
        let since = now.saturating_duration_since(self.looked);
        let used = match (self.processor, processor) {
            (Some(before), Some(after)) => Some(after.saturating_sub(before)),
            (None, _) | (_, None) => None,
        };
        let before = std::mem::replace(&mut self.sight, sight);
        (self.looked, self.processor) = (now, processor);
        if sight.signs != before.signs || used.is_none_or(|used| used >= since / IDLE) {
            self.still = Duration::ZERO;
        } else if before.waits && sight.waits {
            self.still += since;
        }
        if self.still >= self.silence { Verdict::Wedged } else { Verdict::Well }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The look, in steps of ten seconds, at which a process is found wedged. `used` is the processor time between two, and
    /// `seen` what is seen at each.
    fn found(used: Option<Duration>, seen: impl Fn(u32) -> Sight) -> Option<u32> {
        let start = Instant::now();
        let mut watch = Watch::new(SECOND * 120, start);
        (1..80).find(|&look| {
            let used = used.map(|used| used * look);
            watch.look(start + SECOND * 10 * look, seen(look), used) == Verdict::Wedged
        })
    }

    const IDLE: Option<Duration> = Some(Duration::ZERO);

    fn waits(_look: u32) -> Sight {
        Sight { waits: true, signs: 7 }
    }

    #[test]
    fn silent_and_idle_with_work_for_so_long_is_wedged() {
        // The first look cannot tell idle from busy, so the silence counts from there.
        assert_eq!(found(Some(Duration::from_millis(1)), waits), Some(13));
    }

    #[test]
    fn impatient_clients_add_up() {
        let seen = |look: u32| Sight { waits: !look.is_multiple_of(4), signs: 7 };
        assert_eq!(found(IDLE, seen), Some(23), "two of four spans count: those that end at 2, 3, 6, 7 and so on");
    }

    #[test]
    fn who_is_busy_or_speaks_or_has_nothing_to_do_or_cannot_be_seen_is_well() {
        assert_eq!(found(Some(SECOND), waits), None, "busy");
        assert_eq!(found(IDLE, |look| Sight { waits: true, signs: u64::from(look) }), None, "bytes come");
        assert_eq!(found(IDLE, |_| Sight { waits: false, signs: 7 }), None, "nothing to do");
        assert_eq!(found(None, waits), None, "unseen");
    }
}
