//! What the scheduler believes about service times, and how it learns. Integers only; predictions round up.

use alloc::{collections::BTreeMap, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    Capacity, Class, DeviceId, Effects, InstanceId, Measured, ModelId, Ppm, Prediction, Profile, Scheduler,
    ServiceTimes, Span, Time,
    instance::{Instance, Running},
    job::Job,
    queue::LineId,
};

/// Output tokens expected of a job about which nothing is known.
const UNKNOWN_OUTPUT: u64 = 128;
/// A factor is stored again when it has moved by more than one part in this many.
const STORE_STEP: u32 = 64;

/// Actual over predicted service times by model and device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Factors {
    known: BTreeMap<ModelId, Vec<(DeviceId, Factor)>>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Factor {
    pub value: Ppm,
    pub observations: u64,
    stored: Ppm,
}

impl Factors {
    pub fn stored(profiles: &[Profile]) -> Factors {
        let mut factors = Factors::default();
        for profile in profiles {
            let factor = factors.entry(profile.model, profile.device);
            *factor = Factor { value: profile.factor, observations: profile.observations, stored: profile.factor };
        }
        factors
    }

    pub(crate) fn entry(&mut self, model: ModelId, device: DeviceId) -> &mut Factor {
        let here = self.known.entry(model).or_default();
        let at = here.iter().position(|entry| entry.0 == device).unwrap_or_else(|| {
            here.push((device, Factor { value: Ppm::ONE, observations: 0, stored: Ppm::ONE }));
            here.len() - 1
        });
        &mut here[at].1
    }

    fn get(&self, model: ModelId, device: DeviceId) -> Ppm {
        let here = self.known.get(&model).and_then(|here| here.iter().find(|entry| entry.0 == device));
        here.map_or(Ppm::ONE, |entry| entry.1.value)
    }
}

impl Factor {
    /// Moves a sixteenth of the way towards what was observed; says whether it is worth storing.
    #[inline]
    fn learn(&mut self, observed: Ppm) -> Option<Ppm> {
        let (old, new) = (i64::from(self.value.get()), i64::from(observed.get()));
        let moved = (old + (new - old) / 16).clamp(1, i64::from(u32::MAX));
        self.value = Ppm::new(moved as u32);
        self.observations = self.observations.saturating_add(1);
        if self.value.get().abs_diff(self.stored.get()) <= self.stored.get() / STORE_STEP {
            return None;
        }
        self.stored = self.value;
        Some(self.value)
    }
}

impl Scheduler {
    /// The factor by which predictions for a model on a device are corrected.
    pub(crate) fn factor(&self, model: ModelId, device: DeviceId) -> Ppm {
        match self.configuration.models[model.index()].prediction {
            Prediction::Configured => Ppm::ONE,
            Prediction::Learned => self.factors.get(model, device),
        }
    }

    /// T(B) of a batch of `weight` inputs on this instance.
    #[inline]
    pub(crate) fn batch_time(&self, instance: &Instance, weight: u64) -> Span {
        batch_time(instance, weight)
    }

    /// The service of a job's step, beside what runs on the instance now.
    pub(crate) fn step_time(&self, instance: &Instance, job: &Job, weight: u32) -> Span {
        match instance.times {
            ServiceTimes::Batch { .. } => self.batch_time(instance, u64::from(weight)),
            ServiceTimes::Slots { .. } => {
                let prompt = u64::from(job.prompt_tokens) * u64::from(weight);
                let others = instance.slot.running().len() as u64;
                corrected(instance, instance.times.generation(prompt, self.output_of(job), others))
            }
        }
    }

    /// Output tokens expected of a job: the smoothed mean of its class and target, at most what the client asked for.
    fn output_of(&self, job: &Job) -> u64 {
        let learned = self.targets[job.target as usize].outputs[job.class.index()].map(|scaled| scaled.div_ceil(1024));
        let most = job.max_tokens().map(u64::from);
        learned.or(most).unwrap_or(UNKNOWN_OUTPUT).min(most.unwrap_or(u64::MAX))
    }

    /// The least that the service of a job can take if it starts now, over the instances of its line; zero if there is none.
    pub(crate) fn shortest(&self, job: &Job, line: LineId) -> Span {
        let servers = self.servers(&self.lines[line.index()]);
        let step = job.weight_of(0);
        let times = servers.as_slice().iter().map(|id| self.step_time(&self.instances[*id], job, step));
        times.min().unwrap_or(Span::ZERO)
    }

    /// Whether even a start at once would end after the deadline, for a job that is dropped then.
    #[inline]
    pub(crate) fn is_hopeless(&self, job: &Job, line: LineId) -> bool {
        match (job.hopeless, job.deadline()) {
            (crate::job::Hopeless::Dropped, Some(deadline)) => self.now.after(self.shortest(job, line)) > deadline,
            (crate::job::Hopeless::Dropped, None) | (crate::job::Hopeless::Kept, _) => false,
        }
    }

