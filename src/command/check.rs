//! `windtunnel check`: a daemon's configuration, and whether this machine is as it needs it.

mod together;

use std::path::Path;

use serde_json::{Value, json};
use windtunnel_config::{Backend, Daemon, DeviceSource, Secret};
use windtunnel_core::{Bytes, DeviceId, ModelId};
use windtunnel_live::places;

use crate::{
    args::{CheckArgs, Format},
    command::models,
    failure::Failure,
    inventory::{Entry, Inventory, Origin, runtime_name},
    output::print,
    rows::{Rows, size},
    session::Session,
};

use together::Together;

/// A device as it is now.
struct Here {
    name: String,
    backend: Option<Backend>,
    id: Option<String>,
    total: Option<Bytes>,
    used: Option<Bytes>,
    /// What models may have of it.
    budget: Option<Bytes>,
    source: Option<&'static str>,
    problem: Option<String>,
}

/// Everything that was looked at.
struct Findings {
    devices: Vec<Here>,
    entries: Vec<Entry>,
    together: Vec<Together>,
    problems: Vec<String>,
}

pub fn run(args: &CheckArgs, session: &Session) -> Result<(), Failure> {
    let inventory = Inventory::load(args.config.as_deref(), session)?;
    inventory.remarks.iter().for_each(|remark| session.remark(remark));
    let findings = look(&inventory, session);
    print(&match session.format {
        Format::Table => text(&inventory, &findings),
        Format::Json => format!("{}\n", as_json(&inventory, &findings)),
        Format::Csv => models::table(findings.entries.iter()).csv(),
    })?;
    if findings.problems.is_empty() { Ok(()) } else { Err(Failure::Unmet) }
}

fn look(inventory: &Inventory, session: &Session) -> Findings {
    let daemon = &inventory.daemon;
    let ids = (0..).zip(&daemon.configuration.devices).map(|(at, _)| DeviceId(at));
    let devices: Vec<Here> = ids.map(|device| here(inventory, device)).collect();
    let entries = inventory.entries(&session.model_files);
    let together: Vec<Together> =
        devices.iter().filter_map(|here| Together::on(&here.name, here.budget?, &entries)).collect();
    let mut problems: Vec<String> = secrets(daemon).chain(runtimes(daemon)).collect();
    problems
        .extend(devices.iter().filter_map(|here| Some(format!("device {}: {}", here.name, here.problem.as_ref()?))));
    problems.extend(
        entries
            .iter()
            .filter_map(|entry| Some(format!("models.{} on {}: {}", entry.name, entry.on, entry.problem.as_ref()?))),
    );
    problems.extend(homeless(daemon, &entries, &together));
    Findings { devices, entries, together, problems }
}

fn here(inventory: &Inventory, device: DeviceId) -> Here {
    let told = inventory.daemon.configuration.device(device);
    let source = inventory.daemon.sources.get(device.index());
    let simulated = source.is_some_and(|source| source.backend == Some(Backend::Simulated));
    let (reading, problem) = match inventory.look(device) {
        Ok(reading) => (reading, source.and_then(twice)),
        Err(_) if simulated => (Default::default(), None),
        Err(why) => (Default::default(), Some(why)),
    };
    let total = told.and_then(|told| told.memory).or(reading.total.map(|figure| figure.bytes));
    let budget =
        told.zip(total).map(|(told, total)| told.limit.map_or(total, |limit| limit.min(total)).minus(told.headroom));
    Here {
        name: told.map_or_else(String::new, |told| told.name.clone()),
        backend: source.and_then(|source| source.backend),
        id: source.and_then(|source| source.id.clone()),
        total,
        used: reading.used.map(|figure| figure.bytes),
        budget,
        source: reading.used.or(reading.total).map(|figure| figure.source),
        problem,
    }
}

/// What is wrong with a device that can be read and is none of those that were left to be given away.
fn twice(source: &DeviceSource) -> Option<String> {
    match source.backend? {
        // Nobody lists what a Vulkan driver has.
        Backend::Vulkan | Backend::Simulated => None,
        Backend::Cuda | Backend::Hip | Backend::Metal | Backend::Cpu => (!source.found).then(|| {
            "another device of the configuration is the same one already, and its memory would count twice".to_owned()
        }),
    }
}

/// Keys whose text cannot be had.
fn secrets(daemon: &Daemon) -> impl Iterator<Item = String> {
    daemon.keys.iter().filter_map(|key| match &key.secret {
        Secret::Inline(_) => None,
        Secret::Environment(_) | Secret::File(_) => {
            key.secret.read().err().map(|why| format!("keys.{} {why}", key.name))
        }
    })
}

