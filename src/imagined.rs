//! A daemon's configuration as something to simulate, to search or to build a scenario on: what a simulation has to know
//! and a configuration need not say is taken from what earlier runs learned of its models, then from their files, and else
//! assumed. All of that is said.
//!
//! Who may ask and how processes are started are left out: worlds that are found are written down, and secrets may be
//! among the arguments and in the environment.

mod base;

use std::path::Path;

use serde_json::{Map, Value, json};
use windtunnel_config::{Backend, Daemon, DaemonFile, Override, ScenarioFile, Service, launch_keys, to_toml};
use windtunnel_core::{Bytes, DeviceId, DeviceKind, ModelId, Ppm, Span};

pub use base::completed;

use crate::{
    failure::Failure,
    inventory::{Inventory, Origin},
    session::Session,
};

/// A card of which nobody knows what memory it has.
const MEMORY: Bytes = Bytes::from_mib(16 << 10);
/// A model whose file cannot be read.
const FOOTPRINT: Bytes = Bytes::from_mib(4 << 10);
/// What the model takes whose service is guessed; a larger one is slower in proportion, as its weights are read for every
/// token.
const GUESSED_FOR: Bytes = Bytes::from_mib(6 << 10);
/// A load that nobody has seen: a common solid-state disk.
const LOAD: (&str, &str) = ("1s", "2GiB/s");
/// From asking a process to stop until it has ended, and from then until its memory is free.
const EXIT: (&str, &str) = ("200ms", "100ms");
/// The ratio one, in millionths.
const ONE: u128 = 1_000_000;

/// A configuration that can be simulated, and what of it is not in its file.
pub struct Imagined {
    pub file: ScenarioFile,
    pub assumed: Vec<String>,
}

/// What is known of a model on a device.
#[derive(Clone, Copy, Debug)]
struct Known {
    model: ModelId,
    device: DeviceId,
    footprint: Option<Bytes>,
    origin: Origin,
    /// Actual over predicted service times.
    factor: Option<Ppm>,
    load_time: Option<Span>,
}

/// Makes a scenario without requests of the daemon's configuration at `path`.
pub fn imagined(path: &Path, overrides: &[Override], session: &Session) -> Result<Imagined, Failure> {
    let (document, assumed) = simulated(&DaemonFile::load(path)?, path, overrides, session)?;
    Ok(Imagined { file: ScenarioFile::parse(&to_toml(&document), path)?, assumed })
}

/// The configuration in `file`, which lies at `path`, with all that a simulation needs, and what of it was assumed.
fn simulated(
    file: &DaemonFile,
    path: &Path,
    overrides: &[Override],
    session: &Session,
) -> Result<(Value, Vec<String>), Failure> {
    let inventory = Inventory::of(file, path.to_owned(), overrides)?;
    inventory.remarks.iter().for_each(|remark| session.remark(remark));
    let known: Vec<Known> = inventory
        .entries(&session.model_files)
        .into_iter()
        .map(|entry| {
            let learned = inventory.learned(entry.model, entry.device);
            Known {
                model: entry.model,
                device: entry.device,
                footprint: entry.footprint,
                origin: entry.origin,
                factor: learned.filter(|one| one.observations > 0).map(|one| one.factor),
                load_time: learned.and_then(|one| one.load_time),
            }
        })
        .collect();
    let mut assumed = Vec::new();
    let document = document(file.document(overrides)?, &inventory.daemon, &known, &mut assumed);
    Ok((document, assumed))
}

fn document(mut document: Value, daemon: &Daemon, known: &[Known], assumed: &mut Vec<String>) -> Value {
    let mut take = |key: &str| document.get_mut(key).map(Value::take).unwrap_or_default();
    let own = take("models").as_object().cloned().unwrap_or_default();
    let models: Map<String, Value> = (0..)
        .zip(own)
        .map(|(at, (name, table))| {
            let table = table.as_object().cloned().unwrap_or_default();
            let model = model(&name, table, ModelId(at), (daemon, known), assumed);
            (name, Value::Object(model))
        })
        .collect();
    let counted = models.values().any(|model| model.get("footprint").is_some());
    let own = take("devices").as_array().cloned().unwrap_or_default();
    let groups = groups(&own, daemon);
    let devices: Vec<Value> =
        groups.iter().map(|(group, members)| device(group, members, (daemon, known), counted, assumed)).collect();
    json!({ "devices": devices, "models": models, "families": take("families"), "policy": take("policy") })
}

