//! Deadline admission: a job that would be late is refused at its arrival.
//!
//! With batches: k instances serve the target; together they take a full batch every T = ceil(k / sum_i 1/T_i(Bmax)).
//! What is queued before the job fills ceil(q_c / Bmax) batches for each class c, so it starts after the rest of the
//! earliest batch under way and ceil(sum_c ceil(q_c / Bmax) / k) times T, and its own inputs take ceil(s / (Bmax k)) times T.
//! With slots: N slots are free at r_1 <= .. <= r_N; behind q steps of mean service S it starts at r_(1 + q mod N) +
//! floor(q / N) S. Queues count jobs and inputs, so n jobs with m inputs are taken for max(n, ceil(m / chunk)) steps alike,
//! with the chunk of embeddings: the few jobs of other kinds that have more inputs than that count as several shorter steps.
//! Nothing is promised to jobs admitted earlier with later deadlines, nor to lower classes.

use alloc::vec::Vec;

use crate::{
    Admission, Capacity, Class, InstanceId, JobId, Refusal, Scheduler, Span, Time,
    instance::{Instance, Slot},
    job::Job,
    queue::{LineId, Rank, Scope},
};

impl Scheduler {
    #[inline]
    pub(crate) fn admit(&self, job: &Job, id: JobId, line: LineId) -> Result<(), Refusal> {
        let policy = &self.policy().classes[job.class.index()];
        match (policy.admission, job.deadline()) {
            (Admission::None, _) | (Admission::Deadline | Admission::Adaptive, None) => Ok(()),
            (kind @ (Admission::Deadline | Admission::Adaptive), Some(deadline)) => {
                let rank = job.rank(id, policy.order);
                let Some(predicted) = self.predicted_finish(job, rank, line) else { return Ok(()) };
                let adaptive = kind == Admission::Adaptive;
                late(if adaptive { self.with_margin(job.class, predicted) } else { predicted }, deadline)
            }
        }
    }

    /// When a job would end if it joined this line now; `None` if no instance could serve it yet.
    fn predicted_finish(&self, job: &Job, rank: Rank, line: LineId) -> Option<Time> {
        let line = &self.lines[line.index()];
        let servers = self.servers(line);
        let loading = match line.scope {
            Scope::Shared => self.loading_servers(line.target),
            Scope::Instance(_) => Vec::new(),
        };
        let mut able = servers.as_slice().iter().chain(&loading).map(|id| &self.instances[*id]);
        match able.clone().next()?.capacity {
            Capacity::Batch { max, .. } => {
                let alike = |one: &&Instance| matches!(one.capacity, Capacity::Batch { .. });
                Some(self.batches_finish(job, rank, able.filter(alike), u64::from(max.max(1))))
            }
            Capacity::Slots { .. } => self.slots_finish(job, rank, &mut able),
        }
    }

    /// Instances of a target's variants that will be ready.
    fn loading_servers(&self, target: u32) -> Vec<InstanceId> {
        let is_loading = |slot: &Slot| matches!(slot, Slot::Loading { then: None, .. });
        let target = &self.targets[target as usize];
        let live = self.devices.iter().flat_map(|device| device.instances.iter().copied());
        live.filter(|id| {
            let instance = &self.instances[*id];
            is_loading(&instance.slot) && target.variants.contains(&instance.model)
        })
        .collect()
    }

