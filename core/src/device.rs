//! What is kept per device: its mode, the guard's account, and the batch turn.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{
    InstanceId, Mode, ModelId, Ppm, Span, Time,
    memory::Memory,
    residency::{Books, Pending},
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DeviceState {
    /// Its instances that are not gone, in order of their ids.
    pub instances: Vec<InstanceId>,
    pub mode: Mode,
    /// Interactive grants under way.
    pub interactive: u32,
    /// When the time after the last interactive step is over.
    pub window: Time,
    /// The guard may start a grant from then on.
    pub guard_next: Time,
    /// Guard grants under way.
    pub guards: u32,
    /// How many might be when the last one started.
    pub guard_limit: u32,
    pub turn: Option<Turn>,
    /// No turn begins before then: overdue jobs one after another would starve background.
    pub turn_next: Time,
    /// Others had to go for overdue work of this model: its turn is due all the same when it is there.
    #[serde(default)]
    pub turn_promised: Option<ModelId>,
    pub memory: Memory,
    /// Loads that wait for memory.
    pub pending: Vec<Pending>,
    /// Lower classes load nothing before then.
    pub loads_paused: Time,
    /// Their loads that were broken off for interactive work since one was carried through.
    #[serde(default)]
    pub broken_off: u32,
    /// Nothing more is unloaded for want of memory before then.
    pub relief_next: Time,
    /// Interactive work waits for memory or for its turn to load.
    pub interactive_load_waits: bool,
    /// When a load that interactive work waits for is expected to end.
    pub interactive_load: Option<Time>,
    /// Background work wants a model that is not there.
    pub background_lacks: bool,
    /// An interactive job waits for memory of models that have turns; only within a pass.
    #[serde(skip)]
    pub contested: bool,
    /// What the planner adds up; only within a pass.
    #[serde(skip)]
    pub books: Books,
}

/// A batch turn under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub model: ModelId,
    pub until: Time,
}

impl Default for DeviceState {
    fn default() -> DeviceState {
        DeviceState {
            instances: Vec::new(),
            mode: Mode::Idle,
            interactive: 0,
            window: Time::ZERO,
            guard_next: Time::ZERO,
            guards: 0,
            guard_limit: 0,
            turn: None,
            turn_next: Time::ZERO,
            turn_promised: None,
            memory: Memory::default(),
            pending: Vec::new(),
            loads_paused: Time::ZERO,
            broken_off: 0,
            relief_next: Time::ZERO,
            interactive_load_waits: false,
            interactive_load: None,
            background_lacks: false,
            contested: false,
            books: Books::default(),
        }
    }
}

impl DeviceState {
    /// Whether interactive work runs on it, in interactive mode and outside of every turn. Then nothing but the end of that
    /// work can change its mode, and none of its times is due.
    #[inline]
    pub fn is_engaged(&self) -> bool {
        self.interactive > 0 && self.mode == Mode::Interactive && self.turn.is_none()
    }

    /// Charges a guard grant that ran from `start` to `now`: the next may start once the guard's `share` of the time is kept.
    pub fn charge_guard(&mut self, start: Time, now: Time, share: Ppm) {
        let owed: Span = now.since(start).divided_up(share);
        self.guard_next = self.guard_next.max(start).after(owed);
        self.guards = self.guards.saturating_sub(1);
    }
}
