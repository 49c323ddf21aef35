//! Jobs by workload, class and model, and what is known of their arrivals.
//!
//! Histograms exist once for each combination that occurs; figures of a workload, a class or a model are merged from them
//! when the run is over.

use std::collections::BTreeMap;

use windtunnel_core::{Class, Finish, JobId, LabelId, Submission, Time, Wanted};

use super::{
    stretch::{OUTSIDE, STRETCHES, Stretched, count},
    tally::{Tally, reason_index},
    warmup::Groups,
};

/// All flows of a run.
#[derive(Clone, Debug)]
pub struct Flows {
    labels: Vec<Label>,
    /// How many models there are.
    models: u32,
    index: Vec<u32>,
    cells: Vec<Cell>,
    default_class: Class,
    /// What jobs asked for, where it differs from what their label asked for first.
    unusual: BTreeMap<JobId, Model>,
    /// The longest that a job which was not completed was in the system in nanoseconds.
    longest_lost: u64,
}

/// A known model, or the number after them for jobs of which no model can be named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Model(u32);

/// The model that is asked for, of so many.
#[inline]
fn named(wanted: Wanted, models: u32) -> Model {
    match wanted {
        Wanted::Model(model) => Model(model.0.min(models)),
        Wanted::Family(_) => Model(models),
    }
}

/// Jobs of one workload, class and model.
#[derive(Clone, Debug)]
struct Cell {
    label: usize,
    class: Class,
    place: Model,
    /// Arrivals and completions of the stretch that lasts.
    current: Passed,
    stretches: Stretched<Tally>,
    fresh: Fresh,
}

/// Times of completed jobs that have yet to go into the histograms of their stretch. They go there many at a time: so one
/// histogram after another is at hand, and not all of them for every job.
#[derive(Clone, Debug, Default)]
struct Fresh {
    stretch: usize,
    times: Vec<Times>,
}

/// How long a job took, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    wait: u64,
    service: u64,
    latency: u64,
}

/// So many times go into the histograms at once.
const MANY: usize = 256;

/// What passes in a stretch.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    offered: u64,
    done: u64,
    good: u64,
    gone: u64,
}

/// What is known of a workload as a whole.
#[derive(Clone, Debug)]
pub struct Label {
    /// What its first job asked for.
    asked: Model,
    /// The cell last used, and of which class and model it is.
    cell: u32,
    of: (Class, Model),
    pub gaps: Gaps,
    pub groups: Groups,
}

impl Default for Label {
    fn default() -> Self {
        let (gaps, groups) = (Gaps::default(), Groups::default());
        Label { asked: Model(0), cell: u32::MAX, of: (Class::Interactive, Model(0)), gaps, groups }
    }
}

/// Times between arrivals, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    arrivals: u64,
    first: u64,
    last: u64,
    squares: u128,
}

/// The jobs of one combination that arrived after the cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The workload, by label.
    pub label: usize,
    /// The class.
    pub class: Class,
    /// The model; `None` where no model can be named.
    pub model: Option<usize>,
    /// The counts.
    pub tally: Tally,
}

impl Flows {
    /// Room for so many workloads and models. Ids beyond them are counted together as unknown.
    pub fn new(labels: usize, models: usize) -> Flows {
        let labels = labels + 1;
        Flows {
            labels: vec![Label::default(); labels],
            models: models as u32,
            index: vec![u32::MAX; labels * Class::ALL.len() * (models + 1)],
            cells: Vec::new(),
            default_class: Class::Interactive,
            unusual: BTreeMap::new(),
            longest_lost: 0,
        }
    }

    /// The class of jobs that name none.
    pub fn set_default_class(&mut self, class: Class) {
        self.default_class = class;
    }

    /// The class of this job.
    #[inline]
    pub fn class_of(&self, submission: &Submission) -> Class {
        submission.class.unwrap_or(self.default_class)
    }

    /// A job of `class` arrived at `now`.
    #[inline]
    pub fn submitted(&mut self, job: JobId, class: Class, submission: &Submission, now: u64) {
        let at = self.label_index(submission.label);
        let label = &mut self.labels[at];
        label.gaps.arrival(now);
        let model = named(submission.wanted, self.models);
        // Nearly all jobs of a label are of one class and ask for one model.
        if model == label.asked
            && label.of == (class, model)
            && let Some(cell) = self.cells.get_mut(label.cell as usize)
        {
            return count(&mut cell.current.offered, 1);
        }
        self.submitted_unusually(job, at, class, model);
    }

    /// A job is of another class than the last of its label, or asks for another model than the first.
    #[inline(never)]
    fn submitted_unusually(&mut self, job: JobId, at: usize, class: Class, model: Model) {
        let label = &mut self.labels[at];
        if label.gaps.arrivals == 1 {
            label.asked = model;
        } else if model != label.asked {
            self.unusual.insert(job, model);
        }
        count(&mut self.cell(at, class, model).current.offered, 1);
    }

