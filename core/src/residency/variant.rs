//! Families: which variant a waiting head is for.
//!
//! Interactive work gets the best variant that can be had, as for that model alone; a lesser one only if the better ones
//! fail again and again, cannot fit, or are leaving with their bytes promised. Lower classes get the best that runs without
//! evicting anything and without a slot of a model the user is talking to; else a hot one with an unreserved slot; else one
//! that needs an eviction.

use alloc::vec::Vec;

use super::{
    plan::Wanting,
    way::{Means, Way},
};
use crate::{
    Choice, Class, DeviceId, Effects, InstanceId, ModelId, MonitorHealth, Scheduler, WaitReason, instance::Slot,
    target::Assigned,
};

impl Scheduler {
    pub(crate) fn provide_variant(&mut self, by: Wanting, effects: &mut Effects) -> Option<WaitReason> {
        let variants = self.targets[by.target as usize].variants.clone();
        match by.class {
            Class::Interactive => self.provide_best(by, &variants, effects),
            Class::Background | Class::Batch => self.provide_cheapest(by, &variants, effects),
        }
    }

    fn provide_best(&mut self, mut by: Wanting, variants: &[ModelId], effects: &mut Effects) -> Option<WaitReason> {
        let mut because = Choice::Best;
        for &model in variants {
            by.models = alloc::vec![model];
            match self.obstacle(&by, model, effects) {
                None => {
                    self.assign(&by, Assigned::To(model), because);
                    return self.provide_model(&by, Means::Any, effects);
                }
                Some(obstacle) => because = obstacle,
            }
        }
        let &best = variants.first()?;
        by.models = alloc::vec![best];
        self.assign(&by, Assigned::To(best), Choice::Best);
        self.provide_model(&by, Means::Any, effects)
    }

    /// Why interactive work cannot have a variant; `None`: it can, now or after a turn.
    fn obstacle(&mut self, by: &Wanting, model: ModelId, effects: &mut Effects) -> Option<Choice> {
        if self.is_present(model) {
            return None;
        }
        if self.never_fits(&[model]).is_some() {
            // Nor when turns end: where the variant that serves instead has one, the wait for it would have no end.
            return Some(Choice::BetterTooLarge);
        }
        if let Some(at) = self.models[model.index()].breaker.next_try(self.now) {
            self.wake_by(at);
            return Some(Choice::BetterBroken);
        }
        let leaving: Vec<InstanceId> = self.instances_of(model).collect();
        let promised = |id: &InstanceId| {
            let device = self.instances[*id].device;
            !self.devices[device.index()].pending.is_empty()
        };
        if leaving.iter().any(promised) {
            return Some(Choice::BetterLeaving);
        }
        let mut devices = self.places(model);
        devices.retain(|&device| !self.has_instance(model, device));
        let can = devices.into_iter().any(|device| {
            let way = self.way_on(device, by, Means::Any, effects).0;
            let blind = self.devices[device.index()].memory.health == MonitorHealth::Stale;
            match way {
                Way::No(WaitReason::MonitorStale { .. }, _) => !blind,
                Way::No(WaitReason::ForeignMemory { .. }, at) => {
                    at.into_iter().for_each(|at| self.wake_by(at));
                    false
                }
                Way::No(_, None) => false,
                Way::No(_, Some(_)) | Way::Fits | Way::Coming(_) | Way::Evict(..) => true,
            }
        });
        if can || !leaving.is_empty() { None } else { Some(Choice::BetterTooLarge) }
    }

    fn provide_cheapest(&mut self, mut by: Wanting, variants: &[ModelId], effects: &mut Effects) -> Option<WaitReason> {
        for &model in variants {
            // Whatever is given to it now, from then on it may use that one, too.
            self.wake_when_cold(model);
        }
        if let Some((model, place)) = self.free_variant(&by, variants) {
            let because = self.reason_beside(&by, place, variants);
            self.assign(&by, Assigned::To(model), because);
            return None;
        }
        for (place, &model) in variants.iter().enumerate() {
            by.models = alloc::vec![model];
            let because = self.reason_for(place, variants);
            if self.is_present(model) {
                if !self.hot(model) {
                    self.assign(&by, Assigned::To(model), because);
                    return self.provide_model(&by, Means::Free, effects);
                }
                continue;
            }
            if self.can_have(&by, model, Means::Free, effects) {
                self.assign(&by, Assigned::To(model), because);
                return self.provide_model(&by, Means::Free, effects);
            }
        }
        self.assign(&by, Assigned::Any, Choice::BetterBusy);
        for &model in variants {
            by.models = alloc::vec![model];
            if !self.is_present(model) && self.can_have(&by, model, Means::Any, effects) {
                self.assign(&by, Assigned::To(model), Choice::Best);
                return self.provide_model(&by, Means::Any, effects);
            }
        }
        self.reason_for_none(by, variants, effects)
    }

