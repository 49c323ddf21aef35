//! `[[faults]]`: what goes wrong, where and when.

use windtunnel_core::{Bytes, DeviceId, ModelId, Ppm, PressureLevel, Span};

use super::devices::Devices;
use super::names::Names;
use crate::decode::Section;
use crate::fault::{Fault, FaultKind, MonitorTrouble, Occurrence};
use crate::form::scalar;
use crate::form::{Form, Interval, Key, Scalar, Shape, Tagged, did_you_mean, listed};

/// An array of tables that differ by their kind.
pub(crate) const FAULTS: Shape = Shape::Any(&Shape::Tagged(&FAULT));

static FAULT: Tagged = Tagged {
    tag: "kind",
    variants: &[
        ("phantom_memory", &PHANTOM_MEMORY),
        ("lingering_memory", &LINGERING_MEMORY),
        ("slow_exit", &SLOW_EXIT),
        ("never_exits", &NEVER_EXITS),
        ("slow_load", &SLOW_LOAD),
        ("stalled_load", &STALLED_LOAD),
        ("failed_load", &FAILED_LOAD),
        ("load_oom", &LOAD_OOM),
        ("wrong_estimate", &WRONG_ESTIMATE),
        ("memory_growth", &MEMORY_GROWTH),
        ("foreign_memory", &FOREIGN_MEMORY),
        ("silent_overcommit", &SILENT_OVERCOMMIT),
        ("crash", &CRASH),
        ("wedge", &WEDGE),
        ("slow_device", &SLOW_DEVICE),
        ("connection_limit", &CONNECTION_LIMIT),
        ("monitor", &MONITOR),
        ("pressure", &PRESSURE),
        ("clock_jump", &CLOCK_JUMP),
    ],
};

const NAME: Key = Key::scalar("name", Scalar::Name, "its name, for --set");
const DEVICE: Key = Key::scalar("device", Scalar::Name, "the device or group it strikes; default: every device");
const MODEL: Key = Key::scalar("model", Scalar::Name, "the model it strikes; default: every model");
const AT: Key = Key::new(
    "at",
    Shape::Either(&[Shape::Scalar(Scalar::Span), Shape::List(&Shape::Scalar(Scalar::Span))]),
    "when: a moment or a list; where it takes an occasion, on the first one from each moment on",
);
const RATE: Key = Key::scalar("rate", Scalar::Number(Interval::Above(0.0, 1e6)), "how often an hour, at random");
const PROBABILITY: Key =
    Key::scalar("probability", Scalar::Number(Interval::Above(0.0, 1.0)), "on each occasion with this probability");
const FROM: Key = Key::scalar("from", Scalar::Span, "not before that").or("\"0s\"");
const TO: Key = Key::scalar("to", Scalar::Span, "not from then on; default: to the end");
const FACTOR: Key = Key::scalar("factor", Scalar::Factor, "how many times as long").required();
const FOR: Key = Key::scalar("for", Scalar::Span, "how long it lasts");
const CURVE_AT: Key = Key::scalar("at", Scalar::Span, "from when the times of the curve count").or("\"0s\"");

