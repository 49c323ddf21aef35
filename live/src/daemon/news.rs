//! What people hear while a daemon runs: a line for every model that was loaded, leaves, or fails.
//!
//! It is told by the records of the scheduler, on whose thread nobody may wait; so another thread says it.

use std::{
    collections::BTreeMap,
    io,
    sync::mpsc::{self, Sender},
    thread::{self, JoinHandle},
};

use windtunnel_core::{
    Attempt, BreakerState, Configuration, DeviceId, Effect, Effects, ExitCause, Input, InstanceId, LoadFailure,
    ModelId, Note, StopCause, Time,
};
use windtunnel_reports::{
    Recorder,
    journal::{End, Header},
};

use super::{Said, Sayer};

/// Who makes the lines.
#[derive(Debug)]
pub(super) struct News {
    models: Vec<String>,
    devices: Vec<String>,
    instances: BTreeMap<InstanceId, (ModelId, DeviceId)>,
    /// When loads under way were ordered.
    ordered: BTreeMap<Attempt, Time>,
    tell: Sender<String>,
}

impl News {
    /// Who makes the lines, and the thread that says them, which ends when he is gone.
    ///
    /// # Errors
    /// If the operating system starts no thread.
    pub fn start(say: Sayer) -> io::Result<(News, JoinHandle<()>)> {
        let (tell, told) = mpsc::channel();
        let thread = thread::Builder::new().name("news".to_owned());
        let thread = thread.spawn(move || told.iter().for_each(|line| say(Said::Remark(line))))?;
        Ok((News::telling(tell), thread))
    }

    fn telling(tell: Sender<String>) -> News {
        let (instances, ordered) = (BTreeMap::new(), BTreeMap::new());
        News { models: Vec::new(), devices: Vec::new(), instances, ordered, tell }
    }

    fn configure(&mut self, configuration: &Configuration) {
        self.models = configuration.models.iter().map(|model| model.name.clone()).collect();
        self.devices = configuration.devices.iter().map(|device| device.name.clone()).collect();
    }

    fn input(&mut self, t: Time, input: &Input) {
        match input {
            Input::Started(started) => self.configure(&started.configuration),
            Input::Reconfigured(new) => self.configure(&new.configuration),
            Input::LoadFinished { attempt, instance, .. } => {
                let took = self.ordered.remove(attempt).map(|at| t.since(at).as_nanos() as f64 / 1e9);
                let took = took.map_or_else(String::new, |seconds| format!(" after {seconds:.1} s"));
                self.say(*instance, |model, device| format!("{model} is loaded on {device}{took}"));
            }
            Input::LoadFailed { attempt, instance, cause } => {
                self.ordered.remove(attempt);
                self.say(*instance, |model, device| format!("{model} on {device}: {}", failed(*cause)));
                self.instances.remove(instance);
            }
            Input::Exited { instance, cause } => {
                self.say(*instance, |model, device| format!("{model} on {device}: {}", exited(*cause)));
                self.instances.remove(instance);
            }
            Input::StopFinished { instance, .. } => drop(self.instances.remove(instance)),
            Input::Submitted { .. }
            | Input::Cancelled { .. }
            | Input::GrantFinished { .. }
            | Input::GrantFailed { .. }
            | Input::Snapshot(_)
            | Input::SnapshotFailed { .. }
            | Input::Pressure { .. }
            | Input::OutOfMemory { .. }
            | Input::Operator(_)
            | Input::TimerDue => {}
        }
    }

    fn effect(&mut self, t: Time, effect: &Effect) {
        match *effect {
            Effect::Load { attempt, instance, model, device, .. } => {
                self.instances.insert(instance, (model, device));
                self.ordered.insert(attempt, t);
            }
            Effect::Stop { instance, cause, .. } => {
                self.say(instance, |model, device| format!("{model} leaves {device}: {}", left(cause)));
            }
            Effect::Note(Note::Breaker { model, state: BreakerState::Open { until } }) => {
                let seconds = until.since(t).as_nanos().div_ceil(1_000_000_000);
                self.hear(format!("{} fails again and again, the next try is in {seconds} s", self.model(model)));
            }
            Effect::Note(_)
            | Effect::Grant(_)
            | Effect::Abort { .. }
            | Effect::Snapshot { .. }
            | Effect::Finish(_)
            | Effect::Learned(_) => {}
        }
    }

    fn say(&self, instance: InstanceId, line: impl FnOnce(&str, &str) -> String) {
        if let Some(&(model, device)) = self.instances.get(&instance) {
            let device = self.devices.get(device.index()).map_or("?", String::as_str);
            self.hear(line(self.model(model), device));
        }
    }

    fn model(&self, model: ModelId) -> &str {
        self.models.get(model.index()).map_or("?", String::as_str)
    }

    /// After the end nobody listens.
    fn hear(&self, line: String) {
        drop(self.tell.send(line));
    }
}

