//! What a monitoring system asks for, in Prometheus' text form.
//!
//! Nothing counts on the way of a request: a [`Meter`] takes the very records that the journal takes, on the thread of the
//! scheduler, and counts what they say. What is a state rather than an event, such as the depth of a queue, is read off a
//! picture of the scheduler ([`View`]) when somebody asks.

mod histograms;
mod meter;
mod picture;
mod watched;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
};

use prometheus_client::{
    encoding::text::encode,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use windtunnel_core::View;

use crate::journal::Health;
use histograms::{LOADS, STEPS, TIMES, of};
use picture::Picture;

pub use meter::Meter;
pub use watched::{Seen, Watched};

/// Names and values of labels.
type Labels = Vec<(&'static str, String)>;
type Counts = Family<Labels, Counter>;
type Times = Family<Labels, Histogram, fn() -> Histogram>;

/// All figures of a daemon.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    events: Events,
    answers: Counts,
    /// The same counters, found without making their labels.
    answered: Mutex<BTreeMap<(u16, &'static str), Counter>>,
    picture: Mutex<Picture>,
    journal: Option<Arc<Health>>,
    lag: Gauge,
    left_out: Gauge,
    journal_errors: Gauge,
}

/// What is counted as it happens.
#[derive(Clone, Debug)]
struct Events {
    queue: Times,
    first_token: Times,
    service: Times,
    total: Times,
    requests: Counts,
    tokens: Counts,
    refusals: Counts,
    failures: Counts,
    loads: Counts,
    reloads: Counts,
    load_failures: Counts,
    load_time: Times,
    stops: Counts,
    exits: Counts,
    guard: Counts,
    requeued: Counts,
    out_of_memory: Counts,
    thrash: Counts,
    steps: Histogram,
    broken: Counter,
}

impl Metrics {
    /// Nothing counted yet. `journal` tells how the journal fares, where one is written.
    pub fn new(journal: Option<Arc<Health>>) -> Metrics {
        let mut registry = Registry::with_prefix("windtunnel");
        let events = Events::register(&mut registry);
        let picture = Mutex::new(Picture::register(&mut registry));
        let [lag, left_out, journal_errors] = [
            ("journal_lag_bytes", "Bytes of the journal on their way to the disk"),
            ("journal_lines_left_out", "Lines of the journal that were left out because the disk was too slow"),
            ("journal_disk_errors", "Errors of the disk while writing the journal"),
        ]
        .map(|(name, help)| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        });
        let answers = Counts::default();
        registry.register(
            "http_answers",
            "Answers to requests for inference and refusals of all others, by status and reason",
            answers.clone(),
        );
        let answered = Mutex::default();
        Metrics { registry, events, answers, answered, picture, journal, lag, left_out, journal_errors }
    }

    /// Counts what a scheduler does from its first record on.
    pub fn meter(&self) -> Meter {
        Meter::new(self.events.clone())
    }

    /// How long a step of the scheduler takes, in seconds.
    pub fn steps(&self) -> Histogram {
        self.events.steps.clone()
    }

    /// How many invariants were found broken.
    pub fn broken(&self) -> Counter {
        self.events.broken.clone()
    }

    /// A request for inference was answered with this status, or 0 where its client left before, or another was refused;
    /// `reason` is one word.
    pub fn answered(&self, status: u16, reason: &'static str) {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = answered.entry((status, reason)).or_insert_with(|| {
            let labels = vec![("status", status.to_string()), ("reason", reason.to_owned())];
            self.answers.get_or_create_owned(&labels)
        });
        counter.inc();
    }

    /// Everything as text, with the state of `view`, whose models and devices `names` names.
    pub fn text(&self, view: &View, names: &windtunnel_core::Configuration) -> String {
        if let Some(health) = &self.journal {
            let read =
                |one: &std::sync::atomic::AtomicU64| i64::try_from(one.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
            self.lag.set(read(&health.lag));
            self.left_out.set(read(&health.left_out));
            self.journal_errors.set(read(&health.errors));
        }
        // Two that ask at once are answered one after the other, each from its own picture.
        let picture = self.picture.lock().unwrap_or_else(PoisonError::into_inner);
        picture.take(view, names);
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl Events {
    fn register(registry: &mut Registry) -> Events {
        let times = |registry: &mut Registry, name: &str, help: &str| {
            let family: Times = Family::new_with_constructor(|| of(TIMES));
            registry.register(name, help, family.clone());
            family
        };
        let counts = |registry: &mut Registry, name: &str, help: &str| {
            let family = Counts::default();
            registry.register(name, help, family.clone());
            family
        };
        let load_time: Times = Family::new_with_constructor(|| of(LOADS));
        registry.register("load_seconds", "Time from a load's order until the model answers", load_time.clone());
        let steps = of(STEPS);
        registry.register("scheduler_step_seconds", "Time the scheduler took for one input", steps.clone());
        let broken = Counter::default();
        registry.register("invariants_broken", "Invariants of the scheduler that were found broken", broken.clone());
        Events {
            queue: times(registry, "queue_seconds", "Time from arrival to the first step, of requests that ran"),
            first_token: times(registry, "first_token_seconds", "Time from arrival to the first token"),
            service: times(registry, "service_seconds", "Time from the first step to the end of completed requests"),
            total: times(registry, "request_seconds", "Time from arrival to the end of completed requests"),
            requests: counts(registry, "requests", "Requests that ended, by how"),
            tokens: counts(registry, "output_tokens", "Tokens given out by finished grants"),
            refusals: counts(registry, "refusals", "Requests that were not accepted, by reason"),
            failures: counts(registry, "failures", "Requests that were accepted and came to nothing, by reason"),
            loads: counts(registry, "loads", "Loads that were started"),
            reloads: counts(registry, "reloads", "Loads of models that had been loaded before"),
            load_failures: counts(registry, "load_failures", "Loads that came to nothing, by cause"),
            stops: counts(
                registry,
                "stops",
                "Instances that were stopped, by cause; evictions are those for others' memory",
            ),
            exits: counts(registry, "exits", "Processes that ended without having been asked"),
            guard: counts(registry, "guard_steps", "Grants of the guard to starved lower classes"),
            requeued: counts(registry, "requeued", "Steps that failed before anything was sent and ran again"),
            out_of_memory: counts(registry, "out_of_memory", "Times that memory ran out while models served"),
            thrash: counts(registry, "thrash", "Times that a model was found to be loaded again and again"),
            load_time,
            steps,
            broken,
        }
    }
}
