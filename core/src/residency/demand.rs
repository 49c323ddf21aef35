//! Demand for a model: how many jobs want it, by class, halved at every multiple of five minutes and kept after eviction.

use serde::{Deserialize, Serialize};

use crate::{Class, ClassPolicy, ModelId, Scheduler, Span, Time, restore::MOST_COUNTED};

const HALVED_EVERY: u64 = 300_000_000_000;
/// Counts have this many binary places.
const PLACES: u32 = 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Demand {
    counts: [u64; 3],
    /// The multiple of five minutes that the counts were last halved at.
    period: u64,
}

impl Demand {
    /// A job of this class got its first step.
    pub fn count(&mut self, class: Class, now: Time) {
        self.halve(now);
        self.counts[class.index()] += 1 << PLACES;
    }

    /// Whether it was last halved by now, and leaves room to count on.
    pub fn is_sound(&self, now: Time) -> bool {
        self.period <= now.as_nanos() / HALVED_EVERY && self.counts.iter().all(|&count| count <= MOST_COUNTED)
    }

    fn halve(&mut self, now: Time) {
        let period = now.as_nanos() / HALVED_EVERY;
        let by = u32::try_from(period - self.period).unwrap_or(u32::MAX);
        if by > 0 {
            self.counts = self.counts.map(|count| count.checked_shr(by).unwrap_or(0));
            self.period = period;
        }
    }

    /// Jobs weighted by class, those that wait included, in parts per million.
    fn weighted(mut self, waiting: [u64; 3], classes: &[ClassPolicy; 3], now: Time) -> u64 {
        self.halve(now);
        let terms = (0..3).map(|class| {
            let scaled = u128::from(self.counts[class]) + (u128::from(waiting[class]) << PLACES);
            scaled * u128::from(classes[class].weight.get())
        });
        u64::try_from(terms.sum::<u128>() >> PLACES).unwrap_or(u64::MAX)
    }
}

impl Scheduler {
    /// The demand for a model: what it had and what waits for it first of all, in parts per million of an interactive job.
    pub(crate) fn demand(&self, model: ModelId) -> u64 {
        let lines = self.lines.iter().filter(|line| {
            self.targets.get(line.target as usize).is_some_and(|target| target.variants.first() == Some(&model))
        });
        let mut waiting = [0; 3];
        for line in lines {
            for class in Class::ALL {
                waiting[class.index()] += line.class(class).len() as u64;
            }
        }
        self.models[model.index()].demand.weighted(waiting, &self.policy().classes, self.now)
    }

    /// What it costs to have a model back: the time of its load times the demand for it.
    pub(crate) fn cost(reload: Span, demand: u64) -> Span {
        let wide = u128::from(reload.as_nanos()) * u128::from(demand) / 1_000_000;
        Span::from_nanos(u64::try_from(wide).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_halve_at_multiples_of_five_minutes() {
        let classes = Class::ALL.map(ClassPolicy::of);
        let mut demand = Demand::default();
        let at = |seconds| Time::ZERO.after(Span::from_secs(seconds));
        demand.count(Class::Interactive, at(299));
        demand.count(Class::Interactive, at(299));
        assert_eq!(demand.weighted([0; 3], &classes, at(299)), 2_000_000);
        assert_eq!(demand.weighted([0; 3], &classes, at(300)), 1_000_000);
        assert_eq!(demand.weighted([0, 1, 10], &classes, at(601)), 500_000 + 300_000 + 1_000_000);
        assert_eq!(demand.weighted([0; 3], &classes, Time::MAX), 0);
    }
}