    fn batches_finish<'a>(
        &self,
        job: &Job,
        rank: Rank,
        instances: impl Iterator<Item = &'a Instance> + Clone,
        most: u64,
    ) -> Time {
        let k = instances.clone().count().max(1) as u64;
        let cycle = common_cycle(instances.clone().map(|one| self.batch_time(one, one.at_once())), k);
        let earliest = instances.clone().map(|one| self.available_at(one)).min().unwrap_or(self.now);
        let own = cycle.times(u64::from(job.inputs).div_ceil(most.saturating_mul(k)));
        // A batch that outlasts its prediction has no predicted rest left, but it is no free instance.
        if instances.clone().any(|one| one.free() > 0) {
            return self.now.after(own);
        }
        let batches: u64 = self.before(job.class, rank, instances).map(|ahead| ahead.inputs.div_ceil(most)).sum();
        earliest.after(cycle.times(batches.div_ceil(k))).after(own)
    }

    fn slots_finish<'a>(
        &self,
        job: &Job,
        rank: Rank,
        instances: &mut (impl Iterator<Item = &'a Instance> + Clone),
    ) -> Option<Time> {
        let mut releases: Vec<Time> = instances.clone().flat_map(|one| self.releases(one, job.class)).collect();
        releases.sort_unstable();
        let time = |weight| instances.clone().map(|one| self.step_time(one, job, weight)).max();
        let chunk = u64::from(self.policy().embedding_chunk.max(1));
        let (mut steps, mut inputs) = (0_u64, 0_u64);
        for ahead in self.before(job.class, rank, instances.clone()) {
            steps += ahead.jobs.max(ahead.inputs.div_ceil(chunk));
            inputs += ahead.inputs;
        }
        let count = releases.len() as u64;
        let first = *releases.get((steps.checked_rem(count)?) as usize)?;
        let mean = u32::try_from(inputs.div_ceil(steps.max(1))).unwrap_or(u32::MAX);
        let own = time(job.weight_of(0))?.times(u64::from(job.steps).div_ceil(count));
        Some(first.after(time(mean)?.times(steps / count)).after(own))
    }

    /// When each slot that a class may use is free: it leaves those that are reserved to others, and they are the first that
    /// must be free.
    fn releases(&self, instance: &Instance, class: Class) -> impl Iterator<Item = Time> {
        let kept = self.reserved(instance, class) as usize;
        let base = match instance.slot {
            Slot::Loading { expected, .. } => expected.max(self.now),
            Slot::Ready { .. } | Slot::Draining { .. } | Slot::Stopping { .. } => self.now,
        };
        let mut times: Vec<Time> = instance.slot.running().iter().map(|grant| grant.expected.max(base)).collect();
        times.resize(times.len().max(instance.at_once() as usize), base);
        times.sort_unstable();
        times.into_iter().skip(kept)
    }

    /// When an instance could take a batch: now, when its batch ends, or when it is loaded.
    fn available_at(&self, instance: &Instance) -> Time {
        match instance.slot {
            Slot::Loading { expected, .. } => expected.max(self.now),
            Slot::Ready { .. } | Slot::Draining { .. } | Slot::Stopping { .. } => self.free_at(instance),
        }
    }

    /// What is queued and served before a job of this class and rank, for its own class and each higher one, over the lines
    /// that these instances serve.
    fn before<'a>(
        &self,
        class: Class,
        rank: Rank,
        instances: impl Iterator<Item = &'a Instance> + Clone,
    ) -> impl Iterator<Item = Ahead> {
        let mut ahead = [Ahead::default(); 3];
        let mut count = |line: LineId| {
            for other in Class::ALL.into_iter().filter(|&other| other <= class) {
                let queue = self.lines[line.index()].class(other);
                let (jobs, inputs) = (queue.len() as u64, queue.weight());
                let before = if other == class { queue.weight_before(rank) } else { inputs };
                let sum = &mut ahead[other.index()];
                sum.inputs += before;
                // The index knows only the inputs before a rank: the jobs are taken to be as many in proportion.
                sum.jobs += (u128::from(jobs) * u128::from(before)).div_ceil(u128::from(inputs.max(1))) as u64;
            }
        };
        for (number, instance) in instances.clone().enumerate() {
            for (at, line) in instance.lines.iter().enumerate() {
                let counted = instance.lines[..at].contains(line)
                    || instances.clone().take(number).any(|earlier| earlier.lines.contains(line));
                if !counted {
                    count(*line);
                }
            }
        }
        // An instance is given its lines when it is ready; those of its model wait for it all the same.
        let mut coming = instances.clone().filter(|one| matches!(one.slot, Slot::Loading { .. })).peekable();
        if coming.peek().is_some() {
            for target in &self.targets {
                let waits = coming.clone().any(|one| target.variants.contains(&one.model));
                if waits && !instances.clone().any(|one| one.lines.contains(&target.shared)) {
                    count(target.shared);
                }
            }
        }
        ahead.into_iter()
    }
}

/// What is queued before a job: jobs, and the inputs that still wait in them.
#[derive(Clone, Copy, Default)]
struct Ahead {
    jobs: u64,
    inputs: u64,
}

/// T = ceil(k / sum_i 1/T_i): the time in which k unequal instances take one batch each on average.
fn common_cycle(cycles: impl Iterator<Item = Span> + Clone, k: u64) -> Span {
    let first = cycles.clone().next().unwrap_or(Span::ZERO);
    if cycles.clone().all(|cycle| cycle == first) {
        return first;
    }
    const ONE: u128 = 1_000_000_000_000_000_000;
    let rates: u128 = cycles.map(|cycle| ONE / u128::from(cycle.as_nanos().max(1))).sum();
    let wide = (u128::from(k) * ONE).div_ceil(rates.max(1));
    Span::from_nanos(u64::try_from(wide).unwrap_or(u64::MAX))
}

fn late(predicted: Time, deadline: Time) -> Result<(), Refusal> {
    if predicted <= deadline {
        return Ok(());
    }
    Err(Refusal::DeadlineUnreachable { predicted, retry_after: predicted.since(deadline) })
}
