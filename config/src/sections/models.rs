//! `[models.X]`: what a model is, where it may be, and how it serves.

use windtunnel_core::{
    Bytes, Capability, Capacity, DeviceId, Model, ModelId, Placement, Prediction, Replicas, ServiceTimes,
};
use windtunnel_core::{Span, Wanted};

use super::devices::Devices;
use super::names::Names;
use super::service::{self, PREDICTED, SERVICE};
use crate::decode::Section;
use crate::form::{Form, Key, Scalar, Shape, listed};
use crate::scenario::{Footprint, Service};

pub(crate) const CAPABILITY_WORDS: &[&str] = &["chat", "completion", "embedding", "rerank", "audio", "vision", "tools"];
pub(crate) const CAPABILITIES: [Capability; 7] = [
    Capability::Chat,
    Capability::Completion,
    Capability::Embedding,
    Capability::Rerank,
    Capability::Audio,
    Capability::Vision,
    Capability::Tools,
];

pub(crate) static MODEL: Form = Form::new(
    "model",
    "A model.",
    &[
        Key::new("service", Shape::Tagged(&SERVICE), "how long its work takes on a card of speed 1"),
        Key::new("on", Shape::Named(&ON), "what is different on a device or a group of devices, under its name"),
        Key::new(
            "devices",
            Shape::List(&Shape::Scalar(Scalar::Name)),
            "where it may be placed, in order; default: on every device",
        ),
        Key::scalar(
            "slots",
            Scalar::Count(1, 65_536),
            "steps side by side; with service kind \"batch\" each takes T(its inputs) by itself",
        )
        .or("1"),
        Key::new("batch", Shape::Table(&BATCH), "dynamic batching, with service kind \"batch\"").policy(),
        Key::new("predicted", Shape::Table(&PREDICTED), "what the predictor believes; default: the true service")
            .policy(),
        Key::scalar(
            "prediction",
            Scalar::Word(&["configured", "learned"]),
            "whether predictions learn from finished steps",
        )
        .or("\"configured\"")
        .policy(),
        Key::scalar(
            "replicas",
            Scalar::CountOr(1, 4096, "all"),
            "devices it may be on at once; default: all when resident, 1 otherwise",
        )
        .policy(),
        Key::scalar(
            "resident",
            Scalar::Flag,
            "loaded on its replicas when the run starts, at no cost; default: true without a footprint, false with one",
        ),
        Key::scalar("preload", Scalar::Flag, "loaded at the start, at its cost").or("false"),
        Key::scalar("pinned", Scalar::Flag, "never evicted").or("false").policy(),
        Key::new(
            "capabilities",
            Shape::Any(&Shape::Scalar(Scalar::Word(CAPABILITY_WORDS))),
            "what it can do; default: not checked",
        ),
        Key::new("aliases", Shape::Any(&Shape::Scalar(Scalar::Name)), "other names for it"),
        Key::scalar("footprint", Scalar::Size, "memory of an instance"),
        Key::scalar("estimate", Scalar::Size, "what the estimator says of the footprint; default: the truth"),
        Key::scalar("measured", Scalar::Flag, "whether a stored measurement of the footprint exists").or("false"),
        Key::scalar("idle_ttl", Scalar::SpanOr("off"), "unloaded after so long unused").or("\"off\"").policy(),
        Key::new("gguf", Shape::Later("footprints from model files"), "the model's file"),
    ],
);

static BATCH: Form = Form::new(
    "batch",
    "A free instance takes waiting steps of one class until their inputs reach `max`.",
    &[
        Key::scalar("max", Scalar::Count(1, 1_000_000), "the most inputs in a batch").required(),
        Key::scalar("wait", Scalar::Span, "how long an under-full batch may be held").or("\"0s\""),
    ],
);

static ON: Form = Form::new(
    "on",
    "What is different on one device or group.",
    &[
        Key::new("service", Shape::Tagged(&SERVICE), "how long the model's work takes there"),
        Key::new("predicted", Shape::Table(&PREDICTED), "what the predictor believes there").policy(),
    ],
);

/// All models, by [`ModelId`].
#[derive(Debug, Default)]
pub(crate) struct Models {
    /// What the scheduler is told.
    pub told: Vec<Model>,
    /// The true service on each device.
    pub services: Vec<Vec<Option<Service>>>,
    /// Where each is loaded at the start.
    pub residents: Vec<Vec<DeviceId>>,
    /// The memory of an instance of each.
    pub footprints: Vec<Footprint>,
}