static PHANTOM_MEMORY: Form = Form::new(
    "phantom_memory_fault",
    "After an exit the memory in use still counts a process that the list of processes no longer has.",
    &[
        NAME,
        DEVICE,
        MODEL,
        Key::scalar("polls", Scalar::Count(1, 1_000_000), "for how many readings").or("1"),
        AT,
        RATE,
        PROBABILITY,
        FROM,
        TO,
    ],
);
static LINGERING_MEMORY: Form = Form::new(
    "lingering_memory_fault",
    "The memory of a process that has ended stays taken for a while.",
    &[NAME, DEVICE, MODEL, FOR.required(), AT, RATE, PROBABILITY, FROM, TO],
);
static SLOW_EXIT: Form = Form::new(
    "slow_exit_fault",
    "A process that is asked to stop takes longer.",
    &[NAME, DEVICE, MODEL, FOR.required(), AT, RATE, PROBABILITY, FROM, TO],
);
static NEVER_EXITS: Form = Form::new(
    "never_exits_fault",
    "A process that is asked to stop does not, and is killed after 10 s.",
    &[NAME, DEVICE, MODEL, AT, RATE, PROBABILITY, FROM, TO],
);
static SLOW_LOAD: Form = Form::new(
    "slow_load_fault",
    "A load takes longer.",
    &[NAME, DEVICE, MODEL, FACTOR, AT, RATE, PROBABILITY, FROM, TO],
);
static STALLED_LOAD: Form = Form::new(
    "stalled_load_fault",
    "A load gets nowhere and is given up.",
    &[NAME, DEVICE, MODEL, FOR.or("\"2m\""), AT, RATE, PROBABILITY, FROM, TO],
);
static FAILED_LOAD: Form = Form::new(
    "failed_load_fault",
    "The process of a load dies when it would have been ready.",
    &[NAME, DEVICE, MODEL, AT, RATE, PROBABILITY, FROM, TO],
);
static LOAD_OOM: Form = Form::new(
    "load_oom_fault",
    "A load runs out of memory when it would have been ready.",
    &[NAME, DEVICE, MODEL, AT, RATE, PROBABILITY, FROM, TO],
);
static WRONG_ESTIMATE: Form = Form::new(
    "wrong_estimate_fault",
    "The estimate of a footprint is wrong.",
    &[NAME, DEVICE, MODEL, Key::scalar("factor", Scalar::Factor, "how many times the truth it is").required()],
);
static MEMORY_GROWTH: Form = Form::new(
    "memory_growth_fault",
    "A process grows: each from the end of its load on, or all that are loaded at given moments.",
    &[
        NAME,
        DEVICE,
        MODEL,
        Key::scalar("bytes", Scalar::Size, "by how much").required(),
        Key::scalar("over", Scalar::Span, "evenly over how long").or("\"0s\""),
        AT,
        RATE,
        PROBABILITY,
        FROM,
        TO,
    ],
);
static FOREIGN_MEMORY: Form = Form::new(
    "foreign_memory_fault",
    "Others use memory of a device.",
    &[
        NAME,
        DEVICE,
        Key::new(
            "curve",
            Shape::List(&Shape::Couple(&Shape::Scalar(Scalar::Span), &Shape::Scalar(Scalar::Size))),
            "how much from when on, such as [[\"30s\", \"6GiB\"], [\"90s\", \"0GiB\"]]",
        )
        .required(),
        CURVE_AT,
    ],
);
static SILENT_OVERCOMMIT: Form = Form::new(
    "silent_overcommit_fault",
    "A load succeeds although the memory is not there: every grant of the device fails until that process is gone.",
    &[NAME, DEVICE, MODEL, AT, RATE, PROBABILITY, FROM, TO],
);
static CRASH: Form = Form::new(
    "crash_fault",
    "A process dies in the middle of a grant.",
    &[NAME, DEVICE, MODEL, AT, RATE, PROBABILITY, FROM, TO],
);
static WEDGE: Form = Form::new(
    "wedge_fault",
    "A process lives but its grants get no further; it is killed after a while.",
    &[NAME, DEVICE, MODEL, FOR.or("\"2m\""), AT, RATE, PROBABILITY, FROM, TO],
);
static SLOW_DEVICE: Form =
    Form::new("slow_device_fault", "A device is slow for a while.", &[NAME, DEVICE, FACTOR, FOR, AT, RATE, FROM, TO]);
static CONNECTION_LIMIT: Form = Form::new(
    "connection_limit_fault",
    "A runtime closes its connection after so many grants: the next one fails before anything is sent.",
    &[
        NAME,
        DEVICE,
        MODEL,
        Key::scalar("requests", Scalar::Count(1, u32::MAX as u64), "how many grants go well").required(),
        FROM,
        TO,
    ],
);
static MONITOR: Form = Form::new(
    "monitor_fault",
    "The memory monitor of a device fails (missing), is silent (stale), lacks figures (partial) or jumps (jumping).",
    &[
        NAME,
        DEVICE,
        Key::scalar("mode", Scalar::Word(MODES), "how it misbehaves"),
        Key::scalar("missing", Scalar::Flag, "true: short for mode = \"missing\""),
        Key::scalar("stale", Scalar::Flag, "true: short for mode = \"stale\""),
        Key::scalar("partial", Scalar::Flag, "true: short for mode = \"partial\""),
        Key::scalar("jumping", Scalar::Flag, "true: short for mode = \"jumping\""),
        FOR,
        AT,
        RATE,
        FROM,
        TO,
    ],
);
static PRESSURE: Form = Form::new(
    "pressure_fault",
    "A device reports memory pressure, whatever is in use.",
    &[
        NAME,
        DEVICE,
        Key::new(
            "curve",
            Shape::List(&Shape::Couple(&Shape::Scalar(Scalar::Span), &Shape::Scalar(Scalar::Word(LEVELS)))),
            "which level from when on, such as [[\"10s\", \"warn\"], [\"40s\", \"normal\"]]",
        )
        .required(),
        CURVE_AT,
    ],
);
static CLOCK_JUMP: Form = Form::new(
    "clock_jump_fault",
    "The host sleeps: time goes on, and all that was due happens later.",
    &[NAME, Key::scalar("by", Scalar::SpanAboveZero, "for how long").required(), AT, RATE, FROM, TO],
);

