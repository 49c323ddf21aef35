//! What simulated runtimes are told of cards and models.

use windtunnel_config::{Card, Daemon, Footprint, Scenario, Service};
use windtunnel_core::{Bytes, Capability, Capacity, Configuration, DeviceKind, ServiceTimes};

use crate::fake::{Kind, Pace, Settings};

/// Cards and models, by their ids.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedSettings {
    /// The cards.
    pub devices: Vec<SimulatedDevice>,
    /// The models.
    pub models: Vec<SimulatedModel>,
}

/// A card.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedDevice {
    /// Where its memory is.
    pub kind: DeviceKind,
    /// All of it; `None`: nobody counts it.
    pub memory: Option<Bytes>,
    /// Its speed, how instances slow each other down, and how processes come and go on it.
    pub card: Card,
}

/// A model.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedModel {
    /// The memory of an instance; `None`: nobody counts it.
    pub footprint: Option<Bytes>,
    /// Its pace on each card; where there is none it answers at once.
    pub paces: Vec<Option<Pace>>,
    /// The server of an instance. Its key and its pace are filled in at each load.
    pub server: Settings,
}

/// Tokens of context that a slot has where nothing is said of it.
const CONTEXT_A_SLOT: u32 = 131_072;

impl From<&Scenario> for SimulatedSettings {
    /// The cards and models of a scenario. What varies there (the noise of batch times, faults) does not here.
    fn from(scenario: &Scenario) -> SimulatedSettings {
        let Scenario { configuration, cards, services, footprints, .. } = scenario;
        Told { configuration, cards, services, footprints }.settings()
    }
}

impl From<&Daemon> for SimulatedSettings {
    /// The cards and models of a daemon whose devices are simulated.
    fn from(daemon: &Daemon) -> SimulatedSettings {
        let Daemon { configuration, cards, services, footprints, .. } = daemon;
        Told { configuration, cards, services, footprints }.settings()
    }
}

/// What scenarios and daemons have in common.
struct Told<'a> {
    configuration: &'a Configuration,
    cards: &'a [Card],
    services: &'a [Vec<Option<Service>>],
    footprints: &'a [Footprint],
}

impl Told<'_> {
    fn settings(&self) -> SimulatedSettings {
        let devices = self.configuration.devices.iter().enumerate().map(|(place, device)| SimulatedDevice {
            kind: device.kind,
            memory: device.memory,
            card: self.cards.get(place).cloned().unwrap_or_default(),
        });
        let models = (0..self.configuration.models.len()).map(|place| self.model(place));
        SimulatedSettings { devices: devices.collect(), models: models.collect() }
    }

    fn model(&self, place: usize) -> SimulatedModel {
        let services = self.services.get(place).map(Vec::as_slice).unwrap_or_default();
        let footprint = self.footprints.get(place).and_then(|footprint| footprint.truth);
        let mut server = Settings::default();
        if let Some(model) = self.configuration.models.get(place) {
            server.model = model.name.clone();
            server.slots = match model.capacity {
                Capacity::Slots { slots } => slots,
                // One batch at a time is what the scheduler sends.
                Capacity::Batch { .. } => 1,
            };
            server.kind = kind(&model.capabilities, model.capacity);
            server.context = CONTEXT_A_SLOT.saturating_mul(server.slots);
        }
        SimulatedModel { footprint, paces: services.iter().map(|service| service.as_ref().map(pace)).collect(), server }
    }
}

/// Models that work in batches give vectors, unless they say what else.
fn kind(capabilities: &[Capability], capacity: Capacity) -> Kind {
    let can = |capability| capabilities.contains(&capability);
    let batches = matches!(capacity, Capacity::Batch { .. }) && capabilities.is_empty();
    match (can(Capability::Embedding) || batches, can(Capability::Rerank), can(Capability::Chat)) {
        (_, _, true) | (false, false, false) => Kind::Chat,
        (true, _, false) => Kind::Embedding,
        (false, true, false) => Kind::Rerank,
    }
}

fn pace(service: &Service) -> Pace {
    Pace::Service(match *service {
        Service::Batch { alpha, beta, noise: _ } => ServiceTimes::Batch { alpha, beta },
        Service::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice } => {
            ServiceTimes::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice }
        }
    })
}
