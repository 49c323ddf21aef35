//! Counts what records say.

use std::{collections::BTreeMap, io};

use prometheus_client::metrics::{counter::Counter, histogram::Histogram};
use windtunnel_core::{
    Attempt, Class, Configuration, Effect, Effects, ExitCause, Finish, GrantFailure, Input, InstanceId, LoadFailure,
    ModelId, Note, Outcome, StopCause, Time,
};
use windtunnel_reports::{
    Recorder,
    journal::{End, Header},
};

use super::{Events, Labels};
use crate::gateway::{reason_of_failure, reason_of_overdue, reason_of_refusal};

/// A recorder that counts. It knows names and what instances are from the records themselves.
#[derive(Debug)]
pub struct Meter {
    events: Events,
    models: Vec<String>,
    devices: Vec<String>,
    instances: BTreeMap<InstanceId, ModelId>,
    /// Loads under way, and when they were ordered.
    loading: BTreeMap<Attempt, (ModelId, Time)>,
    /// Models that were loaded once, in their order.
    loaded: Vec<bool>,
    served: BTreeMap<(ModelId, Class), Served>,
    tokens: BTreeMap<ModelId, Counter>,
}

/// What is kept of each model and class, so that nothing is looked up by name for every request.
#[derive(Debug)]
struct Served {
    queue: Histogram,
    first_token: Histogram,
    service: Histogram,
    total: Histogram,
    completed: Counter,
}

impl Meter {
    pub(super) fn new(events: Events) -> Meter {
        Meter {
            events,
            models: Vec::new(),
            devices: Vec::new(),
            instances: BTreeMap::new(),
            loading: BTreeMap::new(),
            loaded: Vec::new(),
            served: BTreeMap::new(),
            tokens: BTreeMap::new(),
        }
    }

    fn configure(&mut self, configuration: &Configuration) {
        self.models = configuration.models.iter().map(|model| model.name.clone()).collect();
        self.devices = configuration.devices.iter().map(|device| device.name.clone()).collect();
        self.loaded.resize(self.models.len(), false);
    }

    fn input(&mut self, t: Time, input: &Input) {
        match input {
            Input::Started(started) => {
                self.configure(&started.configuration);
                let residents = (0..).map(InstanceId).zip(started.residents.iter().map(|one| one.model));
                self.instances.extend(residents);
            }
            Input::Reconfigured(new) => self.configure(&new.configuration),
            Input::GrantFinished { instance, measured, .. } if measured.output_tokens > 0 => {
                self.count_tokens(*instance, measured.output_tokens);
            }
            Input::LoadFinished { attempt, .. } => {
                if let Some((model, ordered)) = self.loading.remove(attempt) {
                    let labels = self.model(model);
                    self.events.load_time.get_or_create(&labels).observe(seconds(ordered, t));
                }
            }
            Input::LoadFailed { attempt, instance, cause } => {
                self.loading.remove(attempt);
                let labels = self.with_cause(*instance, load_failure(*cause));
                self.events.load_failures.get_or_create(&labels).inc();
                self.instances.remove(instance);
            }
            Input::Exited { instance, cause } => {
                let labels = self.with_cause(*instance, exit(*cause));
                self.events.exits.get_or_create(&labels).inc();
                self.instances.remove(instance);
            }
            Input::StopFinished { instance, .. } => drop(self.instances.remove(instance)),
            Input::OutOfMemory { device, .. } => {
                let name = self.devices.get(device.index()).cloned().unwrap_or_default();
                self.events.out_of_memory.get_or_create(&vec![("device", name)]).inc();
            }
            Input::Submitted { .. }
            | Input::Cancelled { .. }
            | Input::GrantFinished { .. }
            | Input::GrantFailed { .. }
            | Input::Snapshot(_)
            | Input::SnapshotFailed { .. }
            | Input::Pressure { .. }
            | Input::Operator(_)
            | Input::TimerDue => {}
        }
    }

    fn effect(&mut self, t: Time, effect: &Effect) {
        match *effect {
            Effect::Load { attempt, instance, model, .. } => {
                self.instances.insert(instance, model);
                self.loading.insert(attempt, (model, t));
                let labels = self.model(model);
                self.events.loads.get_or_create(&labels).inc();
                if self.loaded.get_mut(model.index()).is_some_and(|loaded| std::mem::replace(loaded, true)) {
                    self.events.reloads.get_or_create(&labels).inc();
                }
            }
            Effect::Stop { instance, cause, .. } => {
                let labels = self.with_cause(instance, stop(cause));
                self.events.stops.get_or_create(&labels).inc();
            }
            Effect::Finish(finish) => self.finish(t, &finish),
            Effect::Note(note) => self.note(&note),
            Effect::Grant(_) | Effect::Abort { .. } | Effect::Snapshot { .. } | Effect::Learned(_) => {}
        }
    }

    fn note(&mut self, note: &Note) {
        match *note {
            Note::Guard { class, .. } => {
                self.events.guard.get_or_create(&vec![("class", class.name().to_owned())]).inc();
            }
            Note::Requeued { cause, .. } => {
                self.events.requeued.get_or_create(&vec![("cause", grant_failure(cause).to_owned())]).inc();
            }
            Note::Thrash { model, .. } => {
                let labels = self.model(model);
                self.events.thrash.get_or_create(&labels).inc();
            }
            _ => {}
        }
    }

