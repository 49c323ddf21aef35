//! Turns of interactive models that do not fit beside each other. Without them two chats would push each other's model out
//! with every request.
//!
//! The turn of a model in memory against another begins when the oldest request for the other is older than every one that
//! waits for the model. It ends `interactive_turn` later, or when the model has had no queued or running interactive step
//! for `interactive_gap`. Until then interactive work does not evict it; then it may, even while it is busy.
//!
//! A turn of no length still begins only when nobody older waits for the model. Otherwise the younger of two requests of many
//! steps would take the older one's model away after each of them.

use alloc::vec::Vec;

use crate::{Class, DeviceId, InstanceId, JobId, Scheduler, Time};

impl Scheduler {
    /// An interactive job waits for memory of a device: the turns of the hot models on it begin, or begin anew.
    pub(crate) fn contest(&mut self, id: DeviceId, job: JobId) {
        let ids: Vec<InstanceId> = self.devices[id.index()].instances.clone();
        for one in ids {
            let instance = &self.instances[one];
            let older = self.head(instance, Class::Interactive).is_some_and(|(_, rank)| rank.job < job);
            let on = instance.slot.is_ready() && !older;
            let began = on.then(|| instance.turn_since.unwrap_or(self.now));
            self.instances[one].turn_since = began;
        }
        self.devices[id.index()].contested = true;
    }

    /// Ends the turns on devices where no interactive job waits for memory any more.
    pub(crate) fn end_turns(&mut self) {
        for device in &mut self.devices {
            if !core::mem::take(&mut device.contested) {
                for id in &device.instances {
                    self.instances[*id].turn_since = None;
                }
            }
        }
    }

    /// Until when its turn keeps a hot instance against interactive work; `None`: not any more; [`Time::MAX`]: until something
    /// happens.
    pub(crate) fn turn_until(&self, id: InstanceId) -> Option<Time> {
        let policy = self.policy();
        let instance = &self.instances[id];
        let Some(since) = instance.turn_since else { return Some(Time::MAX) };
        let runs = instance.slot.running().iter().any(|grant| grant.class == Class::Interactive);
        let last = self.models[instance.model.index()].last_interactive.unwrap_or(Time::ZERO);
        let quiet = if runs || self.head(instance, Class::Interactive).is_some() {
            Time::MAX
        } else {
            last.after(policy.interactive_gap)
        };
        Some(since.after(policy.interactive_turn).min(quiet)).filter(|&end| end > self.now)
    }
}