const fn failed(cause: LoadFailure) -> &'static str {
    match cause {
        LoadFailure::Crashed => "the load failed, its process ended",
        LoadFailure::OutOfMemory => "the load failed, memory ran out",
        LoadFailure::Stalled => "the load failed, it made no progress",
        LoadFailure::NotStarted => "the load failed, its process could not be started",
        LoadFailure::Stopped => "the load was broken off",
    }
}

fn exited(cause: ExitCause) -> String {
    match cause {
        ExitCause::Code(code) => format!("its process ended by itself with code {code}"),
        ExitCause::Signal(signal) => format!("its process was ended by signal {signal}"),
        ExitCause::Wedged => "its process made no progress and is replaced".to_owned(),
        ExitCause::OutOfMemory => "its process ended because memory ran out".to_owned(),
    }
}

const fn left(cause: StopCause) -> &'static str {
    match cause {
        StopCause::Operator => "an operator asked for it",
        StopCause::Changed => "the configuration starts it in another way now",
        StopCause::Removed => "it is no longer configured",
        StopCause::Evicted => "its memory is needed for others",
        StopCause::Idle => "nobody used it for long",
        StopCause::Pressure => "memory is scarce",
        StopCause::OutOfMemory => "memory ran out",
    }
}

impl Recorder for News {
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

#[cfg(test)]
mod tests {
    use windtunnel_core::{Bytes, Span};

    use super::*;

    /// What is said of one who is loaded, or was to be, and what then became of it.
    fn said(inputs: &[Input], effects: &[Effect]) -> Vec<String> {
        let (tell, told) = mpsc::channel();
        let mut news = News::telling(tell);
        (news.models, news.devices) = (vec!["chat".to_owned()], vec!["gpu0".to_owned()]);
        let load = Effect::Load {
            attempt: Attempt(1),
            instance: InstanceId(5),
            model: ModelId(0),
            device: DeviceId(0),
            reservation: Bytes::ZERO,
        };
        news.effect(Time::ZERO, &load);
        let t = Time::ZERO.after(Span::from_millis(2_340));
        inputs.iter().for_each(|input| news.input(t, input));
        effects.iter().for_each(|effect| news.effect(t, effect));
        drop(news);
        told.iter().collect()
    }

    #[test]
    fn every_line_that_people_hear() {
        let (attempt, instance) = (Attempt(1), InstanceId(5));
        let loaded = Input::LoadFinished { attempt, instance, footprint: None };
        let failed = [
            LoadFailure::Crashed,
            LoadFailure::OutOfMemory,
            LoadFailure::Stalled,
            LoadFailure::NotStarted,
            LoadFailure::Stopped,
        ];
        let exits = [ExitCause::Code(1), ExitCause::Signal(9), ExitCause::Wedged, ExitCause::OutOfMemory];
        let stops = [
            StopCause::Operator,
            StopCause::Removed,
            StopCause::Evicted,
            StopCause::Idle,
            StopCause::Pressure,
            StopCause::OutOfMemory,
        ];
        let until = Time::ZERO.after(Span::from_millis(62_000));
        let breaker = Effect::Note(Note::Breaker { model: ModelId(0), state: BreakerState::Open { until } });
        let failed = failed.map(|cause| said(&[Input::LoadFailed { attempt, instance, cause }], &[]));
        let exits = exits.map(|cause| said(&[loaded.clone(), Input::Exited { instance, cause }], &[]));
        let stops = stops.map(|cause| said(&[], &[Effect::Stop { attempt: Attempt(2), instance, cause }]));
        let lines = [&failed[..], &[said(&[], &[breaker])], &exits[..], &stops[..]].concat().concat();
        insta::assert_snapshot!(lines.join("\n"), @r"
        chat on gpu0: the load failed, its process ended
        chat on gpu0: the load failed, memory ran out
        chat on gpu0: the load failed, it made no progress
        chat on gpu0: the load failed, its process could not be started
        chat on gpu0: the load was broken off
        chat fails again and again, the next try is in 60 s
        chat is loaded on gpu0 after 2.3 s
        chat on gpu0: its process ended by itself with code 1
        chat is loaded on gpu0 after 2.3 s
        chat on gpu0: its process was ended by signal 9
        chat is loaded on gpu0 after 2.3 s
        chat on gpu0: its process made no progress and is replaced
        chat is loaded on gpu0 after 2.3 s
        chat on gpu0: its process ended because memory ran out
        chat leaves gpu0: an operator asked for it
        chat leaves gpu0: it is no longer configured
        chat leaves gpu0: its memory is needed for others
        chat leaves gpu0: nobody used it for long
        chat leaves gpu0: memory is scarce
        chat leaves gpu0: memory ran out
        ");
    }

    #[test]
    fn nothing_is_said_of_who_is_gone() {
        let (attempt, instance) = (Attempt(1), InstanceId(5));
        let exited = Input::Exited { instance, cause: ExitCause::Code(1) };
        let failed = Input::LoadFailed { attempt, instance, cause: LoadFailure::Crashed };
        for end in [exited.clone(), failed, Input::StopFinished { attempt: Attempt(2), instance }] {
            let before = said(std::slice::from_ref(&end), &[]);
            assert_eq!(said(&[end, exited.clone()], &[]), before);
        }
    }
}
