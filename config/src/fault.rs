//! What goes wrong in a simulated world: kinds of faults, where and when they strike.

use windtunnel_core::{Bytes, DeviceId, ModelId, Ppm, PressureLevel, Span};

/// `[[faults]]`: one thing that goes wrong, off unless a file asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// The devices it can strike; `None`: any.
    pub devices: Option<Vec<DeviceId>>,
    /// The model it can strike; `None`: any.
    pub model: Option<ModelId>,
    /// When it strikes.
    pub when: Occurrence,
    /// Not before that.
    pub from: Span,
    /// Not from then on.
    pub to: Option<Span>,
}

/// When a fault strikes. An occasion is what the kind says: an exit, a stop, a load, a grant.
#[derive(Clone, Debug, PartialEq)]
pub enum Occurrence {
    /// On every occasion, or all the time.
    Always,
    /// At these moments, in order; where it takes an occasion, on the first one from each of them on.
    At(Vec<Span>),
    /// At random moments, so many an hour; above 0.
    Rate(f64),
    /// On each occasion with this probability, in (0, 1].
    Probability(f64),
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// After an exit, memory in use still counts the process that the list of processes no longer has.
    PhantomMemory {
        /// For so many readings.
        polls: u32,
    },
    /// The memory of a process that has ended stays taken.
    LingeringMemory {
        /// For so long after its end.
        lasts: Span,
    },
    /// A process that is asked to stop takes its time.
    SlowExit {
        /// So much longer.
        lasts: Span,
    },
    /// A process that is asked to stop does not and has to be killed.
    NeverExits,
    /// A load takes longer.
    SlowLoad {
        /// So many times as long.
        factor: Ppm,
    },
    /// A load gets nowhere and is given up.
    StalledLoad {
        /// After so long.
        lasts: Span,
    },
    /// The process of a load dies when it would have been ready.
    FailedLoad,
    /// A load runs out of memory when it would have been ready.
    LoadOom,
    /// The estimate of a footprint is wrong.
    WrongEstimate {
        /// So many times the truth, or what else the file has as the estimate.
        factor: Ppm,
    },
    /// A process grows after its load was measured.
    MemoryGrowth {
        /// By so much.
        bytes: Bytes,
        /// Evenly over so long.
        over: Span,
    },
    /// Others use memory of a device.
    ForeignMemory {
        /// How much from when on; nothing before.
        curve: Vec<(Span, Bytes)>,
    },
    /// A load succeeds although the memory is not there: every grant of the device fails until it is gone.
    SilentOvercommit,
    /// A process dies in the middle of a grant.
    Crash,
    /// A process lives but its grants get no further, until it is killed.
    Wedge {
        /// After so long.
        lasts: Span,
    },
    /// A device is slow.
    SlowDevice {
        /// Work takes so many times as long.
        factor: Ppm,
        /// For so long; `None`: to the end.
        lasts: Option<Span>,
    },
    /// A runtime closes its connection.
    ConnectionLimit {
        /// After so many grants, at least 1; the next one fails.
        requests: u32,
    },
    /// A device's memory monitor misbehaves.
    Monitor {
        /// How.
        trouble: MonitorTrouble,
        /// For so long; `None`: to the end.
        lasts: Option<Span>,
    },
    /// A device reports memory pressure.
    Pressure {
        /// Which from when on; normal before.
        curve: Vec<(Span, PressureLevel)>,
    },
    /// The host sleeps: time goes on and nothing else does.
    ClockJump {
        /// For so long.
        by: Span,
    },
}

/// How a memory monitor misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorTrouble {
    /// Every reading fails.
    Missing,
    /// No reading is ever answered.
    Stale,
    /// Readings lack the figures of the processes and the memory in use in turn.
    Partial,
    /// Every second reading shows a random amount in use.
    Jumping,
}

impl Fault {
    /// Whether it can strike `model` on `device`.
    pub fn concerns(&self, model: ModelId, device: DeviceId) -> bool {
        self.model.is_none_or(|own| own == model) && self.reaches(device)
    }

    /// Whether it can strike anything on `device`.
    pub fn reaches(&self, device: DeviceId) -> bool {
        self.devices.as_ref().is_none_or(|devices| devices.contains(&device))
    }
}
