//! `[[devices]]`: groups of equal cards.

use windtunnel_core::{Bytes, Device, DeviceId, DeviceKind, Ppm};

use super::sources::Machine;
use crate::daemon::{Backend, DeviceSource, FoundDevice};
use crate::decode::Section;
use crate::estimate::Site;
use crate::form::{Form, Interval, Key, Scalar, Shape, did_you_mean, listed};
use crate::scenario::{Card, Upkeep};

pub(crate) static DEVICE: Form = Form::new(
    "device",
    "A group of equal cards.",
    &[
        Key::scalar("name", Scalar::Name, "the group's name; its cards are called NAME0, NAME1, ...").required(),
        Key::scalar("count", Scalar::Count(1, 4096), "how many cards").or("1"),
        Key::scalar("memory", Scalar::Size, "all memory of a card; a daemon's default: what the real device has"),
        Key::scalar(
            "kind",
            Scalar::Word(&["discrete", "unified"]),
            "whether the memory is the card's own or the host's; default: as its backend has it, else discrete",
        ),
        Key::new("id", ID, "which real device it is: its UUID, or its number among those of its backend"),
        Key::scalar("backend", Scalar::Word(Backend::NAMES), "what computes; a daemon's default: found out"),
        Key::scalar(
            "sharing",
            Scalar::Number(Interval::Closed(0.0, 1000.0)),
            "n busy instances each run at 1/(1 + sharing*(n-1)) of full speed",
        )
        .or("1.0"),
        Key::scalar("speed", Scalar::Factor, "service times are divided by this").or("1.0"),
        Key::new("load", Shape::Table(&LOAD), "how long a load takes"),
        Key::scalar("stop", Scalar::Span, "time from asking a process to stop until it has ended").or("\"0s\""),
        Key::scalar("release", Scalar::Span, "time from the end of a process until its memory is free").or("\"0s\""),
        Key::scalar("poll", Scalar::SpanAboveZero, "time between two readings of the memory").or("\"500ms\""),
        Key::scalar("limit", Scalar::Size, "memory that may be used at most; default: all").policy(),
        Key::scalar("headroom", Scalar::Size, "memory left free; default: 512MiB, 1GiB on unified memory").policy(),
        Key::scalar("parallel_loads", Scalar::Count(1, 64), "loads at a time; default: 2, 1 on unified memory")
            .policy(),
    ],
);

const ID: Shape = Shape::Either(&[Shape::Scalar(Scalar::Count(0, 4096)), Shape::Scalar(Scalar::Name)]);

static LOAD: Form = Form::new(
    "load",
    "How long a load takes: a fixed time and the footprint over a bandwidth.",
    &[
        Key::scalar("fixed", Scalar::Span, "time of every load").or("\"0s\""),
        Key::scalar("bandwidth", Scalar::Bandwidth, "bytes per second; default: unlimited"),
    ],
);

/// The cards, and what the scheduler is told of them.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    /// By [`DeviceId`].
    pub told: Vec<Device>,
    /// By [`DeviceId`].
    pub cards: Vec<Card>,
    /// By [`DeviceId`].
    pub speeds: Vec<Ppm>,
    /// By [`DeviceId`].
    pub sources: Vec<DeviceSource>,
    groups: Vec<(String, Vec<DeviceId>)>,
    rules: Rules,
}

/// What `[policy]` says of every device.
#[derive(Debug, Default)]
struct Rules {
    limit: Option<Bytes>,
    headroom: Option<Bytes>,
    parallel_loads: Option<u32>,
}

/// Reads all groups.
pub(crate) fn read(root: &Section<'_>) -> Devices {
    let devices = Devices::configured(root, &mut Machine::new(&[]));
    if devices.told.is_empty() {
        root.wrong(
            "devices",
            "is missing or empty; a scenario needs at least one card, such as [[devices]] name = \"gpu\"",
        );
    }
    devices
}

/// Reads all groups as devices of a machine; where there are none, all cards that the machine was found to have are meant,
/// or its processor if it has none: a model would be slow there beside a card.
pub(crate) fn read_real(root: &Section<'_>, found: &[FoundDevice]) -> Devices {
    let mut machine = Machine::new(found);
    let mut devices = Devices::configured(root, &mut machine);
    if devices.told.is_empty() {
        let (slow, fast): (Vec<_>, Vec<_>) = machine.all().iter().partition(|found| found.backend == Backend::Cpu);
        let meant = if fast.is_empty() { slow } else { fast };
        meant.into_iter().for_each(|found| devices.add_found(found));
    }
    if devices.told.is_empty() {
        let example = "[[devices]] name = \"cpu\", backend = \"cpu\"";
        root.wrong(
            "devices",
            &format!("is missing, and no device was found to serve from; name one, such as {example}"),
        );
    }
    devices
}

fn upkeep(section: &Section<'_>) -> Upkeep {
    let standard = Upkeep::default();
    let load = section.section("load");
    let bandwidth = load.as_ref().and_then(|load| load.bandwidth("bandwidth"));
    if bandwidth == Some(Bytes::ZERO) {
        section.wrong("load", "loads nothing: its bandwidth must be above zero, such as \"3GiB/s\"");
    }
    Upkeep {
        fixed: load.and_then(|load| load.span("fixed")).unwrap_or(standard.fixed),
        bandwidth,
        stop: section.span("stop").unwrap_or(standard.stop),
        release: section.span("release").unwrap_or(standard.release),
        poll: section.span("poll").unwrap_or(standard.poll),
    }
}

