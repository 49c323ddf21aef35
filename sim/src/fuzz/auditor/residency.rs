//! Residency: what is loaded, what has to go, and how often loads may fail (invariants 1, 2, 6 and 11).

use windtunnel_core::{
    Attempt, BreakerState, Bytes, Class, DeviceId, Family, FamilyId, InstanceId, LoadFailure, ModelId, MonitorHealth,
    Note, Order, Replicas, Routing, Span, StopCause, Time, Wanted,
};

use super::{Book, Breach, attempts::Kind, instances::Phase};

/// What is kept of a model.
#[derive(Clone, Debug, Default)]
pub struct ModelBook {
    /// When it last served interactive work.
    pub served: Option<Time>,
    /// No load of it before then.
    held: Time,
    /// Failed loads within five minutes.
    failed: Vec<Time>,
    /// Whether one has run out of memory since the last that succeeded.
    retried: bool,
    /// The model that it went for last, which has not been loaded since, and how often it has taken its place back meanwhile.
    gave_way: Option<(ModelId, usize)>,
}

/// Failed loads are counted over so long.
const WITHIN: Span = Span::from_secs(300);
/// Three failures open the breaker, which lets one more through after one, two and four minutes; a load that ran out of
/// memory is tried again once at once.
const FAILED_AT_MOST: usize = 10;

/// A model takes its place back from one that is still waited for at most so often in a row. It may, while others hold memory
/// or older jobs of a third model have the next turn; where that has no end, worlds have many more.
const BACK_AT_MOST: usize = 40;

const HELD: &str = "failed loads are bounded by the back-off (11)";
const VICTIM: &str = "pinned never, hot not for lower classes (6)";

impl Book {
    pub fn loads(&mut self, id: InstanceId, model: ModelId, device: DeviceId, reserved: Bytes) -> Result<(), Breach> {
        let what = format!("{id} of {model} on {device}");
        let known = &self.configuration.models[model.index()];
        if known.predicted_on(device).is_none() {
            return Err(Breach::new("models go where they may", what));
        }
        if self.instances.live().any(|one| (one.model, one.device) == (model, device)) {
            return Err(Breach::new("one instance of a model on a device", what));
        }
        let staying = self.instances.live().filter(|one| one.model == model && one.stays()).count();
        if matches!(known.replicas, Replicas::Count(count) if staying >= count.max(1) as usize) {
            return Err(Breach::new("no more replicas than configured", format!("{what}: {staying} are there")));
        }
        let loading = self.instances.live().filter(|one| one.device == device && one.phase == Phase::Loading).count();
        if loading >= self.configuration.devices[device.index()].parallel_loads.max(1) as usize {
            return Err(Breach::new(
                "no more loads side by side than configured",
                format!("{what}: {loading} are under way"),
            ));
        }
        if self.now < self.models[model.index()].held {
            return Err(Breach::new(HELD, format!("{what}, before {}", self.models[model.index()].held)));
        }
        if self.devices[device.index()].stale {
            return Err(Breach::new("no loads blindly", format!("{what}: its memory is not read")));
        }
        self.fits(&what, device, reserved)?;
        self.takes_back(model)?;
        self.instances.add(id, model, device, reserved)
    }

    /// Invariant 2, with the least that every process can be booked with.
    fn fits(&self, what: &str, device: DeviceId, reserved: Bytes) -> Result<(), Breach> {
        let known = &self.configuration.devices[device.index()];
        let Some(total) = known.memory else { return Ok(()) };
        let budget = known.limit.map_or(total, |limit| limit.min(total)).minus(known.headroom);
        let here = self.instances.live().filter(|one| one.device == device);
        let least = here.fold(reserved, |sum, one| sum.plus(one.least));
        if least > budget {
            return Err(Breach::new("memory is counted before it is used (2)", format!("{what}: {least} of {budget}")));
        }
        Ok(())
    }

    /// Who had to go for a model that never comes had to go in vain. Where deadlines order a class, somebody may wait for ever,
    /// since whoever comes later may stand before him.
    fn takes_back(&mut self, model: ModelId) -> Result<(), Breach> {
        for known in &mut self.models {
            known.gave_way = known.gave_way.filter(|&(to, _)| to != model);
        }
        let Some((to, times)) = self.models[model.index()].gave_way else { return Ok(()) };
        let classes = &self.configuration.policy.classes;
        let mut by_age = Class::ALL.into_iter().filter(|class| classes[class.index()].order == Order::Fifo);
        let awaited = by_age.any(|class| self.jobs.waits(class, Wanted::Model(to)).is_some());
        let times = if awaited && !self.is_talked_to(model) { times + 1 } else { 0 };
        if times > BACK_AT_MOST {
            let message = format!("{model} went {times} times in a row for {to}, which was not loaded once");
            return Err(Breach::new("nobody goes in vain for ever", message));
        }
        self.models[model.index()].gave_way = Some((to, times));
        Ok(())
    }

    /// Whether interactive work waits for a model, or for a family that has it.
    fn is_talked_to(&self, model: ModelId) -> bool {
        let has_it = |family: &Family| family.variants.iter().any(|variant| variant.model == model);
        let families = self.configuration.families.iter().enumerate().filter(|(_, family)| has_it(family));
        let families = families.map(|(number, _)| Wanted::Family(FamilyId(number as u32)));
        let mut wanted = families.chain([Wanted::Model(model)]);
        wanted.any(|wanted| self.jobs.waits(Class::Interactive, wanted).is_some())
    }

