//! `windtunnel models`: models with what they take of memory, and why.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windtunnel_config::{Backend, Launch, Site};
use windtunnel_core::{Capacity, DeviceKind};
use windtunnel_live::{
    footprint::Footprint,
    model_files::{Explained, site},
    monitor::devices,
    places,
};

use crate::{
    args::{BackendName, Format, ModelsArgs},
    failure::Failure,
    inventory::{Entry, Inventory, Origin, context},
    output::print,
    rows::Rows,
    session::Session,
};

/// A model and where its memory goes.
struct Told {
    entry: Entry,
    footprint: Option<Footprint>,
}

pub fn run(args: &ModelsArgs, session: &Session) -> Result<(), Failure> {
    let (files, names): (Vec<&String>, Vec<&String>) = args.models.iter().partition(|name| is_file(name));
    if files.is_empty() && !args.args.is_empty() {
        let message = "arguments after -- are for model files; those of a configured model are `args` in its table";
        return Err(Failure::BadInput(message.to_owned()));
    }
    let mut told = Vec::new();
    if files.is_empty() || !names.is_empty() {
        told.extend(configured(args, &names, session)?);
    }
    let here = if files.is_empty() { None } else { Some(bare_site(args)) };
    for file in files {
        told.push(bare(Path::new(file), args, here.unwrap_or(HOST), session)?);
    }
    if args.explain { explain(&told, session) } else { list(&told, session) }
}

/// The processor, on which every model can be estimated.
const HOST: Site = Site { kind: DeviceKind::Unified, backend: Some(Backend::Cpu) };

fn is_file(name: &str) -> bool {
    name.ends_with(".gguf") || name.contains('/')
}

/// The models of the configuration, or those of these names.
fn configured(args: &ModelsArgs, names: &[&String], session: &Session) -> Result<Vec<Told>, Failure> {
    let inventory = Inventory::load(args.config.as_deref(), session)?;
    inventory.remarks.iter().for_each(|remark| session.remark(remark));
    let models = &inventory.daemon.configuration.models;
    let called = |name: &str| models.iter().find(|model| model.name == name || model.aliases.iter().any(|a| a == name));
    if let Some(unknown) = names.iter().find(|name| called(name).is_none()) {
        let known = || models.iter().map(|model| model.name.as_str());
        let hint = windtunnel_config::did_you_mean(unknown, known()).map_or(String::new(), |hint| format!("; {hint}"));
        let message = format!("{} has no model {unknown:?}{hint}", inventory.path.display());
        return Err(Failure::BadInput(message));
    }
    let wanted: Vec<&str> = names.iter().filter_map(|name| Some(called(name)?.name.as_str())).collect();
    let entries = inventory.entries(&session.model_files).into_iter();
    let entries = entries.filter(|entry| wanted.is_empty() || wanted.contains(&entry.name.as_str()));
    let tell = |entry: Entry| {
        let launch = inventory.daemon.launches.get(entry.model.index());
        let site = site(&inventory.daemon, entry.device);
        let explained =
            launch.zip(site).and_then(|(launch, site)| session.model_files.explain(launch, entry.capacity, site).ok());
        Told { entry, footprint: explained.map(|one| one.footprint) }
    };
    Ok(entries.map(tell).collect())
}

/// Where model files are estimated for.
fn bare_site(args: &ModelsArgs) -> Site {
    let backend = args.backend.map(|name| match name {
        BackendName::Cuda => Backend::Cuda,
        BackendName::Hip => Backend::Hip,
        BackendName::Vulkan => Backend::Vulkan,
        BackendName::Metal => Backend::Metal,
        BackendName::Cpu => Backend::Cpu,
    });
    if let Some(backend) = backend {
        return Site { kind: backend.usual_kind(), backend: Some(backend) };
    }
    let found = devices::devices(places::program(Path::new("llama-server")).as_deref());
    found.first().map_or(HOST, |found| Site { kind: found.kind, backend: Some(found.backend) })
}

fn bare(file: &Path, args: &ModelsArgs, site: Site, session: &Session) -> Result<Told, Failure> {
    let launch = Launch { gguf: Some(PathBuf::from(file)), args: args.args.clone(), ..Launch::default() };
    let explained =
        session.model_files.explain(&launch, Capacity::Slots { slots: 1 }, site).map_err(Failure::BadInput)?;
    let stem = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let entry = Entry {
        model: windtunnel_core::ModelId(0),
        device: windtunnel_core::DeviceId(0),
        name: stem,
        file: Some(file.to_owned()),
        architecture: Some(explained.model.header().architecture().to_owned()),
        context: context(&explained),
        slots: u32::try_from(explained.arguments.slots).unwrap_or(u32::MAX),
        capacity: Capacity::Slots { slots: 1 },
        on: site.backend.map_or("unknown", Backend::name).to_owned(),
        footprint: Some(explained.footprint.charged()),
        origin: Origin::Estimated,
        problem: None,
    };
    let Explained { footprint, .. } = explained;
    Ok(Told { entry, footprint: Some(footprint) })
}

