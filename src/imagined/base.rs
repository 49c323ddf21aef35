//! A scenario that starts from a daemon's configuration, which need not say what a simulation has to know.
//!
//! What the scenario says of the base's devices and models counts as said; only the rest is assumed.

use std::path::Path;

use serde_json::{Map, Value};
use windtunnel_config::{DaemonFile, ScenarioFile, to_toml};

use super::simulated;
use crate::{failure::Failure, session::Session};

/// The scenario at `path`, which is `file`, over a base in which nothing is missing. What was assumed for it is told.
pub fn completed(path: &Path, file: ScenarioFile, session: &Session) -> Result<ScenarioFile, Failure> {
    let Some(base) = file.base().filter(|_| file.lacks_cards()) else { return Ok(file) };
    let Some((own, mut document)) = file.layers()? else { return Ok(file) };
    lay(&mut document, &own);
    let daemon = DaemonFile::parse(&to_toml(&document), &base)?;
    let (document, assumed) = simulated(&daemon, &base, &[], session)?;
    assumed.iter().for_each(|what| session.remark(&format!("{} assumed: {what}", base.display())));
    if !assumed.is_empty() {
        session.remark("`windtunnel bench` measures what is assumed here");
    }
    Ok(file.over(path, &to_toml(&document))?)
}

/// Lays what the scenario says of devices, and of models that the base has, over the base.
fn lay(base: &mut Value, own: &Value) {
    let Some(base) = base.as_object_mut() else { return };
    if let Some(devices) = own.get("devices").and_then(Value::as_array) {
        let all = base.entry("devices").or_insert_with(|| Value::Array(Vec::new()));
        devices.iter().for_each(|device| lay_device(all, device));
    }
    let models = own.get("models").and_then(Value::as_object);
    let known = base.get_mut("models").and_then(Value::as_object_mut);
    let (Some(models), Some(known)) = (models, known) else { return };
    for (name, table) in models {
        if let (Some(model), Some(table)) = (known.get_mut(name).and_then(Value::as_object_mut), table.as_object()) {
            put_all(model, table);
        }
    }
}

fn lay_device(all: &mut Value, device: &Value) {
    let (Some(all), Some(table)) = (all.as_array_mut(), device.as_object()) else { return };
    let same = all.iter_mut().find(|other| other.get("name") == device.get("name"));
    match same.and_then(Value::as_object_mut) {
        Some(known) => put_all(known, table),
        None => all.push(device.clone()),
    }
}

fn put_all(table: &mut Map<String, Value>, over: &Map<String, Value>) {
    over.iter().for_each(|(key, value)| drop(table.insert(key.clone(), value.clone())));
}
