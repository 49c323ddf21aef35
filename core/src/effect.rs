//! Everything the scheduler can want, as orders, and the notes with which it explains itself.

use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Attempt, Bytes, Class, DeviceId, Finish, InstanceId, JobId, ModelId, Note, Profile};

/// One order or explanation. `S` is how the steps of a grant are held: a [`StepRange`] in the scheduler's [`Effects`], a
/// slice or vector of [`GrantedStep`] wherever they have to stand alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Effect<S = StepRange> {
    /// Run these steps together on this instance.
    Grant(Grant<S>),
    /// Start this model.
    Load {
        /// The attempt; it ends in a finished or failed load.
        attempt: Attempt,
        /// What it becomes.
        instance: InstanceId,
        /// The model.
        model: ModelId,
        /// Where.
        device: DeviceId,
        /// The memory set aside for it.
        reservation: Bytes,
    },
    /// Stop this instance.
    Stop {
        /// The attempt; it ends in a finished stop.
        attempt: Attempt,
        /// The instance.
        instance: InstanceId,
        /// Why.
        cause: StopCause,
    },
    /// Break this grant or load off. It still ends in its own fact.
    Abort {
        /// The grant or load to break off.
        attempt: Attempt,
        /// Where it runs, or what it would have become.
        instance: InstanceId,
        /// Why.
        cause: AbortCause,
    },
    /// Read the memory of this device.
    Snapshot {
        /// The device.
        device: DeviceId,
    },
    /// Keep this profile over restarts.
    Learned(Profile),
    /// This job is over.
    Finish(Finish),
    /// Why something was or was not done.
    Note(Note),
}

/// Steps that start and end together on one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grant<S = StepRange> {
    /// The attempt; it ends in a finished or failed grant.
    pub attempt: Attempt,
    /// Where they run.
    pub instance: InstanceId,
    /// The instance's model.
    pub model: ModelId,
    /// The instance's device.
    pub device: DeviceId,
    /// The class of all its steps.
    pub class: Class,
    /// By which right it runs.
    pub right: Right,
    /// The inputs of all its steps.
    pub weight: u32,
    /// Its steps, in queue order.
    pub steps: S,
}

/// By which right a grant was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// Its class's own.
    Order,
    /// The guard's share.
    Guard,
    /// A batch turn.
    Turn,
}

/// One step of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantedStep {
    /// Its job.
    pub job: JobId,
    /// Which step of the job, from 0.
    pub step: u32,
    /// How many steps the job has.
    pub of: u32,
    /// Its inputs.
    pub weight: u32,
}

/// Where the steps of a grant lie in [`Effects::steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepRange {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// Why an instance is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// An operator asked.
    Operator,
    /// A changed configuration starts its model in another way.
    Changed,
    /// Its model is no longer configured.
    Removed,
    /// Another model needs its memory.
    Evicted,
    /// It was not used for its `idle_ttl`.
    Idle,
    /// Memory is scarce.
    Pressure,
    /// Memory ran out while models served.
    OutOfMemory,
}

/// Why a grant is broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbortCause {
    /// Every client waiting for it went away.
    Cancelled,
    /// The memory of a load is needed for interactive work.
    Evicted,
    /// Memory ran out, and the instance is to go although it still works.
    OutOfMemory,
}

/// What one step of the scheduler wanted: the list of effects and the steps of its grants. One buffer is used over and over.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    pub(crate) list: Vec<Effect>,
    pub(crate) steps: Vec<GrantedStep>,
    brief: bool,
}

impl Effects {
    /// An empty buffer.
    pub fn new() -> Effects {
        Effects::default()
    }

    /// An empty buffer for somebody who does not read why new interactive jobs wait; that is left out then, and nothing else.
    pub fn brief() -> Effects {
        Effects { brief: true, ..Effects::default() }
    }

    /// Whether it is said why a new job of a class waits.
    #[inline]
    pub(crate) fn hold_reasons_of(&self, class: Class) -> bool {
        !self.brief || class != Class::Interactive
    }

    /// The effects in the order they were wanted.
    #[inline]
    pub fn iter(&self) -> core::slice::Iter<'_, Effect> {
        self.list.iter()
    }

    /// How many effects there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The steps of a grant of this buffer.
    #[inline]
    pub fn steps(&self, range: StepRange) -> &[GrantedStep] {
        let first = range.first as usize;
        self.steps.get(first..first + range.count as usize).unwrap_or(&[])
    }

    /// Forgets everything, keeping the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
        self.steps.clear();
    }

    /// Adds a step of the grant that is being made.
    #[inline]
    pub(crate) fn add_step(&mut self, step: GrantedStep) {
        self.steps.push(step);
    }

    /// Where the latest `count` steps lie.
    #[inline]
    pub(crate) fn latest_steps(&self, count: usize) -> StepRange {
        StepRange { first: (self.steps.len() - count) as u32, count: count as u32 }
    }

    #[inline]
    pub(crate) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    #[inline]
    pub(crate) fn note(&mut self, note: Note) {
        self.list.push(Effect::Note(note));
    }
}

impl<'a> IntoIterator for &'a Effects {
    type Item = &'a Effect;
    type IntoIter = core::slice::Iter<'a, Effect>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl StepRange {
    /// How many steps there are.
    pub const fn len(self) -> usize {
        self.count as usize
    }

    /// Whether there are none; no grant is empty.
    pub const fn is_empty(self) -> bool {
        self.count == 0
    }
}

impl<S> Effect<S> {
    /// The same effect with its steps held in another way.
    pub fn map_steps<R>(self, with: impl FnOnce(S) -> R) -> Effect<R> {
        match self {
            Effect::Grant(grant) => Effect::Grant(Grant {
                attempt: grant.attempt,
                instance: grant.instance,
                model: grant.model,
                device: grant.device,
                class: grant.class,
                right: grant.right,
                weight: grant.weight,
                steps: with(grant.steps),
            }),
            Effect::Load { attempt, instance, model, device, reservation } => {
                Effect::Load { attempt, instance, model, device, reservation }
            }
            Effect::Stop { attempt, instance, cause } => Effect::Stop { attempt, instance, cause },
            Effect::Abort { attempt, instance, cause } => Effect::Abort { attempt, instance, cause },
            Effect::Snapshot { device } => Effect::Snapshot { device },
            Effect::Learned(profile) => Effect::Learned(profile),
            Effect::Finish(finish) => Effect::Finish(finish),
            Effect::Note(note) => Effect::Note(note),
        }
    }
}