/// Programs that are not there, each once.
fn runtimes(daemon: &Daemon) -> impl Iterator<Item = String> {
    let mut missing: Vec<&Path> = Vec::new();
    for (at, model) in (0..).zip(&daemon.configuration.models) {
        let real = |device: &DeviceId| {
            daemon.sources.get(device.index()).is_none_or(|source| source.backend != Some(Backend::Simulated))
        };
        let name = runtime_name(daemon, ModelId(at));
        let needed = model.placements.iter().any(|placement| real(&placement.device));
        if needed && places::program(name).is_none() && !missing.contains(&name) {
            missing.push(name);
        }
    }
    missing.into_iter().map(|name| {
        let name = name.display();
        format!("the runtime {name} is not there: install llama.cpp, or name it with `llama_server` in [server]")
    })
}

/// Models that fit no device even when they are alone.
fn homeless(daemon: &Daemon, entries: &[Entry], together: &[Together]) -> Vec<String> {
    let names = daemon.configuration.models.iter().map(|model| model.name.as_str());
    let homeless = names.filter_map(|name| {
        let mut places = entries.iter().filter(|entry| entry.name == name).peekable();
        places.peek()?;
        let fits = |entry: &Entry| {
            let room = together.iter().find(|one| one.device == entry.on);
            room.zip(entry.footprint).is_none_or(|(room, bytes)| bytes <= room.budget)
        };
        (!places.any(fits)).then(|| format!("models.{name} fits no device, even alone"))
    });
    homeless.collect()
}

fn text(inventory: &Inventory, findings: &Findings) -> String {
    let daemon = &inventory.daemon;
    let counted =
        |count: usize, one: &str, several: &str| format!("{count} {}", if count == 1 { one } else { several });
    let mut text = format!(
        "{}: {}, {}, {}, listens on {}\n\n",
        inventory.path.display(),
        counted(daemon.configuration.models.len(), "model", "models"),
        counted(daemon.configuration.families.len(), "family", "families"),
        counted(daemon.keys.len(), "key", "keys"),
        daemon.server.listen
    );
    text.push_str(&device_rows(findings).text());
    text.push('\n');
    let mut rows = Rows::new(&["model", "device", "footprint_bytes", "from", "context", "slots", "fits"]);
    for entry in &findings.entries {
        let room = findings.together.iter().find(|one| one.device == entry.on);
        let fits = room.zip(entry.footprint).map(|(room, bytes)| bytes <= room.budget);
        let bytes = entry.footprint.map(|bytes| bytes.get());
        let from = (entry.origin != Origin::Unknown).then(|| entry.origin.name());
        let about = [json!(entry.name), json!(entry.on), json!(bytes), json!(from)];
        rows.push(about.into_iter().chain([json!(entry.context), json!(entry.slots), json!(fits)]).collect());
    }
    text.push_str(&rows.text());
    findings.together.iter().for_each(|together| text.push_str(&format!("\n{}", together.text())));
    let problems = findings.problems.iter().map(|problem| format!("\u{1b}[1;31mproblem\u{1b}[0m: {problem}\n"));
    let problems: String = problems.collect();
    text.push_str(&if problems.is_empty() { "\nall is well\n".to_owned() } else { format!("\n{problems}") });
    text
}

fn device_rows(findings: &Findings) -> Rows {
    let mut rows =
        Rows::new(&["device", "backend", "id", "memory_bytes", "in_use_bytes", "budget_bytes", "source", "problem"]);
    for here in &findings.devices {
        let bytes = |bytes: Option<Bytes>| json!(bytes.map(|bytes| bytes.get()));
        rows.push(vec![
            json!(here.name),
            json!(here.backend.map(Backend::name)),
            json!(here.id),
            bytes(here.total),
            bytes(here.used),
            bytes(here.budget),
            json!(here.source),
            json!(here.problem),
        ]);
    }
    rows
}

fn as_json(inventory: &Inventory, findings: &Findings) -> Value {
    let together: Vec<Value> = findings.together.iter().map(Together::json).collect();
    json!({
        "configuration": inventory.path,
        "listen": inventory.daemon.server.listen.to_string(),
        "keys": inventory.daemon.keys.iter().map(|key| &key.name).collect::<Vec<_>>(),
        "devices": device_rows(findings).json(),
        "models": models::table(findings.entries.iter()).json(),
        "together": together,
        "problems": findings.problems,
    })
}

/// `budget 15.50 GiB`.
fn budget_text(bytes: Bytes) -> String {
    format!("budget {}", size(bytes.get()))
}