    /// When an instance is next free for one more step: now, if it is.
    pub(crate) fn free_at(&self, instance: &Instance) -> Time {
        if instance.free() > 0 {
            return self.now;
        }
        let ends = instance.slot.running().iter().map(|grant| grant.expected);
        ends.min().unwrap_or(self.now).max(self.now)
    }

    /// Learns from a finished grant how long such work takes, and how much output it has.
    #[inline]
    pub(crate) fn learn(&mut self, id: InstanceId, grant: &Running, measured: &Measured, effects: &mut Effects) {
        let instance = &self.instances[id];
        let (model, device, capacity) = (instance.model, instance.device, instance.capacity);
        if matches!(capacity, Capacity::Batch { .. }) && instance.prediction == Prediction::Configured {
            return;
        }
        let single = matches!(capacity, Capacity::Slots { .. }) && measured.output_tokens > 0;
        if let (true, [step]) = (single, &grant.steps[..])
            && let Some(job) = self.jobs.get(step.job.0)
        {
            let (target, class) = (job.target as usize, job.class);
            smooth_output(&mut self.targets[target].outputs[class.index()], measured.output_tokens);
        }
        if self.instances[id].prediction == Prediction::Learned {
            self.learn_factor(id, grant, measured, (model, device), effects);
        }
    }

    fn learn_factor(
        &mut self,
        id: InstanceId,
        grant: &Running,
        measured: &Measured,
        (model, device): (ModelId, DeviceId),
        effects: &mut Effects,
    ) {
        let instance = &self.instances[id];
        let believed = match (instance.times, &grant.steps[..]) {
            (ServiceTimes::Slots { .. }, [step]) => {
                let Some(job) = self.jobs.get(step.job.0) else { return };
                let prompt = u64::from(job.prompt_tokens) * u64::from(step.weight);
                let output = u64::from(measured.output_tokens).max(1);
                instance.times.generation(prompt, output, u64::from(grant.beside))
            }
            (times, _) => times.batch(u64::from(grant.weight)),
        };
        let Some(observed) = ratio(self.now.since(grant.start), believed) else { return };
        let factor = self.factors.entry(model, device);
        let worth_storing = factor.learn(observed);
        self.instances[id].factor = factor.value;
        if worth_storing.is_some() {
            self.store_profile(model, device, effects);
        }
    }

    /// Whether a model served interactive work within `hot_ttl`.
    pub(crate) fn hot(&self, model: ModelId) -> bool {
        let last = self.models[model.index()].last_interactive;
        last.is_some_and(|last| self.now < last.after(self.policy().hot_ttl))
    }

    /// Slots of an instance that a class leaves free.
    #[inline]
    pub(crate) fn reserved(&self, instance: &Instance, class: Class) -> u32 {
        match (class, instance.capacity) {
            (Class::Interactive, _) | (_, Capacity::Batch { .. }) => 0,
            (Class::Background | Class::Batch, Capacity::Slots { .. }) => {
                if self.hot(instance.model) {
                    self.kept_while_hot(instance)
                } else {
                    0
                }
            }
        }
    }

    /// Slots that lower classes leave free while the model is hot.
    #[inline]
    pub(crate) fn kept_while_hot(&self, instance: &Instance) -> u32 {
        match instance.capacity {
            Capacity::Batch { .. } => 0,
            Capacity::Slots { slots } => self.policy().reserve_interactive_slots.min(slots.saturating_sub(1)),
        }
    }
}

/// T(B) of a batch of `weight` inputs on this instance.
#[inline]
pub(crate) fn batch_time(instance: &Instance, weight: u64) -> Span {
    corrected(instance, instance.times.batch(weight))
}

#[inline]
fn corrected(instance: &Instance, believed: Span) -> Span {
    if instance.factor == Ppm::ONE { believed } else { believed.scaled_up(instance.factor) }
}

/// Observed over believed, rounded down; `None` where nothing was believed.
fn ratio(observed: Span, believed: Span) -> Option<Ppm> {
    let wide = u128::from(observed.as_nanos()) * 1_000_000 / u128::from(believed.as_nanos()).max(1);
    (!believed.is_zero()).then(|| Ppm::new(u32::try_from(wide).unwrap_or(u32::MAX)))
}

fn smooth_output(mean: &mut Option<u64>, tokens: u32) {
    let seen = u64::from(tokens) * 1024;
    let old = mean.unwrap_or(seen);
    *mean = Some(if seen >= old { old + (seen - old) / 16 } else { old - (old - seen) / 16 });
}
