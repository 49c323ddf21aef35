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
    /// The median of what is known of other devices.
    Elsewhere,
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
        LoadTimes(self.taken(recorded, scenario).map(|(place, took)| (place, took.span)).collect())
    }

    fn taken(
        &self,
        recorded: &Configuration,
        scenario: &Scenario,
    ) -> impl Iterator<Item = ((ModelId, DeviceId), Took)> {
        let ours = &scenario.configuration;
        let same = SameDevices::of(recorded, ours);
        let places = (0..).zip(&ours.models).flat_map(|(place, model)| {
            let theirs = recorded.models.iter().position(|other| other.name == model.name);
            let theirs = theirs.map(|theirs| ModelId(theirs as u32));
            let on = move |place: u32, device| theirs.map(|theirs| ((ModelId(place), device), theirs));
            model.placements.iter().filter_map(move |placement| on(place, placement.device))
        });
        places.filter(|&((model, device), _)| takes_none(scenario, model, device)).filter_map(move |(here, theirs)| {
            let there = same.recorded(here.1).and_then(|device| self.known.get(&(theirs, device)));
            Some((here, there.copied().or_else(|| self.anywhere(theirs))?))
        })
    }

    fn anywhere(&self, model: ModelId) -> Option<Took> {
        let mut spans: Vec<Span> =
            self.known.iter().filter(|((of, _), _)| *of == model).map(|(_, took)| took.span).collect();
        Some(Took { span: median(&mut spans)?, source: Source::Elsewhere })
    }

    /// What is told of them where `scenario` takes them over.
    pub fn remark(&self, recorded: &Configuration, scenario: &Scenario) -> Option<String> {
        let ours = &scenario.configuration;
        let said = self.taken(recorded, scenario).filter_map(|((model, device), took)| {
            let (model, device) = (&ours.model(model)?.name, &ours.device(device)?.name);
            let source = match took.source {
                Source::Seen(1) => "one load".to_owned(),
                Source::Seen(count) => format!("median of {count} loads"),
                Source::Profile => "measured earlier".to_owned(),
                Source::Estimate => "an estimate".to_owned(),
                Source::Elsewhere => "as on other devices".to_owned(),
            };
            Some(format!("{model} on {device} {} ({source})", took.span))
        });
        let said: Vec<String> = said.collect();
        let how = "loads take as long as they did, whatever loads beside them";
        (!said.is_empty()).then(|| format!("{how}: {}", said.join(", ")))
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
