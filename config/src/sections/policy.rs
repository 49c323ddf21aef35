//! `[policy]`: the numbers and choices of the scheduling rules, in one table from which files are read, the JSON Schema is
//! made and the reference is printed.

use windtunnel_core::{Admission, Class, ClassPolicy, Eviction, Order, Policy, Routing};

use super::devices::DEVICE;
use super::models::MODEL;
use crate::decode::Section;
use crate::form::{Form, Key, Role, Scalar, Shape};

const CLASS_WORDS: &[&str] = &["interactive", "background", "batch"];

pub(crate) static POLICY: Form = Form::new(
    "policy",
    "The numbers and choices of the scheduling rules.",
    &[
        Key::scalar("interactive_idle", Scalar::Span, "interactive mode lasts so long after the last interactive step")
            .or("\"2s\""),
        Key::scalar(
            "background_max_starvation",
            Scalar::Span,
            "a background or batch job without progress for so long is starved; 0s: strict exclusivity",
        )
        .or("\"3s\""),
        Key::scalar("background_share", Scalar::Share, "the guard's share of a device's time").or("0.5"),
        Key::scalar("guard_parallel", Scalar::Count(1, 65_536), "guard grants side by side on one device").or("1"),
        Key::scalar(
            "batch_max_starvation",
            Scalar::Span,
            "a batch job without progress for so long gets a turn in idle mode; 0s: off",
        )
        .or("\"2m\""),
        Key::scalar("batch_turn", Scalar::Span, "how long such a turn lasts").or("\"5s\""),
        Key::scalar("hot_ttl", Scalar::Span, "a model is hot for so long after its last interactive step").or("\"5m\""),
        Key::scalar(
            "reserve_interactive_slots",
            Scalar::Count(0, 65_536),
            "slots of a hot model that lower classes leave free, though never its only one",
        )
        .or("1"),
        Key::scalar("default_class", Scalar::Word(CLASS_WORDS), "the class of a request that names none")
            .or("\"interactive\""),
        Key::scalar(
            "embedding_chunk",
            Scalar::Count(1, 1_000_000),
            "inputs of an embedding request that make one step",
        )
        .or("32"),
        Key::scalar(
            "routing",
            Scalar::Word(&["shared", "round_robin", "join_shortest", "power_of_two"]),
            "how jobs find one of several instances",
        )
        .or("\"shared\""),
        Key::new("classes", Shape::Table(&CLASSES), "rules per class"),
        Key::scalar("min_residency", Scalar::Span, "a model loaded for lower classes stays so long").or("\"30s\""),
        Key::scalar(
            "interactive_turn",
            Scalar::Span,
            "turn of a model that does not fit beside another; 0s: only as long as an older request waits for it",
        )
        .or("\"2s\""),
        Key::scalar("interactive_gap", Scalar::Span, "a turn ends after so long without interactive work")
            .or("\"250ms\""),
        Key::scalar("eviction", Scalar::Word(&["cost", "lru"]), "how victims are chosen").or("\"cost\""),
        Key::scalar("release_timeout", Scalar::Span, "memory of a stopped process stays booked for so long at most")
            .or("\"10s\""),
        Key::scalar("monitor_stale", Scalar::Span, "a memory monitor silent for so long stops new loads").or("\"10s\""),
        Key::scalar("limit", Scalar::Size, "memory of every device that may be used at most; default: all"),
        Key::scalar(
            "headroom",
            Scalar::Size,
            "memory of every device left free; default: 512MiB, 1GiB on unified memory",
        ),
        Key::scalar(
            "parallel_loads",
            Scalar::Count(1, 64),
            "loads of a device at a time; default: 2, 1 on unified memory",
        ),
    ],
);

static CLASSES: Form = Form::new(
    "classes",
    "Rules per class.",
    &[
        Key::new("interactive", Shape::Table(&CLASS), "somebody is waiting in front of a screen"),
        Key::new("background", Shape::Table(&CLASS), "somebody will look soon"),
        Key::new("batch", Shape::Table(&CLASS), "nobody is waiting"),
    ],
);

static CLASS: Form = Form::new(
    "class",
    "Rules of one class.",
    &[
        Key::scalar("order", Scalar::Word(&["fifo", "edf"]), "which waiting job of a target is next").or("\"fifo\""),
        Key::scalar(
            "admission",
            Scalar::Word(&["none", "deadline", "adaptive"]),
            "which arriving jobs are refused: none, or those predicted to end after their deadline",
        )
        .or("\"none\""),
        Key::scalar("max_queued", Scalar::CountOr(0, u32::MAX as u64, "unlimited"), "jobs that may wait")
            .or("\"unlimited\""),
        Key::scalar("max_queued_bytes", Scalar::Size, "bytes of request bodies that may wait").or("\"256MiB\""),
        Key::scalar("drop_hopeless", Scalar::Flag, "drop a waiting job that can no longer meet its deadline")
            .or("false"),
        Key::scalar(
            "weight",
            Scalar::Number(crate::form::Interval::Closed(0.0, 1000.0)),
            "weight of the class's demand when victims are chosen; default: 1.0, 0.3, 0.1",
        ),
    ],
);

