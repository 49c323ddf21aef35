//! The notes with which the scheduler explains itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Bytes, Class, DeviceId, GrantFailure, InstanceId, JobId, ModelId, Ppm, PressureLevel, Span, StopCause, Time,
};

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
    /// Memory is being freed for its model: victims are leaving, or their memory is not seen to be free yet.
    FreeingMemory {
        /// The device.
        device: DeviceId,
        /// What is still missing.
        missing: Bytes,
    },
    /// As many loads are under way on the device as may be.
    LoadSlotBusy {
        /// The device.
        device: DeviceId,
    },
    /// Interactive work waits for a load of its own, which goes first.
    InteractiveLoadFirst {
        /// The device.
        device: DeviceId,
    },
    /// Its model does not fit beside what may not be evicted for it.
    NoRoom {
        /// The device on which something may go first.
        device: DeviceId,
        /// When something may go at the earliest, where that is a matter of time.
        until: Option<Time>,
    },
    /// Memory of other programs is in the way.
    ForeignMemory {
        /// The device.
        device: DeviceId,
        /// How much they use.
        used: Bytes,
    },
    /// Loads of its model failed; the next is tried later.
    BackOff {
        /// When.
        until: Time,
    },
    /// The device's memory was not read for too long.
    MonitorStale {
        /// The device.
        device: DeviceId,
    },
    /// Memory is scarce: lower classes run only on what is loaded.
    Pressure {
        /// The device.
        device: DeviceId,
        /// How scarce.
        level: PressureLevel,
    },
    /// Lower classes load nothing for a while after memory ran out or was freed under pressure, or after their loads were broken
    /// off for interactive work one after another.
    LoadsPaused {
        /// The device.
        device: DeviceId,
        /// Until when.
        until: Time,
    },
    /// A step of it would outlast a load that interactive work waits for.
    LoadFirst {
        /// The device.
        device: DeviceId,
    },
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
    /// An instance was chosen to make room for another model.
    Evict {
        /// The victim.
        instance: InstanceId,
        /// The model that gets its memory.
        by: ModelId,
        /// The class of the job that wants that model.
        class: Class,
        /// Why it was allowed to go.
        tier: Tier,
        /// What it would cost to have it back: `reload` times `demand`.
        cost: Span,
        /// How long its load takes.
        reload: Span,
        /// The demand for it: jobs, weighted by class and halved every five minutes, in parts per million.
        demand: u64,
        /// The memory it holds.
        frees: Bytes,
    },
    /// A model waits for memory that is being freed for it.
    LoadPending {
        /// The model.
        model: ModelId,
        /// The device.
        device: DeviceId,
        /// The memory it needs.
        needs: Bytes,
        /// What is still missing.
        missing: Bytes,
    },
    /// Nobody wants the load that waited for memory any more.
    LoadDropped {
        /// The model.
        model: ModelId,
        /// The device.
        device: DeviceId,
    },
    /// A model is loaded again and again.
    Thrash {
        /// The model.
        model: ModelId,
        /// Its loads within the last five minutes.
        loads: u32,
    },
    /// What other programs are believed to use of a device changed.
    Foreign {
        /// The device.
        device: DeviceId,
        /// What they use now.
        used: Bytes,
    },
    /// The memory of a process that is gone was never seen to be free; it is believed to be.
    ReleaseOverdue {
        /// Its instance.
        instance: InstanceId,
        /// What was still booked.
        bytes: Bytes,
    },
    /// The memory of a device was not read for too long, or is read again.
    Monitor {
        /// The device.
        device: DeviceId,
        /// Whether it is read.
        health: MonitorHealth,
    },
    /// How scarce memory is taken to be changed.
    Pressure {
        /// The device.
        device: DeviceId,
        /// How scarce.
        level: PressureLevel,
    },
    /// A load failed; the next is tried later.
    BackOff {
        /// The model.
        model: ModelId,
        /// When.
        until: Time,
    },
    /// The breaker of a model that fails again and again changed.
    Breaker {
        /// The model.
        model: ModelId,
        /// What it does now.
        state: BreakerState,
    },
    /// The margin of a class that is admitted adaptively changed.
    Margin {
        /// The class.
        class: Class,
        /// What predictions are multiplied by.
        factor: Ppm,
        /// Late jobs among those that ended lately.
        missed: Ppm,
    },
    /// An input made no sense and was ignored.
    Ignored {
        /// Why it made none.
        cause: Nonsense,
    },
}

/// How dear a loaded model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Nobody is talking to it.
    Cold,
    /// It served interactive work within `hot_ttl`.
    Hot,
    /// It is never evicted.
    Pinned,
}

/// Whether the memory of a device is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MonitorHealth {
    /// It was read lately.
    Alive,
    /// It was not read for `monitor_stale`.
    Stale,
}

/// What the breaker of a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Loads are tried.
    Closed,
    /// No load is tried until then, and jobs that only this model could serve fail.
    Open {
        /// Until when.
        until: Time,
    },
    /// One load is tried.
    HalfOpen,
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
    /// Better ones failed too often.
    BetterBroken,
    /// Better ones cannot fit.
    BetterTooLarge,
    /// Better ones are leaving, and their memory is promised.
    BetterLeaving,
    /// Better ones would need an eviction.
    BetterNeedsEviction,
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
    /// A configuration names what does not exist, leaves out what does, or has instances that could do no work.
    UnsoundConfiguration,
}
