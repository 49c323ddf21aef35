//! The scheduler: what it knows, and the one way in.
//!
//! It holds jobs that wait in lines, instances that run their steps, and devices with a mode each. An input changes what
//! is known; then the instances and lines it touched are looked at once more and whatever may start is granted. It knows
//! nothing of wall clocks, processes or requests, and it never learns how long a step will take before it has ended.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    Attempt, Capacity, Class, Configuration, DeviceId, Effect, Effects, GrantedStep, IdTable, Input, InstanceId, JobId,
    ModelId, Nonsense, Note, Outcome, Policy, Routing, Started, Time, Violation,
    device::DeviceState,
    expiry::Expiry,
    instance::Instance,
    instances::Instances,
    job::Job,
    margin::Margin,
    memory::Memory,
    prediction::Factors,
    queue::{Line, LineId},
    residency::{Breaker, Demand, Loads, Needs, Residency, Touched},
    target::Target,
};

/// The state machine. See the crate's documentation for how it is driven.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scheduler {
    pub(crate) now: Time,
    pub(crate) phase: Phase,
    pub(crate) holding: Holding,
    pub(crate) configuration: Configuration,
    pub(crate) jobs: IdTable<Job>,
    pub(crate) next_job: JobId,
    pub(crate) next_attempt: Attempt,
    pub(crate) lines: Vec<Line>,
    pub(crate) spare_lines: Vec<LineId>,
    pub(crate) targets: Vec<Target>,
    pub(crate) instances: Instances,
    pub(crate) devices: Vec<DeviceState>,
    /// Devices that are not engaged, so that nobody has to ask each where all are.
    pub(crate) unengaged: u32,
    pub(crate) models: Vec<ModelState>,
    pub(crate) factors: Factors,
    pub(crate) expiry: Expiry,
    pub(crate) queued: [Queued; 3],
    pub(crate) residency: Residency,
    /// What the planner has to look at.
    pub(crate) touched: Touched,
    /// When it has to look again, whatever happens.
    pub(crate) replan_at: Option<Time>,
    /// How often a class of a family was meant for another variant.
    pub(crate) assignments: u64,
    /// What predictions are multiplied by at admission, by class.
    pub(crate) margins: [Margin; 3],
    /// Whether any class is admitted adaptively.
    pub(crate) adapts: bool,
    /// Whether the configuration leaves the short ways open; see [`Scheduler::is_plain`].
    #[serde(skip)]
    pub(crate) plain: bool,
    pub(crate) wake: Option<Time>,
    /// What was due by then has been acted on.
    pub(crate) lapsed: Option<Time>,
    /// Whether what is due at `now` is being acted on.
    #[serde(skip)]
    pub(crate) lapsing: bool,
    /// The first decision that broke a rule; [`Scheduler::check`] tells.
    #[serde(skip)]
    pub(crate) broken: Option<Violation>,
    /// Step lists of ended grants, used again.
    #[serde(skip)]
    pub(crate) spare_steps: Vec<Vec<GrantedStep>>,
}

/// Whether the run has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    Waiting,
    Begun,
}

/// Whether any model holds its batches to fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Holding {
    No,
    Yes,
}

/// What is kept per model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ModelState {
    /// The start or end of its last interactive step.
    pub last_interactive: Option<Time>,
    /// It takes no more work.
    pub removed: bool,
    /// Its ready instances that have a free slot.
    pub open: u32,
    /// What is known of its memory, by device.
    pub places: Vec<Needs>,
    pub demand: Demand,
    pub breaker: Breaker,
    /// Which classes waited for it when the planner looked at everything last.
    pub awaited: [bool; 3],
    /// Where it was evicted last, and for which model, while that is still to be loaded.
    pub evicted_for: Option<(DeviceId, ModelId)>,
    pub loads: Loads,
    /// Its instances that are not gone, by device and id.
    #[serde(skip)]
    pub instances: Vec<InstanceId>,
}

/// What waits, per class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queued {
    pub jobs: u64,
    pub bytes: u64,
}

/// The scheduler's whole state, to be kept and restored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Checkpoint(Scheduler);

impl Checkpoint {
    pub(crate) fn into_state(self) -> Scheduler {
        self.0
    }
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        Scheduler::new()
    }
}

impl Scheduler {
    /// A scheduler that has not been told anything yet; its first input is [`Input::Started`].
    pub fn new() -> Scheduler {
        Scheduler {
            now: Time::ZERO,
            phase: Phase::Waiting,
            holding: Holding::No,
            configuration: nothing(),
            jobs: IdTable::new(),
            next_job: JobId(0),
            next_attempt: Attempt(0),
            lines: Vec::new(),
            spare_lines: Vec::new(),
            targets: Vec::new(),
            instances: Instances::default(),
            devices: Vec::new(),
            unengaged: 0,
            models: Vec::new(),
            factors: Factors::default(),
            expiry: Expiry::default(),
            queued: [Queued::default(); 3],
            residency: Residency::Fixed,
            touched: Touched::default(),
            replan_at: None,
            assignments: 0,
            margins: [Margin::default(); 3],
            adapts: false,
            plain: false,
            wake: None,
            lapsed: None,
            lapsing: false,
            broken: None,
            spare_steps: Vec::new(),
        }
    }

