//! Grants: what an instance may be given, in whose turn and by which right (invariants 3, 4, 5 and 8).

use windtunnel_core::{
    Attempt, Capacity, Class, Grant, GrantedStep, InstanceId, JobId, ModelId, PressureLevel, Right, StepRange,
    Submission, Wanted,
};

use super::{
    Book, Breach,
    attempts::Kind,
    instances::{Instance, Phase},
};

/// How a grant ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Done,
    Failed,
}

impl Book {
    pub fn granted(&mut self, grant: &Grant<StepRange>, steps: &[GrantedStep], sleeps: bool) -> Result<(), Breach> {
        self.attempts.begin(grant.attempt, Kind::Grant, grant.instance)?;
        let instance = self.instances.get(grant.instance)?.clone();
        if instance.phase != Phase::Ready || (instance.model, instance.device) != (grant.model, grant.device) {
            let message = format!("{} on {} is {:?}", grant.attempt, grant.instance, instance.phase);
            return Err(Breach::new("only ready instances get work (1)", message));
        }
        self.has_room(grant, steps, &instance)?;
        steps.iter().try_for_each(|step| self.may_run(step.job, grant.model))?;
        if grant.class != Class::Interactive {
            self.in_turn(grant, steps, &instance)?;
        }
        steps.iter().try_for_each(|step| self.jobs.granted(step, grant.class, self.now, sleeps))?;
        self.enter(grant, steps)
    }

    /// Invariant 3, and the slots that lower classes leave free.
    fn has_room(&self, grant: &Grant<StepRange>, steps: &[GrantedStep], instance: &Instance) -> Result<(), Breach> {
        let running = instance.running();
        let weight: u64 = steps.iter().map(|step| u64::from(step.weight)).sum();
        let model = &self.configuration.models[grant.model.index()];
        let fits = match model.capacity {
            Capacity::Slots { slots } => running < slots && steps.len() == 1,
            Capacity::Batch { max, wait: _ } => running == 0 && weight <= u64::from(max) && !steps.is_empty(),
        };
        if !fits || weight != u64::from(grant.weight) {
            let message =
                format!("{} gets {weight} inputs beside {running} grants: {:?}", grant.instance, model.capacity);
            return Err(Breach::new("in flight is at most slots, weight at most max (3)", message));
        }
        let reserve = self.configuration.policy.reserve_interactive_slots;
        if let Capacity::Slots { slots } = model.capacity
            && grant.class != Class::Interactive
            && self.is_hot(grant.model)
            && slots - running <= reserve.min(slots - 1)
        {
            let message =
                format!("{:?} work takes one of {} free slots of {}", grant.class, slots - running, grant.instance);
            return Err(Breach::new("lower classes leave a slot free (2)", message));
        }
        Ok(())
    }

    fn may_run(&self, job: JobId, model: ModelId) -> Result<(), Breach> {
        let able = self.jobs.get(job).is_some_and(|known| self.suits(&known.submission, model));
        let message = || format!("{job} runs on {model}, which it did not ask for");
        able.then_some(()).ok_or_else(|| Breach::new("jobs run on what they asked for", message()))
    }

    fn suits(&self, submission: &Submission, model: ModelId) -> bool {
        let asked = match submission.wanted {
            Wanted::Model(wanted) => wanted == model,
            Wanted::Family(family) => self.configuration.families.get(family.index()).is_some_and(|family| {
                let good =
                    |one: &&windtunnel_core::Variant| submission.quality.is_none_or(|asked| one.quality <= asked);
                family.variants.iter().filter(good).any(|variant| variant.model == model)
            }),
        };
        asked && self.configuration.models[model.index()].can(submission.needs)
    }

