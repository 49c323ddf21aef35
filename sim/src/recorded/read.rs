//! Records gathered into runs.

use std::collections::BTreeMap;

use windtunnel_core::{
    Attempt, DeviceId, Effect, Finish, Grant, GrantedStep, Input, InstanceId, JobId, Measured, ModelId, Request, Span,
    Started, Submission, Time,
};
use windtunnel_reports::journal::{Header, Record};

use super::loads::RecordedLoad;

/// A run as it was recorded.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// What it is.
    pub header: Header,
    /// What the scheduler was told at the start.
    pub started: Started,
    /// Its requests in the order of their arrival.
    pub jobs: Vec<RecordedJob>,
    /// Its grants in the order of their start.
    pub grants: Vec<RecordedGrant>,
    /// Its loads that finished, in that order.
    pub loads: Vec<RecordedLoad>,
    /// The time of its last record.
    pub end: Time,
    /// What the records say that cannot be played again.
    pub remarks: Vec<String>,
}

/// A request as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedJob {
    /// When it came.
    pub at: Time,
    /// What it asked for.
    pub submission: Submission,
    /// After how long its client went away, where it did.
    pub gave_up: Option<Span>,
    /// Tokens of the last of its grants that it had for itself and that finished.
    pub output_tokens: Option<u32>,
    /// The last grant, by its place, of each of its steps.
    pub steps: Vec<Option<u32>>,
    /// How and when it ended, where it did.
    pub end: Option<(Time, Finish)>,
}

/// A grant as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedGrant {
    /// Its model.
    pub model: ModelId,
    /// Its device.
    pub device: DeviceId,
    /// Its instance.
    pub instance: InstanceId,
    /// The inputs of all its steps.
    pub weight: u32,
    /// Prompt tokens of each input of its first step.
    pub prompt_tokens: u32,
    /// When its first token was out, where that is known.
    pub first_token: Option<Time>,
    /// Tokens that came out.
    pub output_tokens: u32,
    /// When it began.
    pub start: Time,
    /// When it ended; `None`: not before the run did.
    pub end: Option<Time>,
    /// How.
    pub fate: Fate,
}

/// How a grant ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It never did.
    Running,
    /// All its steps are done.
    Finished,
    /// It came to nothing.
    Failed,
}

impl RecordedJob {
    /// Whether all of it was done.
    pub fn is_completed(&self) -> bool {
        self.end.is_some_and(|(_, finish)| finish.outcome.is_completed())
    }
}

/// Steps of a job that are looked at.
const MOST_STEPS: u32 = 1 << 20;

/// Gathers runs from records.
#[derive(Debug, Default)]
pub struct Reader {
    runs: Vec<RecordedRun>,
    header: Option<Header>,
    open: bool,
    jobs: BTreeMap<JobId, usize>,
    /// The place of each grant under way, and its job if it is that of one.
    under_way: BTreeMap<Attempt, (u32, Option<JobId>)>,
    /// The loads under way, and when they were ordered.
    loading: BTreeMap<Attempt, (Time, ModelId, DeviceId)>,
}

impl Reader {
    /// Nothing read yet.
    pub fn new() -> Reader {
        Reader::default()
    }

    /// The next record. Those of a run that does not begin with its first input are passed.
    pub fn record(&mut self, record: Record) {
        match record {
            Record::Header(header) => {
                *self = Reader { runs: std::mem::take(&mut self.runs), header: Some(*header), ..Reader::default() };
            }
            Record::Input { t, input } => self.input(t, input),
            Record::Effect { t, effect } => self.effect(t, effect),
            Record::Gap { t, .. } => self.remark(t, "lines are missing; what happened in them is left out"),
            Record::End(end) => {
                if let Some(run) = self.run() {
                    run.end = run.end.max(end.t);
                }
                self.open = false;
            }
            Record::Checkpoint { .. } => {}
        }
    }

    /// The runs that were read.
    pub fn finish(self) -> Vec<RecordedRun> {
        self.runs
    }

    fn run(&mut self) -> Option<&mut RecordedRun> {
        if self.open { self.runs.last_mut() } else { None }
    }

    fn remark(&mut self, t: Time, text: &str) {
        if let Some(run) = self.run() {
            run.remarks.push(format!("at {t}: {text}"));
        }
    }