    /// Tells what happened at `now` and gets back, in `effects`, what is wanted. `effects` is cleared first. A `now` before
    /// that of an earlier input is taken as the latest seen, and noted.
    #[inline]
    pub fn step(&mut self, now: Time, input: &Input, effects: &mut Effects) {
        effects.clear();
        if now < self.now {
            effects.note(Note::Ignored { cause: Nonsense::TimeWentBack });
        } else {
            if self.wake.is_some_and(|due| due < now) {
                self.lapse(now.before(crate::Span::from_nanos(1)), effects);
            }
            self.now = now;
        }
        if self.residency == Residency::Managed {
            let rare = !matches!(input, Input::Submitted { .. } | Input::Cancelled { .. });
            self.touched.all |= rare || !self.configuration.families.is_empty();
        }
        self.apply(input, effects);
        self.look_after_models(effects);
        if self.adapts {
            self.steer_margins(effects);
        }
        self.wake = self.next_wake();
    }

    /// From now on models come and go. The planner has everything to look at, as it has had from the start.
    pub(crate) fn manage_models(&mut self) {
        self.residency = Residency::Managed;
    }

    /// Has the planner look at what was touched, where models come and go.
    #[inline]
    pub(crate) fn look_after_models(&mut self, effects: &mut Effects) {
        if self.residency == Residency::Managed {
            self.plan(effects);
        }
    }

    #[inline]
    fn apply(&mut self, input: &Input, effects: &mut Effects) {
        match (self.phase, input) {
            (Phase::Begun, Input::Submitted { job, submission }) => self.submit(*job, submission, effects),
            (Phase::Begun, Input::GrantFinished { attempt, instance, measured }) => {
                self.grant_finished(*attempt, *instance, measured, effects);
            }
            (Phase::Begun, Input::TimerDue) => self.lapse(self.now, effects),
            (Phase::Begun, other) => self.apply_rare(other, effects),
            (Phase::Waiting, Input::Started(started)) => self.start(started, effects),
            (Phase::Waiting, _) => effects.note(Note::Ignored { cause: Nonsense::NotStarted }),
        }
    }

    fn apply_rare(&mut self, input: &Input, effects: &mut Effects) {
        match input {
            Input::Started(_) => effects.note(Note::Ignored { cause: Nonsense::StartedTwice }),
            Input::Reconfigured(change) => self.reconfigure(change, effects),
            Input::Cancelled { job } => self.cancel(*job, effects),
            Input::GrantFailed { attempt, instance, cause, sent } => {
                self.grant_failed(*attempt, *instance, *cause, *sent, effects);
            }
            Input::LoadFinished { attempt, instance, footprint } => {
                self.load_finished(*attempt, *instance, *footprint, effects);
            }
            Input::LoadFailed { attempt, instance, cause } => self.load_failed(*attempt, *instance, *cause, effects),
            Input::Exited { instance, cause: _ } => self.exited(*instance, effects),
            Input::StopFinished { attempt, instance } => self.stop_finished(*attempt, *instance, effects),
            Input::Operator(request) => self.operate(*request, effects),
            Input::Snapshot(snapshot) => self.read(snapshot, effects),
            Input::SnapshotFailed { device } => self.reading_failed(*device, effects),
            Input::Pressure { device, level } => self.pressed(*device, *level, effects),
            Input::OutOfMemory { device, instance } => self.ran_out(*device, *instance, effects),
            Input::Submitted { .. } | Input::GrantFinished { .. } | Input::TimerDue => {}
        }
    }

    /// When the driver has to say [`Input::TimerDue`], if nothing happens before. Never earlier than the last input; at its
    /// very time only if something is due then that waits for the timer, and after a timer input always later.
    pub fn wake_at(&self) -> Option<Time> {
        self.wake
    }

    /// The latest time it was told.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The configuration in force.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Jobs that have not ended.
    pub fn jobs_in_flight(&self) -> usize {
        self.jobs.len()
    }

