//! A process on a card: how far its load is and what memory it holds.

use windtunnel_core::{Attempt, Bytes, InstanceId, LoadFailure, ModelId, Span, Time};

/// A process from the order to load it until its end.
#[derive(Clone, Debug)]
pub struct Process {
    pub instance: InstanceId,
    pub model: ModelId,
    /// What it takes when it is loaded; `None`: nobody counts it.
    pub footprint: Option<Bytes>,
    pub phase: Phase,
    pub growths: Vec<Growth>,
    /// What else its load brought.
    pub fate: LoadFate,
}

/// How far a process is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Phase {
    /// It starts and has nothing in memory yet.
    Starting { attempt: Attempt, until: Time },
    /// So many of its bytes are still to come.
    Filling { attempt: Attempt, left: f64 },
    /// It gets nowhere and is given up.
    Stalled { attempt: Attempt, until: Time },
    /// It answers.
    Ready,
    /// It ends.
    Leaving { as_what: Leaving, until: Time, holds: u64 },
}

/// What the end of a process means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// A stop is done.
    Stop(Attempt),
    /// A load was broken off.
    Load(Attempt),
}

/// Memory that a process takes beyond its footprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    pub from: Time,
    pub bytes: Bytes,
    pub over: Span,
}

/// What becomes of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadFate {
    /// It takes so many times as long.
    pub factor: f64,
    /// So long instead of what the device takes for it, as was recorded.
    pub recorded: Option<Span>,
    pub end: LoadEnd,
    /// Memory the process takes afterwards, and over how long.
    pub growth: Option<(Bytes, Span)>,
    pub claim: Claim,
}

/// How a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEnd {
    /// As memory permits.
    Natural,
    /// In this failure.
    Fails(LoadFailure),
    /// Never, until it is given up after so long.
    Stalls(Span),
}

/// What a loaded process does to the memory of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It takes what it takes.
    Honest,
    /// It has claimed more than there is, whatever the figures say.
    Overcommitted,
}

impl LoadFate {
    /// Nothing special.
    pub const NATURAL: LoadFate =
        LoadFate { factor: 1.0, recorded: None, end: LoadEnd::Natural, growth: None, claim: Claim::Honest };
}

impl Process {
    /// What it holds at `now`.
    pub fn holds(&self, now: Time) -> u64 {
        let footprint = self.footprint.map_or(0, Bytes::get);
        match self.phase {
            Phase::Starting { .. } | Phase::Stalled { .. } => 0,
            Phase::Filling { left, .. } => footprint.saturating_sub((left / self.fate.factor).ceil().max(0.0) as u64),
            Phase::Ready => self.growths.iter().fold(footprint, |sum, growth| sum.saturating_add(growth.so_far(now))),
            Phase::Leaving { holds, .. } => holds,
        }
    }

    /// It is loaded: what its load brought begins.
    pub fn begin_to_grow(&mut self, now: Time) {
        self.growths.extend(self.fate.growth.map(|(bytes, over)| Growth { from: now, bytes, over }));
    }

    /// Whether it is loaded and has grown beyond its footprint.
    pub fn has_grown(&self, now: Time) -> bool {
        self.phase == Phase::Ready && self.growths.iter().any(|growth| growth.so_far(now) > 0)
    }

    /// Lets everything that is to come be `by` later.
    pub fn delay(&mut self, by: Span) {
        match &mut self.phase {
            Phase::Starting { until, .. } | Phase::Stalled { until, .. } | Phase::Leaving { until, .. } => {
                *until = until.after(by);
            }
            Phase::Filling { .. } | Phase::Ready => {}
        }
        self.growths.iter_mut().for_each(|growth| growth.from = growth.from.after(by));
    }

    /// Whether its memory may change by itself.
    pub fn is_changing(&self, now: Time) -> bool {
        match self.phase {
            Phase::Starting { .. } | Phase::Filling { .. } | Phase::Stalled { .. } | Phase::Leaving { .. } => true,
            Phase::Ready => self.growths.iter().any(|growth| now < growth.from.after(growth.over)),
        }
    }

    /// When its phase ends, where that is fixed.
    pub fn until(&self) -> Time {
        match self.phase {
            Phase::Starting { until, .. } | Phase::Stalled { until, .. } | Phase::Leaving { until, .. } => until,
            Phase::Filling { .. } | Phase::Ready => Time::MAX,
        }
    }
}

impl Growth {
    fn so_far(&self, now: Time) -> u64 {
        let elapsed = now.since(self.from).as_nanos();
        if elapsed >= self.over.as_nanos() {
            return self.bytes.get();
        }
        let grown = u128::from(self.bytes.get()) * u128::from(elapsed) / u128::from(self.over.as_nanos());
        u64::try_from(grown).unwrap_or(u64::MAX)
    }
}