/// A key of the scheduling policy, for a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyKey {
    /// The table it stands in: `policy`, `policy.classes.X`, `devices` or `models.X`.
    pub section: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it takes, in words.
    pub takes: String,
    /// What holds when it is left out, as TOML; `None` where the meaning says it.
    pub default: Option<&'static str>,
    /// What it means.
    pub meaning: &'static str,
}

/// Every key of the scheduling policy, in the order of a reference.
pub fn policy_keys() -> Vec<PolicyKey> {
    let marked = |key: &&Key| key.role == Role::Policy;
    let own = POLICY.keys.iter().filter(|key| key.name != "classes").map(|key| entry("policy", key));
    let class = CLASS.keys.iter().map(|key| entry("policy.classes.X", key));
    let device = DEVICE.keys.iter().filter(marked).map(|key| entry("devices", key));
    let model = MODEL.keys.iter().filter(marked).map(|key| entry("models.X", key));
    own.chain(class).chain(device).chain(model).collect()
}

fn entry(section: &'static str, key: &'static Key) -> PolicyKey {
    PolicyKey { section, name: key.name, takes: key.shape.words(), default: key.default, meaning: key.doc }
}

/// The policy of a file; what it leaves out is as [`Policy::default`] has it.
pub(crate) fn read(section: Option<&Section<'_>>) -> Policy {
    let standard = Policy::default();
    let Some(section) = section else { return standard };
    let span = |key, standard| section.span(key).unwrap_or(standard);
    let count = |key, standard| section.count32(key).unwrap_or(standard);
    let classes = section.section("classes");
    Policy {
        interactive_idle: span("interactive_idle", standard.interactive_idle),
        background_max_starvation: span("background_max_starvation", standard.background_max_starvation),
        background_share: section.ratio("background_share").unwrap_or(standard.background_share),
        guard_parallel: count("guard_parallel", standard.guard_parallel),
        batch_max_starvation: span("batch_max_starvation", standard.batch_max_starvation),
        batch_turn: span("batch_turn", standard.batch_turn),
        hot_ttl: span("hot_ttl", standard.hot_ttl),
        reserve_interactive_slots: count("reserve_interactive_slots", standard.reserve_interactive_slots),
        default_class: section.choice("default_class", Class::ALL).unwrap_or(standard.default_class),
        embedding_chunk: count("embedding_chunk", standard.embedding_chunk),
        routing: section.choice("routing", ROUTINGS).unwrap_or(standard.routing),
        min_residency: span("min_residency", standard.min_residency),
        interactive_turn: span("interactive_turn", standard.interactive_turn),
        interactive_gap: span("interactive_gap", standard.interactive_gap),
        eviction: section.choice("eviction", [Eviction::Cost, Eviction::Lru]).unwrap_or(standard.eviction),
        release_timeout: span("release_timeout", standard.release_timeout),
        monitor_stale: span("monitor_stale", standard.monitor_stale),
        classes: Class::ALL.map(|one| class(one, classes.as_ref().and_then(|all| all.section(one.name())).as_ref())),
    }
}

const ROUTINGS: [Routing; 4] = [Routing::Shared, Routing::RoundRobin, Routing::JoinShortest, Routing::PowerOfTwo];

fn class(class: Class, section: Option<&Section<'_>>) -> ClassPolicy {
    let standard = ClassPolicy::of(class);
    let Some(section) = section else { return standard };
    ClassPolicy {
        order: section.choice("order", [Order::Fifo, Order::Edf]).unwrap_or(standard.order),
        admission: section
            .choice("admission", [Admission::None, Admission::Deadline, Admission::Adaptive])
            .unwrap_or(standard.admission),
        max_queued: section.count32("max_queued").or(standard.max_queued),
        max_queued_bytes: section.size("max_queued_bytes").unwrap_or(standard.max_queued_bytes),
        drop_hopeless: section.flag("drop_hopeless").unwrap_or(standard.drop_hopeless),
        weight: section.ratio("weight").unwrap_or(standard.weight),
    }
}

/// The class of each word, for other sections.
pub(crate) const CLASS_KEY: Scalar = Scalar::Word(CLASS_WORDS);
