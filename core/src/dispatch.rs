//! Who gets a free slot: lines are offered to instances and instances to lines, higher classes first.
//!
//! After each input the lines and devices it touched are settled: afterwards no job waits that a rule would start.

use crate::{
    Capacity, Class, DeviceId, Effects, InstanceId, JobId, Mode, Right, Scheduler, Span, Time,
    instance::Instance,
    queue::{LineId, Rank},
    scheduler::Holding,
};

/// What an instance takes next: the head of a line, and by which right.
struct Next {
    class: Class,
    right: Right,
    line: LineId,
}

impl Scheduler {
    /// Starts the head of a line, again and again, on the best instance that may take it.
    #[inline]
    pub(crate) fn offer_line(&mut self, line: LineId, class: Class, effects: &mut Effects) {
        while self.any_open(&self.lines[line.index()])
            && let Some(head) = self.lines[line.index()].class(class).first()
        {
            let Some(best) = self.choose(line, class, head) else { return };
            if self.hold(best, class) {
                return;
            }
            self.grant(best, class, Right::Order, line, effects);
        }
    }

    /// The instance that may take the next step of the line's head now and would end it first; where variants differ, the
    /// better one, and for lower classes rather one that no user is talking to. Ties go by device.
    fn choose(&self, line: LineId, class: Class, head: JobId) -> Option<InstanceId> {
        let job = self.jobs.get(head.0)?;
        let weight = job.weight_of(job.next_step().unwrap_or(0));
        let line = &self.lines[line.index()];
        let servers = self.servers(line);
        let variants = &self.targets[line.target as usize].variants;
        let mut best: Option<((bool, usize, Span), InstanceId)> = None;
        for &id in servers.as_slice() {
            let instance = &self.instances[id];
            if !self.may_take(instance, class) || !self.suits(line, class, instance.model) {
                continue;
            }
            if self.held_for_load(instance, class, head) {
                continue;
            }
            let (busy, variant) = match variants[..] {
                [_] => (false, 0),
                _ => {
                    let place = variants.iter().position(|&one| one == instance.model).unwrap_or(usize::MAX);
                    (class != Class::Interactive && self.hot(instance.model), place)
                }
            };
            let key = (busy, variant, self.step_time(instance, job, weight));
            if best.is_none_or(|(known, _)| key < known) {
                best = Some((key, id));
            }
        }
        best.map(|(_, id)| id)
    }

    /// Whether the rules let an instance take a step of this class in its own right now.
    #[inline]
    fn may_take(&self, instance: &Instance, class: Class) -> bool {
        match class {
            Class::Interactive => instance.free() > 0,
            Class::Background | Class::Batch => {
                self.has_room(instance, class)
                    && self.devices[instance.device.index()].mode == Mode::Idle
                    && !self.higher_waits(instance, class)
            }
        }
    }

    /// Whether an instance has a slot that this class may use.
    #[inline]
    pub(crate) fn has_room(&self, instance: &Instance, class: Class) -> bool {
        let free = instance.free();
        free > 0 && free > self.reserved(instance, class)
    }

    /// Whether a job of a higher class waits for this instance: if it has room then, its batch is held for that job.
    pub(crate) fn higher_waits(&self, instance: &Instance, class: Class) -> bool {
        Class::ALL.into_iter().filter(|&other| other < class).any(|other| self.head(instance, other).is_some())
    }

    /// The first in order of a class among the lines that an instance serves.
    #[inline]
    pub(crate) fn head(&self, instance: &Instance, class: Class) -> Option<(LineId, Rank)> {
        if self.queued[class.index()].jobs == 0 {
            return None;
        }
        let mut best = None;
        for &id in &instance.lines {
            let line = &self.lines[id.index()];
            if let Some(rank) = line.class(class).first_rank()
                && self.suits(line, class, instance.model)
            {
                best = Rank::better(best, Some((id, rank)));
            }
        }
        best
    }

    /// Fills the free slots of an instance, higher classes first.
    #[inline]
    pub(crate) fn offer_instance(&mut self, id: InstanceId, effects: &mut Effects) {
        while let Some(Next { class, right, line }) = self.next_for(id) {
            if self.hold(id, class) {
                return;
            }
            self.grant(id, class, right, line, effects);
        }
    }