    /// A job that arrived in stretch `arrival` ended at `now`.
    #[inline(always)]
    pub fn finished(&mut self, finish: &Finish, now: Time, arrival: usize) {
        let at = self.label_index(finish.label);
        let label = &mut self.labels[at];
        let model = finish.model.map_or(label.asked, |model| Model(model.0.min(self.models)));
        if finish.outcome.is_completed()
            && model == label.asked
            && label.of == (finish.class, model)
            && self.unusual.is_empty()
            && let Some(cell) = self.cells.get_mut(label.cell as usize)
        {
            label.groups.add(now.since(finish.arrived).as_nanos(), now.as_nanos());
            return cell.completed(finish, now, arrival);
        }
        self.finished_unusually(finish, now, at, arrival);
    }

    #[inline(never)]
    fn finished_unusually(&mut self, finish: &Finish, now: Time, label: usize, arrival: usize) {
        let asked = self.asked(finish.job, label);
        let model = finish.model.map_or(asked, |model| Model(model.0.min(self.models)));
        if model != asked {
            self.moved(label, finish.class, (asked, model), arrival);
        }
        if !finish.outcome.is_completed() {
            self.lost(finish, now, (label, model), arrival);
            return;
        }
        self.labels[label].groups.add(now.since(finish.arrived).as_nanos(), now.as_nanos());
        self.cell(label, finish.class, model).completed(finish, now, arrival);
    }

    /// A job ended without being completed.
    fn lost(&mut self, finish: &Finish, now: Time, (label, model): (usize, Model), arrival: usize) {
        let cell = self.cell(label, finish.class, model);
        cell.current.gone += 1;
        let tally = &mut cell.stretches[arrival];
        tally.endings[reason_index(finish.outcome)] += 1;
        let stay = now.since(finish.arrived).as_nanos();
        tally.other_stays += u128::from(stay);
        self.longest_lost = self.longest_lost.max(stay);
    }

    #[inline]
    fn label_index(&self, label: LabelId) -> usize {
        label.index().min(self.labels.len() - 1)
    }

    fn asked(&mut self, job: JobId, label: usize) -> Model {
        let usual = self.labels[label].asked;
        if self.unusual.is_empty() { usual } else { self.unusual.remove(&job).unwrap_or(usual) }
    }

    /// A job was counted under the first model when it arrived and belongs to the second.
    fn moved(&mut self, label: usize, class: Class, (from, to): (Model, Model), stretch: usize) {
        let cell = self.cell(label, class, from);
        let (past, current) = (&mut cell.stretches[stretch].offered, &mut cell.current.offered);
        let offered = if *past > 0 { past } else { current };
        let Some(rest) = offered.checked_sub(1) else { return };
        *offered = rest;
        self.cell(label, class, to).stretches[stretch].offered += 1;
    }

    fn cell(&mut self, label: usize, class: Class, model: Model) -> &mut Cell {
        let last = &self.labels[label];
        let at = last.cell as usize;
        if last.of == (class, model) && at < self.cells.len() {
            return &mut self.cells[at];
        }
        self.other_cell(label, class, model)
    }

    fn other_cell(&mut self, label: usize, class: Class, model: Model) -> &mut Cell {
        let place = (label * Class::ALL.len() + class.index()) * (self.models as usize + 1) + model.0 as usize;
        let at = self.index[place] as usize;
        let at = if at < self.cells.len() { at } else { self.open(place, label, class, model) };
        (self.labels[label].cell, self.labels[label].of) = (at as u32, (class, model));
        &mut self.cells[at]
    }

    #[cold]
    fn open(&mut self, place: usize, label: usize, class: Class, model: Model) -> usize {
        let at = self.cells.len();
        self.index[place] = at as u32;
        let (current, stretches, fresh) = (Passed::default(), Stretched::default(), Fresh::default());
        self.cells.push(Cell { label, class, place: model, current, stretches, fresh });
        at
    }

    /// A stretch ends.
    pub fn close_stretch(&mut self, stretch: usize) {
        for cell in &mut self.cells {
            let Passed { offered, done, good, gone } = std::mem::take(&mut cell.current);
            let tally = &mut cell.stretches[stretch];
            tally.offered += offered;
            tally.done += done;
            tally.good += good;
            tally.gone += gone;
        }
    }

    /// Puts every time into its histogram; to be called before any is read.
    pub fn settle(&mut self) {
        self.cells.iter_mut().for_each(Cell::settle);
    }

    /// Makes one of each pair of stretches.
    pub fn halve(&mut self) {
        self.settle();
        self.cells.iter_mut().for_each(|cell| cell.stretches.halve());
    }

    /// The workloads, the unknown ones last.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// How many jobs of a workload are in the system at the end of each stretch.
    pub fn left(&self, label: usize) -> [u64; STRETCHES] {
        let cells = || self.cells.iter().filter(|cell| cell.label == label);
        let grown = |stretch: usize| {
            let tallies = cells().map(|cell| &cell.stretches[stretch]);
            tallies.fold((0, 0), |(came, went), tally| (came + tally.offered, went + tally.done + tally.gone))
        };
        let (mut came, mut went) = grown(OUTSIDE);
        std::array::from_fn(|stretch| {
            let (more, less) = grown(stretch);
            came += more;
            went += less;
            came.saturating_sub(went)
        })
    }

