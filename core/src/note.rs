//! The notes with which the scheduler explains itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Class, DeviceId, GrantFailure, InstanceId, JobId, ModelId, Span, StopCause, Time};

/// Why a job waits. The reason of a queue's head is the reason of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// Others of its class are before it.
    Behind {
        /// How many.
        jobs: u32,
    },
    /// Every instance that could serve it is full.
    SlotsBusy,
    /// The only free slots are kept for interactive work.
    SlotsReserved,
    /// The device is in interactive mode, and the guard has not come to it yet.
    InteractiveMode {
        /// The device.
        device: DeviceId,
        /// When the guard may come to it at the earliest; `None`: never (strict exclusivity).
        guard_at: Option<Time>,
    },
    /// Background work goes first.
    HigherClass {
        /// The device.
        device: DeviceId,
    },
    /// An under-full batch is held to fill.
    BatchHeld {
        /// Until when at the latest.
        until: Time,
    },
    /// The instance is still loading.
    Loading {
        /// The instance.
        instance: InstanceId,
    },
    /// The instance is leaving and takes no more work.
    Draining {
        /// The instance.
        instance: InstanceId,
    },
    /// No instance of its model exists or is on its way.
    NotLoaded,
}

/// Why something was done, or was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// A job could not start at once.
    Waits {
        /// The job.
        job: JobId,
        /// Why.
        reason: WaitReason,
    },
    /// A device changed its mode.
    Mode {
        /// The device.
        device: DeviceId,
        /// The new mode.
        mode: Mode,
    },
    /// The guard gave a starved job a grant.
    Guard {
        /// The device.
        device: DeviceId,
        /// The first job of the grant.
        job: JobId,
        /// Its class.
        class: Class,
        /// How long it had made no progress.
        starved: Span,
    },
    /// A batch turn began.
    TurnBegan {
        /// The device.
        device: DeviceId,
        /// The model whose turn it is.
        model: ModelId,
        /// When it ends at the latest.
        until: Time,
    },
    /// A batch turn ended.
    TurnEnded {
        /// The device.
        device: DeviceId,
        /// The model whose turn it was.
        model: ModelId,
    },
    /// Another variant than before was chosen for a family.
    Variant {
        /// The job for which it was chosen.
        job: JobId,
        /// The variant.
        model: ModelId,
        /// Why, and why not the best.
        choice: Choice,
    },
    /// A step failed before anything was sent, and its job went back to its place.
    Requeued {
        /// The job.
        job: JobId,
        /// Why the step failed.
        cause: GrantFailure,
    },
    /// An instance takes no more work.
    Draining {
        /// The instance.
        instance: InstanceId,
        /// Why.
        cause: StopCause,
    },
    /// An input made no sense and was ignored.
    Ignored {
        /// Why it made none.
        cause: Nonsense,
    },
}

/// Which of its two modes a device is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Lower classes run only through the guard.
    Interactive,
    /// Background and batch run.
    Idle,
}

/// Why a variant was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// It is the best that may be used.
    Best,
    /// Better ones have no instance.
    BetterAbsent,
    /// Better ones are in use by interactive work or have no free slot.
    BetterBusy,
}

/// Why an input made no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nonsense {
    /// Its time is before that of an earlier input; it was taken as of the latest time seen.
    TimeWentBack,
    /// The run had begun already.
    StartedTwice,
    /// The run has not begun.
    NotStarted,
    /// A job of that number was submitted before, or one was left out.
    JobOutOfOrder,
    /// No job of that number is waiting or running; it may have ended meanwhile.
    NoSuchJob,
    /// No such attempt is under way; it may have ended meanwhile.
    NoSuchAttempt,
    /// No such instance exists.
    NoSuchInstance,
    /// No such model or device is configured, or the model may not be placed there.
    NoSuchPlacement,
    /// There is an instance of the model on the device already.
    AlreadyThere,
}