/// Reads all models.
pub(crate) fn read(root: &Section<'_>, devices: &Devices) -> Models {
    let mut models = Models::default();
    for (name, _, section) in root.named("models") {
        let allowed = allowed(&section, devices);
        let services = services(&section, &allowed, devices);
        let footprint = footprint(&section);
        let resident = section.flag("resident").unwrap_or(footprint.truth.is_none());
        let standard = if resident { Replicas::All } else { Replicas::Count(1) };
        let replicas = match section.text("replicas") {
            Some(_all) => Replicas::All,
            None => section.count32("replicas").map_or(standard, Replicas::Count),
        };
        models.residents.push(if resident { residents(&allowed, replicas) } else { Vec::new() });
        models.told.push(model(&section, name, &allowed, &services, devices, replicas));
        models.services.push(services);
        models.footprints.push(footprint);
    }
    models
}

/// Enters the names and aliases of all models.
pub(crate) fn register(root: &Section<'_>, names: &mut Names) {
    for ((name, place, section), id) in root.named("models").into_iter().zip(0..) {
        names.register(&section, name, place, Wanted::Model(ModelId(id)));
    }
}

fn model(
    section: &Section<'_>,
    name: &str,
    allowed: &[DeviceId],
    services: &[Option<Service>],
    devices: &Devices,
    replicas: Replicas,
) -> Model {
    let prediction = [Prediction::Configured, Prediction::Learned];
    let aliases = section.texts("aliases").unwrap_or_default();
    let first = allowed.iter().find_map(|device| services.get(device.index())?.as_ref());
    Model {
        name: name.to_owned(),
        aliases: aliases.into_iter().map(|(alias, _)| alias.to_owned()).collect(),
        capabilities: section.choices("capabilities", CAPABILITIES).unwrap_or_default(),
        capacity: capacity(section, first),
        replicas,
        placements: placements(section, allowed, services, devices),
        prediction: section.choice("prediction", prediction).unwrap_or(Prediction::Configured),
        pinned: section.flag("pinned").unwrap_or(false),
        preload: section.flag("preload").unwrap_or(false),
        idle_ttl: section.span("idle_ttl"),
    }
}

/// The devices it may be placed on, in order, each once.
fn allowed(section: &Section<'_>, devices: &Devices) -> Vec<DeviceId> {
    let Some(names) = section.texts("devices") else { return devices.all().collect() };
    let mut allowed = Vec::new();
    for (name, place) in names {
        match devices.find(name) {
            Some(found) => found.into_iter().for_each(|device| {
                if !allowed.contains(&device) {
                    allowed.push(device);
                }
            }),
            None => {
                let (message, notes) = devices.unknown(name);
                section.context.complain(place, message, notes);
            }
        }
    }
    allowed
}

/// The true service on every device; `None` where it may not be placed.
fn services(section: &Section<'_>, allowed: &[DeviceId], devices: &Devices) -> Vec<Option<Service>> {
    let everywhere = service::read(section);
    let mut services: Vec<Option<Service>> =
        devices.all().map(|device| allowed.contains(&device).then(|| everywhere.clone()).flatten()).collect();
    for_each_on(section, devices, |device, on| {
        if let (Some(service), Some(slot)) = (service::read(on), services.get_mut(device.index()))
            && allowed.contains(&device)
        {
            *slot = Some(service);
        }
    });
    check_services(section, allowed, &services, devices);
    check_on(section, allowed, devices);
    services
}

/// Calls `read` for each device named under `on`: groups first, so that a single device's own table has the last word.
fn for_each_on<'a>(section: &Section<'a>, devices: &Devices, mut read: impl FnMut(DeviceId, &Section<'a>)) {
    let mut tables: Vec<_> = Vec::new();
    for (name, place, on) in section.named("on") {
        match devices.find(name) {
            Some(found) => {
                tables.push((devices.name(found.first().copied().unwrap_or(DeviceId(0))) == name, found, on))
            }
            None => {
                let (message, notes) = devices.unknown(name);
                section.context.complain(place, message, notes);
            }
        }
    }
    tables.sort_by_key(|(single, _, _)| *single);
    for (_, found, on) in &tables {
        found.iter().for_each(|device| read(*device, on));
    }
}

/// Complains about tables of devices that the model may not be placed on.
fn check_on(section: &Section<'_>, allowed: &[DeviceId], devices: &Devices) {
    for (name, place, _) in section.named("on") {
        let found = devices.find(name).unwrap_or_default();
        if !found.is_empty() && !found.iter().any(|device| allowed.contains(device)) {
            let message = format!("`{}` may not be placed on {name}, as its `devices` say", section.trail);
            section.context.complain(place, message, Vec::new());
        }
    }
}

