//! Adaptive admission: predictions are multiplied by a margin that is steered by how many admitted jobs end late.
//!
//! A bounded proportional-integral controller. The integral grows by a 256th of itself with a miss and shrinks by a
//! hundredth of that with a job that is in time, so it rests where one in a hundred is late. While hardly any is late a refusal
//! counts as a job in time: a margin that refuses nearly everything learns as fast as another. Before the first one is late
//! nothing is known of how far it is from the right one, and a refusal counts sixteenfold; afterwards it is near, and such
//! haste would only overshoot, the more the more are refused. The proportional part adds half of the smoothed miss rate beyond
//! the target while the integral catches up. The integral stays within a quarter and four (anti-windup).

use serde::{Deserialize, Serialize};

use crate::{Admission, Class, Effect, Effects, Finish, Note, Outcome, Ppm, Refusal, Scheduler, Span, Time};

/// Jobs that may be late: one in a hundred.
const TARGET: u64 = 10_000;
const ONE: u64 = 1_000_000;
/// The integral, and its bounds, in billionths, since a job in time moves it by millionths.
const UNIT: u64 = 1_000_000_000;
const LEAST: u64 = UNIT / 4;
const MOST: u64 = UNIT * 4;
/// The integral moves by one part in so many with a miss.
const SLOWNESS: u64 = 256;
/// The miss rate is smoothed over about so many jobs.
const SMOOTHING: u64 = 64;
/// Whether hardly any job is late is said over so many.
const LONG_SMOOTHING: u64 = 2048;
/// Fewer late jobs than this are hardly any.
const HARDLY_ANY: u64 = TARGET / 2;
/// A refusal counts for so many jobs in time while none has ever been late.
const HASTE: u64 = 16;
/// A margin is noted again when it has moved by one part in so many.
const WORTH_NOTING: u64 = 16;

/// What predictions of one class are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Margin {
    integral: u64,
    /// Late jobs per million, smoothed.
    missed: u64,
    noted: u64,
    /// The same, smoothed over many more; zero only until the first is late.
    lately: u64,
}

/// What became of a job, as far as predictions are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    InTime,
    Late,
    /// It was not let in.
    Refused,
}

impl Default for Margin {
    fn default() -> Margin {
        Margin { integral: UNIT, missed: TARGET, noted: UNIT, lately: 0 }
    }
}

impl Margin {
    /// Whether it is within its bounds.
    pub fn is_sound(&self) -> bool {
        let within = |integral: &u64| (LEAST..=MOST).contains(integral);
        [self.integral, self.noted].iter().all(within) && self.missed <= ONE && self.lately <= ONE
    }

    fn steer(&mut self, verdict: Verdict) {
        let step = self.integral / SLOWNESS;
        let (integral, seen) = match verdict {
            Verdict::Late => (self.integral + step * (ONE - TARGET) / ONE, ONE),
            Verdict::InTime => (self.integral - step * TARGET / ONE, 0),
            Verdict::Refused if self.lately > HARDLY_ANY => return,
            Verdict::Refused if self.lately > 0 => (self.integral - step * TARGET / ONE, 0),
            Verdict::Refused => (self.integral - step * TARGET * HASTE / ONE, 0),
        };
        self.integral = integral.clamp(LEAST, MOST);
        self.missed = (self.missed * (SMOOTHING - 1) + seen) / SMOOTHING;
        let lately = (self.lately * (LONG_SMOOTHING - 1) + seen) / LONG_SMOOTHING;
        self.lately = lately.max(self.lately.min(1));
    }

    fn parts(&self) -> u64 {
        let excess = self.missed.saturating_sub(TARGET) / 2;
        self.integral / 1000 * (ONE + excess) / ONE
    }

    /// A predicted time with the margin.
    fn widened(&self, span: Span) -> Span {
        span.scaled_up(Ppm::new(u32::try_from(self.parts()).unwrap_or(u32::MAX)))
    }
}

impl Scheduler {
    /// When a job of a class is believed to end that is predicted to end then.
    pub(crate) fn with_margin(&self, class: Class, predicted: Time) -> Time {
        self.now.after(self.margins[class.index()].widened(predicted.since(self.now)))
    }

    /// Looks whether any class is admitted adaptively.
    pub(crate) fn look_for_margins(&mut self) {
        self.adapts = self.is_adaptive();
    }

    /// Whether any class is admitted adaptively.
    pub(crate) fn is_adaptive(&self) -> bool {
        self.policy().classes.iter().any(|class| class.admission == Admission::Adaptive)
    }

    /// Steers the margins by the jobs that have just ended.
    pub(crate) fn steer_margins(&mut self, effects: &mut Effects) {
        for at in 0..effects.list.len() {
            let Effect::Finish(finish) = &effects.list[at] else { continue };
            let class = finish.class;
            if self.policy().classes[class.index()].admission != Admission::Adaptive {
                continue;
            }
            let Some(verdict) = verdict(finish, self.now) else { continue };
            let margin = &mut self.margins[class.index()];
            margin.steer(verdict);
            if margin.integral.abs_diff(margin.noted) > margin.noted / WORTH_NOTING {
                margin.noted = margin.integral;
                let factor = Ppm::new(u32::try_from(margin.parts()).unwrap_or(u32::MAX));
                let missed = Ppm::new(u32::try_from(margin.missed).unwrap_or(u32::MAX));
                effects.note(Note::Margin { class, factor, missed });
            }
        }
    }
}

fn verdict(finish: &Finish, now: Time) -> Option<Verdict> {
    let deadline = finish.deadline?;
    match finish.outcome {
        Outcome::Completed if now > deadline => Some(Verdict::Late),
        Outcome::Completed => Some(Verdict::InTime),
        Outcome::Refused(Refusal::DeadlineUnreachable { .. }) => Some(Verdict::Refused),
        Outcome::TimedOut(_) => Some(Verdict::Late),
        Outcome::Refused(_) | Outcome::Failed(_) | Outcome::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rests_where_one_in_a_hundred_is_late_and_stays_within_its_bounds() {
        let mut margin = Margin::default();
        for number in 0..100_000 {
            margin.steer(if number % 100 == 0 { Verdict::Late } else { Verdict::InTime });
        }
        assert!((UNIT * 9 / 10..UNIT * 11 / 10).contains(&margin.integral), "{}", margin.integral);
        (0..10_000).for_each(|_| margin.steer(Verdict::Late));
        assert_eq!((margin.integral, margin.widened(Span::from_millis(1)) >= Span::from_millis(4)), (MOST, true));
        (0..100_000).for_each(|_| margin.steer(Verdict::InTime));
        assert_eq!((margin.integral, margin.widened(Span::from_millis(1))), (LEAST, Span::from_micros(250)));
    }

    #[test]
    fn refusals_count_the_more_the_fewer_are_late() {
        let after = |refusals: usize, mut margin: Margin| {
            (0..refusals).for_each(|_| margin.steer(Verdict::Refused));
            margin.integral * 1000 / UNIT
        };
        assert_eq!(after(1_100, Margin::default()), 502, "half in a second of a busy card");
        let mut hardly = Margin::default();
        hardly.steer(Verdict::Late);
        let before = hardly.integral * 1000 / UNIT;
        assert_eq!((before, after(256, hardly)), (1003, 993), "one in a hundred steps of a 256th");
        assert_eq!(after(25_600, hardly), 369, "and no haste however long ago that was");
        (0..20).for_each(|_| hardly.steer(Verdict::Late));
        assert_eq!(after(10_000, hardly), hardly.integral * 1000 / UNIT, "with too many late they say nothing");
    }
}