    fn input(&mut self, t: Time, input: Input) {
        if let Some(run) = self.run() {
            run.end = run.end.max(t);
        }
        match input {
            Input::Started(started) => {
                if let Some(header) = self.header.take() {
                    let (jobs, grants, loads, remarks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
                    self.runs.push(RecordedRun { header, started: *started, jobs, grants, loads, end: t, remarks });
                    self.open = true;
                }
            }
            Input::Submitted { job, submission } => {
                let Some(run) = self.run() else { return };
                let at = run.jobs.len();
                let (steps, end) = (Vec::new(), None);
                run.jobs.push(RecordedJob { at: t, submission, gave_up: None, output_tokens: None, steps, end });
                self.jobs.insert(job, at);
            }
            Input::Cancelled { job } => {
                let Some(&at) = self.jobs.get(&job) else { return };
                if let Some(job) = self.run().and_then(|run| run.jobs.get_mut(at)) {
                    job.gave_up = Some(t.since(job.at));
                }
            }
            Input::GrantFinished { attempt, measured, .. } => self.grant_ended(t, attempt, Fate::Finished, measured),
            Input::GrantFailed { attempt, .. } => {
                let nothing = Measured { first_token: None, output_tokens: 0 };
                self.grant_ended(t, attempt, Fate::Failed, nothing);
            }
            Input::Reconfigured(_) => self.remark(t, "the configuration changed; the first one is kept"),
            Input::Exited { .. } | Input::OutOfMemory { .. } => {
                self.remark(t, "a process failed; failures are not played again");
            }
            // A replay has no end before its jobs'; and that the configuration changed is said already.
            Input::Operator(Request::TurnAway { .. } | Request::Renew { .. }) => {}
            Input::Operator(Request::Load { .. } | Request::Reset { .. } | Request::Unload { .. }) => {
                self.remark(t, "an operator intervened; that is not played again")
            }
            Input::LoadFinished { attempt, .. } => {
                let Some((ordered, model, device)) = self.loading.remove(&attempt) else { return };
                if let Some(run) = self.run() {
                    run.loads.push(RecordedLoad { model, device, took: t.since(ordered) });
                }
            }
            Input::LoadFailed { attempt, .. } => {
                self.loading.remove(&attempt);
            }
            Input::StopFinished { .. }
            | Input::Snapshot(_)
            | Input::SnapshotFailed { .. }
            | Input::Pressure { .. }
            | Input::TimerDue => {}
        }
    }

    fn effect(&mut self, t: Time, effect: Effect<Vec<GrantedStep>>) {
        match effect {
            Effect::Grant(grant) => self.grant(t, grant),
            Effect::Finish(finish) => {
                let Some(&at) = self.jobs.get(&finish.job) else { return };
                if let Some(job) = self.run().and_then(|run| run.jobs.get_mut(at)) {
                    job.end = Some((t, finish));
                }
            }
            Effect::Load { attempt, model, device, .. } => {
                self.loading.insert(attempt, (t, model, device));
            }
            Effect::Stop { .. }
            | Effect::Abort { .. }
            | Effect::Snapshot { .. }
            | Effect::Learned(_)
            | Effect::Note(_) => {}
        }
    }

    fn grant(&mut self, t: Time, grant: Grant<Vec<GrantedStep>>) {
        let Grant { attempt, instance, model, device, weight, steps, class: _, right: _ } = grant;
        let jobs = &self.jobs;
        let Some(run) = self.runs.last_mut().filter(|_| self.open) else { return };
        let place = run.grants.len() as u32;
        let fate = Fate::Running;
        let first = steps.first().and_then(|step| run.jobs.get(*jobs.get(&step.job)?));
        let prompt_tokens = first.map_or(0, |job| job.submission.prompt_tokens);
        let (end, first_token, output_tokens) = (None, None, 0);
        run.grants.push(RecordedGrant {
            model,
            device,
            instance,
            weight,
            prompt_tokens,
            first_token,
            output_tokens,
            start: t,
            end,
            fate,
        });
        for step in steps.iter().filter(|step| step.step < MOST_STEPS) {
            let Some(job) = jobs.get(&step.job).and_then(|&at| run.jobs.get_mut(at)) else { continue };
            let known = job.steps.len().max(step.step as usize + 1);
            job.steps.resize(known, None);
            job.steps[step.step as usize] = Some(place);
        }
        let only = if let [step] = steps[..] { Some(step.job) } else { None };
        self.under_way.insert(attempt, (place, only));
    }

    fn grant_ended(&mut self, t: Time, attempt: Attempt, fate: Fate, measured: Measured) {
        let Some((place, only)) = self.under_way.remove(&attempt) else { return };
        let job = only.and_then(|job| self.jobs.get(&job).copied());
        let Some(run) = self.run() else { return };
        if let Some(grant) = run.grants.get_mut(place as usize) {
            (grant.end, grant.fate) = (Some(t), fate);
            (grant.first_token, grant.output_tokens) = (measured.first_token, measured.output_tokens);
        }
        if let Some(job) = job.and_then(|at| run.jobs.get_mut(at)).filter(|_| fate == Fate::Finished) {
            job.output_tokens = Some(measured.output_tokens);
        }
    }
}