    /// The longest that any job was in the system in nanoseconds.
    pub fn longest_stay(&self) -> u64 {
        let latencies = self.cells.iter().flat_map(|cell| cell.stretches.all()).filter_map(|tally| tally.latency.max());
        latencies.max().unwrap_or(0).max(self.longest_lost)
    }

    /// The longest wait of a completed job of a class in nanoseconds.
    pub fn longest_wait(&self, class: Class) -> u64 {
        let cells = self.cells.iter().filter(|cell| cell.class == class);
        cells.flat_map(|cell| cell.stretches.all()).filter_map(|tally| tally.wait.max()).max().unwrap_or(0)
    }

    /// All that arrived from stretch `first` on, in a fixed order.
    pub fn after(self, first: usize) -> Vec<Flow> {
        let models = self.models;
        let flow = |Cell { label, class, place, stretches, .. }: Cell| Flow {
            label,
            class,
            model: (place.0 < models).then_some(place.0 as usize),
            tally: stretches.from(first),
        };
        let mut flows: Vec<Flow> = self.cells.into_iter().map(flow).collect();
        flows.sort_by_key(|flow| (flow.label, flow.class, flow.model));
        flows
    }
}

impl Cell {
    /// A job was completed that had arrived in stretch `arrival`.
    #[inline]
    fn completed(&mut self, finish: &Finish, now: Time, arrival: usize) {
        if self.fresh.stretch != arrival || self.fresh.times.len() >= MANY {
            self.settle();
            self.fresh.stretch = arrival;
        }
        self.fresh.times.push(Times::of(finish, now));
        if let Some(token) = finish.first_token {
            self.stretches[arrival].ttft.record(token.since(finish.arrived).as_nanos());
        }
        count(&mut self.current.done, 1);
        count(&mut self.current.good, u64::from(finish.deadline.is_none_or(|due| now <= due)));
    }

    fn settle(&mut self) {
        let (tally, times) = (&mut self.stretches[self.fresh.stretch], &mut self.fresh.times);
        tally.wait.record_all(times.iter().map(|times| times.wait));
        tally.service.record_all(times.iter().map(|times| times.service));
        tally.latency.record_all(times.iter().map(|times| times.latency));
        times.clear();
    }
}

impl Times {
    #[inline]
    fn of(finish: &Finish, now: Time) -> Times {
        let started = finish.started.unwrap_or(finish.arrived);
        Times {
            wait: started.since(finish.arrived).as_nanos(),
            service: now.since(started).as_nanos(),
            latency: now.since(finish.arrived).as_nanos(),
        }
    }
}

impl Gaps {
    #[inline]
    fn arrival(&mut self, now: u64) {
        if self.arrivals == 0 {
            (self.first, self.last) = (now, now);
        }
        let gap = u128::from(now.saturating_sub(self.last));
        count(&mut self.arrivals, 1);
        self.last = now;
        // Gaps lie one after another in time, so the sum of their squares is at most 2^128 - 2^65 + 1.
        self.squares = self.squares.wrapping_add(gap * gap);
    }

    /// How many gaps there are.
    fn count(&self) -> u64 {
        self.arrivals.saturating_sub(1)
    }

    /// The mean gap in nanoseconds; `None` with fewer than two arrivals at different times.
    fn mean(&self) -> Option<f64> {
        (self.last > self.first).then(|| (self.last - self.first) as f64 / self.count() as f64)
    }

    /// Arrivals per second between the first and the last; `None` with fewer than two at different times.
    pub fn rate(&self) -> Option<f64> {
        Some(1e9 / self.mean()?)
    }

    /// The coefficient of variation of the gaps; `None` with fewer than two gaps.
    pub fn cv(&self) -> Option<f64> {
        let mean = self.mean().filter(|_| self.count() >= 2)?;
        let variance = (self.squares as f64 / self.count() as f64 - mean * mean).max(0.0);
        Some(variance.sqrt() / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_gaps_have_no_variation() {
        let mut gaps = Gaps::default();
        (0..11).for_each(|i| gaps.arrival(i * 100_000_000));
        assert_eq!((gaps.rate(), gaps.cv()), (Some(10.0), Some(0.0)));
    }

    #[test]
    fn gaps_of_two_lengths_vary_by_their_spread() {
        let mut gaps = Gaps::default();
        let mut t = 0;
        gaps.arrival(t);
        for gap in [1_000_000_000, 3_000_000_000, 1_000_000_000, 3_000_000_000] {
            t += gap;
            gaps.arrival(t);
        }
        assert_eq!((gaps.rate(), gaps.cv()), (Some(0.5), Some(0.5)));
    }
}
