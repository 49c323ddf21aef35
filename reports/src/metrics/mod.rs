//! Figures of one run, computed from its records as they pass, in memory that does not grow with the run.
//!
//! [`RunMetrics`] is told what the scheduler was told and what it wanted, in order, and keeps counts, exact sums and
//! histograms for at most 32 equal stretches of the run. When the run is over the warm-up is cut off at a boundary of
//! stretches and what remains becomes [`RunFigures`].
//!
//! Rates and shares of time are those of the *window*: from the cut until the horizon, or until the last of the arrivals
//! that were asked for. What happens while a run drains counts for the jobs that arrived in the window and for nothing else.

mod checks;
mod crowd;
mod device_time;
mod figures;
mod flows;
mod histogram;
mod instance;
mod service;
mod starvation;
mod stretch;
mod tally;
mod thrash;
mod warmup;
mod window;
mod work;

use std::io;

use windtunnel_core::{
    AbortCause, Class, Configuration, Effect, Effects, Finish, Grant, GrantedStep, Input, Note, Span, Started,
    StopCause, Time,
};

pub use checks::Check;
pub use device_time::Shares;
pub use figures::{BacklogPoint, DeviceFigures, PlaceFigures, RunFigures, SeriesPoint, Steady, StretchMean};
pub use flows::{Flow, Gaps};
pub use histogram::{Bin, Histogram, Quantile};
pub use stretch::{Absorb, STRETCHES};
pub use tally::{ENDINGS, Ending, REASONS, Reason, Tally, reason_index};
pub use thrash::Thrash;
pub use work::Work;

use crate::{
    Recorder,
    journal::{End, Header, Record, SCHEMA, Source, WarmupRule},
};
use crowd::Crowd;
use flows::Flows;
use service::{Service, Settled};
use starvation::Starvation;
pub use starvation::Starved;
use stretch::Grid;
use thrash::Thrashing;
use window::LAST;

/// The figures of one run in the making.
#[derive(Clone, Debug)]
pub struct RunMetrics {
    header: Header,
    end: Option<End>,
    grid: Grid,
    now: u64,
    /// When time has to be looked at again: the end of a point, or just after the window.
    boundary: u64,
    /// The last moment of the window.
    close_at: u64,
    /// The stretch in which things that happen now count; `None` after the window.
    counting: Option<usize>,
    /// The number of the arrival with which the window ends; 0 when it does not end so.
    last_job: u64,
    flows: Flows,
    crowd: Crowd,
    service: Service,
    starvation: Starvation,
    thrashing: Thrashing,
    /// From then on a job without progress is starved.
    patience: Span,
    families: Vec<String>,
    /// The sum of the times after the window of the jobs that ended then, in nanoseconds.
    overtime: u128,
}

impl Default for RunMetrics {
    fn default() -> Self {
        RunMetrics::new()
    }
}

impl RunMetrics {
    /// Nothing seen yet.
    pub fn new() -> RunMetrics {
        RunMetrics::of(&Header {
            schema: SCHEMA,
            program: String::new(),
            source: Source::Sim,
            title: String::new(),
            seed: 0,
            replication: 0,
            horizon: None,
            jobs: None,
            warmup: WarmupRule::Auto,
            wall_clock: None,
            devices: Vec::new(),
            models: Vec::new(),
            workloads: Vec::new(),
            remarks: std::collections::BTreeMap::new(),
        })
    }

    fn of(header: &Header) -> RunMetrics {
        let horizon = header.horizon.map(|horizon| horizon.as_nanos());
        let origin = match (header.warmup, horizon) {
            (WarmupRule::Fixed(span), _) => span.as_nanos(),
            (WarmupRule::Share(share), Some(horizon)) => share_of(share, horizon),
            (WarmupRule::Share(_), None) | (WarmupRule::Auto, _) => 0,
        };
        let known = if header.jobs.is_none() { horizon } else { None };
        let grid = Grid::new(origin, known);
        let close_at = horizon.unwrap_or(LAST).min(LAST);
        RunMetrics {
            header: header.clone(),
            end: None,
            grid,
            now: 0,
            boundary: grid.next_boundary(0).min(close_at + 1),
            close_at,
            counting: Some(grid.stretch(0)),
            last_job: header.jobs.unwrap_or(0),
            flows: Flows::new(header.workloads.len(), header.models.len()),
            crowd: Crowd::default(),
            service: Service::new(header.devices.len()),
            starvation: Starvation::default(),
            thrashing: Thrashing::default(),
            patience: Span::ZERO,
            families: Vec::new(),
            overtime: 0,
        }
    }