    /// What an instance takes next; `None` if it is full or may take nothing.
    #[inline]
    fn next_for(&self, id: InstanceId) -> Option<Next> {
        let instance = &self.instances[id];
        if instance.free() == 0 {
            return None;
        }
        let next = |class, right| move |(line, _): (LineId, Rank)| Next { class, right, line };
        if let Some(head) = self.head(instance, Class::Interactive) {
            return Some(next(Class::Interactive, Right::Order)(head));
        }
        if self.lower_queued() == 0 || self.devices[instance.device.index()].mode == Mode::Interactive {
            return None;
        }
        let able = |class, (_, rank): &(LineId, Rank)| {
            self.has_room(instance, class) && !self.held_for_load(instance, class, rank.job)
        };
        let batch = self.head(instance, Class::Batch).filter(|head| able(Class::Batch, head));
        if batch.is_some() && self.has_turn(instance) {
            return batch.map(next(Class::Batch, Right::Turn));
        }
        if let Some(head) = self.head(instance, Class::Background) {
            let able = able(Class::Background, &head);
            return able.then(|| next(Class::Background, Right::Order)(head));
        }
        batch.map(next(Class::Batch, Right::Order))
    }

    /// Whether an instance holds its under-full batch of this class to fill: until min(oldest arrival + wait, earliest
    /// deadline - T(n)).
    #[inline]
    fn hold(&mut self, id: InstanceId, class: Class) -> bool {
        if self.holding == Holding::No {
            return false;
        }
        let instance = &self.instances[id];
        let Capacity::Batch { max, wait } = instance.capacity else { return false };
        if wait.is_zero() {
            return false;
        }
        let until = self.hold_until(instance, class, u64::from(max), wait).filter(|&until| until > self.now);
        self.instances[id].held = until;
        until.is_some()
    }

    fn hold_until(&self, instance: &Instance, class: Class, max: u64, wait: Span) -> Option<Time> {
        let lines = || instance.lines.iter().map(|line| &self.lines[line.index()]);
        let weight: u64 = lines().map(|line| line.class(class).weight()).sum();
        if weight >= max {
            return None;
        }
        let service = self.batch_time(instance, weight);
        let jobs = lines().flat_map(|line| line.class(class).iter()).filter_map(|id| self.jobs.get(id.0));
        let limits = jobs.map(|job| {
            let filled = job.arrived.after(wait);
            job.deadline().map_or(filled, |deadline| filled.min(deadline.before(service)))
        });
        limits.min()
    }

    /// Settles every device on which a line is served.
    #[inline]
    pub(crate) fn settle_servers(&mut self, line: LineId, effects: &mut Effects) {
        if self.lower_queued() == 0 && (self.unengaged == 0 || self.all_in_use(line)) {
            return;
        }
        let mut place = 0;
        while let Some(device) = self.server_device(line, place) {
            self.settle_device(device, effects);
            place += 1;
        }
    }

    /// Whether interactive work runs on every device of a line, so that none can change its mode.
    #[inline]
    fn all_in_use(&self, line: LineId) -> bool {
        let servers = self.servers(&self.lines[line.index()]);
        servers.as_slice().iter().all(|id| {
            let device = &self.devices[self.instances[*id].device.index()];
            device.interactive > 0 && device.mode == Mode::Interactive
        })
    }

    fn server_device(&self, line: LineId, place: usize) -> Option<DeviceId> {
        let servers = self.servers(&self.lines[line.index()]);
        servers.as_slice().get(place).map(|id| self.instances[*id].device)
    }

    /// Brings a device's mode up to date and starts what its lower classes may start.
    #[inline]
    pub(crate) fn settle_device(&mut self, device: DeviceId, effects: &mut Effects) {
        self.update_mode(device, effects);
        if self.lower_queued() == 0 {
            return;
        }
        match self.devices[device.index()].mode {
            Mode::Idle => self.offer_device(device, effects),
            Mode::Interactive => self.guard(device, effects),
        }
    }

    /// Offers every instance of a device to its lines.
    pub(crate) fn offer_device(&mut self, device: DeviceId, effects: &mut Effects) {
        let mut place = 0;
        while let Some(&id) = self.devices[device.index()].instances.get(place) {
            self.offer_instance(id, effects);
            place += 1;
        }
    }
}
