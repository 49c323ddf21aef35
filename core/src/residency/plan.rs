//! The pass over everything that waits for a model: what loads, who goes, who waits and why.

use alloc::vec::Vec;

use super::{
    Residency,
    loads::Load,
    pending::{Guarded, Pending},
    precedence::Precedence,
    way::{Means, Way},
};
use crate::{
    Bytes, Class, DeviceId, Effect, Effects, Failure, InstanceId, JobId, ModelId, Note, Outcome, Scheduler, Time,
    WaitReason, device::DeviceState, instance::Slot, target::Assigned,
};

/// The head of a queue that wants a model.
#[derive(Clone, Debug)]
pub(crate) struct Wanting {
    pub target: u32,
    pub class: Class,
    pub job: JobId,
    pub precedence: Precedence,
    /// Since when it has made no progress.
    pub progress: Time,
    /// The model it wants now; while variants are compared, those it may not evict for itself.
    pub models: Vec<ModelId>,
}

impl Scheduler {
    /// Decides for every queue that could have been touched whether anything is loaded for its head.
    pub(crate) fn plan(&mut self, effects: &mut Effects) {
        if self.residency == Residency::Fixed {
            return;
        }
        let touched = core::mem::take(&mut self.touched);
        if touched.all || touched.heads.iter().any(|&(target, class)| self.concerns_others(target, class)) {
            return self.plan_all(effects);
        }
        if touched.heads.is_empty() {
            return;
        }
        self.open_books();
        for (target, class) in touched.heads {
            match self.head_of(target, class) {
                Some(wanting) => {
                    for at in 0..self.targets[target as usize].variants.len() {
                        let model = self.targets[target as usize].variants[at];
                        self.models[model.index()].awaited[class.index()] = true;
                    }
                    self.provide(wanting, effects);
                }
                None => self.targets[target as usize].why[class.index()] = None,
            }
        }
        self.close_books();
    }

    /// Whether another head of this queue changes what other queues may do: interactive work holds loads, and a pending load
    /// holds memory.
    fn concerns_others(&self, target: u32, class: Class) -> bool {
        let Some(target) = self.targets.get(target as usize) else { return true };
        let awaits =
            |model: &ModelId| self.devices.iter().any(|device| device.pending.iter().any(|one| one.model == *model));
        class == Class::Interactive || target.variants.len() > 1 || target.variants.iter().any(awaits)
    }

    fn plan_all(&mut self, effects: &mut Effects) {
        let loads: Vec<Option<Time>> = self.devices.iter().map(|device| device.interactive_load).collect();
        let before = self.assignments;
        if self.look_at_all(effects) {
            // Who was told that there is no room, for the sake of a load that nobody so far ahead wants any more, may have it
            // now.
            self.look_at_all(effects);
        }
        let changed = |(device, load): (&DeviceState, &Option<Time>)| device.interactive_load != *load;
        self.close_books();
        if self.assignments != before || self.devices.iter().zip(&loads).any(changed) {
            self.settle_all(effects);
        }
    }

    /// One pass over all heads; whether pending loads were dropped after it, or are wanted further behind now.
    fn look_at_all(&mut self, effects: &mut Effects) -> bool {
        self.replan_at = None;
        self.open_books();
        for device in &mut self.devices {
            device.interactive_load_waits = false;
            device.interactive_load = None;
            device.background_lacks = false;
            device.pending.iter_mut().for_each(|one| one.wanted = false);
        }
        self.look_who_is_awaited();
        self.forget_assignments();
        self.preload(effects);
        for wanting in self.wanting(&[Class::Interactive]) {
            self.provide(wanting, effects);
        }
        self.end_turns();
        for wanting in self.wanting(&[Class::Background, Class::Batch]) {
            self.provide(wanting, effects);
        }
        self.drop_unwanted(effects)
    }

    /// Notes for every model which classes wait for it.
    fn look_who_is_awaited(&mut self) {
        self.models.iter_mut().for_each(|model| model.awaited = [false; 3]);
        for line in &self.lines {
            let Some(target) = self.targets.get(line.target as usize) else { continue };
            for class in Class::ALL.into_iter().filter(|&class| line.class(class).len() > 0) {
                for model in &target.variants {
                    self.models[model.index()].awaited[class.index()] = true;
                }
            }
        }
    }

    /// What was given to the last head of a queue is not meant for the next one that comes into it.
    fn forget_assignments(&mut self) {
        for target in self.targets.iter_mut().filter(|target| target.variants.len() > 1) {
            let line = &self.lines[target.shared.index()];
            for class in Class::ALL.into_iter().filter(|&class| line.class(class).len() == 0) {
                target.assigned[class.index()] = Assigned::Unsaid;
            }
        }
    }

    /// The head of a queue, if it has one.
    pub(super) fn head_of(&self, target: u32, class: Class) -> Option<Wanting> {
        let line = &self.lines[self.targets.get(target as usize)?.shared.index()];
        let rank = line.class(class).first_rank()?;
        let progress = self.jobs.get(rank.job.0)?.progress;
        let precedence = self.precedence(class, rank, progress, &self.targets[target as usize].variants);
        Some(Wanting { target, class, job: rank.job, precedence, progress, models: Vec::new() })
    }