    /// Its whole state, to be serialised. [`Scheduler::restore`] gives a scheduler that answers every later input alike.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.clone())
    }

    fn start(&mut self, started: &Started, effects: &mut Effects) {
        if started.configuration.check().is_err() {
            return effects.note(Note::Ignored { cause: Nonsense::UnsoundConfiguration });
        }
        self.phase = Phase::Begun;
        self.touched.all = true;
        self.configuration = started.configuration.clone();
        self.add_devices();
        self.factors = Factors::stored(&started.profiles);
        self.add_models(&started.estimates);
        started.profiles.iter().for_each(|profile| self.learn_profile(profile));
        self.look_for_holds();
        self.look_for_margins();
        for resident in &started.residents {
            if self.admit_resident(resident.model, resident.device).is_none() {
                effects.note(Note::Ignored { cause: Nonsense::NoSuchPlacement });
            }
        }
        for target in 0..self.targets.len() as u32 {
            self.connect(target);
        }
        for model in 0..self.models.len() as u32 {
            self.count_open(ModelId(model));
        }
        self.look_for_residency();
        self.look_for_short_ways();
    }

    /// Looks whether models come and go: some model is not everywhere it may be, or memory is counted.
    pub(crate) fn look_for_residency(&mut self) {
        let counted = self.devices.iter().any(|device| device.memory.is_known());
        let absent = |(number, model): (usize, &crate::Model)| {
            let most = match model.replicas {
                crate::Replicas::Count(count) => count as usize,
                crate::Replicas::All => usize::MAX,
            };
            !self.models[number].removed
                && self.instances_of(ModelId(number as u32)).count() < most.min(model.placements.len())
        };
        let some_absent = self.configuration.models.iter().enumerate().any(absent);
        let fleeting = self.configuration.models.iter().any(|model| model.idle_ttl.is_some());
        if counted || some_absent || fleeting {
            self.manage_models();
        }
    }

    /// Makes room for every configured device that is not known yet.
    pub(crate) fn add_devices(&mut self) {
        for (number, device) in self.configuration.devices.iter().enumerate() {
            match self.devices.get_mut(number) {
                Some(known) => known.memory.total = device.memory.or(known.memory.total),
                None => {
                    self.devices.push(DeviceState { memory: Memory::of(device), ..DeviceState::default() });
                    self.unengaged += 1;
                }
            }
        }
    }

    /// Changes what is kept of a device, and the count of those that are not engaged along with it.
    #[inline]
    pub(crate) fn change_device(&mut self, id: DeviceId, change: impl FnOnce(&mut DeviceState)) {
        let device = &mut self.devices[id.index()];
        let before = device.is_engaged();
        change(device);
        match (before, device.is_engaged()) {
            (true, false) => self.unengaged += 1,
            (false, true) => self.unengaged -= 1,
            (false, false) | (true, true) => {}
        }
    }

    /// Looks whether any instance or model may hold a batch, so that nobody has to ask where none does.
    pub(crate) fn look_for_holds(&mut self) {
        self.holding = self.holds();
    }

    /// Whether any does.
    pub(crate) fn holds(&self) -> Holding {
        let models = self.configuration.models.iter().map(|model| model.capacity);
        let mut capacities = models.chain(self.instances.iter().map(|(_, instance)| instance.capacity));
        if capacities.any(may_hold) { Holding::Yes } else { Holding::No }
    }

    /// Looks whether the configuration leaves the short ways open: no job has a choice of models or of lines, and no batch is
    /// held.
    pub(crate) fn look_for_short_ways(&mut self) {
        self.plain = self.holding == Holding::No
            && self.configuration.families.is_empty()
            && self.policy().routing == Routing::Shared
            && self.targets.iter().all(|target| target.variants.len() == 1);
    }

    /// Whether all there is to decide is which interactive job starts where: every model is where it may be, nothing of a
    /// lower class waits, and the configuration leaves no other choice. Then most inputs can go a short way.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain && self.residency == Residency::Fixed && self.lower_queued() == 0
    }

    #[inline]
    pub(crate) fn attempt(&mut self) -> Attempt {
        let attempt = self.next_attempt;
        self.next_attempt = Attempt(attempt.0 + 1);
        attempt
    }

    #[inline]
    pub(crate) fn policy(&self) -> &Policy {
        &self.configuration.policy
    }

    /// Jobs of the lower classes that wait anywhere.
    #[inline]
    pub(crate) fn lower_queued(&self) -> u64 {
        self.queued[Class::Background.index()].jobs + self.queued[Class::Batch.index()].jobs
    }

    /// Ends a job that is in no line any more.
    pub(crate) fn end(&mut self, id: JobId, outcome: Outcome, effects: &mut Effects) {
        if let Some(job) = self.jobs.get(id.0) {
            effects.push(Effect::Finish(job.finish(id, outcome)));
            self.jobs.discard(id.0);
        }
    }

    pub(crate) fn instance(&self, id: InstanceId) -> Option<&Instance> {
        self.instances.get(id)
    }
}

/// Whether under-full batches may be held.
pub(crate) fn may_hold(capacity: Capacity) -> bool {
    matches!(capacity, Capacity::Batch { wait, .. } if !wait.is_zero())
}

fn nothing() -> Configuration {
    Configuration {
        policy: Policy::default(),
        devices: Vec::new(),
        models: Vec::new(),
        families: Vec::new(),
        labels: Vec::<String>::new(),
        seed: 0,
    }
}
