//! Records as an operator reads them, one line each:
//!
//! ```text
//! 11:20:27.194 enqueue   background embedding nomic-embed steps=32
//! 11:20:27.500 dispatch  interactive step 1/1 -> gemma4-12b
//! ```
//!
//! A live journal shows the time of day (UTC), a simulated one the time since the run began. Only the first and the last
//! step of a job are shown.

use std::{collections::BTreeMap, fmt::Write};

use windtunnel_core::{
    Class, Configuration, DeviceId, Effect, Finish, Grant, GrantedStep, Input, InstanceId, JobId, ModelId, Note,
    Outcome, Request, Submission, Time, Wanted,
};

use super::{
    names::Names,
    record::{End, Header, Record},
    words,
};

/// The words that lines begin with, in this version and in later ones.
pub const WORDS: [&str; 23] = [
    "enqueue", "dispatch", "complete", "fail", "timeout", "cancel", "refuse", "requeue", "variant", "guard", "load",
    "loaded", "loadfail", "evict", "unloaded", "crash", "breaker", "thrash", "mode", "pressure", "oom", "foreign",
    "note",
];

/// Turns the records of a journal into readable lines.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    names: Names,
    /// The only words that are asked for; `None`: all.
    only: Option<Vec<&'static str>>,
    /// Wall-clock start in nanoseconds since 1970, in a live run.
    started: Option<u64>,
    /// What the jobs in the system asked for.
    wanted: BTreeMap<JobId, Wanted>,
}

/// A readable line and what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLine {
    /// When.
    pub t: Time,
    /// The first word.
    pub word: &'static str,
    /// What follows it.
    pub rest: String,
    /// The job it is about.
    pub job: Option<JobId>,
    /// The model it is about.
    pub model: Option<String>,
}

/// Which lines are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only those about this job.
    pub job: Option<JobId>,
    /// Only those about this model or family.
    pub model: Option<String>,
}

impl EventFilter {
    /// Whether `line` is wanted.
    pub fn takes(&self, line: &EventLine) -> bool {
        self.job.is_none_or(|job| line.job == Some(job))
            && self.model.as_ref().is_none_or(|model| line.model.as_ref() == Some(model))
    }
}

/// Where lines go.
type Out<'a> = &'a mut dyn FnMut(EventLine);

impl Lines {
    /// No record seen yet.
    pub fn new() -> Lines {
        Lines::default()
    }

    /// Lines that begin with other words than these may be left out, which saves the time to make them.
    #[must_use]
    pub fn only(words: Vec<&'static str>) -> Lines {
        Lines { only: Some(words), ..Lines::default() }
    }

    /// The same, but only with lines of these words from now on; as [`Lines::only`].
    #[must_use]
    pub fn with_only(self, words: Vec<&'static str>) -> Lines {
        Lines { only: Some(words), ..self }
    }

    /// The same with every line from now on.
    #[must_use]
    pub fn with_all_words(self) -> Lines {
        Lines { only: None, ..self }
    }

    /// Records before this point are not known, but the configuration in force and the instances there are: what each is of
    /// and where.
    pub fn resume(
        &mut self,
        configuration: &Configuration,
        instances: impl IntoIterator<Item = (InstanceId, ModelId, DeviceId)>,
    ) {
        self.names.configure(configuration);
        instances.into_iter().for_each(|(instance, model, device)| self.names.appear(instance, model, device));
    }

