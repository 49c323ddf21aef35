//! How long loads took in a recorded run.
//!
//! Of a model on a device that is the median of the loads that finished; where none did, what earlier runs measured, then
//! what was believed. On a device that the recording does not have it is the model's median over all devices.

use std::collections::BTreeMap;

use windtunnel_config::Scenario;
use windtunnel_core::{Configuration, DeviceId, ModelId, Span};

use super::{devices::SameDevices, read::RecordedRun};

/// A load that finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedLoad {
    /// The model.
    pub model: ModelId,
    /// The device.
    pub device: DeviceId,
    /// From the order until it answered.
    pub took: Span,
}

/// How long loads took, by the recording's ids.
#[derive(Clone, Debug, Default)]
pub struct Loads {
    known: BTreeMap<(ModelId, DeviceId), Took>,
}

/// What is known of a model's loads on a device.
#[derive(Clone, Copy, Debug)]
struct Took {
    span: Span,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// So many loads.
    Seen(usize),
    /// An earlier run, which measured it.
    Profile,
    /// An estimate.
    Estimate,
}

/// How long loads take in a scenario, by its own ids.
#[derive(Clone, Debug, Default)]
pub struct LoadTimes(BTreeMap<(ModelId, DeviceId), Span>);

impl LoadTimes {
    /// Of a model on a device; `None`: as the device has it.
    pub fn of(&self, model: ModelId, device: DeviceId) -> Option<Span> {
        self.0.get(&(model, device)).copied()
    }
}

impl Loads {
    /// Those of `run`.
    pub fn of(run: &RecordedRun) -> Loads {
        let mut known = BTreeMap::new();
        for estimate in run.started.estimates.iter().filter(|one| !one.load_time.is_zero()) {
            let took = Took { span: estimate.load_time, source: Source::Estimate };
            known.insert((estimate.model, estimate.device), took);
        }
        for profile in &run.started.profiles {
            if let Some(span) = profile.load_time {
                known.insert((profile.model, profile.device), Took { span, source: Source::Profile });
            }
        }
        let mut seen: BTreeMap<(ModelId, DeviceId), Vec<Span>> = BTreeMap::new();
        for load in &run.loads {
            seen.entry((load.model, load.device)).or_default().push(load.took);
        }
        for (place, mut spans) in seen {
            let count = spans.len();
            if let Some(span) = median(&mut spans) {
                known.insert(place, Took { span, source: Source::Seen(count) });
            }
        }
        Loads { known }
    }

    /// Those in `scenario`, which has models and devices of the same names, where it lets loads take no time.
    pub fn within(&self, recorded: &Configuration, scenario: &Scenario) -> LoadTimes {
        let ours = &scenario.configuration;
        let same = SameDevices::of(recorded, ours);
        let mut times = LoadTimes::default();
        for (place, model) in (0..).zip(&ours.models) {
            let Some(theirs) = recorded.models.iter().position(|other| other.name == model.name) else { continue };
            let theirs = ModelId(theirs as u32);
            for device in model.placements.iter().map(|place| place.device) {
                let took = same.recorded(device).and_then(|device| self.known.get(&(theirs, device)));
                let span = took.map(|took| took.span).or_else(|| self.anywhere(theirs));
                if let Some(span) = span.filter(|_| takes_none(scenario, ModelId(place), device)) {
                    times.0.insert((ModelId(place), device), span);
                }
            }
        }
        times
    }

    fn anywhere(&self, model: ModelId) -> Option<Span> {
        let mut spans: Vec<Span> =
            self.known.iter().filter(|((of, _), _)| *of == model).map(|(_, took)| took.span).collect();
        median(&mut spans)
    }

    /// What is told of them where `scenario` takes them over.
    pub fn remark(&self, recorded: &Configuration, scenario: &Scenario) -> Option<String> {
        let used = self.within(recorded, scenario);
        if used.0.is_empty() {
            return None;
        }
        let said = self.known.iter().filter_map(|(&(model, device), took)| {
            let (model, device) = (&recorded.model(model)?.name, &recorded.device(device)?.name);
            let source = match took.source {
                Source::Seen(1) => "one load".to_owned(),
                Source::Seen(count) => format!("median of {count} loads"),
                Source::Profile => "measured earlier".to_owned(),
                Source::Estimate => "an estimate".to_owned(),
            };
            Some(format!("{model} on {device} {} ({source})", took.span))
        });
        let said = said.collect::<Vec<_>>().join(", ");
        Some(format!("loads take as long as they did, whatever loads beside them: {said}"))
    }
}

/// Whether a load takes no time in the scenario.
fn takes_none(scenario: &Scenario, model: ModelId, device: DeviceId) -> bool {
    let footprint = scenario.footprints.get(model.index()).and_then(|one| one.truth).unwrap_or_default();
    scenario.cards.get(device.index()).is_some_and(|card| card.upkeep.load_time(footprint).is_zero())
}

fn median(spans: &mut [Span]) -> Option<Span> {
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied()
}
