//! The search: world after world from one seed on, on all threads, until somebody says that it is enough.

use std::{
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::Value;
use windtunnel_config::to_toml;
use windtunnel_core::Time;

use super::{
    auditor::Breach,
    freeze::{Noise, frozen},
    ground::Ground,
    pulse::Pulses,
    shrink::shrink,
    tally::Tally,
    trial::{self, Along, Bench, Trial},
    world,
};
use crate::{Control, SimError};

/// What is searched.
#[derive(Clone, Debug)]
pub struct Search {
    /// The seed of the first world; the others follow.
    pub seed: u64,
    /// The user's configuration, where worlds are to be variations of it.
    pub ground: Option<Ground>,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Worlds that were begun.
    pub worlds: u64,
    /// Steps in worlds that have ended.
    pub steps: u64,
    /// Rules that were found to be broken.
    pub finds: u64,
}

/// What a search brought.
#[derive(Debug, Default)]
pub struct Findings {
    /// Worlds that ran.
    pub worlds: u64,
    /// What happened in them.
    pub tally: Tally,
    /// One for each rule that was broken, by seed.
    pub finds: Vec<Find>,
}

/// A rule that is broken, and the smallest world that shows it.
#[derive(Clone, Debug)]
pub struct Find {
    /// The seed of the world that showed it first.
    pub seed: u64,
    /// The rule.
    pub rule: String,
    /// What happened in the smallest world.
    pub message: String,
    /// When.
    pub at: Time,
    /// Worlds, and steps over all of them, before it was found.
    pub after: Progress,
    /// The smallest world, as a scenario file.
    pub scenario: String,
    /// Whether everything in it is written down.
    pub frozen: Frozen,
    /// Worlds that were tried to make it small.
    pub trials: u32,
    /// Worlds that showed it.
    pub seen: u64,
}

/// Whether a world is written down to the last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frozen {
    /// Every request has its moment and its sizes; services do not vary.
    Fully,
    /// The same, but services vary as the seed says.
    ButNoise,
    /// It fails only as it was drawn.
    No,
}

/// So many worlds are tried to make one small.
const TRIALS: u32 = 3_000;
/// In every so many worlds a restored scheduler runs along.
const TWIN_EVERY: u64 = 5;

/// The state of a search that its threads share.
struct Shared<'a> {
    next: AtomicU64,
    steps: AtomicU64,
    finds: AtomicU64,
    pulses: &'a Pulses,
}

impl Shared<'_> {
    fn so_far(&self) -> Progress {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Progress { worlds: load(&self.next), steps: load(&self.steps), finds: load(&self.finds) }
    }
}

impl Search {
    /// Searches while `go_on` says so, on as many threads as there are and at most as many as have a pulse.
    ///
    /// # Errors
    /// If a world cannot be simulated.
    pub fn run(
        &self,
        control: &Control,
        pulses: &Pulses,
        go_on: impl Fn(Progress) -> bool + Sync,
    ) -> Result<Findings, SimError> {
        let shared = Shared { next: AtomicU64::new(0), steps: AtomicU64::new(0), finds: AtomicU64::new(0), pulses };
        let (origin, shared, go_on) = (self.origin(), &shared, &go_on);
        let ends: Mutex<Vec<SimError>> = Mutex::new(Vec::new());
        rayon::scope(|scope| {
            for pulse in pulses.iter().take(rayon::current_num_threads()) {
                let bench = Bench { origin: &origin, pulse: Some(pulse), control };
                let ends = &ends;
                scope.spawn(move |_| {
                    if let Err(wrong) = self.thread(shared, bench, go_on) {
                        ends.lock().unwrap_or_else(PoisonError::into_inner).push(wrong);
                    }
                });
            }
        });
        if let Some(wrong) = ends.into_inner().unwrap_or_else(PoisonError::into_inner).pop() {
            return Err(wrong);
        }
        let mut findings = std::mem::take(&mut *pulses.findings());
        findings.finds.sort_by_key(|find| find.seed);
        Ok(findings)
    }