const MODES: &[&str] = &["missing", "stale", "partial", "jumping"];
const TROUBLES: [MonitorTrouble; 4] =
    [MonitorTrouble::Missing, MonitorTrouble::Stale, MonitorTrouble::Partial, MonitorTrouble::Jumping];
const LEVELS: &[&str] = &["normal", "warn", "critical"];
const PRESSURES: [PressureLevel; 3] = [PressureLevel::Normal, PressureLevel::Warn, PressureLevel::Critical];

/// A stall or a wedge is noticed after this.
const WATCHDOG: Span = Span::from_secs(120);

/// Reads all faults.
pub(crate) fn read(root: &Section<'_>, names: &Names, devices: &Devices) -> Vec<Fault> {
    let faults = root.tagged_list("faults");
    let mut known: Vec<&str> = Vec::new();
    for (_, section) in &faults {
        match section.text("name") {
            Some(name) if known.contains(&name) => section.wrong("name", "is the name of another fault already"),
            Some(name) => known.push(name),
            None => {}
        }
    }
    faults.iter().filter_map(|(kind, section)| fault(kind, section, names, devices)).collect()
}

fn fault(kind: &str, section: &Section<'_>, names: &Names, devices: &Devices) -> Option<Fault> {
    let (from, to) = window(section);
    let kind = kind_of(kind, section)?;
    let when = if section.takes("rate") { occurrence(section, &kind) } else { Occurrence::Always };
    Some(Fault { kind, devices: devices_of(section, devices), model: model_of(section, names), when, from, to })
}

fn kind_of(kind: &str, section: &Section<'_>) -> Option<FaultKind> {
    let factor = || section.ratio("factor").unwrap_or(Ppm::ONE);
    Some(match kind {
        "phantom_memory" => FaultKind::PhantomMemory { polls: section.count32("polls").unwrap_or(1) },
        "lingering_memory" => FaultKind::LingeringMemory { lasts: section.span("for")? },
        "slow_exit" => FaultKind::SlowExit { lasts: section.span("for")? },
        "never_exits" => FaultKind::NeverExits,
        "slow_load" => FaultKind::SlowLoad { factor: factor() },
        "stalled_load" => FaultKind::StalledLoad { lasts: section.span("for").unwrap_or(WATCHDOG) },
        "failed_load" => FaultKind::FailedLoad,
        "load_oom" => FaultKind::LoadOom,
        "wrong_estimate" => FaultKind::WrongEstimate { factor: factor() },
        "memory_growth" => {
            FaultKind::MemoryGrowth { bytes: section.size("bytes")?, over: section.span("over").unwrap_or(Span::ZERO) }
        }
        "foreign_memory" => FaultKind::ForeignMemory { curve: amounts(section)? },
        "silent_overcommit" => FaultKind::SilentOvercommit,
        "crash" => FaultKind::Crash,
        "wedge" => FaultKind::Wedge { lasts: section.span("for").unwrap_or(WATCHDOG) },
        "slow_device" => FaultKind::SlowDevice { factor: factor(), lasts: section.span("for") },
        "connection_limit" => FaultKind::ConnectionLimit { requests: section.count32("requests")? },
        "monitor" => FaultKind::Monitor { trouble: trouble(section)?, lasts: section.span("for") },
        "pressure" => FaultKind::Pressure { curve: levels(section)? },
        "clock_jump" => FaultKind::ClockJump { by: section.span("by")? },
        _ => return None,
    })
}

