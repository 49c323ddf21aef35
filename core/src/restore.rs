//! Whether a state that was written down can be taken up. It may have been cut off, mixed up or made up since, and the
//! policy follows its indices without asking; so all of it is looked at once, in the order of [`Scheduler`]'s fields:
//! everything it names exists, what is told twice is told alike, and whatever is counted is counted anew. The invariants of
//! [`Scheduler::check`] come last, on ground that bears them.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use crate::{
    Attempt, Class, InstanceId, JobId, ModelId, Order, Scheduler, Unsound,
    device::DeviceState,
    instance::{Instance, Running, Slot},
    job::{Job, MOST_BODY},
    memory::MOST_BOOKED,
    queue::{ClassQueue, Line, LineId, Scope},
    scheduler::{Checkpoint, Holding, ModelState, Phase},
    soundness::{Place, capacity, contradiction, equal, flaw, known, numbered, within},
    target::{Assigned, Target},
};

/// Whatever only counts up stays below this, so that it never overflows.
pub(crate) const MOST_COUNTED: u64 = 1 << 62;
/// The same for instances, whose ids are shorter.
const MOST_INSTANCES: u64 = 1 << 31;

/// The numbers of the steps of each job that are running.
type UnderWay = BTreeMap<JobId, Vec<u32>>;

impl Scheduler {
    /// The scheduler a checkpoint was made of.
    ///
    /// # Errors
    /// When the checkpoint contradicts itself: where, and how.
    pub fn restore(checkpoint: Checkpoint) -> Result<Scheduler, Unsound> {
        let mut scheduler = checkpoint.into_state();
        scheduler.enlist_all();
        scheduler.look_at_tables()?;
        scheduler.look_at_jobs()?;
        scheduler.look_at_lines()?;
        scheduler.look_at_targets()?;
        scheduler.look_at_instances()?;
        scheduler.look_at_devices()?;
        scheduler.look_at_models()?;
        scheduler.look_at_the_rest()?;
        scheduler.check().map_err(|broken| flaw(format_args!("the state"), broken.into()))?;
        scheduler.look_for_holds();
        scheduler.look_for_short_ways();
        Ok(scheduler)
    }

    /// Phase, configuration, the lengths of tables, and numbers that only count up.
    fn look_at_tables(&self) -> Result<(), Unsound> {
        self.configuration
            .check()
            .map_err(|wrong| Unsound { place: alloc::format!("configuration.{}", wrong.place), flaw: wrong.flaw })?;
        equal(format_args!("devices"), self.devices.len() as u64, self.configuration.devices.len() as u64)?;
        equal(format_args!("models"), self.models.len() as u64, self.configuration.models.len() as u64)?;
        if self.targets.len() < self.models.len() {
            return Err(contradiction(format_args!("targets"), "a model has no target of its own"));
        }
        let filled = self.next_job.0 > 0 || !self.devices.is_empty() || !self.models.is_empty();
        if self.phase == Phase::Waiting && (filled || !self.targets.is_empty() || self.instances.next().0 > 0) {
            return Err(contradiction(format_args!("phase"), "a run that has not begun holds something"));
        }
        within(format_args!("next_job"), self.next_job.0, 0, MOST_COUNTED)?;
        within(format_args!("instances.next"), self.instances.next().0.into(), 0, MOST_INSTANCES)?;
        within(format_args!("next_attempt"), self.next_attempt.0, 0, MOST_COUNTED)?;
        within(format_args!("assignments"), self.assignments, 0, MOST_COUNTED)
    }

    fn look_at_jobs(&self) -> Result<(), Unsound> {
        let under_way = self.steps_under_way()?;
        for (id, job) in self.jobs.iter() {
            numbered(format_args!("jobs.{id}"), id, self.next_job.0)?;
            let running = under_way.get(&JobId(id)).map_or(&[][..], Vec::as_slice);
            self.look_at_job(format_args!("jobs.{id}"), job, running)?;
        }
        Ok(())
    }

    /// Jobs that have ended may have steps under way, but none that are yet to come.
    fn steps_under_way(&self) -> Result<UnderWay, Unsound> {
        let mut under_way = UnderWay::new();
        for (id, instance) in self.instances.iter() {
            for step in instance.slot.running().iter().flat_map(|grant| &grant.steps) {
                let place = format_args!("instances.{}.slot", id.0);
                numbered(place, step.job.0, self.next_job.0)?;
                under_way.entry(step.job).or_default().push(step.step);
            }
        }
        Ok(under_way)
    }