    pub fn loaded(&mut self, attempt: Attempt, id: InstanceId, footprint: Option<Bytes>) -> Result<(), Breach> {
        self.attempts.end(attempt, Kind::Load, id)?;
        let now = self.now;
        let instance = self.instances.get_mut(id)?;
        instance.phase = Phase::Ready;
        instance.used = now;
        let model = instance.model;
        if let Some(footprint) = footprint {
            instance.least = instance.least.min(footprint);
        }
        self.models[model.index()].retried = false;
        Ok(())
    }

    pub fn load_failed(&mut self, attempt: Attempt, id: InstanceId, cause: LoadFailure) -> Result<(), Breach> {
        self.attempts.end(attempt, Kind::Load, id)?;
        let now = self.now;
        let instance = self.instances.get_mut(id)?;
        instance.phase = Phase::Gone;
        if cause == LoadFailure::Stopped {
            return Ok(());
        }
        let model = instance.model;
        let known = &mut self.models[model.index()];
        // The first that runs out of memory since a load succeeded is tried again at once with a larger reservation.
        if cause == LoadFailure::OutOfMemory && !std::mem::replace(&mut known.retried, true) {
            return Ok(());
        }
        let failed = &mut known.failed;
        failed.retain(|&at| now < at.after(WITHIN));
        failed.push(now);
        if failed.len() > FAILED_AT_MOST {
            return Err(Breach::new(HELD, format!("{} loads of {model} failed within {WITHIN}", failed.len())));
        }
        Ok(())
    }

    /// Invariant 1.
    pub fn stops(&mut self, id: InstanceId) -> Result<(), Breach> {
        let instance = self.instances.get_mut(id)?;
        let running = instance.running();
        if running > 0 {
            let message = format!("{id} is stopped with {running} grants under way");
            return Err(Breach::new("no stop of an instance with steps in flight (1)", message));
        }
        instance.phase = Phase::Stopping;
        Ok(())
    }

    pub fn stopped(&mut self, attempt: Attempt, id: InstanceId) -> Result<(), Breach> {
        self.attempts.end(attempt, Kind::Stop, id)?;
        self.instances.get_mut(id)?.phase = Phase::Gone;
        Ok(())
    }

    pub fn resides(&mut self, note: &Note) -> Result<(), Breach> {
        match *note {
            Note::Evict { instance, by, class, .. } => self.evicted(instance, by, class),
            Note::Draining { instance, cause } => self.drains(instance, cause),
            Note::BackOff { model, until } | Note::Breaker { model, state: BreakerState::Open { until } } => {
                let held = &mut self.models[model.index()].held;
                *held = (*held).max(until);
                Ok(())
            }
            Note::Breaker { model, state: BreakerState::Closed } => {
                self.models[model.index()].held = Time::ZERO;
                Ok(())
            }
            Note::Monitor { device, health } => {
                self.devices[device.index()].stale = health == MonitorHealth::Stale;
                Ok(())
            }
            Note::Breaker { .. }
            | Note::Waits { .. }
            | Note::Mode { .. }
            | Note::Guard { .. }
            | Note::TurnBegan { .. }
            | Note::TurnEnded { .. }
            | Note::Variant { .. }
            | Note::Requeued { .. }
            | Note::LoadPending { .. }
            | Note::LoadDropped { .. }
            | Note::Thrash { .. }
            | Note::Foreign { .. }
            | Note::ReleaseOverdue { .. }
            | Note::Pressure { .. }
            | Note::Margin { .. }
            | Note::Ignored { .. } => Ok(()),
        }
    }

    /// Invariant 6.
    fn evicted(&mut self, id: InstanceId, by: ModelId, class: Class) -> Result<(), Breach> {
        let instance = self.instances.get(id)?;
        let pinned = self.configuration.models[instance.model.index()].pinned;
        let hot = self.is_hot(instance.model) || instance.serves_interactive();
        if pinned || (hot && class != Class::Interactive) || !instance.stays() {
            let message =
                format!("{id} ({:?}, pinned: {pinned}, hot: {hot}) is evicted for {class:?} work", instance.phase);
            return Err(Breach::new(VICTIM, message));
        }
        if class != Class::Interactive
            && self.configuration.policy.routing == Routing::Shared
            && let Some(job) = self.jobs.waits(Class::Interactive, Wanted::Model(instance.model))
        {
            let message = format!("{id} is evicted for {class:?} work while interactive {job} waits for it");
            return Err(Breach::new(VICTIM, message));
        }
        let known = &mut self.models[instance.model.index()].gave_way;
        let times = known.filter(|&(to, _)| to == by).map_or(0, |(_, times)| times);
        *known = Some((by, times));
        Ok(())
    }

    fn drains(&mut self, id: InstanceId, cause: StopCause) -> Result<(), Breach> {
        let instance = self.instances.get(id)?;
        let model = &self.configuration.models[instance.model.index()];
        let hot = self.is_hot(instance.model) || instance.serves_interactive();
        let spared = match cause {
            StopCause::Evicted => model.pinned,
            StopCause::Pressure => model.pinned || hot,
            StopCause::Operator
            | StopCause::Changed
            | StopCause::Removed
            | StopCause::Idle
            | StopCause::OutOfMemory => false,
        };
        if spared {
            let message = format!("{id} (pinned: {}, hot: {hot}) has to go: {cause:?}", model.pinned);
            return Err(Breach::new(VICTIM, message));
        }
        let unused = self.now.since(instance.used);
        if cause == StopCause::Idle && (instance.running() > 0 || model.idle_ttl.is_none_or(|ttl| unused < ttl)) {
            return Err(Breach::new("idle models are unused for idle_ttl", format!("{id} was unused for {unused}")));
        }
        let instance = self.instances.get_mut(id)?;
        if instance.phase == Phase::Ready {
            instance.phase = Phase::Draining;
        }
        Ok(())
    }
}
