//! A scheduler that is fed what was recorded, and what it wants of the last input that has not been met yet.

use windtunnel_core::{Checkpoint, Effect, Effects, GrantedStep, Input, Scheduler, Time, Unsound};

/// An effect that stands alone.
pub type Wanted = Effect<Vec<GrantedStep>>;

/// A scheduler that follows a journal.
#[derive(Debug)]
pub struct Follower {
    scheduler: Scheduler,
    effects: Effects,
    /// How many of the effects have been met.
    met: usize,
    last: Option<Told>,
}

/// An input and where it stands.
#[derive(Clone, Debug)]
pub struct Told {
    pub line: u64,
    pub t: Time,
    pub input: Input,
}

impl Follower {
    /// A scheduler that has not been told anything.
    pub fn fresh() -> Follower {
        Follower::of(Scheduler::new())
    }

    /// A scheduler in a recorded state.
    ///
    /// # Errors
    /// When the state contradicts itself.
    pub fn restored(checkpoint: Checkpoint) -> Result<Follower, Unsound> {
        Scheduler::restore(checkpoint).map(Follower::of)
    }

    fn of(scheduler: Scheduler) -> Follower {
        Follower { scheduler, effects: Effects::new(), met: 0, last: None }
    }

    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The input it was told last; `None`: none yet.
    pub fn last(&self) -> Option<&Told> {
        self.last.as_ref()
    }

    /// Tells it what happened next.
    pub fn tell(&mut self, told: Told) {
        self.scheduler.step(told.t, &told.input, &mut self.effects);
        self.met = 0;
        self.last = Some(told);
    }

    /// The next effect it wants, and when.
    pub fn owed(&self) -> Option<(Time, Wanted)> {
        let effect = self.effects.iter().nth(self.met)?;
        let t = self.last.as_ref().map_or(Time::ZERO, |told| told.t);
        Some((t, effect.map_steps(|range| self.effects.steps(range).to_vec())))
    }

    /// The next effect was recorded as it is wanted.
    pub fn meet(&mut self) {
        self.met += 1;
    }
}
