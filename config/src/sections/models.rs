//! `[models.X]`: what a model is, where it may be, and how it serves.

use windtunnel_core::{Bytes, Capability, DeviceId, Model, ModelId, Prediction, Replicas, Wanted};

use super::devices::Devices;
use super::launch::{self, ARGS, CTX, ENV, GGUF, MMPROJ, RUNTIME};
use super::names::Names;
use super::service::{PREDICTED, SERVICE};
use super::serving::{Unsaid, capacity, placements, services};
use crate::daemon::Launch;
use crate::decode::Section;
use crate::estimate::Estimator;
use crate::form::{Form, Key, Scalar, Shape, listed};
use crate::scenario::{Footprint, Service};

pub(crate) const CAPABILITY_WORDS: &[&str] = &["chat", "completion", "embedding", "rerank", "audio", "vision", "tools"];
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
        GGUF,
        MMPROJ,
        CTX,
        ARGS,
        ENV,
        RUNTIME,
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
    /// How each is started.
    pub launches: Vec<Launch>,
}

/// Reads all models of a scenario.
pub(crate) fn read(root: &Section<'_>, devices: &Devices) -> Models {
    let mut models = Models::default();
    for (name, _, section) in root.named("models") {
        let allowed = allowed(&section, devices);
        let services = services(&section, &allowed, devices, Unsaid::Missing);
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
        models.launches.push(launch::read(&section, &[]));
    }
    models
}

/// Reads all models of a daemon, whose runtimes get the `standing` arguments first. None is there when it starts, and
/// what nothing is said of is learned.
pub(crate) fn read_real(root: &Section<'_>, devices: &Devices, standing: &[String]) -> Models {
    let mut models = Models::default();
    for (name, _, section) in root.named("models") {
        let allowed = allowed(&section, devices);
        let services = services(&section, &allowed, devices, Unsaid::Learned);
        let replicas = match section.text("replicas") {
            Some(_all) => Replicas::All,
            None => section.count32("replicas").map_or(Replicas::Count(1), Replicas::Count),
        };
        let mut told = model(&section, name, &allowed, &services, devices, replicas);
        if !section.has("prediction") && section.given(&["service", "predicted"]).is_empty() {
            told.prediction = Prediction::Learned;
        }
        let launch = launch::read(&section, standing);
        launch::check(&section, &launch, &allowed, devices);
        models.residents.push(Vec::new());
        models.told.push(told);
        models.services.push(services);
        models.footprints.push(footprint(&section));
        models.launches.push(launch);
    }
    models
}

/// What the files of models say of their memory, where nothing else does; by name.
pub(crate) fn estimated(
    root: &Section<'_>,
    devices: &Devices,
    estimator: Option<&dyn Estimator>,
    standing: &[String],
) -> Vec<(String, Bytes)> {
    let silent =
        root.named("models").into_iter().filter(|(_, _, section)| section.has("gguf") && !section.has("footprint"));
    let estimate = |(name, _, section): (&str, _, Section<'_>)| {
        let Some(estimator) = estimator else {
            section.wrong("gguf", "is not read here; give a `footprint`");
            return None;
        };
        let launch = launch::read(&section, standing);
        let bytes = launch::estimated(
            &section,
            &launch,
            capacity(&section, None),
            (&allowed(&section, devices), devices),
            estimator,
        )?;
        Some((name.to_owned(), bytes))
    };
    silent.filter_map(estimate).collect()
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
        capabilities: section.choices("capabilities", Capability::ALL).unwrap_or_default(),
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
