//! Batch turns: in idle mode a batch job that has made no progress for long goes before background for a while.
//! A turn is followed by at least `batch_max_starvation` without one on the device. Memory is part of it: models that are
//! spared otherwise go for such a job at most as often, and it has its turn when its own model is there.

use crate::{Class, DeviceId, Effects, ModelId, Note, Right, Scheduler, Time, device::Turn, instance::Instance};

impl Scheduler {
    /// Whether batch goes before background on an instance that has room: its model's turn is on, or its head is overdue and
    /// the device has no turn.
    pub(crate) fn has_turn(&self, instance: &Instance) -> bool {
        match self.devices[instance.device.index()].turn {
            Some(turn) => {
                turn.model == instance.model && self.now < turn.until && self.goes_before_background(instance)
            }
            None => self.is_overdue(instance) && self.goes_before_background(instance),
        }
    }

    /// Whether background work waits for this instance, or for memory of its device.
    fn goes_before_background(&self, instance: &Instance) -> bool {
        let lacks = self.devices[instance.device.index()].background_lacks;
        lacks || self.head(instance, Class::Background).is_some()
    }

    fn is_overdue(&self, instance: &Instance) -> bool {
        let head = self.head(instance, Class::Batch).and_then(|(_, rank)| self.jobs.get(rank.job.0));
        let due = |progress| self.turn_due(instance.model, instance.device, progress);
        head.is_some_and(|job| job.running == 0 && due(job.progress) <= self.now)
    }

    /// When batch work for a model, without progress since then, is due for a turn on a device; [`Time::MAX`]: never.
    pub(crate) fn turn_due(&self, model: ModelId, id: DeviceId, progress: Time) -> Time {
        let patience = self.policy().batch_max_starvation;
        if patience.is_zero() {
            return Time::MAX;
        }
        let device = &self.devices[id.index()];
        let next = match (device.turn, device.turn_promised) {
            (_, Some(promised)) if promised == model => Time::ZERO,
            (Some(turn), _) => turn.until.after(patience),
            (None, _) => device.turn_next,
        };
        next.max(progress.after(patience))
    }

    /// Others have to go for overdue work of a model.
    pub(crate) fn promise_turn(&mut self, id: DeviceId, model: ModelId) {
        let next = self.now.after(self.policy().batch_max_starvation);
        let device = &mut self.devices[id.index()];
        (device.turn_promised, device.turn_next) = (Some(model), next);
    }

    /// A model for which others had to go is there, and works.
    #[inline]
    pub(crate) fn keep_promise(&mut self, id: DeviceId, model: ModelId) {
        let promised = &mut self.devices[id.index()].turn_promised;
        *promised = promised.filter(|&known| known != model);
    }

    /// Begins a turn with its first grant.
    pub(crate) fn begin_turn(&mut self, instance: crate::InstanceId, effects: &mut Effects) {
        let (model, id) = (self.instances[instance].model, self.instances[instance].device);
        if self.devices[id.index()].turn.is_none() {
            let until = self.now.after(self.policy().batch_turn.max(crate::Span::from_nanos(1)));
            self.change_device(id, |device| device.turn = Some(Turn { model, until }));
            effects.note(Note::TurnBegan { device: id, model, until });
        }
    }

    /// Ends a turn whose time is over.
    pub(crate) fn lapse_turn(&mut self, id: DeviceId, effects: &mut Effects) {
        if self.devices[id.index()].turn.is_some_and(|turn| turn.until <= self.now) {
            self.end_turn(id, effects);
        }
    }

    /// Ends a turn for which nothing waits or runs any more.
    #[inline]
    pub(crate) fn end_turn_without_work(&mut self, id: DeviceId, effects: &mut Effects) {
        let Some(turn) = self.devices[id.index()].turn else { return };
        let busy = self.devices[id.index()].instances.iter().any(|instance| {
            let instance = &self.instances[*instance];
            let runs = instance.slot.running().iter().any(|grant| grant.right == Right::Turn);
            instance.model == turn.model && (runs || self.head(instance, Class::Batch).is_some())
        });
        if !busy {
            self.end_turn(id, effects);
        }
    }

    fn end_turn(&mut self, id: DeviceId, effects: &mut Effects) {
        if let Some(turn) = self.devices[id.index()].turn {
            self.change_device(id, |device| device.turn = None);
            self.devices[id.index()].turn_next = self.now.after(self.policy().batch_max_starvation);
            effects.note(Note::TurnEnded { device: id, model: turn.model });
        }
    }
}