    fn look_at_job(&self, place: Place<'_>, job: &Job, running: &[u32]) -> Result<(), Unsound> {
        known(format_args!("{place}.target"), job.target as usize, self.targets.len())?;
        if let Some(line) = job.line() {
            known(format_args!("{place}.line"), line.index(), self.lines.len())?;
            equal(format_args!("{place}.target"), job.target.into(), self.lines[line.index()].target.into())?;
        }
        within(format_args!("{place}.chunk"), job.chunk.into(), 1, u32::MAX.into())?;
        within(format_args!("{place}.inputs"), job.inputs.into(), 1, u32::MAX.into())?;
        within(format_args!("{place}.body"), job.body.get(), 0, MOST_BODY.get())?;
        equal(format_args!("{place}.steps"), job.steps.into(), job.inputs.div_ceil(job.chunk).into())?;
        within(format_args!("{place}.granted"), job.granted.into(), 0, job.steps.into())?;
        let parts = u64::from(job.running) + job.again().len() as u64 + u64::from(job.done);
        equal(format_args!("{place}.granted"), job.granted.into(), parts)?;
        let mut seen = BTreeSet::new();
        if !job.again().iter().chain(running).all(|&step| step < job.granted && seen.insert(step)) {
            return Err(contradiction(place, "a step runs or waits twice, or was never granted"));
        }
        if job.line().is_some() != job.next_step().is_some() {
            return Err(contradiction(place, "it waits with nothing left to grant, or does not although there is"));
        }
        if job.granted > 0 && job.model().is_none() {
            return Err(contradiction(place, "it has begun on no model"));
        }
        job.model().map_or(Ok(()), |model| known(format_args!("{place}.model"), model.index(), self.models.len()))
    }

    fn look_at_lines(&self) -> Result<(), Unsound> {
        let mut spare = BTreeSet::new();
        for (at, &id) in self.spare_lines.iter().enumerate() {
            known(format_args!("spare_lines.{at}"), id.index(), self.lines.len())?;
            if !spare.insert(id) {
                return Err(contradiction(format_args!("spare_lines.{at}"), "it is spare twice"));
            }
        }
        for (number, line) in self.lines.iter().enumerate() {
            let place = format_args!("lines.{number}");
            self.look_at_line(place, LineId(number as u32), line, spare.contains(&LineId(number as u32)))?;
        }
        Ok(())
    }

    fn look_at_line(&self, place: Place<'_>, id: LineId, line: &Line, spare: bool) -> Result<(), Unsound> {
        known(format_args!("{place}.target"), line.target as usize, self.targets.len())?;
        let owned = match line.scope {
            Scope::Shared => self.targets[line.target as usize].shared == id,
            Scope::Instance(instance) => {
                self.handed_out(format_args!("{place}.scope"), instance)?;
                self.instance(instance).is_some_and(|one| one.lines.contains(&id))
            }
        };
        if owned == spare {
            return Err(contradiction(place, "it is not either spare or served"));
        }
        for class in Class::ALL {
            self.look_at_queue(format_args!("{place}.classes.{}", class.index()), id, line.class(class), class)?;
            if spare && line.class(class).len() > 0 {
                return Err(contradiction(place, "jobs wait in a spare line"));
            }
        }
        Ok(())
    }

    fn look_at_queue(&self, place: Place<'_>, id: LineId, queue: &ClassQueue, class: Class) -> Result<(), Unsound> {
        let order = self.policy().classes[class.index()].order;
        match (queue, order) {
            (ClassQueue::Fifo(_), Order::Fifo) | (ClassQueue::Edf(_), Order::Edf) => {}
            (ClassQueue::Fifo(_), Order::Edf) | (ClassQueue::Edf(_), Order::Fifo) => {
                return Err(contradiction(place, "its order is not that of the class"));
            }
        }
        let entry = |one: JobId| {
            let job = self.jobs.get(one.0).filter(|job| job.line() == Some(id) && job.class == class)?;
            Some((job.rank(one, order), job.waiting_weight()))
        };
        if queue.is_sound(entry) {
            Ok(())
        } else {
            Err(contradiction(place, "its order or weights are not those of its jobs"))
        }
    }

    fn look_at_targets(&self) -> Result<(), Unsound> {
        for (number, target) in self.targets.iter().enumerate() {
            self.look_at_target(format_args!("targets.{number}"), number, target)?;
        }
        Ok(())
    }