fn window(section: &Section<'_>) -> (Span, Option<Span>) {
    if !section.takes("from") {
        return (Span::ZERO, None);
    }
    let (from, to) = (section.span("from").unwrap_or(Span::ZERO), section.span("to"));
    super::arrivals::check_window(section, from, to);
    (from, to)
}

fn occurrence(section: &Section<'_>, kind: &FaultKind) -> Occurrence {
    let takes_probability = section.takes("probability");
    let keys: &[&str] = if takes_probability { &["at", "rate", "probability"] } else { &["at", "rate"] };
    let given = section.given(keys);
    if given.len() > 1 {
        section.complain(&format!("says in several ways when it strikes, {}; leave all but one out", listed(given)));
        return Occurrence::Always;
    }
    if given.is_empty() && needs_a_moment(kind) {
        section.complain(&format!("does not say when it strikes: give it one of {}", listed(keys.iter().copied())));
    }
    let at = || section.span_or_spans("at").map(sorted).map(Occurrence::At);
    let probability = || section.number("probability").map(Occurrence::Probability);
    let rate = || section.number("rate").map(Occurrence::Rate);
    let chance = if takes_probability { probability() } else { None };
    at().or_else(rate).or(chance).unwrap_or(Occurrence::Always)
}

/// A process that dies in every grant, or a host that always sleeps, would be no world to schedule in.
fn needs_a_moment(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::Crash | FaultKind::Wedge { .. } | FaultKind::ClockJump { .. })
}

fn sorted(mut moments: Vec<Span>) -> Vec<Span> {
    moments.sort_unstable();
    moments
}

fn amounts(section: &Section<'_>) -> Option<Vec<(Span, Bytes)>> {
    curve(section, section.couples("curve", |node| scalar::size(node).ok())?)
}

fn levels(section: &Section<'_>) -> Option<Vec<(Span, PressureLevel)>> {
    let level = |node: &_| PRESSURES.get(scalar::word(node, LEVELS).ok()?).copied();
    curve(section, section.couples("curve", level)?)
}

/// The points of a curve, their times counted from its `at`.
fn curve<T: Copy>(section: &Section<'_>, points: Vec<(Span, T)>) -> Option<Vec<(Span, T)>> {
    let start = section.span("at").unwrap_or(Span::ZERO);
    if let Some([earlier, later]) = points.array_windows().find(|[earlier, later]| later.0 <= earlier.0) {
        section.wrong("curve", &format!("must go forward in time: {} does not come after {}", later.0, earlier.0));
        return None;
    }
    Some(points.into_iter().map(|(at, value)| (start.plus(at), value)).collect())
}

fn trouble(section: &Section<'_>) -> Option<MonitorTrouble> {
    let flagged = MODES.iter().zip(TROUBLES).filter(|(key, _)| section.flag(key) == Some(true));
    let said: Vec<MonitorTrouble> =
        section.choice("mode", TROUBLES).into_iter().chain(flagged.map(|(_, trouble)| trouble)).collect();
    match said[..] {
        [trouble] => Some(trouble),
        _ => {
            section.complain("must say in one way how it misbehaves, such as mode = \"stale\"");
            None
        }
    }
}

fn devices_of(section: &Section<'_>, devices: &Devices) -> Option<Vec<DeviceId>> {
    let name = if section.takes("device") { section.text("device")? } else { return None };
    let found = devices.find(name);
    if found.is_none() {
        let (message, notes) = devices.unknown(name);
        section.context.complain(section.place_of("device"), message, notes);
    }
    found
}

fn model_of(section: &Section<'_>, names: &Names) -> Option<ModelId> {
    let name = if section.takes("model") { section.text("model")? } else { return None };
    let found = names.model(name);
    if found.is_none() {
        let known: Vec<&str> = names.models().collect();
        let hint = did_you_mean(name, known.iter().copied()).map_or(String::new(), |hint| format!("; {hint}"));
        let notes = vec![format!("known: {}", listed(known))];
        section.context.complain(section.place_of("model"), format!("there is no model {name:?}{hint}"), notes);
    }
    found
}
