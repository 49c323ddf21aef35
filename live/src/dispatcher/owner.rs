//! The loop: one message, one step of the scheduler, and its effects carried out.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;
use windtunnel_core::{
    Attempt, Effect, Effects, ExitCause, Grant, GrantFailure, GrantedStep, Input, InstanceId, JobId, ModelId, Note,
    Profile, Scheduler, Sent, Started, Time,
};
use windtunnel_reports::journal::{End, EndCause, Header};

use super::{
    desk::{Desk, Message},
    orders::{BatchOrder, Order, Running, Ticket, Told},
    ready::Ready,
    troubles::{TroubleCause, Troubles},
};
use crate::{Clock, Endpoint, LoadOrder, Runtimes, journal::Log};

/// Invariants are checked after so many steps.
const CHECKED_EVERY: u64 = 65_536;
/// So many broken invariants are kept for the end of the journal.
const MOST_VIOLATIONS: usize = 100;

/// Keeps what the scheduler learns of a model over restarts; may not wait.
pub type Learned = Box<dyn FnMut(Profile) + Send>;

/// Everything the thread of the scheduler is given.
pub struct Setting<W, R: Log> {
    /// The first line of the journal.
    pub header: Header,
    /// The first input.
    pub started: Started,
    /// Takes every record; must not wait. [`crate::journal::Journal`] is one.
    pub recorder: R,
    /// Who keeps what is learned.
    pub learned: Learned,
    /// Who runs grants of jobs that left their inputs.
    pub batches: UnboundedSender<BatchOrder<W>>,
    /// Is told how long every step of the scheduler took; must not wait.
    pub measured: Box<dyn FnMut(Duration) + Send>,
    /// Is told of invariants that do not hold; must not wait.
    pub broken: Box<dyn FnMut(&str) + Send>,
}

/// The thread that owns the scheduler.
#[derive(Debug)]
pub struct Dispatcher {
    thread: JoinHandle<()>,
}

impl Dispatcher {
    /// Starts the thread. `runtimes` is made from the desk that its facts go to.
    ///
    /// # Errors
    /// If the operating system starts no thread.
    pub fn start<W, R, T>(
        clock: Clock,
        setting: Setting<W, R>,
        runtimes: impl FnOnce(Desk<W>) -> T,
    ) -> std::io::Result<(Dispatcher, Desk<W>)>
    where
        W: Send + Sync + 'static,
        R: Log + Send + 'static,
        T: Runtimes + 'static,
    {
        let (messages, inbox) = mpsc::channel();
        let ready = Arc::new(Ready::default());
        let troubles = Arc::new(Troubles::default());
        let desk = Desk { messages, clock, ready: Arc::clone(&ready), troubles: Arc::clone(&troubles) };
        let runtimes = runtimes(desk.clone());
        let thread = thread::Builder::new().name("scheduler".to_owned()).spawn(move || {
            Owner::new(clock, setting, runtimes, ready, troubles).run(&inbox);
        })?;
        Ok((Dispatcher { thread }, desk))
    }

    /// Waits until it has ended, after [`Desk::close`]; whether it did so in good order.
    pub fn join(self) -> bool {
        self.thread.join().is_ok()
    }
}

struct Owner<W, R: Log, T> {
    clock: Clock,
    scheduler: Scheduler,
    effects: Effects,
    setting: Setting<W, R>,
    runtimes: T,
    next_job: u64,
    tickets: BTreeMap<JobId, Ticket<W>>,
    /// Where instances that are ready answer.
    endpoints: BTreeMap<InstanceId, Arc<Endpoint>>,
    /// The same for everybody, without those about to be stopped.
    ready: Arc<Ready>,
    /// What is known of models that fail, for everybody.
    troubles: Arc<Troubles>,
    /// The models of instances whose processes are not known to be gone.
    models: BTreeMap<InstanceId, ModelId>,
    grants: BTreeMap<Attempt, CancellationToken>,
    /// What is to be told next, once all has been told that others have said so far.
    own: VecDeque<Input>,
    steps: u64,
    checked: u64,
    violations: Vec<String>,
    last: Time,
}

impl<W: Send + Sync, R: Log, T: Runtimes> Owner<W, R, T> {
    fn new(
        clock: Clock,
        setting: Setting<W, R>,
        runtimes: T,
        ready: Arc<Ready>,
        troubles: Arc<Troubles>,
    ) -> Owner<W, R, T> {
        Owner {
            clock,
            scheduler: Scheduler::new(),
            effects: Effects::new(),
            setting,
            runtimes,
            next_job: 0,
            tickets: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            ready,
            troubles,
            models: BTreeMap::new(),
            grants: BTreeMap::new(),
            own: VecDeque::new(),
            steps: 0,
            checked: 0,
            violations: Vec::new(),
            last: Time::ZERO,
        }
    }

    fn run(mut self, inbox: &Receiver<Message<W>>) {
        // The journal says itself when it cannot be written; the daemon goes on.
        drop(self.setting.recorder.begin(&self.setting.header));
        let started = Input::Started(Box::new(self.setting.started.clone()));
        self.step(&started);
        loop {
            match self.next(inbox) {
                Some(Message::Close) => break,
                Some(message) => self.take(message),
                None => self.step(&Input::TimerDue),
            }
        }
        self.end();
    }

