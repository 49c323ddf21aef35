//! Everything that can happen, as facts in the past tense.

use alloc::boxed::Box;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Attempt, Bytes, Configuration, DeviceId, Estimate, InstanceId, JobId, ModelId, Started, Submission, Time};

/// One thing that happened. The driver hands them over in this order within one instant: completions and exits, then
/// arrivals and cancels, then the timer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Input {
    /// The run began; the first input, and given once.
    Started(Box<Started>),
    /// The configuration was replaced. Ids of models and devices keep their meaning: new ones are appended, and one that is
    /// gone is named in the list of its kind.
    Reconfigured(Box<Reconfiguration>),
    /// A client asked for something.
    Submitted {
        /// The next job number.
        job: JobId,
        /// What it asked for.
        submission: Submission,
    },
    /// The client of a job went away.
    Cancelled {
        /// Its job.
        job: JobId,
    },
    /// A grant came to its end.
    GrantFinished {
        /// The grant.
        attempt: Attempt,
        /// Where it ran.
        instance: InstanceId,
        /// What it took.
        measured: Measured,
    },
    /// A grant came to nothing.
    GrantFailed {
        /// The grant.
        attempt: Attempt,
        /// Where it ran.
        instance: InstanceId,
        /// Why.
        cause: GrantFailure,
        /// Whether its client already had bytes of an answer.
        sent: Sent,
    },
    /// A model is loaded and answers.
    LoadFinished {
        /// The load.
        attempt: Attempt,
        /// What became of it.
        instance: InstanceId,
        /// The memory it took, where that was measured.
        footprint: Option<Bytes>,
    },
    /// A load came to nothing and its process is gone.
    LoadFailed {
        /// The load.
        attempt: Attempt,
        /// What it would have become.
        instance: InstanceId,
        /// Why.
        cause: LoadFailure,
    },
    /// A process ended without having been asked. Its grants fail one by one after this is said.
    Exited {
        /// Its instance.
        instance: InstanceId,
        /// How.
        cause: ExitCause,
    },
    /// A stop came to its end: the process is gone.
    StopFinished {
        /// The stop.
        attempt: Attempt,
        /// What was stopped.
        instance: InstanceId,
    },
    /// The memory of a device was read.
    Snapshot(Snapshot),
    /// The memory of a device could not be read.
    SnapshotFailed {
        /// The device.
        device: DeviceId,
    },
    /// A device's memory pressure changed.
    Pressure {
        /// The device.
        device: DeviceId,
        /// The new level.
        level: PressureLevel,
    },
    /// A running instance ran out of memory.
    OutOfMemory {
        /// The device.
        device: DeviceId,
        /// The instance that said so.
        instance: InstanceId,
    },
    /// An operator asked for something.
    Operator(Request),
    /// The time that [`crate::Scheduler::wake_at`] named has come.
    TimerDue,
}

/// A new configuration and what it leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reconfiguration {
    /// The new configuration; models and devices stand at their old places, new ones after them.
    pub configuration: Configuration,
    /// Models that take no more work: their jobs fail, their instances drain and stop.
    pub removed: alloc::vec::Vec<ModelId>,
    /// What new models, and those that are started in another way from now on, are believed to need; what was measured of
    /// them is forgotten.
    #[serde(default, skip_serializing_if = "alloc::vec::Vec::is_empty")]
    pub estimates: alloc::vec::Vec<Estimate>,
}

/// What a finished grant measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// When its first token was out; `None` where there are no tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<Time>,
    /// Tokens given out, over all its steps.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_tokens: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Whether a client had bytes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sent {
    /// Not one byte.
    Nothing,
    /// At least one.
    Something,
}

/// Why a grant came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrantFailure {
    /// The scheduler asked for it.
    Aborted,
    /// The process died.
    Crashed,
    /// The process lived but made no progress.
    Wedged,
    /// The device ran out of memory.
    OutOfMemory,
    /// The connection to the process broke.
    Disconnected,
    /// The runtime answered with an error of its own, which the client got.
    Rejected,
}

/// Why a load came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadFailure {
    /// The process ended.
    Crashed,
    /// The device ran out of memory.
    OutOfMemory,
    /// It made no progress for too long.
    Stalled,
    /// It could not be started at all.
    NotStarted,
    /// It was stopped while it loaded.
    Stopped,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExitCause {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Killed because it made no progress.
    Wedged,
    /// Out of memory.
    OutOfMemory,
}

/// The memory of a device as its tools show it; what they do not show is `None`, never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// The device.
    pub device: DeviceId,
    /// All its memory.
    pub total: Option<Bytes>,
    /// What is in use, by anybody.
    pub used: Option<Bytes>,
    /// What each of our processes uses.
    pub processes: alloc::vec::Vec<ProcessMemory>,
}

/// The memory of one of our processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessMemory {
    /// Whose process it is.
    pub instance: InstanceId,
    /// What it uses.
    pub used: Option<Bytes>,
}

/// How scarce memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PressureLevel {
    /// Enough.
    Normal,
    /// Little left.
    Warn,
    /// Nothing left.
    Critical,
}

/// What an operator can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Load a model on a device.
    Load {
        /// The model.
        model: ModelId,
        /// The device.
        device: DeviceId,
    },
    /// Try a model again that failed too often.
    Reset {
        /// The model.
        model: ModelId,
    },
    /// Let an instance finish what it runs, then stop it.
    Unload {
        /// The instance.
        instance: InstanceId,
    },
    /// The same, because a changed configuration starts its model in another way.
    Renew {
        /// The instance.
        instance: InstanceId,
    },
    /// Refuse a job that waits, because the daemon ends. A step that was granted meanwhile is broken off.
    TurnAway {
        /// The job.
        job: JobId,
    },
}