    fn finish(&mut self, t: Time, finish: &Finish) {
        let class = ("class", finish.class.name().to_owned());
        let (refusals, failures) = (&self.events.refusals, &self.events.failures);
        let (outcome, why) = match finish.outcome {
            Outcome::Completed => return self.completed(t, finish),
            Outcome::Refused(refusal) => ("refused", Some((refusals, reason_of_refusal(refusal)))),
            Outcome::TimedOut(overdue) => ("failed", Some((failures, reason_of_overdue(overdue)))),
            Outcome::Failed(failure) => ("failed", Some((failures, reason_of_failure(failure)))),
            Outcome::Cancelled => ("cancelled", None),
        };
        if let Some((family, reason)) = why {
            family.get_or_create(&vec![class.clone(), ("reason", reason.to_owned())]).inc();
        }
        self.events.requests.get_or_create(&vec![class, ("outcome", outcome.to_owned())]).inc();
    }

    fn completed(&mut self, t: Time, finish: &Finish) {
        let (Some(model), Some(started)) = (finish.model, finish.started) else { return };
        let served = self.served(model, finish.class);
        served.completed.inc();
        served.queue.observe(seconds(finish.arrived, started));
        served.service.observe(seconds(started, t));
        served.total.observe(seconds(finish.arrived, t));
        if let Some(first) = finish.first_token {
            served.first_token.observe(seconds(finish.arrived, first));
        }
    }

    fn served(&mut self, model: ModelId, class: Class) -> &Served {
        let (events, models) = (&self.events, &self.models);
        self.served.entry((model, class)).or_insert_with(|| {
            let name = models.get(model.index()).cloned().unwrap_or_default();
            let labels: Labels = vec![("class", class.name().to_owned()), ("model", name)];
            let outcome = vec![("class", class.name().to_owned()), ("outcome", "completed".to_owned())];
            Served {
                queue: events.queue.get_or_create_owned(&labels),
                first_token: events.first_token.get_or_create_owned(&labels),
                service: events.service.get_or_create_owned(&labels),
                total: events.total.get_or_create_owned(&labels),
                completed: events.requests.get_or_create_owned(&outcome),
            }
        })
    }

    fn count_tokens(&mut self, instance: InstanceId, tokens: u32) {
        let Some(&model) = self.instances.get(&instance) else { return };
        let labels = self.model(model);
        let counter = self.tokens.entry(model).or_insert_with(|| self.events.tokens.get_or_create_owned(&labels));
        counter.inc_by(u64::from(tokens));
    }

    fn model(&self, model: ModelId) -> Labels {
        vec![("model", self.models.get(model.index()).cloned().unwrap_or_default())]
    }

    fn with_cause(&self, instance: InstanceId, cause: &str) -> Labels {
        let mut labels = self.instances.get(&instance).map_or_else(Labels::new, |&model| self.model(model));
        labels.push(("cause", cause.to_owned()));
        labels
    }
}

impl Recorder for Meter {
    fn begin(&mut self, _header: &Header) -> io::Result<()> {
        Ok(())
    }

    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        self.input(t, input);
        effects.iter().for_each(|effect| self.effect(t, effect));
        Ok(())
    }

    fn reads_reasons(&self) -> bool {
        false
    }

    fn end(&mut self, _end: &End) -> io::Result<()> {
        Ok(())
    }
}

fn seconds(from: Time, to: Time) -> f64 {
    to.since(from).as_nanos() as f64 / 1e9
}

const fn load_failure(cause: LoadFailure) -> &'static str {
    match cause {
        LoadFailure::Crashed => "crashed",
        LoadFailure::OutOfMemory => "out_of_memory",
        LoadFailure::Stalled => "stalled",
        LoadFailure::NotStarted => "not_started",
        LoadFailure::Stopped => "stopped",
    }
}

const fn exit(cause: ExitCause) -> &'static str {
    match cause {
        ExitCause::Code(_) => "code",
        ExitCause::Signal(_) => "signal",
        ExitCause::Wedged => "wedged",
        ExitCause::OutOfMemory => "out_of_memory",
    }
}

const fn stop(cause: StopCause) -> &'static str {
    match cause {
        StopCause::Operator => "operator",
        StopCause::Changed => "changed",
        StopCause::Removed => "removed",
        StopCause::Evicted => "evicted",
        StopCause::Idle => "idle",
        StopCause::Pressure => "pressure",
        StopCause::OutOfMemory => "out_of_memory",
    }
}

const fn grant_failure(cause: GrantFailure) -> &'static str {
    match cause {
        GrantFailure::Aborted => "aborted",
        GrantFailure::Crashed => "crashed",
        GrantFailure::Wedged => "wedged",
        GrantFailure::OutOfMemory => "out_of_memory",
        GrantFailure::Disconnected => "disconnected",
        GrantFailure::Rejected => "rejected",
    }
}