    /// Invariant 4 for what can be told from outside, and what the guard may start.
    fn in_turn(&self, grant: &Grant<StepRange>, steps: &[GrantedStep], instance: &Instance) -> Result<(), Breach> {
        let Grant { class, right, .. } = *grant;
        let wrong = |why: String| Err(Breach::new("no lower step starts against higher work (4)", why));
        let what = format!("{class:?} work on {} by {right:?}", grant.instance);
        let shared = self.configuration.policy.routing == windtunnel_core::Routing::Shared;
        let own = Wanted::Model(instance.model);
        if shared && let Some(job) = self.jobs.waits(Class::Interactive, own) {
            return wrong(format!("{what} while interactive {job} waits for it"));
        }
        match right {
            Right::Guard => self.guard_may(grant, steps),
            Right::Order | Right::Turn => {
                let device = &self.devices[instance.device.index()];
                if device.interactive > 0 || self.now < device.window {
                    return wrong(format!("{what} in interactive mode"));
                }
                let waits =
                    self.instances.live().filter(|one| one.phase == Phase::Ready && one.device == instance.device);
                let waits =
                    waits.filter_map(|one| self.jobs.waits(Class::Interactive, Wanted::Model(one.model))).next();
                if let Some(job) = waits.filter(|_| shared) {
                    return wrong(format!("{what} while interactive {job} waits for a slot of the device"));
                }
                if right == Right::Order
                    && class == Class::Batch
                    && shared
                    && let Some(job) = self.jobs.waits(Class::Background, own)
                {
                    return wrong(format!("{what} while background {job} waits for it"));
                }
                Ok(())
            }
        }
    }

    fn guard_may(&self, grant: &Grant<StepRange>, steps: &[GrantedStep]) -> Result<(), Breach> {
        let policy = &self.configuration.policy;
        let running = self.devices[grant.device.index()].guard.under_way();
        if running >= policy.guard_parallel {
            let message = format!("{running} guard grants run on {} already", grant.device);
            return Err(Breach::new("guard grants side by side (5)", message));
        }
        let first = steps.first().and_then(|step| self.jobs.get(step.job));
        let Some(job) = first else { return Ok(()) };
        let waited = self.now.since(job.progress);
        let patience = policy.background_max_starvation;
        if job.running > 0 || waited < patience || patience.is_zero() {
            let message = format!("{} went without progress for {waited}", steps[0].job);
            return Err(Breach::new("the guard serves the starved", message));
        }
        Ok(())
    }

    fn enter(&mut self, grant: &Grant<StepRange>, steps: &[GrantedStep]) -> Result<(), Breach> {
        let now = self.now;
        let instance = self.instances.get_mut(grant.instance)?;
        instance.grants[grant.class.index()] += 1;
        instance.used = now;
        let device = &mut self.devices[grant.device.index()];
        if grant.class == Class::Interactive {
            device.interactive += 1;
            self.models[grant.model.index()].served = Some(now);
        }
        if grant.right == Right::Guard {
            device.guard.begin(grant.attempt, now);
        }
        self.running.insert(grant.attempt, (grant.class, steps.to_vec()));
        Ok(())
    }

    pub fn grant_ended(&mut self, attempt: Attempt, id: InstanceId, fate: Fate) -> Result<(), Breach> {
        self.attempts.end(attempt, Kind::Grant, id)?;
        let Some((class, steps)) = self.running.remove(&attempt) else { return Ok(()) };
        for step in &steps {
            self.jobs.step_ended(step, fate == Fate::Done, self.now);
        }
        let now = self.now;
        let instance = self.instances.get_mut(id)?;
        instance.grants[class.index()] -= 1;
        instance.used = now;
        let (model, place) = (instance.model, instance.device);
        let policy = &self.configuration.policy;
        let device = &mut self.devices[place.index()];
        if fate == Fate::Done && device.pressure.is_some_and(|level| level > PressureLevel::Normal) {
            self.eked = Some(now);
        }
        if class == Class::Interactive {
            device.interactive -= 1;
            device.window = now.after(policy.interactive_idle);
            self.models[model.index()].served = Some(now);
        }
        device.guard.end(attempt, now, policy.background_share, policy.guard_parallel)
    }

    /// Whether a model served interactive work within `hot_ttl`.
    pub fn is_hot(&self, model: ModelId) -> bool {
        let served = self.models[model.index()].served;
        served.is_some_and(|served| self.now < served.after(self.configuration.policy.hot_ttl))
    }
}
