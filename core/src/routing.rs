//! Which line an arriving job joins: the shared one, or that of an instance chosen for it.

use alloc::vec::Vec;

use crate::{
    Capacity, Class, InstanceId, JobId, Routing, Scheduler, Span,
    instance::Instance,
    job::Job,
    queue::{LineId, Scope},
};

impl Scheduler {
    #[inline]
    pub(crate) fn route(&mut self, job: JobId, class: Class, target: u32) -> LineId {
        let routing = self.configuration.policy.routing;
        if routing == Routing::Shared {
            return self.targets[target as usize].shared;
        }
        let entry = &self.targets[target as usize];
        let fits = |id: &InstanceId| self.serves(target, class, self.instances[*id].model);
        let able: Vec<InstanceId> = entry.servers.iter().copied().filter(fits).collect();
        let Some(chosen) = self.choose_at_arrival(routing, job, entry.routed, &able) else { return entry.shared };
        self.targets[target as usize].routed += 1;
        self.line_at(chosen, target)
    }

    fn choose_at_arrival(&self, routing: Routing, job: JobId, routed: u64, able: &[InstanceId]) -> Option<InstanceId> {
        let count = able.len();
        if count == 0 {
            return None;
        }
        match routing {
            Routing::Shared => None,
            Routing::RoundRobin => able.get((routed % count as u64) as usize).copied(),
            Routing::JoinShortest => self.least_loaded(job, able.iter()),
            Routing::PowerOfTwo => {
                let (one, other) = two_of(job, self.configuration.seed, count);
                self.least_loaded(job, [able[one], able[other]].iter())
            }
        }
    }

    fn least_loaded<'a>(&self, job: JobId, candidates: impl Iterator<Item = &'a InstanceId>) -> Option<InstanceId> {
        let job = self.jobs.get(job.0)?;
        candidates.copied().min_by_key(|id| (self.predicted_work(&self.instances[*id], job), *id))
    }

    /// The time in which an instance would be done with what runs and what waits for it alone; with slots side by side, were
    /// what waits like this job.
    fn predicted_work(&self, instance: &Instance, job: &Job) -> Span {
        let own = instance.lines.iter().map(|line| &self.lines[line.index()]);
        let bound = own.filter(|line| matches!(line.scope, Scope::Instance(_)));
        let weight: u64 = bound.flat_map(|line| &line.classes).map(crate::queue::ClassQueue::weight).sum();
        match instance.capacity {
            Capacity::Batch { .. } => {
                let full = self.batch_time(instance, instance.per_grant());
                self.free_at(instance).since(self.now).plus(full.times(weight.div_ceil(instance.at_once())))
            }
            Capacity::Slots { .. } => {
                let running = instance.slot.running().iter().map(|grant| grant.expected.since(self.now));
                let own = job.weight_of(0);
                let queued = self.step_time(instance, job, own).times(weight.div_ceil(u64::from(own).max(1)));
                let all = running.fold(queued, Span::plus);
                Span::from_nanos(all.as_nanos().div_ceil(instance.at_once()))
            }
        }
    }

    /// The line of a target's jobs that were routed to this instance.
    fn line_at(&mut self, id: InstanceId, target: u32) -> LineId {
        let known = self.instances[id].lines.iter().copied().find(|line| {
            let line = &self.lines[line.index()];
            line.target == target && line.scope == Scope::Instance(id)
        });
        known.unwrap_or_else(|| {
            let line = self.add_line(target, Scope::Instance(id));
            self.instances[id].lines.push(line);
            line
        })
    }

    /// Jobs that were routed to an instance which takes no more work find new places, in queue order.
    pub(crate) fn reroute(&mut self, id: InstanceId) {
        let lines = core::mem::take(&mut self.instances[id].lines);
        let own: Vec<LineId> =
            lines.into_iter().filter(|line| self.lines[line.index()].scope == Scope::Instance(id)).collect();
        for line in own {
            let target = self.lines[line.index()].target;
            for job in self.lines[line.index()].jobs_in_order() {
                let Some(class) = self.jobs.get(job.0).map(|data| data.class) else { continue };
                let place = self.route(job, class, target);
                self.move_job(job, place);
            }
            self.spare_lines.push(line);
        }
    }

    fn move_job(&mut self, id: JobId, line: LineId) {
        self.leave_line(id);
        self.enqueue(id, line);
    }
}

/// Two places out of `count`, different where there is more than one, by a hash of the job's number and the seed.
fn two_of(job: JobId, seed: u64, count: usize) -> (usize, usize) {
    let hash = mix(job.0 ^ mix(seed));
    let one = (hash >> 32) as usize % count;
    let step = 1 + (hash as u32) as usize % count.saturating_sub(1).max(1);
    (one, (one + step) % count)
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
