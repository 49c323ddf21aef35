//! What `/admin/status` and `/admin/events` say, as types. Times are milliseconds, memory is bytes. What a newer daemon says
//! beyond this is passed over.

use serde::{Deserialize, Serialize};
use windtunnel_core::{Class, Mode, MonitorHealth, PressureLevel, Tier};

/// What a daemon does now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// `starting`, `serving` or `draining`.
    pub phase: String,
    /// For how long it has run.
    pub now_ms: u64,
    /// Every device.
    pub devices: Vec<DevicePicture>,
    /// Every queue in which jobs wait.
    pub queues: Vec<QueuePicture>,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevicePicture {
    /// Its name.
    pub device: String,
    /// Whether lower classes run freely.
    pub mode: Mode,
    /// The model that has a batch turn.
    pub batch_turn: Option<String>,
    /// Its memory.
    pub memory: Holding,
    /// What is in it.
    pub residents: Vec<Resident>,
}

/// The memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// What may be used; `None`: nothing bounds it.
    pub budget: Option<u64>,
    /// What instances hold, and what is awaited of those that are gone.
    pub booked: u64,
    /// What of that is about to become free.
    pub coming: u64,
    /// What other programs use.
    pub foreign: u64,
    /// What is promised to loads that wait for memory.
    pub owed: u64,
    /// How old the last reading is. It grows while nothing moves, since then nobody asks.
    pub read_ms_ago: Option<u64>,
    /// Whether its monitor answers.
    pub monitor: MonitorHealth,
    /// How scarce unified memory is.
    pub pressure: PressureLevel,
}

/// An instance of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// Its number.
    pub instance: u64,
    /// Its model.
    pub model: String,
    /// `loading`, `ready`, `draining`, `stopping` or `gone`.
    pub stage: String,
    /// How dear it is.
    pub tier: Tier,
    /// The bytes it is believed to hold.
    pub booked: u64,
    /// What it would cost to evict it: milliseconds of a load times the recent demand for it.
    #[serde(alias = "cost_ms")]
    pub eviction_cost: u64,
    /// Steps under way.
    pub running: u32,
    /// Steps it could take beside them.
    pub free: u32,
}

/// Jobs of a class that wait in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePicture {
    /// The models that could serve them, best first.
    pub variants: Vec<String>,
    /// Their class.
    pub class: Class,
    /// How many.
    pub jobs: u64,
    /// Their inputs.
    pub inputs: u64,
    /// The number of the first.
    pub head: u64,
    /// For how long the first has been without progress.
    pub without_progress_ms: u64,
    /// The word for why it waits.
    pub reason: String,
    /// The same as a sentence.
    pub why: String,
}

/// Lines of what was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// What to ask for next.
    pub last: u64,
    /// The lines, the oldest first.
    pub lines: Vec<String>,
}