    fn look_at_target(&self, place: Place<'_>, number: usize, target: &Target) -> Result<(), Unsound> {
        let assigned = target.assigned.iter().filter_map(|assigned| match assigned {
            Assigned::To(model) => Some(model),
            Assigned::Unsaid | Assigned::Any => None,
        });
        for model in target.variants.iter().chain(target.chosen.iter().flatten()).chain(assigned) {
            known(format_args!("{place}.variants"), model.index(), self.models.len())?;
        }
        if target.variants.is_empty() || (number < self.models.len() && target.variants != [ModelId(number as u32)]) {
            return Err(contradiction(
                format_args!("{place}.variants"),
                "they are not those of the model of that number",
            ));
        }
        known(format_args!("{place}.shared"), target.shared.index(), self.lines.len())?;
        let shared = &self.lines[target.shared.index()];
        if shared.target as usize != number || shared.scope != Scope::Shared {
            return Err(contradiction(format_args!("{place}.shared"), "the line is not that of the target"));
        }
        for &id in &target.servers {
            self.lives(format_args!("{place}.servers"), id)?;
        }
        if target.smallest_batch != self.smallest_batch(&target.variants) {
            return Err(contradiction(format_args!("{place}.smallest_batch"), "no variant has such batches"));
        }
        within(format_args!("{place}.routed"), target.routed, 0, MOST_COUNTED)
    }

    fn look_at_instances(&self) -> Result<(), Unsound> {
        let mut attempts = BTreeSet::new();
        for (id, instance) in self.instances.iter() {
            let place = format_args!("instances.{}", id.0);
            known(format_args!("{place}.model"), instance.model.index(), self.models.len())?;
            known(format_args!("{place}.device"), instance.device.index(), self.devices.len())?;
            capacity(format_args!("{place}.capacity"), instance.capacity)?;
            within(format_args!("{place}.booked"), instance.booked.get(), 0, MOST_BOOKED.get())?;
            self.look_at_slot(format_args!("{place}.slot"), instance, &mut attempts)?;
            self.look_at_lines_of(format_args!("{place}.lines"), id, instance)?;
        }
        Ok(())
    }

    fn look_at_slot(&self, place: Place<'_>, instance: &Instance, seen: &mut BTreeSet<Attempt>) -> Result<(), Unsound> {
        let own = match instance.slot {
            Slot::Loading { attempt, .. } | Slot::Stopping { attempt } => Some(attempt),
            Slot::Ready { .. } | Slot::Draining { .. } => None,
        };
        let running = instance.slot.running();
        for attempt in own.into_iter().chain(running.iter().map(|grant| grant.attempt)) {
            numbered(place, attempt.0, self.next_attempt.0)?;
            if !seen.insert(attempt) {
                return Err(contradiction(place, "an attempt is under way twice"));
            }
        }
        if matches!(instance.slot, Slot::Draining { .. }) && running.is_empty() {
            return Err(contradiction(place, "it drains with nothing under way"));
        }
        running
            .iter()
            .enumerate()
            .try_for_each(|(at, grant)| self.look_at_grant(format_args!("{place}.running.{at}"), grant))
    }

    fn look_at_grant(&self, place: Place<'_>, grant: &Running) -> Result<(), Unsound> {
        let weight: u64 = grant.steps.iter().map(|step| u64::from(step.weight)).sum();
        equal(format_args!("{place}.weight"), grant.weight.into(), weight)?;
        if grant.steps.is_empty() {
            return Err(contradiction(format_args!("{place}.steps"), "a grant has none"));
        }
        for (at, step) in grant.steps.iter().enumerate() {
            let Some(job) = self.jobs.get(step.job.0) else { continue };
            if job.class != grant.class || step.of != job.steps || step.weight != job.weight_of(step.step) {
                return Err(contradiction(format_args!("{place}.steps.{at}"), "it is not a step of its job"));
            }
        }
        Ok(())
    }

    /// An instance takes from the shared line of each target that lists it, and from lines of its own.
    fn look_at_lines_of(&self, place: Place<'_>, id: InstanceId, instance: &Instance) -> Result<(), Unsound> {
        let mut shared = 0_usize;
        let mut seen = BTreeSet::new();
        for &line in &instance.lines {
            known(place, line.index(), self.lines.len())?;
            let entry = &self.lines[line.index()];
            let target = &self.targets[entry.target as usize];
            let serves = match entry.scope {
                Scope::Shared => target.servers.contains(&id),
                Scope::Instance(own) => own == id && target.variants.contains(&instance.model),
            };
            if !serves || !instance.slot.is_ready() || !seen.insert(line) {
                return Err(contradiction(place, "it takes twice from a line, or from one that it does not serve"));
            }
            shared += usize::from(entry.scope == Scope::Shared);
        }
        let listed = self.targets.iter().filter(|target| target.servers.contains(&id)).count();
        equal(place, shared as u64, listed as u64)
    }