/// The groups of the file with their devices; where there are none, one for each device that was found.
fn groups(own: &[Value], daemon: &Daemon) -> Vec<(Map<String, Value>, Vec<DeviceId>)> {
    let mut next = (0..).zip(&daemon.configuration.devices).map(|(at, device)| (DeviceId(at), device));
    if own.is_empty() {
        return next
            .map(|(id, device)| (Map::from_iter([("name".to_owned(), json!(device.name))]), vec![id]))
            .collect();
    }
    let tables = own.iter().filter_map(Value::as_object);
    let count = |table: &Map<String, Value>| table.get("count").and_then(Value::as_u64).unwrap_or(1);
    tables
        .map(|table| {
            let members = next.by_ref().take(usize::try_from(count(table)).unwrap_or(usize::MAX));
            (table.clone(), members.map(|(id, _)| id).collect())
        })
        .collect()
}

fn device(
    group: &Map<String, Value>,
    members: &[DeviceId],
    (daemon, known): (&Daemon, &[Known]),
    counted: bool,
    assumed: &mut Vec<String>,
) -> Value {
    let mut group = group.clone();
    let name = group.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut say = |what: String| assumed.push(format!("devices.{name}: {what}"));
    let told = || members.iter().filter_map(|&id| daemon.configuration.device(id));
    let simulated = members.iter().filter_map(|id| daemon.sources.get(id.index()));
    let simulated = simulated.clone().all(|source| source.backend == Some(Backend::Simulated));
    group.retain(|key, _| key != "id" && key != "backend");
    if let Some(first) = told().next() {
        let kind = match first.kind {
            DeviceKind::Discrete => "discrete",
            DeviceKind::Unified => "unified",
        };
        group.insert("kind".to_owned(), json!(kind));
    }
    if !group.contains_key("memory") && counted {
        let found = told().filter_map(|device| device.memory).min();
        say(match found {
            Some(found) => format!("{found} of memory, as this machine has"),
            None => format!("{MEMORY} of memory; no such device was found here"),
        });
        group.insert("memory".to_owned(), json!(found.unwrap_or(MEMORY).to_string()));
    }
    if !simulated && !group.contains_key("load") {
        let (load, why) = load(members, known);
        say(why);
        group.insert("load".to_owned(), load);
    }
    if !simulated && !group.contains_key("stop") && !group.contains_key("release") {
        say(format!("processes end within {} of being asked, their memory is free {} later", EXIT.0, EXIT.1));
        group.insert("stop".to_owned(), json!(EXIT.0));
        group.insert("release".to_owned(), json!(EXIT.1));
    }
    Value::Object(group)
}

/// How long loads take there: as the slowest did that was seen.
fn load(members: &[DeviceId], known: &[Known]) -> (Value, String) {
    let here = known.iter().filter(|one| members.contains(&one.device));
    let pace = |one: &Known| {
        let nanos = u128::from(one.load_time?.as_nanos()).max(1);
        let pace = u128::from(one.footprint?.get()) * 1_000_000_000 / nanos;
        u64::try_from(pace >> 20).ok().map(|mib| mib.max(1))
    };
    match here.filter_map(pace).min() {
        Some(mib) => (
            json!({ "bandwidth": format!("{mib}MiB/s") }),
            format!("loads read {mib} MiB a second, as the slowest did that was seen"),
        ),
        None => (
            json!({ "fixed": LOAD.0, "bandwidth": LOAD.1 }),
            format!("loads take {} and read {}, since none was seen", LOAD.0, LOAD.1),
        ),
    }
}