    /// Has the planner look again when nobody will have talked to a model for long.
    fn wake_when_cold(&mut self, model: ModelId) {
        if let Some(last) = self.models[model.index()].last_interactive {
            self.wake_by(last.after(self.policy().hot_ttl));
        }
    }

    /// Why a variant of lower classes is not the best: one that is there is in use, one that is not would need room.
    fn reason_for(&self, place: usize, variants: &[ModelId]) -> Choice {
        match &variants[..place] {
            [] => Choice::Best,
            better if better.iter().any(|&model| self.is_present(model)) => Choice::BetterBusy,
            _ => Choice::BetterNeedsEviction,
        }
    }

    /// The same where a variant is taken because it is loaded: better ones that would fit beside it are only not there.
    fn reason_beside(&mut self, by: &Wanting, place: usize, variants: &[ModelId]) -> Choice {
        let because = self.reason_for(place, variants);
        let mut fits = |&model: &ModelId| {
            let mut by = by.clone();
            by.models = alloc::vec![model];
            let devices = self.places(model);
            devices.into_iter().any(|device| !matches!(self.way_by_memory(device, &by, Means::Free), Way::No(..)))
        };
        match because {
            Choice::BetterNeedsEviction if variants[..place].iter().any(&mut fits) => Choice::BetterAbsent,
            other => other,
        }
    }

    /// Gives the head of a queue a variant that is there and has room, if one has; nothing is loaded for it.
    pub(crate) fn assign_free(&mut self, target: u32, class: Class) {
        let Some(by) = self.head_of(target, class) else { return };
        let variants = self.targets[target as usize].variants.clone();
        if let Some((model, place)) = self.free_variant(&by, &variants) {
            let because = self.reason_beside(&by, place, &variants);
            self.assign(&by, Assigned::To(model), because);
        }
    }

    /// A loaded variant that has room right now and is not hot, unless for a chat.
    fn free_variant(&self, by: &Wanting, variants: &[ModelId]) -> Option<(ModelId, usize)> {
        variants.iter().enumerate().find_map(|(place, &model)| {
            let roomy = self.instances_of(model).any(|id| {
                let instance = &self.instances[id];
                instance.slot.is_ready() && self.has_room(instance, by.class)
            });
            ((by.class == Class::Interactive || !self.hot(model)) && roomy).then_some((model, place))
        })
    }

    fn can_have(&mut self, by: &Wanting, model: ModelId, means: Means, effects: &mut Effects) -> bool {
        if let Some(at) = self.models[model.index()].breaker.next_try(self.now) {
            self.wake_by(at);
            return false;
        }
        let mut devices: Vec<DeviceId> = self.places(model);
        devices.retain(|&device| !self.has_instance(model, device));
        devices.into_iter().any(|device| match self.way_on(device, by, means, effects).0 {
            Way::No(reason, at) => {
                at.into_iter().for_each(|at| self.wake_by(at));
                self.is_passing(device, &reason) && !matches!(self.way_by_memory(device, by, means), Way::No(..))
            }
            Way::Fits | Way::Coming(_) | Way::Evict(..) => true,
        })
    }

    /// Whether what keeps a lower class from loading on a device is worth waiting for: it ends by itself before long.
    fn is_passing(&self, device: DeviceId, reason: &WaitReason) -> bool {
        match reason {
            WaitReason::InteractiveLoadFirst { .. } => true,
            WaitReason::InteractiveMode { guard_at, .. } => guard_at.is_some(),
            WaitReason::MonitorStale { .. } => self.devices[device.index()].memory.health != MonitorHealth::Stale,
            _ => false,
        }
    }

    /// No variant can be had: the head waits for a slot of one that is there, or for what keeps the best from coming.
    fn reason_for_none(&mut self, mut by: Wanting, variants: &[ModelId], effects: &mut Effects) -> Option<WaitReason> {
        let there = variants
            .iter()
            .any(|&model| self.instances_of(model).any(|id| matches!(self.instances[id].slot, Slot::Ready { .. })));
        if there {
            return None;
        }
        let &best = variants.first()?;
        by.models = alloc::vec![best];
        self.provide_model(&by, Means::Any, effects)
    }

    /// Says which variant a class of a target waits for; queues are offered anew when that changes.
    fn assign(&mut self, by: &Wanting, given: Assigned, because: Choice) {
        let target = &mut self.targets[by.target as usize];
        target.because[by.class.index()] = because;
        let assigned = &mut target.assigned[by.class.index()];
        if *assigned != given {
            *assigned = given;
            self.assignments += 1;
        }
    }
}
