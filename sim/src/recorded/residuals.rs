//! What was a grant's own of the time it took.

use std::collections::BTreeMap;

use windtunnel_config::Scenario;
use windtunnel_core::InstanceId;

use super::read::{Fate, RecordedGrant};
use crate::{
    arrivals::UnitNoise,
    cards::{ServiceModel, Work},
};

/// The clock of a device: time as an instance alone on a card of speed 1 would feel it.
#[derive(Clone, Debug)]
struct Clock {
    speed: f64,
    sharing: f64,
    now: u64,
    dedicated: f64,
    /// Grants under way on each instance.
    running: BTreeMap<InstanceId, u32>,
    busy: u32,
}

/// The time a grant took over that which the model says for its weight, both of a card of speed 1 for itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Residual {
    /// It is this.
    Known(f64),
    /// The grant was broken off or outlasted the run: it is no less than this.
    AtLeast(f64),
    /// The model has no time for a grant, as with continuous batching, where it depends on those beside it.
    Unknown,
}

/// The residual of each grant of a run that ended at `end`, in nanoseconds, by the services of `scenario`.
pub fn residuals(grants: &[RecordedGrant], end: u64, scenario: &Scenario) -> Vec<Residual> {
    let mut events: Vec<(u64, bool, usize)> = Vec::new();
    for (place, grant) in grants.iter().enumerate() {
        events.push((grant.start.as_nanos(), true, place));
        events.push((grant.end.map_or(end, |end| end.as_nanos()), false, place));
    }
    // At one moment ends come before starts, except that of a grant that takes no time.
    events.sort_by_key(|&(t, begins, place)| (t, begins, place));
    let mut clocks: Vec<Clock> = scenario.cards.iter().map(Clock::new).collect();
    let mut began = vec![f64::NAN; grants.len()];
    let mut found = vec![Residual::Unknown; grants.len()];
    for (t, begins, place) in events {
        let grant = &grants[place];
        let Some(clock) = clocks.get_mut(grant.device.index()) else { continue };
        clock.pass(t);
        let instance = grant.instance;
        if begins {
            began[place] = clock.dedicated;
            clock.begin(instance);
        } else if !began[place].is_nan() {
            clock.end(instance);
            found[place] = residual(grant, clock.dedicated - began[place], scenario);
        }
    }
    found
}

fn residual(grant: &RecordedGrant, took: f64, scenario: &Scenario) -> Residual {
    let services = scenario.services.get(grant.model.index());
    let Some(service) = services.and_then(|services| services.get(grant.device.index())?.as_ref()) else {
        return Residual::Unknown;
    };
    let quiet = ServiceModel::new(&without_noise(service), 0);
    match (quiet.work(grant.weight, UnitNoise::NONE, 0, 0), grant.fate) {
        (Work::Time(time), Fate::Finished) if time > 0.0 => Residual::Known(took / time),
        (Work::Time(time), Fate::Running | Fate::Failed) if time > 0.0 => Residual::AtLeast(took / time),
        (Work::Time(_) | Work::Generation { .. }, _) => Residual::Unknown,
    }
}

fn without_noise(service: &windtunnel_config::Service) -> windtunnel_config::Service {
    let mut quiet = service.clone();
    if let windtunnel_config::Service::Batch { noise, .. } = &mut quiet {
        *noise = windtunnel_config::Noise::None;
    }
    quiet
}

impl Clock {
    fn new(card: &windtunnel_config::Card) -> Clock {
        let (speed, sharing) = (card.speed, card.sharing);
        Clock { speed, sharing, now: 0, dedicated: 0.0, running: BTreeMap::new(), busy: 0 }
    }

    fn pass(&mut self, t: u64) {
        let others = f64::from(self.busy.max(1) - 1);
        self.dedicated += t.saturating_sub(self.now) as f64 * self.speed / (1.0 + self.sharing * others);
        self.now = t;
    }

    fn begin(&mut self, instance: InstanceId) {
        let running = self.running.entry(instance).or_default();
        *running += 1;
        self.busy += u32::from(*running == 1);
    }

    fn end(&mut self, instance: InstanceId) {
        if let Some(running) = self.running.get_mut(&instance).filter(|running| **running > 0) {
            *running -= 1;
            self.busy -= u32::from(*running == 0);
        }
    }
}