fn check_services(section: &Section<'_>, allowed: &[DeviceId], services: &[Option<Service>], devices: &Devices) {
    let on = |device: &DeviceId| services.get(device.index()).and_then(Option::as_ref);
    let missing: Vec<&str> = allowed.iter().filter(|one| on(one).is_none()).map(|one| devices.name(*one)).collect();
    if missing.len() == allowed.len() && !missing.is_empty() {
        return section
            .complain("has no `service`, such as service = { kind = \"batch\", alpha = \"1ms\", beta = \"0.5ms\" }");
    }
    if !missing.is_empty() {
        let names = missing.join(", ");
        section
            .complain(&format!("has no `service` on {names}; give it one there, or list its `devices` without them"));
    }
    let kinds = allowed.iter().filter_map(on).map(|service| matches!(service, Service::Batch { .. }));
    if kinds.clone().any(|batch| batch) && kinds.clone().any(|batch| !batch) {
        section.complain("has services of both kinds; \"batch\" and \"slots\" cannot be mixed in one model");
    }
}

fn capacity(section: &Section<'_>, service: Option<&Service>) -> Capacity {
    let batch = section.section("batch");
    let slots = section.count32("slots");
    match service {
        Some(Service::Slots { .. }) => {
            if batch.is_some() {
                section.wrong("batch", "goes with service kind \"batch\"; with kind \"slots\" write slots = n");
            }
            Capacity::Slots { slots: slots.unwrap_or(1) }
        }
        Some(Service::Batch { .. }) | None => {
            if let Some(slots) = slots {
                if batch.is_some() {
                    section.wrong("slots", "cannot be given beside `batch`: steps run side by side, or together");
                }
                return Capacity::Slots { slots };
            }
            let max = batch.as_ref().and_then(|batch| batch.count32("max")).unwrap_or(1);
            Capacity::Batch { max, wait: batch.and_then(|batch| batch.span("wait")).unwrap_or(Span::ZERO) }
        }
    }
}

fn placements(
    section: &Section<'_>,
    allowed: &[DeviceId],
    services: &[Option<Service>],
    devices: &Devices,
) -> Vec<Placement> {
    let truth = |device: DeviceId| services.get(device.index()).and_then(Option::as_ref);
    let mut believed: Vec<Option<ServiceTimes>> = devices
        .all()
        .map(|device| truth(device).map(|truth| (truth, service::predicted(section, truth))))
        .map(|both| both.map(|(truth, predicted)| predicted.unwrap_or_else(|| service::times(truth))))
        .collect();
    for_each_on(section, devices, |device, on| {
        if let (Some(truth), Some(slot)) = (truth(device), believed.get_mut(device.index()))
            && let Some(predicted) = service::predicted(on, truth)
        {
            *slot = Some(predicted);
        }
    });
    let placed = allowed.iter().filter_map(|&device| {
        let times = (*believed.get(device.index())?)?;
        let speed = *devices.speeds.get(device.index())?;
        Some(Placement { device, predicted: service::at_speed(times, speed) })
    });
    placed.collect()
}

fn footprint(section: &Section<'_>) -> Footprint {
    let truth = section.size("footprint");
    let footprint =
        Footprint { truth, estimate: section.size("estimate"), measured: section.flag("measured").unwrap_or(false) };
    if truth.is_none() && footprint.estimate.is_some() {
        section.wrong("estimate", "estimates a `footprint`, which the model does not have");
    }
    if truth.is_none() && footprint.measured {
        section.wrong("measured", "needs a `footprint` that was measured");
    }
    footprint
}

fn residents(allowed: &[DeviceId], replicas: Replicas) -> Vec<DeviceId> {
    let count = match replicas {
        Replicas::All => allowed.len(),
        Replicas::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
    };
    allowed.iter().copied().take(count).collect()
}

/// Complains about the first device whose residents need more memory than there is.
pub(crate) fn check_memory(root: &Section<'_>, models: &Models, devices: &Devices) {
    let footprint = |at: usize| models.footprints.get(at)?.truth;
    for device in devices.all() {
        let Some(memory) = devices.memory(device) else { continue };
        let here = models.residents.iter().enumerate().filter(|(_, places)| places.contains(&device));
        let here: Vec<(usize, Bytes)> = here.filter_map(|(at, _)| Some((at, footprint(at)?))).collect();
        let needed = here.iter().fold(Bytes::ZERO, |sum, (_, bytes)| sum.plus(*bytes));
        if needed > memory {
            let named: Vec<&str> =
                here.iter().filter_map(|(at, _)| Some(models.told.get(*at)?.name.as_str())).collect();
            let message = format!(
                "the models resident on {} do not fit: {} need {needed}, and it has {memory}",
                devices.name(device),
                listed(named)
            );
            let place = root.place_of("models");
            return root.context.complain(place, message, Vec::new());
        }
    }
}
