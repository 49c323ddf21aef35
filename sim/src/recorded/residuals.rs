//! What was a grant's own of the time it took.

use std::collections::BTreeMap;

use windtunnel_config::Scenario;
use windtunnel_core::InstanceId;

use super::{
    generation::{AllGenerations, Generations},
    read::{Fate, RecordedGrant},
};
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

/// What was a request's own of its service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Own {
    /// The time its grant took over that which the model says for its weight, both of a card of speed 1 for itself. With
    /// continuous batching, where it depends on those beside it, the same of its tokens but the first.
    pub time: f64,
    /// With continuous batching, of its prefill.
    pub prefill: f64,
}

/// What is known of that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Residual {
    /// It is this.
    Known(Own),
    /// The grant was broken off or outlasted the run: its time is no less than this.
    AtLeast(f64),
    /// The model is not known, has no time for it, or it was not recorded when the first token was out.
    Unknown,
}

impl Own {
    /// Nothing.
    pub const NONE: Own = Own { time: 1.0, prefill: 1.0 };
}

/// Something in the life of a grant. At one moment ends come before starts, except that of a grant that takes no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    Ends,
    Decodes,
    Begins,
    EndsAtOnce,
}

/// The residual of each grant of a run that ended at `end`, in nanoseconds, by the services of `scenario`.
pub fn residuals(grants: &[RecordedGrant], end: u64, scenario: &Scenario) -> Vec<Residual> {
    let mut clocks: Vec<Clock> = scenario.cards.iter().map(Clock::new).collect();
    let mut generations = AllGenerations::new();
    let mut began = vec![f64::NAN; grants.len()];
    let mut found = vec![Residual::Unknown; grants.len()];
    for (t, turn, place) in turns(grants, end) {
        let grant = &grants[place];
        let Some(clock) = clocks.get_mut(grant.device.index()) else { continue };
        clock.pass(t);
        let Some(service) = quiet(grant, scenario) else { continue };
        let fluid = generations.entry(grant.instance).or_default();
        if let ServiceModel::Slots(times) = &service {
            fluid.pass(clock.dedicated, times);
            fluid.turn(turn, place);
        }
        match turn {
            Turn::Begins => {
                began[place] = clock.dedicated;
                clock.begin(grant.instance);
            }
            Turn::Decodes => {}
            Turn::Ends | Turn::EndsAtOnce if began[place].is_nan() => {}
            Turn::Ends | Turn::EndsAtOnce => {
                clock.end(grant.instance);
                found[place] = residual(grant, place, clock.dedicated - began[place], (&service, fluid));
            }
        }
    }
    found
}

fn turns(grants: &[RecordedGrant], end: u64) -> Vec<(u64, Turn, usize)> {
    let mut turns: Vec<(u64, Turn, usize)> = Vec::new();
    for (place, grant) in grants.iter().enumerate() {
        let (start, end) = (grant.start.as_nanos(), grant.end.map_or(end, |end| end.as_nanos()));
        turns.push((start, Turn::Begins, place));
        turns.extend(grant.first_token.map(|first| (first.as_nanos().clamp(start, end), Turn::Decodes, place)));
        turns.push((end, if end > start { Turn::Ends } else { Turn::EndsAtOnce }, place));
    }
    turns.sort();
    turns
}

/// The model of the service a grant had, without its noise.
fn quiet(grant: &RecordedGrant, scenario: &Scenario) -> Option<ServiceModel> {
    let service = scenario.services.get(grant.model.index())?.get(grant.device.index())?.as_ref()?;
    Some(ServiceModel::new(&without_noise(service), 0))
}

fn residual(
    grant: &RecordedGrant,
    place: usize,
    took: f64,
    (service, fluid): (&ServiceModel, &mut Generations),
) -> Residual {
    let work = service.work(grant.weight, UnitNoise::NONE, grant.prompt_tokens, grant.output_tokens);
    match (work, grant.fate) {
        (Work::Time(time), Fate::Finished) if time > 0.0 => Residual::Known(Own { time: took / time, prefill: 1.0 }),
        (Work::Time(time), Fate::Running | Fate::Failed) if time > 0.0 => Residual::AtLeast(took / time),
        (Work::Generation { prefill, output_tokens, .. }, Fate::Finished) => {
            fluid.end(place, prefill, output_tokens).map_or(Residual::Unknown, Residual::Known)
        }
        (Work::Generation { prefill, output_tokens, .. }, Fate::Running | Fate::Failed) => {
            fluid.end(place, prefill, output_tokens);
            Residual::AtLeast(0.0)
        }
        (Work::Time(_), _) => Residual::Unknown,
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