impl Devices {
    fn configured(root: &Section<'_>, machine: &mut Machine<'_>) -> Devices {
        let mut devices = Devices::default();
        if let Some(policy) = root.section("policy") {
            let (limit, headroom) = (policy.size("limit"), policy.size("headroom"));
            devices.rules = Rules { limit, headroom, parallel_loads: policy.count32("parallel_loads") };
        }
        for section in root.sections("devices") {
            devices.group(&section, machine);
        }
        devices
    }

    fn add_found(&mut self, found: &FoundDevice) {
        let mut device = Device::new(found.name.clone(), found.kind, found.memory);
        device.limit = self.rules.limit;
        device.headroom = self.rules.headroom.unwrap_or(device.headroom);
        device.parallel_loads = self.rules.parallel_loads.unwrap_or(device.parallel_loads);
        let source = DeviceSource { backend: Some(found.backend), id: found.id.clone(), found: true };
        let id = self.add(device, Card::default(), Ppm::ONE, source);
        self.groups.push((found.name.clone(), vec![id]));
    }

    fn add(&mut self, device: Device, card: Card, speed: Ppm, source: DeviceSource) -> DeviceId {
        let id = DeviceId(u32::try_from(self.told.len()).unwrap_or(u32::MAX));
        self.told.push(device);
        self.cards.push(card);
        self.speeds.push(speed);
        self.sources.push(source);
        id
    }

    fn group(&mut self, section: &Section<'_>, machine: &mut Machine<'_>) {
        let Some(name) = section.text("name") else { return };
        if self.groups.iter().any(|(other, _)| other == name) {
            return section.wrong("name", "is the name of another group already");
        }
        let count = section.count32("count").unwrap_or(1);
        if count > 1 && section.has("id") {
            section
                .wrong("id", &format!("is that of one device, and `count` is {count}; give each its own [[devices]]"));
        }
        let speed = section.ratio("speed").unwrap_or(Ppm::ONE);
        let card = Card {
            sharing: section.number("sharing").unwrap_or(1.0),
            speed: f64::from(speed.get()) / 1_000_000.0,
            upkeep: upkeep(section),
        };
        let mut members = Vec::new();
        for at in 0..count {
            let device = format!("{name}{at}");
            if self.told.iter().any(|other| other.name == device) {
                return section.wrong("name", &format!("makes a card {device}, which another group has already"));
            }
            let (source, found) = machine.take(section);
            let device = self.device(section, device, source.backend, found);
            members.push(self.add(device, card.clone(), speed, source));
        }
        self.groups.push((name.to_owned(), members));
    }

    /// A card of a group: what the file leaves out is as the real device has it.
    fn device(
        &self,
        section: &Section<'_>,
        name: String,
        backend: Option<Backend>,
        found: Option<&FoundDevice>,
    ) -> Device {
        let usual = found.map(|found| found.kind).or(backend.map(Backend::usual_kind));
        let kind = section.choice("kind", [DeviceKind::Discrete, DeviceKind::Unified]).or(usual);
        let memory = section.size("memory").or_else(|| found?.memory);
        let mut device = Device::new(name, kind.unwrap_or(DeviceKind::Discrete), memory);
        device.limit = section.size("limit").or(self.rules.limit);
        device.headroom = section.size("headroom").or(self.rules.headroom).unwrap_or(device.headroom);
        let loads = section.count32("parallel_loads").or(self.rules.parallel_loads);
        device.parallel_loads = loads.unwrap_or(device.parallel_loads);
        device
    }

    /// Where a model on this device runs.
    pub fn site(&self, device: DeviceId) -> Option<Site> {
        let source = self.sources.get(device.index())?;
        Some(Site { kind: self.told.get(device.index())?.kind, backend: source.backend })
    }

    /// The device of that name, or those of the group of that name.
    pub fn find(&self, name: &str) -> Option<Vec<DeviceId>> {
        if let Some(device) = self.all().find(|id| self.name(*id) == name) {
            return Some(vec![device]);
        }
        self.groups.iter().find(|(group, _)| group == name).map(|(_, members)| members.clone())
    }

    /// Every device.
    pub fn all(&self) -> impl Iterator<Item = DeviceId> + use<> {
        (0..u32::try_from(self.told.len()).unwrap_or(u32::MAX)).map(DeviceId)
    }

    /// The name of a device.
    pub fn name(&self, device: DeviceId) -> &str {
        self.told.get(device.index()).map_or("", |device| &device.name)
    }

    /// The memory of a device, where it is known.
    pub fn memory(&self, device: DeviceId) -> Option<Bytes> {
        self.told.get(device.index())?.memory
    }

    /// Why no device is called `name`.
    pub fn unknown(&self, name: &str) -> (String, Vec<String>) {
        let names =
            || self.told.iter().map(|one| one.name.as_str()).chain(self.groups.iter().map(|one| one.0.as_str()));
        let message = match did_you_mean(name, names()) {
            Some(hint) => format!("there is no device {name:?}; {hint}"),
            None => format!("there is no device {name:?}"),
        };
        (message, vec![format!("devices and groups: {}", listed(names()))])
    }
}
