//! From ends of requests to what changed, by class.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use windtunnel_core::Class;

use super::JobEnd;
use crate::statistics::{Confidence, Pair, interval_of_mean, quantile_difference};

/// Blocks with fewer requests than this that can be compared say too little for an interval over them.
const FEWEST_BLOCKS: usize = 10;

/// A request, told three times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Story {
    /// Its class.
    pub class: Class,
    /// The block of time in which it came; blocks of several runs are told apart.
    pub block: usize,
    /// As it was recorded; `None`: it had not ended.
    pub recorded: Option<JobEnd>,
    /// Simulated again as recorded.
    pub again: Option<JobEnd>,
    /// Simulated under other settings.
    pub changed: Option<JobEnd>,
}

/// What changes, by class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The classes that were asked for, highest first.
    pub classes: Vec<ClassChange>,
}

/// What changes for a class. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassChange {
    /// Its name.
    pub class: &'static str,
    /// Its requests.
    pub requests: u64,
    /// How far the simulation is from the recording, over requests that both completed.
    pub fidelity: Fidelity,
    /// Requests completed when simulated again.
    pub completed_again: u64,
    /// Requests completed under the other settings.
    pub completed_changed: u64,
    /// Figures of requests completed in both simulations, as recorded settings have them.
    pub again: Figures,
    /// The same under the other settings.
    pub changed: Figures,
    /// The differences of these figures.
    pub difference: Differences,
    /// The difference of latency, of requests completed in both.
    pub latency: Shift,
    /// The difference of queue wait, of the same.
    pub wait: Shift,
    /// The difference of the share that is completed, of all.
    pub completed: Shift,
    /// What it comes to.
    pub verdict: Verdict,
}

/// The recorded figures and those of the simulation, over requests completed in both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fidelity {
    /// How many they are.
    pub requests: u64,
    /// Of the recording.
    pub recorded: Figures,
    /// Of the simulation under the recorded settings.
    pub simulated: Figures,
}

/// Figures of a set of requests, in seconds; `None` where the set is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Median queue wait.
    pub wait_p50: Option<f64>,
    /// Queue wait that 1% exceed.
    pub wait_p99: Option<f64>,
    /// Median latency.
    pub latency_p50: Option<f64>,
    /// Latency that 1% exceed.
    pub latency_p99: Option<f64>,
}

/// Differences of figures, the other settings minus the recorded ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Differences {
    /// Of the median queue wait.
    pub wait_p50: Difference,
    /// Of the queue wait that 1% exceed.
    pub wait_p99: Difference,
    /// Of the median latency.
    pub latency_p50: Difference,
    /// Of the latency that 1% exceed.
    pub latency_p99: Difference,
}

/// A difference of a quantile, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Difference {
    /// Of all requests; `None` without any.
    pub by: Option<f64>,
    /// The lower end of its 95% interval over blocks of time, where there are enough of them and of requests.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
}

/// A mean difference, the other settings minus the recorded ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// Over all requests; `None` without any.
    pub mean: Option<f64>,
    /// The mean over blocks of time with its 95% interval, where there are enough of them.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Blocks with a request.
    pub blocks: usize,
}

/// Whether a change is one for the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No request fares otherwise.
    Same,
    /// Latency falls or more is completed, and neither gets worse.
    Better,
    /// Latency rises or less is completed, and neither gets better.
    Worse,
    /// The intervals do not say, or one thing gets better and another worse.
    CannotTell,
}

/// What the stories come to.
pub fn judge(stories: &[Story]) -> Change {
    let of_class = |class: Class| stories.iter().filter(|story| story.class == class).copied().collect::<Vec<_>>();
    let classes = Class::ALL.into_iter().map(|class| (class, of_class(class)));
    Change { classes: classes.filter(|(_, own)| !own.is_empty()).map(|(class, own)| change(class, &own)).collect() }
}