fn list(told: &[Told], session: &Session) -> Result<(), Failure> {
    let rows = table(told.iter().map(|one| &one.entry));
    print(&match session.format {
        Format::Table => rows.text(),
        Format::Json => format!("{}\n", json!({ "models": rows.json() })),
        Format::Csv => rows.csv(),
    })
}

/// Models as rows.
pub fn table<'e>(entries: impl Iterator<Item = &'e Entry>) -> Rows {
    let mut rows = Rows::new(&[
        "model",
        "device",
        "architecture",
        "context",
        "slots",
        "footprint_bytes",
        "from",
        "file",
        "problem",
    ]);
    for entry in entries {
        rows.push(vec![
            json!(entry.name),
            json!(entry.on),
            json!(entry.architecture),
            json!(entry.context),
            json!(entry.slots),
            json!(entry.footprint.map(|bytes| bytes.get())),
            json!(entry.origin.name()),
            json!(entry.file),
            json!(entry.problem),
        ]);
    }
    rows
}

/// The parts of every footprint.
fn explain(told: &[Told], session: &Session) -> Result<(), Failure> {
    let text = match session.format {
        Format::Table => told.iter().map(explained).collect::<Vec<_>>().join("\n"),
        Format::Json => {
            let models: Vec<Value> = told.iter().map(as_json).collect();
            format!("{}\n", json!({ "models": models }))
        }
        Format::Csv => {
            let mut rows = Rows::new(&["model", "device", "side", "part", "bytes", "formula"]);
            for (one, row) in told.iter().flat_map(|one| parts(one).map(move |row| (one, row))) {
                let cells =
                    [json!(one.entry.name), json!(one.entry.on), json!(row.side.name()), json!(row.part.name())];
                rows.push(cells.into_iter().chain([json!(row.bytes.get()), json!(row.formula)]).collect());
            }
            rows.csv()
        }
    };
    print(&text)
}

fn parts(told: &Told) -> impl Iterator<Item = &windtunnel_live::footprint::Row> {
    told.footprint.iter().flat_map(|footprint| &footprint.rows)
}

fn explained(told: &Told) -> String {
    let Entry { name, on, architecture, context, slots, origin, footprint, problem, .. } = &told.entry;
    let what = architecture.as_deref().unwrap_or("unknown architecture");
    let context = context.map_or_else(|| "unknown context".to_owned(), |tokens| format!("{tokens} tokens"));
    let mut text = format!("{name} on {on}: {what}, {context} in {slots} slots\n");
    if let Some(explained) = &told.footprint {
        text.push_str(&explained.to_string());
    }
    match (origin, footprint, problem) {
        (_, _, Some(problem)) => text.push_str(&format!("{problem}\n")),
        (Origin::Measured | Origin::Configured, Some(bytes), None) => {
            text.push_str(&format!("{} takes its place: {}\n", origin.name(), crate::rows::size(bytes.get())));
        }
        (Origin::Measured | Origin::Configured | Origin::Estimated | Origin::Unknown, _, None) => {}
    }
    text
}

fn as_json(told: &Told) -> Value {
    let rows: Vec<Value> = parts(told)
        .map(|row| {
            json!({ "side": row.side.name(), "part": row.part.name(), "bytes": row.bytes.get(), "formula": row.formula })
        })
        .collect();
    let footprint = told.footprint.as_ref();
    let sum = |of: fn(&Footprint) -> windtunnel_core::Bytes| footprint.map(|footprint| of(footprint).get());
    json!({
        "model": told.entry.name,
        "device": told.entry.on,
        "architecture": told.entry.architecture,
        "context": told.entry.context,
        "slots": told.entry.slots,
        "rows": rows,
        "device_bytes": sum(Footprint::device),
        "host_bytes": sum(Footprint::host),
        "charged_bytes": sum(Footprint::charged),
        "footprint_bytes": told.entry.footprint.map(|bytes| bytes.get()),
        "from": told.entry.origin.name(),
        "notes": footprint.map(|footprint| &footprint.notes),
        "problem": told.entry.problem,
    })
}