    /// The heads of these classes that wait in shared queues, in the order in which they may load and evict.
    fn wanting(&self, classes: &[Class]) -> Vec<Wanting> {
        let waits = classes.iter().filter(|class| self.queued[class.index()].jobs > 0);
        let targets = 0..self.targets.len() as u32;
        let heads = waits.flat_map(|&class| targets.clone().filter_map(move |target| self.head_of(target, class)));
        let mut heads: Vec<Wanting> = heads.collect();
        heads.sort_by_key(|head| head.precedence);
        heads
    }

    fn provide(&mut self, mut wanting: Wanting, effects: &mut Effects) {
        let shared = self.targets[wanting.target as usize].shared;
        if self.lines[shared.index()].class(wanting.class).first() != Some(wanting.job) {
            return;
        }
        if self.fail_if_impossible(&wanting, effects) {
            return;
        }
        let reason = match self.targets[wanting.target as usize].variants[..] {
            [only] => {
                wanting.models.push(only);
                self.provide_model(&wanting, Means::Any, effects)
            }
            _ => self.provide_variant(wanting.clone(), effects),
        };
        self.explain_wait(&wanting, reason, effects);
    }

    /// Keeps the reason with the target, and notes one that is new.
    fn explain_wait(&mut self, wanting: &Wanting, reason: Option<WaitReason>, effects: &mut Effects) {
        let kept = &mut self.targets[wanting.target as usize].why[wanting.class.index()];
        let kind = |reason: &Option<WaitReason>| reason.as_ref().map(core::mem::discriminant);
        let news = kind(kept) != kind(&reason);
        *kept = reason;
        if let (true, Some(reason)) = (news, reason) {
            effects.note(Note::Waits { job: wanting.job, reason });
        }
    }

    /// Fails every job of a target of which no variant can ever be had, or all have failed too often.
    fn fail_if_impossible(&mut self, wanting: &Wanting, effects: &mut Effects) -> bool {
        let target = &self.targets[wanting.target as usize];
        let variants = target.variants.clone();
        let outcome = if let Some((needs, room)) = self.never_fits(&variants) {
            Failure::CannotFit { needs, room }
        } else if self.are_broken(&variants) {
            Failure::Broken
        } else {
            return false;
        };
        let jobs = self.lines[target.shared.index()].jobs_by_age();
        for job in jobs {
            self.drop_job(job, Outcome::Failed(outcome), effects);
        }
        true
    }

    /// Whether every variant that fits anywhere failed too often and none is there.
    pub(crate) fn are_broken(&self, variants: &[ModelId]) -> bool {
        variants.iter().all(|&model| {
            let open = self.models[model.index()].breaker.is_open();
            !self.is_present(model) && (open || self.never_fits(&[model]).is_some())
        })
    }

    /// Has a model loaded for a head, if that is due; says why the head waits, `None` if not for a load.
    pub(crate) fn provide_model(&mut self, by: &Wanting, means: Means, effects: &mut Effects) -> Option<WaitReason> {
        let &model = by.models.first()?;
        let (mut ready, mut loading, mut leaving) = (None, None, None);
        for id in self.instances_of(model) {
            match &self.instances[id].slot {
                Slot::Ready { .. } => ready = Some(id),
                Slot::Loading { expected, then: None, .. } => loading = loading.or(Some((id, *expected))),
                slot if slot.is_leaving() => leaving = leaving.or(Some(id)),
                Slot::Loading { .. } | Slot::Draining { .. } | Slot::Stopping { .. } => {}
            }
        }
        if let Some((id, expected)) = loading {
            let loaded_for = &mut self.instances[id].loaded_for;
            *loaded_for = by.class.min(*loaded_for);
            self.await_load(by, self.instances[id].device, expected);
            return ready.is_none().then_some(WaitReason::Loading { instance: id });
        }
        if ready.is_some() {
            self.replicate(by, effects);
            return None;
        }
        self.lacks(by, model);
        if let Some(until) = self.models[model.index()].breaker.next_try(self.now) {
            self.wake_by(until);
            return Some(WaitReason::BackOff { until });
        }
        self.load_somewhere(by, means, leaving, effects)
    }