    /// The next message; `None`: a timer is due before there is one. When nobody is left to say anything it is closed.
    fn next(&mut self, inbox: &Receiver<Message<W>>) -> Option<Message<W>> {
        if !self.own.is_empty() {
            if self.scheduler.wake_at().is_some_and(|at| at <= self.clock.now()) {
                return None;
            }
            return inbox.try_recv().ok().or_else(|| self.own.pop_front().map(Message::Fact));
        }
        loop {
            let (timer, recorder) = (self.scheduler.wake_at(), self.setting.recorder.idle_at());
            let Some(at) = timer.into_iter().chain(recorder).min() else {
                return Some(inbox.recv().unwrap_or(Message::Close));
            };
            let now = self.clock.now();
            if timer.is_some_and(|at| at <= now) {
                return None;
            }
            match inbox.recv_timeout(Duration::from_nanos(at.since(now).as_nanos())) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Timeout) => self.rest(),
                Err(RecvTimeoutError::Disconnected) => return Some(Message::Close),
            }
        }
    }

    /// Nobody says anything: the recorder has time for what it put off.
    fn rest(&mut self) {
        let now = self.clock.now();
        if self.setting.recorder.idle_at().is_some_and(|at| at <= now) {
            self.setting.recorder.idle(now);
        }
    }

    fn take(&mut self, message: Message<W>) {
        match message {
            Message::Submit { submission, ticket } => {
                let job = JobId(self.next_job);
                self.next_job += 1;
                let input = Input::Submitted { job, submission: *submission };
                self.decide(&input);
                // Whoever waits for his number wakes up for what was decided, too.
                // Who left before he heard it waits for his number elsewhere, to say so.
                drop(ticket.tell.tell(Told::Taken(job)));
                self.tickets.insert(job, ticket);
                self.follow(&input);
            }
            Message::Gone { job } if self.tickets.contains_key(&job) => self.step(&Input::Cancelled { job }),
            Message::Gone { .. } | Message::Close => {}
            Message::Fact(input) => self.step(&input),
            Message::Loaded { attempt, instance, footprint, endpoint } => {
                let endpoint = Arc::new(endpoint);
                self.endpoints.insert(instance, Arc::clone(&endpoint));
                if let Some(&model) = self.models.get(&instance) {
                    self.ready.enter(instance, model, endpoint);
                }
                self.step(&Input::LoadFinished { attempt, instance, footprint });
            }
            Message::View(answer) => drop(answer.send(self.scheduler.view())),
            Message::Checkpoint => self.write_state(),
        }
    }

    fn write_state(&mut self) {
        let state = self.scheduler.checkpoint();
        drop(self.setting.recorder.checkpoint(self.last, &state));
    }

    fn step(&mut self, input: &Input) {
        self.decide(input);
        self.follow(input);
    }

    fn decide(&mut self, input: &Input) {
        // What a step costs must not make time go back for the next one.
        self.last = self.clock.now().max(self.last);
        let before = Instant::now();
        self.scheduler.step(self.last, input, &mut self.effects);
        (self.setting.measured)(before.elapsed());
        self.learn(input);
    }

    /// What is known of a failure is known before anybody hears what came of it.
    fn learn(&self, input: &Input) {
        match *input {
            Input::LoadFailed { instance, cause, .. } => {
                if let Some(&model) = self.models.get(&instance) {
                    self.troubles.failed(model, TroubleCause::Load(cause));
                }
            }
            Input::Exited { instance, cause } => {
                if let Some(&model) = self.models.get(&instance) {
                    self.troubles.failed(model, TroubleCause::Exit(cause));
                }
            }
            Input::Started(_)
            | Input::Reconfigured(_)
            | Input::Submitted { .. }
            | Input::Cancelled { .. }
            | Input::GrantFinished { .. }
            | Input::GrantFailed { .. }
            | Input::LoadFinished { .. }
            | Input::StopFinished { .. }
            | Input::Snapshot(_)
            | Input::SnapshotFailed { .. }
            | Input::Pressure { .. }
            | Input::OutOfMemory { .. }
            | Input::Operator(_)
            | Input::TimerDue => {}
        }
        self.troubles.decided(&self.effects);
    }

    /// Others get on with what was decided while it is written down.
    fn follow(&mut self, input: &Input) {
        self.carry_out();
        // Only then: a timer that was due as well may have given a process a step in the moment in which it died. Whoever
        // runs that step finds the process dead, and says so.
        self.settle(input);
        drop(self.setting.recorder.step(self.last, input, &self.effects));
        if self.setting.recorder.wants_state() {
            self.write_state();
        }
        self.watch();
    }

    /// Forgets what is over by the word of whoever said so.
    fn settle(&mut self, input: &Input) {
        match input {
            Input::GrantFinished { attempt, .. } | Input::GrantFailed { attempt, .. } => {
                self.grants.remove(attempt);
            }
            Input::Exited { instance, cause } => self.forget(*instance, Some(*cause)),
            Input::StopFinished { instance, .. } => self.forget(*instance, None),
            Input::LoadFailed { instance, .. } => self.forget(*instance, None),
            Input::Started(_)
            | Input::Reconfigured(_)
            | Input::Submitted { .. }
            | Input::Cancelled { .. }
            | Input::LoadFinished { .. }
            | Input::Snapshot(_)
            | Input::SnapshotFailed { .. }
            | Input::Pressure { .. }
            | Input::OutOfMemory { .. }
            | Input::Operator(_)
            | Input::TimerDue => {}
        }
    }

    /// A process is gone, of which the scheduler knows.
    fn forget(&mut self, instance: InstanceId, cause: Option<ExitCause>) {
        if let Some(endpoint) = self.endpoints.remove(&instance) {
            endpoint.progress.end(cause);
        }
        self.ready.leave(instance);
        self.models.remove(&instance);
    }

    fn carry_out(&mut self) {
        let effects = std::mem::take(&mut self.effects);
        for effect in &effects {
            match *effect {
                Effect::Grant(grant) => self.grant(&grant, effects.steps(grant.steps)),
                Effect::Load { attempt, instance, model, device, reservation } => {
                    self.models.insert(instance, model);
                    self.runtimes.load(LoadOrder { attempt, instance, model, device, reservation });
                }
                Effect::Stop { attempt, instance, .. } => {
                    self.ready.leave(instance);
                    self.runtimes.stop(attempt, instance);
                }
                Effect::Abort { attempt, instance, .. } => match self.grants.get(&attempt) {
                    Some(grant) => grant.cancel(),
                    None => self.runtimes.abort_load(attempt, instance),
                },
                Effect::Snapshot { device } => self.runtimes.read(device),
                Effect::Learned(profile) => (self.setting.learned)(profile),
                Effect::Finish(finish) => {
                    if let Some(ticket) = self.tickets.remove(&finish.job) {
                        drop(ticket.tell.tell(Told::Finished(Box::new(finish))));
                    }
                }
                Effect::Note(Note::Waits { job, reason }) => {
                    if let Some(ticket) = self.tickets.get(&job) {
                        drop(ticket.tell.tell(Told::Waits(reason)));
                    }
                }
                Effect::Note(_) => {}
            }
        }
        self.effects = effects;
    }

    fn grant<S>(&mut self, grant: &Grant<S>, steps: &[GrantedStep]) {
        let Some(endpoint) = self.endpoints.get(&grant.instance) else { return self.cannot_run(grant) };
        let running = Running::of(grant, Arc::clone(endpoint));
        self.grants.insert(grant.attempt, running.abort.clone());
        let class = grant.class;
        let tickets = steps.iter().filter_map(|step| Some((*step, self.tickets.get(&step.job)?)));
        let tickets: Vec<(GrantedStep, &Ticket<W>)> = tickets.collect();
        match tickets[..] {
            [(step, ticket)] if ticket.work.is_none() => {
                if ticket.tell.tell(Told::Granted(Box::new(Order { running, class, step }))).is_err() {
                    // He has said that he goes, and that crossed with the grant.
                    self.comes_to_nothing(grant, GrantFailure::Aborted);
                }
            }
            _ => {
                let steps = tickets.into_iter().map(|(step, ticket)| (step, ticket.clone())).collect();
                drop(self.setting.batches.send(BatchOrder { running, class, steps }));
            }
        }
    }

    /// A step that is to run where nothing answers comes to nothing at once, and its client hears of it; nobody else would say
    /// so, and it would be waited for.
    fn cannot_run<S>(&mut self, grant: &Grant<S>) {
        let &Grant { attempt, instance, .. } = grant;
        self.note_broken(format!("{attempt} was granted on {instance}, of which nobody knows where it answers"));
        self.comes_to_nothing(grant, GrantFailure::Disconnected);
    }

    /// Nobody runs a grant, which is said after all that others have said so far.
    fn comes_to_nothing<S>(&mut self, grant: &Grant<S>, cause: GrantFailure) {
        let &Grant { attempt, instance, .. } = grant;
        self.own.push_back(Input::GrantFailed { attempt, instance, cause, sent: Sent::Nothing });
    }

    fn watch(&mut self) {
        self.steps += 1;
        if cfg!(debug_assertions) || self.steps.is_multiple_of(CHECKED_EVERY) {
            self.checked += 1;
            if let Err(broken) = self.scheduler.check() {
                self.note_broken(broken.to_string());
            }
        }
    }

    fn note_broken(&mut self, broken: String) {
        let violation = format!("at {}: {broken}", self.last);
        (self.setting.broken)(&violation);
        // The first ones tell the story; what follows from them would fill the memory.
        if self.violations.len() < MOST_VIOLATIONS {
            self.violations.push(violation);
        }
    }

    fn end(mut self) {
        let end = End {
            t: self.clock.now().max(self.last),
            cause: EndCause::Interrupted,
            invariants_checked: self.checked,
            violations: self.violations,
            remarks: std::collections::BTreeMap::new(),
        };
        drop(self.setting.recorder.end(&end));
    }
}

#[cfg(test)]
mod tests;