    fn look_at_devices(&self) -> Result<(), Unsound> {
        let mut present: Vec<Vec<InstanceId>> = alloc::vec![Vec::new(); self.devices.len()];
        for (id, instance) in self.instances.iter() {
            present[instance.device.index()].push(id);
        }
        for (number, device) in self.devices.iter().enumerate() {
            let place = format_args!("devices.{number}");
            if device.instances != present[number] {
                return Err(contradiction(format_args!("{place}.instances"), "they are not those that are on it"));
            }
            self.look_at_device(place, device)?;
        }
        // Who is where is known now, and so is who serves what.
        for (number, target) in self.targets.iter().enumerate() {
            if target.servers != self.ready_instances(&target.variants) {
                return Err(contradiction(
                    format_args!("targets.{number}.servers"),
                    "they are not the ready instances",
                ));
            }
        }
        Ok(())
    }

    fn look_at_device(&self, place: Place<'_>, device: &DeviceState) -> Result<(), Unsound> {
        if let Some(turn) = device.turn {
            known(format_args!("{place}.turn.model"), turn.model.index(), self.models.len())?;
        }
        if let Some(model) = device.turn_promised {
            known(format_args!("{place}.turn_promised"), model.index(), self.models.len())?;
        }
        let mut seen = BTreeSet::new();
        for (at, pending) in device.pending.iter().enumerate() {
            known(format_args!("{place}.pending.{at}.model"), pending.model.index(), self.models.len())?;
            if !seen.insert(pending.model) {
                return Err(contradiction(format_args!("{place}.pending.{at}"), "its model is pending twice"));
            }
        }
        for (at, leftover) in device.memory.leftovers.iter().enumerate() {
            let place = format_args!("{place}.memory.leftovers.{at}.instance");
            self.handed_out(place, leftover.instance)?;
        }
        Ok(())
    }

    /// An id of an instance that lives or is gone.
    fn handed_out(&self, place: Place<'_>, id: InstanceId) -> Result<(), Unsound> {
        numbered(place, id.0.into(), self.instances.next().0.into())
    }

    fn lives(&self, place: Place<'_>, id: InstanceId) -> Result<(), Unsound> {
        self.handed_out(place, id)?;
        self.instance(id).map(|_| ()).ok_or_else(|| contradiction(place, "it names an instance that is gone"))
    }

    fn look_at_models(&self) -> Result<(), Unsound> {
        for (number, model) in self.models.iter().enumerate() {
            self.look_at_model(format_args!("models.{number}"), model)?;
        }
        Ok(())
    }

    fn look_at_model(&self, place: Place<'_>, model: &ModelState) -> Result<(), Unsound> {
        if let Some((device, other)) = model.evicted_for {
            known(format_args!("{place}.evicted_for"), device.index(), self.devices.len())?;
            known(format_args!("{place}.evicted_for"), other.index(), self.models.len())?;
        }
        if !model.demand.is_sound(self.now) {
            return Err(contradiction(format_args!("{place}.demand"), "it was counted in the future, or too often"));
        }
        if !model.breaker.is_sound() {
            return Err(contradiction(format_args!("{place}.breaker"), "it failed more often than can be"));
        }
        Ok(())
    }

    /// What follows from the tables: sums, times and what is kept so that nobody has to look.
    fn look_at_the_rest(&self) -> Result<(), Unsound> {
        for class in Class::ALL {
            let waiting = || self.jobs.iter().filter(|(_, job)| job.line().is_some() && job.class == class);
            let jobs = waiting().count() as u64;
            equal(format_args!("queued.{}.jobs", class.index()), self.queued[class.index()].jobs, jobs)?;
            let bytes: u128 = waiting().map(|(_, job)| u128::from(job.body.get())).sum();
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            let place = format_args!("queued.{}.bytes", class.index());
            within(place, bytes, 0, MOST_COUNTED)?;
            equal(place, self.queued[class.index()].bytes, bytes)?;
            if !self.margins[class.index()].is_sound() {
                return Err(contradiction(format_args!("margins.{}", class.index()), "it is beyond its bounds"));
            }
        }
        for (at, (target, _)) in self.touched.heads.iter().enumerate() {
            known(format_args!("touched.heads.{at}"), *target as usize, self.targets.len())?;
        }
        // States of the list form may say so for longer than anybody may hold.
        if self.holding == Holding::No && self.holds() == Holding::Yes {
            return Err(contradiction(format_args!("holding"), "it is not what the capacities say"));
        }
        if self.adapts != self.is_adaptive() {
            return Err(contradiction(format_args!("adapts"), "it is not what the policy says"));
        }
        if self.wake != self.next_wake() {
            return Err(contradiction(format_args!("wake"), "it is not when something is due next"));
        }
        Ok(())
    }
}
