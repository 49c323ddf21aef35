//! What happened in the worlds that were searched: a search that never evicted anything has shown nothing of evictions.

use windtunnel_core::{Class, Effect, Note, Right, Span};

/// Counts over worlds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Steps of the scheduler, each checked.
    pub steps: u64,
    /// Jobs that ended, as they should: every step ran.
    pub completed: u64,
    /// Jobs that ended otherwise.
    pub otherwise: u64,
    /// Grants of every right.
    pub grants: u64,
    /// Grants by the guard's share.
    pub guarded: u64,
    /// Grants of batch turns.
    pub turns: u64,
    /// Loads begun.
    pub loads: u64,
    /// Instances told to stop.
    pub stops: u64,
    /// Instances chosen to make room for another model.
    pub evictions: u64,
    /// Steps that failed and sent their jobs back.
    pub requeued: u64,
    /// Breakers that opened.
    pub broken: u64,
    /// Worlds in which lower classes were left waiting because memory stayed scarce without any fault.
    pub scarce: u64,
    /// The longest that a job of each class went without progress.
    pub longest: [Span; 3],
}

impl Tally {
    /// Counts an effect.
    pub fn count(&mut self, effect: &Effect) {
        match effect {
            Effect::Grant(grant) => {
                self.grants += 1;
                self.guarded += u64::from(grant.right == Right::Guard);
                self.turns += u64::from(grant.right == Right::Turn);
            }
            Effect::Load { .. } => self.loads += 1,
            Effect::Stop { .. } => self.stops += 1,
            Effect::Finish(finish) if finish.outcome.is_completed() => self.completed += 1,
            Effect::Finish(_) => self.otherwise += 1,
            Effect::Note(Note::Evict { .. }) => self.evictions += 1,
            Effect::Note(Note::Requeued { .. }) => self.requeued += 1,
            Effect::Note(Note::Breaker { state: windtunnel_core::BreakerState::Open { .. }, .. }) => self.broken += 1,
            Effect::Note(_) | Effect::Abort { .. } | Effect::Snapshot { .. } | Effect::Learned(_) => {}
        }
    }

    /// Jobs of each class went without progress for so long.
    pub fn waited(&mut self, longest: [Span; 3]) {
        for class in Class::ALL {
            let known = &mut self.longest[class.index()];
            *known = (*known).max(longest[class.index()]);
        }
    }

    /// Adds those of another world.
    pub fn add(&mut self, other: &Tally) {
        let pairs = [
            (&mut self.steps, other.steps),
            (&mut self.completed, other.completed),
            (&mut self.otherwise, other.otherwise),
            (&mut self.grants, other.grants),
            (&mut self.guarded, other.guarded),
            (&mut self.turns, other.turns),
            (&mut self.loads, other.loads),
            (&mut self.stops, other.stops),
            (&mut self.evictions, other.evictions),
            (&mut self.requeued, other.requeued),
            (&mut self.broken, other.broken),
            (&mut self.scarce, other.scarce),
        ];
        pairs.into_iter().for_each(|(own, its)| *own += its);
        self.waited(other.longest);
    }
}
