//! What was read last, so that a difference can be shown in its context.

use std::collections::VecDeque;

use windtunnel_core::{Scheduler, Time};
use windtunnel_reports::journal::{Header, Lines, Record};

use crate::follower::Wanted;

/// How many records are kept.
const KEPT: usize = 12;

/// The last records of a run, and names for what they speak of. Readable lines are made only when they are asked for.
#[derive(Debug)]
pub struct Trail {
    /// Knows what the records before the kept ones tell.
    lines: Lines,
    recent: VecDeque<Record>,
}

/// The trail, told.
#[derive(Debug)]
pub struct Story {
    /// The readable lines of the kept records.
    pub before: Vec<String>,
    lines: Lines,
}

impl Trail {
    pub fn new() -> Trail {
        Trail { lines: Lines::only(Vec::new()), recent: VecDeque::with_capacity(KEPT) }
    }

    /// A run begins; whatever came before has nothing to do with it.
    pub fn begin(&mut self, header: &Header) {
        self.recent.clear();
        self.lines.begin(header, &mut |_| {});
    }

    /// A scheduler goes on from a checkpoint, and its names are known from there.
    pub fn resume(&mut self, scheduler: &Scheduler) {
        self.recent.clear();
        let devices = scheduler.view().devices.into_iter();
        let instances = devices
            .flat_map(|device| device.instances.into_iter().map(move |one| (one.instance, one.model, device.device)));
        self.lines.resume(scheduler.configuration(), instances);
    }

    /// The next record, which was as it should be.
    pub fn push(&mut self, record: Record) {
        if self.recent.len() == KEPT
            && let Some(old) = self.recent.pop_front()
        {
            self.lines.record(&old, &mut |_| {});
        }
        self.recent.push_back(record);
    }

    /// What the kept records say.
    pub fn story(&self) -> Story {
        let mut lines = self.lines.clone().with_all_words();
        let mut said = Vec::new();
        for record in &self.recent {
            lines.record(record, &mut |line| said.push(line));
        }
        let before = said.iter().map(|line| lines.print(line)).collect();
        Story { before, lines }
    }
}

impl Story {
    /// The readable lines of an effect that comes next.
    pub fn effect(&self, t: Time, effect: &Wanted) -> Vec<String> {
        let record = Record::Effect { t, effect: effect.clone() };
        let mut lines = self.lines.clone();
        let mut said = Vec::new();
        lines.record(&record, &mut |line| said.push(line));
        said.iter().map(|line| lines.print(line)).collect()
    }
}