fn change(class: Class, stories: &[Story]) -> ClassChange {
    let both: Vec<(usize, JobEnd, JobEnd)> =
        stories.iter().filter_map(|one| Some((one.block, done(one.again)?, done(one.changed)?))).collect();
    let latency = shift(both.iter().map(|(block, again, changed)| (*block, changed.latency - again.latency)));
    let wait = shift(both.iter().map(|(block, again, changed)| (*block, changed.wait - again.wait)));
    let share = |end: Option<JobEnd>| f64::from(u8::from(done(end).is_some()));
    let completed = shift(stories.iter().map(|one| (one.block, share(one.changed) - share(one.again))));
    let count =
        |end: fn(&Story) -> Option<JobEnd>| stories.iter().filter(|one| done(end(one)).is_some()).count() as u64;
    let alike = stories.iter().all(|one| one.again == one.changed);
    let (again, changed) = (figures(both.iter().map(|(_, one, _)| *one)), figures(both.iter().map(|(_, _, one)| *one)));
    ClassChange {
        class: class.name(),
        requests: stories.len() as u64,
        fidelity: fidelity(stories),
        completed_again: count(|one| one.again),
        completed_changed: count(|one| one.changed),
        difference: differences(&both, &again, &changed),
        again,
        changed,
        verdict: if alike { Verdict::Same } else { verdict(latency, completed) },
        latency,
        wait,
        completed,
    }
}

fn done(end: Option<JobEnd>) -> Option<JobEnd> {
    end.filter(|end| end.completed)
}

fn fidelity(stories: &[Story]) -> Fidelity {
    let both: Vec<(JobEnd, JobEnd)> =
        stories.iter().filter_map(|one| Some((done(one.recorded)?, done(one.again)?))).collect();
    Fidelity {
        requests: both.len() as u64,
        recorded: figures(both.iter().map(|(recorded, _)| *recorded)),
        simulated: figures(both.iter().map(|(_, again)| *again)),
    }
}

fn figures(ends: impl Iterator<Item = JobEnd>) -> Figures {
    let (mut waits, mut latencies): (Vec<f64>, Vec<f64>) = ends.map(|end| (end.wait, end.latency)).unzip();
    waits.sort_by(f64::total_cmp);
    latencies.sort_by(f64::total_cmp);
    Figures {
        wait_p50: quantile(&waits, 0.5),
        wait_p99: quantile(&waits, 0.99),
        latency_p50: quantile(&latencies, 0.5),
        latency_p99: quantile(&latencies, 0.99),
    }
}

fn differences(both: &[(usize, JobEnd, JobEnd)], again: &Figures, changed: &Figures) -> Differences {
    let blocks: BTreeSet<usize> = both.iter().map(|(block, ..)| *block).collect();
    let of = |share: f64, of: fn(&JobEnd) -> f64, first: Option<f64>, second: Option<f64>| {
        let pair =
            |(block, one, other): &(usize, JobEnd, JobEnd)| Pair { block: *block, first: of(one), second: of(other) };
        let pairs: Vec<Pair> = both.iter().map(pair).collect();
        let known = blocks.len() >= FEWEST_BLOCKS;
        let interval = if known { quantile_difference(&pairs, share, Confidence::P95) } else { None };
        Difference {
            by: first.zip(second).map(|(first, second)| second - first),
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
        }
    };
    let [wait, latency]: [fn(&JobEnd) -> f64; 2] = [|end| end.wait, |end| end.latency];
    Differences {
        wait_p50: of(0.5, wait, again.wait_p50, changed.wait_p50),
        wait_p99: of(0.99, wait, again.wait_p99, changed.wait_p99),
        latency_p50: of(0.5, latency, again.latency_p50, changed.latency_p50),
        latency_p99: of(0.99, latency, again.latency_p99, changed.latency_p99),
    }
}

/// The smallest of `sorted` that at least this share do not exceed.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

