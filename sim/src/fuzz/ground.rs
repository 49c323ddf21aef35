//! The user's own configuration as the ground of random worlds.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windtunnel_config::{Override, Scenario, ScenarioFile, Service, to_toml};
use windtunnel_core::{Capability, Capacity};

use super::world::{Kind, Plan};
use crate::SimError;

/// A configuration that stays as it is while requests and faults vary.
#[derive(Clone, Debug)]
pub struct Ground {
    pub(super) document: Value,
    pub(super) plan: Plan,
    pub(super) origin: PathBuf,
}

impl Ground {
    /// The ground that a scenario or configuration file makes.
    ///
    /// # Errors
    /// If it is neither.
    pub fn new(file: &ScenarioFile, origin: &Path, overrides: &[Override]) -> Result<Ground, SimError> {
        let document = file.document(overrides)?;
        let scenario = match document.get("workload") {
            Some(_) => file.resolve(overrides)?,
            None => ScenarioFile::parse(&to_toml(&with_a_request(&document)), origin)?.resolve(&[])?,
        };
        let plan = plan(&document, &scenario);
        Ok(Ground { document, plan, origin: origin.to_owned() })
    }
}

/// A configuration asks for nothing, which is no scenario.
fn with_a_request(document: &Value) -> Value {
    let mut document = document.clone();
    let models = document.get("models").and_then(Value::as_object);
    let model = models.and_then(|models| models.keys().next().cloned()).unwrap_or_default();
    document["run"] = json!({ "horizon": "1s" });
    document["workload"] = json!([{ "name": "w", "model": model, "arrivals": { "process": "at", "times": ["0s"] } }]);
    document
}

fn plan(document: &Value, scenario: &Scenario) -> Plan {
    let names = document.get("devices").and_then(Value::as_array).into_iter().flatten();
    let names = names.filter_map(|device| device.get("name")?.as_str());
    let memory = scenario.configuration.devices.iter().filter_map(|device| device.memory).min();
    let mib = memory.map_or(8_192, |bytes| bytes.get() >> 20);
    Plan {
        devices: names.map(|name| (name.to_owned(), mib.max(1))).collect(),
        models: scenario.configuration.models.iter().zip(&scenario.services).map(kind).collect(),
        families: scenario.configuration.families.iter().map(|family| family.name.clone()).collect(),
        ..Plan::default()
    }
}

fn kind((model, services): (&windtunnel_core::Model, &Vec<Option<Service>>)) -> Kind {
    let millis = |span: windtunnel_core::Span| span.as_nanos() as f64 / 1e6;
    let service = services.iter().flatten().next();
    let most = match model.capacity {
        Capacity::Batch { max, wait: _ } => u64::from(max),
        Capacity::Slots { .. } => 64,
    };
    let (batch, takes) = match service {
        Some(Service::Batch { alpha, beta, .. }) => (Some(most), millis(*alpha) + millis(*beta) * most as f64 / 2.0),
        Some(Service::Slots { decode_alpha, .. }) => (None, millis(*decode_alpha) * 60.0),
        None => (None, 1_000.0),
    };
    let abilities = model.capabilities.iter().filter_map(|&one| ability(one)).collect();
    Kind { name: model.name.clone(), batch, takes, abilities }
}

/// The kind of request that a capability is for; `None`: one that goes with others.
fn ability(capability: Capability) -> Option<&'static str> {
    match capability {
        Capability::Chat | Capability::Completion | Capability::Embedding | Capability::Rerank | Capability::Audio => {
            Some(capability.name())
        }
        Capability::Vision | Capability::Tools => None,
    }
}
