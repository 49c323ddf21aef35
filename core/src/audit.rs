//! Decisions, looked at when they are made, each on its own grounds: whether one has broken a rule cannot be seen afterwards.
//! [`Scheduler::check`] tells of the first.

use crate::{
    Bytes, Class, DeviceId, InstanceId, Mode, Right, Scheduler, Tier, Violation, instance::Slot, queue::LineId,
    residency::Precedence,
};

impl Scheduler {
    fn break_rule(&mut self, violation: Violation) {
        self.broken.get_or_insert(violation);
    }

    /// Invariant 1: an instance with steps in flight is never stopped.
    pub(crate) fn audit_stop(&mut self, instance: InstanceId) {
        let running = self.instances[instance].slot.running().len() as u64;
        if running > 0 {
            self.break_rule(Violation::StoppedBusy { instance, running });
        }
    }

    /// Invariant 2: what is booked and foreign is within the budget when a load is decided, the load included, and so is what
    /// is owed to pending loads that go before it. An operator's load is not decided here.
    pub(crate) fn audit_load(&mut self, instance: InstanceId, device: DeviceId, by: Precedence) {
        self.audit_books(device);
        let Some(budget) = self.budget(device) else { return };
        let booked = self.instances[instance].booked;
        let owed = self.devices[device.index()].pending.iter().filter(|one| one.precedence < by);
        let owed = owed.fold(Bytes::ZERO, |sum, one| sum.plus(one.needs));
        let short = self.committed(device).plus(owed).minus(budget);
        if short > Bytes::ZERO && booked > Bytes::ZERO {
            self.break_rule(Violation::Overcommitted { instance, device, short: short.get() });
        }
        let instances = self.devices[device.index()].instances.iter();
        let loading = instances.filter(|id| matches!(self.instances[**id].slot, Slot::Loading { .. })).count();
        let limit = self.configuration.devices[device.index()].parallel_loads.max(1);
        if loading > limit as usize {
            self.break_rule(Violation::TooManyLoads { device, loading: loading as u32, limit });
        }
    }

    /// What is added up once for a pass is what would be added up now.
    fn audit_books(&mut self, device: DeviceId) {
        let (kept, counted) = (self.sums(device), self.add_up(device));
        if kept != counted {
            let (kept, counted) = (kept.booked.get(), counted.booked.get());
            self.break_rule(Violation::Miscounted { what: "bytes booked during a pass", kept, counted });
        }
    }

    /// Invariants 6 and 9: pinned models are never victims, hot ones not of lower classes, and none goes in vain.
    pub(crate) fn audit_eviction(&mut self, victims: &[InstanceId], class: Class, missing: Bytes) {
        let devices = victims.iter().map(|&victim| self.instances[victim].device);
        if let Some(device) = devices.min() {
            self.audit_books(device);
        }
        let freed = |victim: &InstanceId| u128::from(self.instances[*victim].booked.get());
        let all: u128 = victims.iter().map(freed).sum();
        let needless = victims.iter().find(|victim| all - freed(victim) >= u128::from(missing.get()));
        let needless = needless.map(|&instance| Violation::NeedlessVictim { instance });
        let wrong = victims.iter().find_map(|&instance| match (self.tier(instance), class) {
            (Tier::Pinned, _) | (Tier::Hot, Class::Background | Class::Batch) => {
                Some(Violation::WrongVictim { instance, tier: self.tier(instance), class })
            }
            (Tier::Hot | Tier::Cold, _) => None,
        });
        if let Some(violation) = wrong.or(needless) {
            self.break_rule(violation);
        }
    }

    /// Invariant 4: outside of guard grants no lower step starts in interactive mode, nor while a higher one waits for the
    /// instance. Invariant 5: the guard starts none before its share of the time allows it.
    pub(crate) fn audit_grant(&mut self, instance: InstanceId, class: Class, right: Right, line: LineId) {
        let data = &self.instances[instance];
        let device = &self.devices[data.device.index()];
        let interactive = device.mode == Mode::Interactive || device.interactive > 0;
        let higher = match right {
            Right::Order => self.higher_waits(data, class),
            Right::Guard | Right::Turn => self.head(data, Class::Interactive).is_some(),
        };
        let (running, due) = (device.guards, device.guard_next);
        let limit = self.policy().guard_parallel;
        if right == Right::Guard && (running >= limit || self.now < due) {
            return self.break_rule(Violation::GuardTooEarly { instance, running, limit, due });
        }
        if (higher || (interactive && right != Right::Guard))
            && let Some(job) = self.lines[line.index()].class(class).first()
        {
            self.break_rule(Violation::OutOfTurn { job, class, instance });
        }
    }
}