fn shift(differences: impl Iterator<Item = (usize, f64)>) -> Shift {
    let mut blocks: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    let (mut sum, mut count) = (0.0, 0.0);
    for (block, difference) in differences {
        let block = blocks.entry(block).or_default();
        *block = (block.0 + difference, block.1 + 1.0);
        (sum, count) = (sum + difference, count + 1.0);
    }
    let means: Vec<f64> = blocks.values().map(|(sum, count)| sum / count).collect();
    let interval = interval_of_mean(&means, Confidence::P95).filter(|_| means.len() >= FEWEST_BLOCKS);
    Shift {
        mean: (count > 0.0).then(|| sum / count),
        low: interval.map(|interval| interval.low()),
        high: interval.map(|interval| interval.high()),
        blocks: means.len(),
    }
}

/// Less latency is better, more completed is better.
fn verdict(latency: Shift, completed: Shift) -> Verdict {
    let (faster, slower) = (latency.high.is_some_and(|high| high < 0.0), latency.low.is_some_and(|low| low > 0.0));
    let (more, fewer) = (completed.low.is_some_and(|low| low > 0.0), completed.high.is_some_and(|high| high < 0.0));
    match (faster || more, slower || fewer) {
        (true, false) => Verdict::Better,
        (false, true) => Verdict::Worse,
        (true, true) | (false, false) => Verdict::CannotTell,
    }
}

impl Verdict {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Verdict::Same => "same",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::CannotTell => "cannot tell",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(latency: f64) -> Option<JobEnd> {
        Some(JobEnd { class: Class::Batch, completed: true, wait: latency / 2.0, latency })
    }

    fn stories(changed: impl Fn(usize) -> Option<JobEnd>) -> Vec<Story> {
        let story = |at: usize| {
            let was = end(1.0 + (at % 7) as f64);
            Story { class: Class::Batch, block: at / 10, recorded: was, again: was, changed: changed(at) }
        };
        (0..200).map(story).collect()
    }

    fn judged(stories: &[Story]) -> ClassChange {
        judge(stories).classes.remove(0)
    }

    #[test]
    fn a_small_change_of_every_request_is_seen_through_what_varies_between_them() {
        let faster = judged(&stories(|at| end(0.99 + (at % 7) as f64)));
        assert_eq!((faster.verdict, faster.latency.blocks), (Verdict::Better, 20));
        assert!((faster.latency.mean.unwrap() + 0.01).abs() < 1e-9);
        let Difference { by, low, high } = faster.difference.latency_p50;
        assert!([by, low, high].iter().all(|one| (one.unwrap() + 0.01).abs() < 1e-9), "{by:?} {low:?} {high:?}");
        assert_eq!(faster.difference.latency_p99.low, None, "of 200 requests two lie beyond");
        assert_eq!(judged(&stories(|at| end(1.01 + (at % 7) as f64))).verdict, Verdict::Worse);
        let same = judged(&stories(|at| end(1.0 + (at % 7) as f64)));
        assert_eq!((same.verdict, same.latency.mean, same.latency.high), (Verdict::Same, Some(0.0), Some(0.0)));
        assert_eq!((same.fidelity.recorded.latency_p50, same.fidelity.recorded.latency_p99), (Some(4.0), Some(7.0)));
    }

    #[test]
    fn what_helps_some_and_hurts_others_cannot_be_told() {
        let mixed = judged(&stories(|at| end(1.0 + (at % 7) as f64 + if at % 2 == 0 { 0.5 } else { -0.5 })));
        assert_eq!(mixed.verdict, Verdict::CannotTell);
        let traded = judged(&stories(|at| if at % 10 == 0 { None } else { end(0.5 + (at % 7) as f64) }));
        assert_eq!((traded.verdict, traded.completed_changed), (Verdict::CannotTell, 180));
        let lost = judged(&stories(|at| if at % 10 == 0 { None } else { end(1.0 + (at % 7) as f64) }));
        assert_eq!(lost.verdict, Verdict::Worse);
    }

    #[test]
    fn a_few_blocks_say_nothing() {
        let few = &stories(|at| end(0.5 + (at % 7) as f64))[..90];
        let few = judged(few);
        assert_eq!((few.verdict, few.latency.low, few.latency.blocks), (Verdict::CannotTell, None, 9));
        assert_eq!((few.difference.wait_p50.low, few.difference.wait_p50.by.is_some()), (None, true));
    }
}