    fn wants(&self, word: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&word))
    }

    /// The lines of a record.
    pub fn record(&mut self, record: &Record, out: Out<'_>) {
        match record {
            Record::Header(header) => self.begin(header, out),
            Record::Input { t, input } => self.input(*t, input, out),
            Record::Effect { t, effect } => {
                let steps = if let Effect::Grant(grant) = effect { grant.steps.as_slice() } else { &[] };
                self.effect(*t, effect, steps, out);
            }
            Record::Checkpoint { .. } => {}
            Record::Gap { t, lines } => {
                let count = lines.map_or_else(|| "some".to_owned(), |lines| lines.to_string());
                out(note(*t, format!("gap {count} lines are missing")));
            }
            Record::End(end) => self.end(end, out),
        }
    }

    /// The line of a header; what was known of an earlier run is forgotten.
    pub fn begin(&mut self, header: &Header, out: Out<'_>) {
        *self = Lines {
            names: Names::of(header),
            // Where a thing is named like a word, an expectation that begins with it may mean any line.
            only: self.only.take().filter(|_| !header.names().any(|name| WORDS.contains(&name))),
            started: header.wall_clock.map(|seconds| (seconds * 1e9) as u64),
            wanted: BTreeMap::new(),
        };
        let Header { seed, replication, .. } = header;
        out(note(Time::ZERO, format!("run begins replication={replication} seed={seed}")));
    }

    /// The line of an end.
    pub fn end(&mut self, end: &End, out: Out<'_>) {
        out(note(end.t, format!("run ends cause={}", end.cause.word())));
        for violation in &end.violations {
            out(note(end.t, format!("invariant violated {violation}")));
        }
    }

    /// The lines of an input.
    pub fn input(&mut self, t: Time, input: &Input, out: Out<'_>) {
        match input {
            Input::Started(started) => self.names.start(started),
            Input::Reconfigured(reconfiguration) => {
                self.names.configure(&reconfiguration.configuration);
                out(note(t, "reconfigured".to_owned()));
            }
            Input::Submitted { job, submission } => {
                self.wanted.insert(*job, submission.wanted);
                if self.wants("enqueue") {
                    out(self.enqueue(t, *job, submission));
                }
            }
            Input::LoadFinished { instance, .. } => out(self.about(t, "loaded", *instance, "")),
            Input::LoadFailed { instance, cause, .. } => {
                out(self.about(t, "loadfail", *instance, words::load_failure(*cause)));
            }
            Input::Exited { instance, cause } => out(self.about(t, "crash", *instance, &words::exit(*cause))),
            Input::StopFinished { instance, .. } => out(self.about(t, "unloaded", *instance, "")),
            Input::SnapshotFailed { device } => out(note(t, format!("snapshot failed {}", self.names.device(*device)))),
            Input::Pressure { device, level } => {
                out(line(t, "pressure", format!("{} {}", self.names.device(*device), words::pressure(*level))));
            }
            Input::OutOfMemory { instance, .. } => out(self.about(t, "oom", *instance, "")),
            Input::Operator(request) => out(self.operator(t, *request)),
            Input::Cancelled { .. }
            | Input::GrantFinished { .. }
            | Input::GrantFailed { .. }
            | Input::Snapshot(_)
            | Input::TimerDue => {}
        }
    }

    /// The lines of an effect; `steps` are those of a grant.
    pub fn effect<S>(&mut self, t: Time, effect: &Effect<S>, steps: &[GrantedStep], out: Out<'_>) {
        match effect {
            Effect::Grant(grant) => self.dispatch(t, grant, steps, out),
            Effect::Load { instance, model, device, reservation, .. } => {
                self.names.appear(*instance, *model, *device);
                out(self.about(t, "load", *instance, &format!("reserved={}", words::size(*reservation))));
            }
            Effect::Stop { instance, cause, .. } => {
                out(self.about(t, "note", *instance, &format!("stop {}", words::stop(*cause))));
            }
            Effect::Abort { instance, cause, .. } => {
                out(self.about(t, "note", *instance, &format!("abort {}", words::abort(*cause))));
            }
            Effect::Finish(finish) => {
                if self.wants(words::outcome(finish.outcome)) {
                    out(self.finish(t, finish));
                }
                self.wanted.remove(&finish.job);
            }
            Effect::Note(Note::Waits { .. }) if !self.wants("note") => {}
            Effect::Note(note) => out(self.note(t, note)),
            Effect::Snapshot { .. } | Effect::Learned(_) => {}
        }
    }

    fn enqueue(&self, t: Time, job: JobId, submission: &Submission) -> EventLine {
        let (class, kind) = (self.names.class(submission).name(), submission.kind.name());
        let wanted = self.names.wanted(submission.wanted).to_owned();
        let mut rest = format!("{class} {kind} {wanted} steps={}", self.names.steps(submission));
        if let Some(deadline) = submission.deadline {
            push(&mut rest, format_args!(" deadline={deadline}"));
        }
        push(&mut rest, format_args!(" from={} job={}", self.names.label(submission.label), job.0));
        EventLine { job: Some(job), model: Some(wanted), ..line(t, "enqueue", rest) }
    }

    fn dispatch<S>(&mut self, t: Time, grant: &Grant<S>, steps: &[GrantedStep], out: Out<'_>) {
        self.names.appear(grant.instance, grant.model, grant.device);
        if !self.wants("dispatch") {
            return;
        }
        let (model, device) = (self.names.model(grant.model), self.names.device(grant.device));
        for step in steps.iter().filter(|step| step.step == 0 || u64::from(step.step) + 1 == u64::from(step.of)) {
            let (class, number, of) = (grant.class.name(), u64::from(step.step) + 1, step.of);
            let (batch, job) = (grant.weight, step.job.0);
            let rest = format!("{class} step {number}/{of} -> {model} on {device} batch={batch} job={job}");
            out(EventLine { job: Some(step.job), model: Some(model.to_owned()), ..line(t, "dispatch", rest) });
        }
    }

    fn finish(&self, t: Time, finish: &Finish) -> EventLine {
        let model = self.model_of(finish.job, finish.model);
        let mut rest = format!("{} {}", finish.class.name(), model.as_deref().unwrap_or("?"));
        match finish.outcome {
            Outcome::Completed => {
                push(&mut rest, format_args!(" latency={}", t.since(finish.arrived)));
                if let Some(started) = finish.started {
                    push(&mut rest, format_args!(" wait={}", started.since(finish.arrived)));
                }
                if finish.deadline.is_some_and(|due| t > due) {
                    rest.push_str(" late");
                }
            }
            Outcome::Refused(refusal) => push(&mut rest, format_args!(" {}", words::refusal(refusal, t))),
            Outcome::TimedOut(overdue) => {
                push(&mut rest, format_args!(" {} after={}", words::overdue(overdue), t.since(finish.arrived)));
            }
            Outcome::Failed(failure) => push(&mut rest, format_args!(" {}", words::failure(failure))),
            Outcome::Cancelled => push(&mut rest, format_args!(" after={}", t.since(finish.arrived))),
        }
        push(&mut rest, format_args!(" job={}", finish.job.0));
        EventLine { job: Some(finish.job), model, ..line(t, words::outcome(finish.outcome), rest) }
    }

    fn note(&self, t: Time, one: &Note) -> EventLine {
        match *one {
            Note::Waits { job, reason } => {
                self.job_note(t, job, format!("job {} waits {}", job.0, words::waits(reason, &self.names, t)))
            }
            Note::Mode { device, mode } => {
                line(t, "mode", format!("{} {}", self.names.device(device), words::mode(mode)))
            }
            Note::Guard { device, job, class, starved } => self.guard(t, (device, job, class), starved.to_string()),
            Note::TurnBegan { device, model, until } => {
                let rest = format!("turn began on {} for {}", self.names.device(device), until.since(t));
                self.model_note(t, model, rest)
            }
            Note::TurnEnded { device, model } => {
                self.model_note(t, model, format!("turn ended on {}", self.names.device(device)))
            }
            Note::Variant { job, model, choice } => {
                let model = self.names.model(model).to_owned();
                let rest = format!("{model} {} job={}", words::choice(choice), job.0);
                EventLine { job: Some(job), model: Some(model), ..line(t, "variant", rest) }
            }
            Note::Requeued { job, cause } => {
                let model = self.model_of(job, None);
                let name = model.as_deref().unwrap_or("?");
                let rest = format!("{name} {} job={}", words::grant_failure(cause), job.0);
                EventLine { job: Some(job), model, ..line(t, "requeue", rest) }
            }
            Note::Draining { instance, cause } => {
                self.about(t, "note", instance, &format!("draining {}", words::stop(cause)))
            }
            Note::Evict { instance, by, class, tier, cost, reload, demand, frees } => {
                let by = self.names.model(by);
                let (class, tier) = (class.name(), words::tier(tier));
                let jobs = demand as f64 / 1e6;
                let rest = format!(
                    "{tier} for {class} {by} cost={cost} reload={reload} demand={jobs} frees={}",
                    words::size(frees)
                );
                self.about(t, "evict", instance, &rest)
            }
            Note::LoadPending { model, device, needs, missing } => {
                let device = self.names.device(device);
                let (needs, missing) = (words::size(needs), words::size(missing));
                self.model_note(t, model, format!("waits for memory on {device} needs={needs} missing={missing}"))
            }
            Note::LoadDropped { model, device } => {
                self.model_note(t, model, format!("no longer wanted on {}", self.names.device(device)))
            }
            Note::Thrash { model, loads } => self.of_model(t, "thrash", model, &format!("loads={loads} within 5m")),
            Note::Foreign { device, used } => {
                line(t, "foreign", format!("{} {}", self.names.device(device), words::size(used)))
            }
            Note::ReleaseOverdue { instance, bytes } => {
                self.about(t, "note", instance, &format!("release overdue bytes={}", words::size(bytes)))
            }
            Note::Monitor { device, health } => {
                note(t, format!("monitor {} {}", self.names.device(device), words::monitor(health)))
            }
            Note::Pressure { device, level } => {
                line(t, "pressure", format!("{} {} acted on", self.names.device(device), words::pressure(level)))
            }
            Note::BackOff { model, until } => self.model_note(t, model, format!("next try in {}", until.since(t))),
            Note::Breaker { model, state } => self.of_model(t, "breaker", model, &words::breaker(state, t)),
            Note::Margin { class, factor, missed } => {
                let (factor, missed) = (f64::from(factor.get()) / 1e6, f64::from(missed.get()) / 1e6);
                note(t, format!("admission of {} margin={factor} missed={missed}", class.name()))
            }
            Note::Ignored { cause } => note(t, format!("ignored {}", words::nonsense(cause))),
        }
    }

    fn guard(&self, t: Time, (device, job, class): (DeviceId, JobId, Class), starved: String) -> EventLine {
        let model = self.model_of(job, None);
        let name = model.as_deref().unwrap_or("?");
        let rest = format!("{} {name} on {} starved={starved} job={}", class.name(), self.names.device(device), job.0);
        EventLine { job: Some(job), model, ..line(t, "guard", rest) }
    }

    fn operator(&self, t: Time, request: Request) -> EventLine {
        match request {
            Request::Load { model, device } => {
                self.model_note(t, model, format!("operator start on {}", self.names.device(device)))
            }
            Request::Reset { model } => self.model_note(t, model, "operator reset".to_owned()),
            Request::Unload { instance } => self.about(t, "note", instance, "operator stop"),
            Request::Renew { instance } => self.about(t, "note", instance, "configuration changed"),
            Request::TurnAway { job } => self.job_note(t, job, format!("job {} turned away the daemon ends", job.0)),
        }
    }

    fn about(&self, t: Time, word: &'static str, instance: InstanceId, rest: &str) -> EventLine {
        let place = self.names.place(instance);
        let model = self.names.instance(instance).map(|(model, _)| self.names.model(model).to_owned());
        let rest = if rest.is_empty() { place } else { format!("{place} {rest}") };
        EventLine { model, ..line(t, word, rest) }
    }

    fn of_model(&self, t: Time, word: &'static str, model: ModelId, rest: &str) -> EventLine {
        let model = self.names.model(model).to_owned();
        EventLine { model: Some(model.clone()), ..line(t, word, format!("{model} {rest}")) }
    }

    fn model_note(&self, t: Time, model: ModelId, rest: String) -> EventLine {
        let model = self.names.model(model).to_owned();
        EventLine { model: Some(model.clone()), ..note(t, format!("{model} {rest}")) }
    }

    fn job_note(&self, t: Time, job: JobId, rest: String) -> EventLine {
        EventLine { job: Some(job), model: self.model_of(job, None), ..note(t, rest) }
    }

    /// The model a job ran on, or else what it asked for.
    fn model_of(&self, job: JobId, ran: Option<ModelId>) -> Option<String> {
        let asked = || self.wanted.get(&job).map(|wanted| self.names.wanted(*wanted));
        ran.map(|model| self.names.model(model)).or_else(asked).map(str::to_owned)
    }

    /// The line as it is printed: time, word, rest.
    pub fn print(&self, line: &EventLine) -> String {
        format!("{} {:<9} {}", self.stamp(line.t), line.word, line.rest)
    }

    fn stamp(&self, t: Time) -> String {
        let nanos = t.as_nanos();
        match self.started {
            None => format!("{:>12}", format!("{}.{:06}s", nanos / 1_000_000_000, nanos / 1_000 % 1_000_000)),
            Some(started) => {
                let millis = started.saturating_add(nanos) / 1_000_000;
                let (seconds, minutes, hours) = (millis / 1_000 % 60, millis / 60_000 % 60, millis / 3_600_000 % 24);
                format!("{hours:02}:{minutes:02}:{seconds:02}.{:03}", millis % 1_000)
            }
        }
    }
}

impl Header {
    /// The names of devices, models and workloads.
    fn names(&self) -> impl Iterator<Item = &str> {
        let devices = self.devices.iter().map(|device| device.name.as_str());
        let models = self.models.iter().map(|model| model.name.as_str());
        devices.chain(models).chain(self.workloads.iter().map(|workload| workload.name.as_str()))
    }
}

fn line(t: Time, word: &'static str, rest: String) -> EventLine {
    EventLine { t, word, rest, job: None, model: None }
}

fn note(t: Time, rest: String) -> EventLine {
    line(t, "note", rest)
}

/// Writing to a string cannot fail.
fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(more);
}