    /// The figures, when the run is over; a run without an end counts as interrupted at its last record.
    pub fn into_run(mut self) -> RunFigures {
        self.stop(self.now);
        self.flows.settle();
        figures::of(self)
    }

    /// The next record of the run; a header begins it anew, and gaps and checkpoints tell of no figure.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Header(header) => *self = RunMetrics::of(header),
            Record::Input { t, input } => self.input(*t, input),
            Record::Effect { t, effect } => {
                let steps = if let Effect::Grant(grant) = effect { grant.steps.as_slice() } else { &[] };
                self.effect(*t, effect, steps);
            }
            Record::End(end) => self.ended(end),
            Record::Checkpoint { .. } | Record::Gap { .. } => {}
        }
    }

    fn ended(&mut self, end: &End) {
        self.stop(end.t.as_nanos());
        self.end = Some(end.clone());
    }

    /// Something happened at `t`.
    #[inline(always)]
    pub fn input(&mut self, t: Time, input: &Input) {
        self.advance(t.as_nanos());
        match input {
            Input::Submitted { job, submission } => {
                let class = self.flows.class_of(submission);
                self.flows.submitted(*job, class, submission, self.now);
                self.crowd.enter(self.now);
                self.starvation.submitted(*job, class, submission.wanted, self.now);
                if self.crowd.arrived() == self.last_job {
                    self.last_arrival();
                }
            }
            Input::GrantFinished { attempt, instance, .. } => {
                self.service.settle(*instance, *attempt, Settled::Done, self.now);
                self.starvation.settled(*attempt, Some(self.now));
            }
            other => self.rare_input(other),
        }
    }

    #[inline(never)]
    fn rare_input(&mut self, input: &Input) {
        match input {
            Input::GrantFailed { attempt, instance, .. } => {
                self.service.settle(*instance, *attempt, Settled::Lost, self.now);
                self.starvation.settled(*attempt, None);
            }
            Input::Started(started) => self.started(started),
            Input::Reconfigured(reconfiguration) => {
                let configuration = &reconfiguration.configuration;
                self.configure(configuration);
            }
            Input::LoadFinished { instance, .. } => self.service.ready(*instance, self.now),
            Input::LoadFailed { instance, .. }
            | Input::Exited { instance, .. }
            | Input::StopFinished { instance, .. } => self.service.gone(*instance, self.now),
            Input::Snapshot(snapshot) => self.service.memory(snapshot.device, snapshot.used),
            Input::Submitted { .. }
            | Input::Cancelled { .. }
            | Input::GrantFinished { .. }
            | Input::SnapshotFailed { .. }
            | Input::Pressure { .. }
            | Input::OutOfMemory { .. }
            | Input::Operator(_)
            | Input::TimerDue => {}
        }
    }

    fn configure(&mut self, configuration: &Configuration) {
        self.flows.set_default_class(configuration.policy.default_class);
        self.service.set_capacities(configuration.models.iter().map(|model| Some(model.capacity)).collect());
        self.patience = configuration.policy.background_max_starvation;
        self.families = configuration.families.iter().map(|family| family.name.clone()).collect();
    }

    fn started(&mut self, started: &Started) {
        self.configure(&started.configuration);
        for (at, resident) in (0u32..).zip(&started.residents) {
            let id = windtunnel_core::InstanceId(at);
            if self.service.appear(id, resident.model, resident.device).is_some() {
                self.service.ready(id, self.now);
            }
        }
    }

    /// The scheduler wanted something at `t`; `steps` are those of a grant.
    #[inline]
    pub fn effect<S>(&mut self, t: Time, effect: &Effect<S>, steps: &[GrantedStep]) {
        self.advance(t.as_nanos());
        self.wanted(effect, steps);
    }

    /// The scheduler wanted something at the time of the last input.
    #[inline]
    fn wanted<S>(&mut self, effect: &Effect<S>, steps: &[GrantedStep]) {
        match effect {
            Effect::Grant(grant) => self.granted(grant, steps),
            Effect::Finish(finish) => self.finished(finish),
            other => self.rarely_wanted(other),
        }
    }

    #[inline(never)]
    fn rarely_wanted<S>(&mut self, effect: &Effect<S>) {
        match effect {
            Effect::Grant(_) | Effect::Finish(_) => {}
            Effect::Note(note) => self.note(note),
            Effect::Load { instance, model, device, .. } => {
                self.service.loading(*instance, *model, *device);
            }
            Effect::Stop { instance, cause, .. } if makes_room(*cause) => self.service.evicted(*instance),
            // Of loads that are broken off so that another fits.
            Effect::Abort { instance, cause: AbortCause::Evicted, .. } => self.service.evicted(*instance),
            Effect::Stop { .. } | Effect::Abort { .. } | Effect::Snapshot { .. } | Effect::Learned(_) => {}
        }
    }

    #[inline(always)]
    fn granted<S>(&mut self, grant: &Grant<S>, steps: &[GrantedStep]) {
        self.service.grant(grant, self.now);
        if self.crowd.any_requeued() {
            let crowd = &mut self.crowd;
            let fresh = steps.iter().filter(|step| !crowd.take_requeued(step.job, self.now) && step.step == 0).count();
            self.crowd.start(fresh as u64, self.now);
        } else {
            let first = match steps {
                [only] => u64::from(only.step == 0),
                steps => steps.iter().filter(|step| step.step == 0).count() as u64,
            };
            self.crowd.start(first, self.now);
        }
        if grant.class != Class::Interactive {
            self.starvation.granted(grant.attempt, steps, self.now);
        }
    }

    #[inline(always)]
    fn finished(&mut self, finish: &Finish) {
        let now = Time::from_nanos(self.now);
        let arrival = self.stretch_of(finish.arrived.as_nanos());
        self.flows.finished(finish, now, arrival);
        if self.crowd.any_requeued() {
            self.crowd.take_requeued(finish.job, self.now);
        }
        self.crowd.leave(finish, self.now);
        if self.counting.is_none() {
            self.overtime = self.overtime.saturating_add(u128::from(self.now.saturating_sub(self.close_at)));
        }
        self.starvation.finished(finish, self.now);
    }

    fn note(&mut self, note: &Note) {
        match note {
            Note::Mode { device, mode } => self.service.mode(*device, *mode, self.now),
            Note::Guard { class, starved, .. } => self.starvation.noted(*class, starved.as_nanos()),
            Note::Requeued { job, .. } => self.crowd.requeue(*job, self.now),
            Note::Waits { job, reason } => self.starvation.waits(*job, *reason),
            Note::Thrash { model, loads } => self.thrashing.noted(*model, *loads),
            Note::TurnBegan { .. }
            | Note::TurnEnded { .. }
            | Note::Variant { .. }
            | Note::Draining { .. }
            | Note::Evict { .. }
            | Note::LoadPending { .. }
            | Note::LoadDropped { .. }
            | Note::Foreign { .. }
            | Note::ReleaseOverdue { .. }
            | Note::Monitor { .. }
            | Note::Pressure { .. }
            | Note::BackOff { .. }
            | Note::Breaker { .. }
            | Note::Margin { .. }
            | Note::Ignored { .. } => {}
        }
    }
}

/// Whether an instance stopped for this reason was evicted.
fn makes_room(cause: StopCause) -> bool {
    match cause {
        StopCause::Evicted | StopCause::Pressure | StopCause::OutOfMemory => true,
        StopCause::Operator | StopCause::Changed | StopCause::Removed | StopCause::Idle => false,
    }
}

/// This share of `span`, rounded down.
fn share_of(share: f64, span: u64) -> u64 {
    (share.clamp(0.0, 1.0) * span as f64) as u64
}

impl Recorder for RunMetrics {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        *self = RunMetrics::of(header);
        Ok(())
    }

    #[inline(always)]
    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        self.input(t, input);
        for effect in effects {
            match effect {
                Effect::Finish(finish) => self.finished(finish),
                Effect::Grant(grant) => self.granted(grant, effects.steps(grant.steps)),
                other => self.rarely_wanted(other),
            }
        }
        Ok(())
    }

    fn reads_reasons(&self) -> bool {
        false
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        self.ended(end);
        Ok(())
    }
}