    fn load_somewhere(
        &mut self,
        by: &Wanting,
        means: Means,
        leaving: Option<InstanceId>,
        effects: &mut Effects,
    ) -> Option<WaitReason> {
        let &model = by.models.first()?;
        let Some((device, way, guarded)) = self.best_way(by, means, effects) else {
            return Some(leaving.map_or(WaitReason::NotLoaded, |instance| WaitReason::Draining { instance }));
        };
        let expected = self.now.after(self.load_time(model, device));
        let reason = match way {
            Way::Fits => {
                if !self.loads_are_full(device) {
                    let load = Load { model, device, class: by.class, guarded };
                    let instance = self.begin_load(load, effects)?;
                    self.audit_load(instance, device, by.precedence);
                    self.await_load(by, device, expected);
                    return Some(WaitReason::Loading { instance });
                }
                self.keep_pending(device, by, guarded, Bytes::ZERO, effects);
                WaitReason::LoadSlotBusy { device }
            }
            Way::Coming(missing) => {
                self.keep_pending(device, by, guarded, missing, effects);
                WaitReason::FreeingMemory { device, missing }
            }
            Way::Evict(victims, missing, short) => {
                self.keep_pending(device, by, guarded, missing, effects);
                self.evict(&victims, short, by, effects);
                WaitReason::FreeingMemory { device, missing }
            }
            Way::No(reason, at) => {
                if let Some(at) = at {
                    self.wake_by(at);
                }
                self.wake_by(self.overdue_at(device, by));
                let foreign = matches!(reason, WaitReason::ForeignMemory { .. });
                if by.class == Class::Interactive && at.is_some() && !foreign {
                    self.devices[device.index()].interactive_load_waits = true;
                }
                return Some(reason);
            }
        };
        self.await_load(by, device, expected);
        if by.class == Class::Interactive {
            self.devices[device.index()].interactive_load_waits = true;
        }
        Some(reason)
    }

    fn keep_pending(
        &mut self,
        device: DeviceId,
        by: &Wanting,
        guarded: Guarded,
        missing: Bytes,
        effects: &mut Effects,
    ) {
        let Some(&model) = by.models.first() else { return };
        let needs = self.need(model, device);
        let load = Pending { model, precedence: by.precedence, needs, guarded, wanted: true, demoted: false };
        self.await_memory(device, load, missing, effects);
    }

    /// Interactive work waits for a load that is expected to end then: lower classes may only do what ends before.
    fn await_load(&mut self, by: &Wanting, device: DeviceId, expected: Time) {
        if by.class == Class::Interactive {
            let known = &mut self.devices[device.index()].interactive_load;
            *known = Some(known.map_or(expected, |at| at.min(expected)));
        }
    }

    /// Background work has no instance: overdue batch work gets its turn against it.
    fn lacks(&mut self, by: &Wanting, model: ModelId) {
        if by.class == Class::Background {
            for device in self.places(model) {
                self.devices[device.index()].background_lacks = true;
            }
        }
    }

    /// One more replica of a model that is there: only if no instance has a free slot, it fits and nobody has to go.
    fn replicate(&mut self, by: &Wanting, effects: &mut Effects) {
        let Some(&model) = by.models.first() else { return };
        let most = match self.configuration.models[model.index()].replicas {
            crate::Replicas::Count(count) => count as usize,
            crate::Replicas::All => usize::MAX,
        };
        let there: Vec<InstanceId> = self.instances_of(model).collect();
        let roomy = there.iter().any(|id| self.has_room(&self.instances[*id], by.class));
        if there.len() >= most || there.len() >= self.places(model).len() || roomy {
            return;
        }
        if self.models[model.index()].breaker.next_try(self.now).is_some() {
            return;
        }
        if let Some((device, Way::Fits, guarded)) = self.best_way(by, Means::Free, effects)
            && !self.loads_are_full(device)
        {
            let load = Load { model, device, class: by.class, guarded };
            if let Some(instance) = self.begin_load(load, effects) {
                self.audit_load(instance, device, by.precedence);
            }
        }
    }

    /// Loads what is to be there from the start, and brings back what is pinned.
    fn preload(&mut self, effects: &mut Effects) {
        for number in 0..self.models.len() {
            let model = ModelId(number as u32);
            let configured = &self.configuration.models[number];
            let due = configured.preload && (configured.pinned || !self.models[number].loads.preloaded);
            if !due || self.models[number].removed || self.is_present(model) {
                continue;
            }
            let job = JobId(0);
            let (class, progress) = (Class::Interactive, self.now);
            let precedence = Precedence::FIRST;
            let by = Wanting { target: model.0, class, job, precedence, progress, models: alloc::vec![model] };
            let free = self.models[number].breaker.next_try(self.now).is_none();
            if free
                && !self.all_paused(model)
                && let Some((device, Way::Fits, guarded)) = self.best_way(&by, Means::Free, effects)
                && !self.loads_are_full(device)
                && self.begin_load(Load { model, device, class: Class::Batch, guarded }, effects).is_some()
            {
                self.models[number].loads.preloaded = true;
            }
        }
    }

    /// Whether nothing is to be loaded for now wherever a model may be placed, since memory ran out or was scarce.
    fn all_paused(&mut self, model: ModelId) -> bool {
        let paused = |device: &DeviceId| self.devices[device.index()].loads_paused;
        let until = self.places(model).iter().map(paused).min().unwrap_or(Time::ZERO);
        self.wake_by(until);
        until > self.now
    }

    /// Whether this step already says why a job waits.
    pub(crate) fn is_explained(&self, job: JobId, effects: &Effects) -> bool {
        self.residency == Residency::Managed
            && effects.iter().any(|effect| matches!(effect, Effect::Note(Note::Waits { job: one, .. }) if *one == job))
    }
}