fn model(
    name: &str,
    mut table: Map<String, Value>,
    id: ModelId,
    (daemon, known): (&Daemon, &[Known]),
    assumed: &mut Vec<String>,
) -> Map<String, Value> {
    let mut say = |what: String| assumed.push(format!("models.{name}: {what}"));
    let here: Vec<&Known> = known.iter().filter(|one| one.model == id).collect();
    let from_file = table.contains_key("gguf");
    let launch = launch_keys();
    table.retain(|key, _| !launch.contains(&key.as_str()));
    if let Some((bytes, origin)) = footprint(&here, from_file) {
        match origin {
            Origin::Configured => {}
            Origin::Measured => {
                table.shift_remove("estimate");
                table.insert("measured".to_owned(), json!(true));
                say(format!("takes {bytes}, as was measured"));
            }
            Origin::Estimated => say(format!("takes {bytes}, as its file tells")),
            Origin::Unknown => say(format!("takes {bytes}; its file could not be read")),
        }
        if origin != Origin::Configured {
            table.insert("footprint".to_owned(), json!(bytes.to_string()));
        }
    }
    if table.contains_key("service") {
        return table;
    }
    let Some(guess) = daemon.services.get(id.index()).and_then(|all| all.iter().flatten().next()) else { return table };
    let (ratio, why) = pace(&table, &here);
    let service = scaled(guess, table.get("predicted"), ratio);
    say(format!("{} {why}", in_words(&service)));
    table.insert("service".to_owned(), service);
    if !table.contains_key("predicted") {
        // As in the daemon: a guess that is put right by what is learned, from the start where something was.
        let learned = here.iter().any(|one| one.factor.is_some());
        let mut believed = scaled(guess, None, if learned { ratio } else { ONE });
        believed.as_object_mut().map(|believed| believed.shift_remove("kind"));
        table.insert("predicted".to_owned(), believed);
        table.entry("prediction").or_insert_with(|| json!("learned"));
    }
    table
}

/// What an instance takes where it takes most, and how that is known.
fn footprint(here: &[&Known], from_file: bool) -> Option<(Bytes, Origin)> {
    let of = |origin: Origin| here.iter().filter(|one| one.origin == origin).filter_map(|one| one.footprint).max();
    let known = [Origin::Measured, Origin::Configured, Origin::Estimated];
    let known = known.into_iter().find_map(|origin| Some((of(origin)?, origin)));
    known.or(from_file.then_some((FOOTPRINT, Origin::Unknown)))
}

/// How much slower than the daemon's first guess the model is, in millionths, and why that is thought.
fn pace(table: &Map<String, Value>, here: &[&Known]) -> (u128, &'static str) {
    if let Some(factor) = here.iter().filter_map(|one| one.factor).max() {
        return (u128::from(factor.get()), "as earlier runs have shown");
    }
    if table.contains_key("predicted") {
        return (ONE, "as it is predicted to take");
    }
    match here.iter().filter_map(|one| one.footprint).max() {
        Some(bytes) => {
            let ratio = u128::from(bytes.get()) * ONE / u128::from(GUESSED_FOR.get());
            (ratio.clamp(ONE / 32, ONE * 32), "as models of its size take on a common card")
        }
        None => (ONE, "as a model of ten billion parameters takes on a common card"),
    }
}

/// The guess with what is predicted otherwise, every time of it scaled.
fn scaled(guess: &Service, predicted: Option<&Value>, ratio: u128) -> Value {
    let text = |span: Span| {
        let nanos = (u128::from(span.as_nanos()) * ratio).div_ceil(ONE);
        // To the microsecond, for people to read.
        json!(Span::from_micros(u64::try_from(nanos.div_ceil(1_000)).unwrap_or(u64::MAX)).to_string())
    };
    let own = |key: &str, guessed: Span| {
        let said = predicted.and_then(|table| table.get(key)?.as_str());
        text(said.and_then(|said| windtunnel_config::parse_span(said).ok()).unwrap_or(guessed))
    };
    match *guess {
        Service::Batch { alpha, beta, noise: _ } => {
            json!({ "kind": "batch", "alpha": own("alpha", alpha), "beta": own("beta", beta) })
        }
        Service::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice: _ } => json!({
            "kind": "slots",
            "prefill_fixed": own("prefill_fixed", prefill_fixed),
            "prefill_per_token": own("prefill_per_token", prefill_per_token),
            "decode_alpha": own("decode_alpha", decode_alpha),
            "decode_beta": own("decode_beta", decode_beta),
        }),
    }
}

fn in_words(service: &Value) -> String {
    let times = |keys: [&str; 2]| keys.map(|key| service.get(key).and_then(Value::as_str).unwrap_or("0s").to_owned());
    if service.get("kind").and_then(Value::as_str) == Some("batch") {
        let [alpha, beta] = times(["alpha", "beta"]);
        return format!("a batch takes {alpha} and {beta} an input,");
    }
    let [prompt, token] = times(["prefill_per_token", "decode_alpha"]);
    format!("a token takes {token}, one of a prompt {prompt},")
}