    fn thread(
        &self,
        shared: &Shared<'_>,
        bench: Bench<'_>,
        go_on: &(impl Fn(Progress) -> bool + Sync),
    ) -> Result<(), SimError> {
        let control = bench.control;
        loop {
            if control.is_interrupted() || !go_on(shared.so_far()) {
                return Ok(());
            }
            let number = shared.next.fetch_add(1, Ordering::Relaxed);
            let document = self.world(number);
            let along = if number.is_multiple_of(TWIN_EVERY) { Along::Twin } else { Along::Nobody };
            let trial = trial::run(&document, self.seed.wrapping_add(number), along, &bench)?;
            if control.is_interrupted() && trial.found.is_none() {
                return Ok(());
            }
            let steps = shared.steps.fetch_add(trial.tally.steps, Ordering::Relaxed) + trial.tally.steps;
            let after = Progress { worlds: number + 1, steps, ..shared.so_far() };
            self.take_in(shared, (number, document, along, trial), after, &bench);
        }
    }

    /// The world of a number; its seed is that of the search plus the number.
    fn world(&self, number: u64) -> Value {
        let seed = self.seed.wrapping_add(number);
        match &self.ground {
            Some(ground) => world::vary(&ground.document, &ground.plan, seed),
            None => world::draw(seed),
        }
    }

    fn origin(&self) -> PathBuf {
        self.ground.as_ref().map_or_else(|| PathBuf::from("world.toml"), |ground| ground.origin.clone())
    }

    fn take_in(
        &self,
        shared: &Shared<'_>,
        (number, document, along, trial): (u64, Value, Along, Trial),
        after: Progress,
        bench: &Bench<'_>,
    ) {
        let found = {
            let mut findings = shared.pulses.findings();
            findings.worlds += 1;
            findings.tally.add(&trial.tally);
            let Some((at, breach)) = trial.found.clone() else { return };
            if let Some(known) = findings.finds.iter_mut().find(|find| find.rule == breach.rule) {
                known.seen += 1;
                return;
            }
            let seed = self.seed.wrapping_add(number);
            let find = Find::as_drawn(seed, at, breach, after, &document);
            findings.finds.push(find.clone());
            shared.finds.fetch_add(1, Ordering::Relaxed);
            find
        };
        let small = made_small(&found, document, along, &trial, bench);
        let mut findings = shared.pulses.findings();
        if let Some(known) = findings.finds.iter_mut().find(|find| find.rule == small.rule) {
            *known = Find { seen: known.seen, ..small };
        }
    }
}

/// Freezes and shrinks a world.
fn made_small(find: &Find, document: Value, along: Along, trial: &Trial, bench: &Bench<'_>) -> Find {
    let again = |document: &Value| {
        let trial = trial::run(document, find.seed, along, bench).ok()?;
        trial.found.filter(|(_, breach)| breach.rule == find.rule)
    };
    let (quiet, noisy) =
        (frozen(&document, &trial.arrivals, Noise::Gone), frozen(&document, &trial.arrivals, Noise::Kept));
    let (document, state) = if again(&quiet).is_some() {
        (quiet, Frozen::Fully)
    } else if again(&noisy).is_some() {
        (noisy, Frozen::ButNoise)
    } else {
        (document, Frozen::No)
    };
    let shrunk = shrink(document, TRIALS, |candidate| !bench.control.is_interrupted() && again(candidate).is_some());
    let mut small = Find { scenario: to_toml(&shrunk.document), trials: shrunk.trials, frozen: state, ..find.clone() };
    if let Some((at, breach)) = again(&shrunk.document) {
        (small.at, small.message) = (at, breach.message);
    }
    small
}

impl Find {
    fn as_drawn(seed: u64, at: Time, breach: Breach, after: Progress, document: &Value) -> Find {
        let Breach { rule, message } = breach;
        let scenario = to_toml(document);
        Find { seed, rule, message, at, after, scenario, frozen: Frozen::No, trials: 0, seen: 1 }
    }
}
