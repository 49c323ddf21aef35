//! The lines of a journal: one enum, versioned, documented field by field.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windtunnel_core::{Effect, GrantedStep, Input, Span, Time};

/// The version of the records this program writes. A reader needs the same major; a newer minor adds fields it skips.
pub const SCHEMA: SchemaVersion = SchemaVersion { major: 1, minor: 0 };

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The first line of every run in the file.
    Header(Box<Header>),
    /// Something happened.
    Input {
        /// When, in nanoseconds since the run began.
        t: Time,
        /// What, as the scheduler got it.
        input: Input,
    },
    /// The scheduler wanted something, in answer to the last input.
    Effect {
        /// When.
        t: Time,
        /// What.
        effect: Effect<Vec<GrantedStep>>,
    },
    /// The scheduler's whole state, from which a replay can start.
    Checkpoint {
        /// When.
        t: Time,
        /// The state, as the scheduler writes it.
        state: serde_json::Value,
    },
    /// Lines are missing here; a checkpoint follows.
    Gap {
        /// When.
        t: Time,
        /// How many, where that is known.
        lines: Option<u64>,
    },
    /// The last line of a run.
    End(End),
}

/// A version of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct SchemaVersion {
    /// Must match.
    pub major: u32,
    /// May be older or newer.
    pub minor: u32,
}

/// What a run is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// The version of the records.
    pub schema: SchemaVersion,
    /// The version of the program.
    pub program: String,
    /// Where it ran.
    pub source: Source,
    /// What it was for.
    pub title: String,
    /// The seed of its streams.
    pub seed: u64,
    /// Which replication it is, from 0.
    pub replication: u32,
    /// The virtual time after which it was to end, where one was set.
    pub horizon: Option<Span>,
    /// The number of arrivals after which it was to end, where one was set.
    pub jobs: Option<u64>,
    /// What is left out of the figures.
    pub warmup: WarmupRule,
    /// Wall-clock start in seconds since 1970, in a live run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_clock: Option<f64>,
    /// Names and true capacities of devices, by their ids.
    pub devices: Vec<DeviceFacts>,
    /// Names of models, by their ids.
    pub models: Vec<ModelFacts>,
    /// What sends the work, by label.
    pub workloads: Vec<WorkloadFacts>,
    /// Anything else worth telling by what it is about, such as rows of a trace that were left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remarks: BTreeMap<String, String>,
}

/// What a load generator says under the remark [`JOURNAL`] of a header it writes, at least.
pub const LOAD_GENERATOR: &str = "written by a load generator";

/// The remark that says who else than a scheduler wrote a journal.
pub const JOURNAL: &str = "journal";

impl Header {
    /// Whether a load generator wrote it: then there are requests and their ends, and no decision of a scheduler.
    pub fn is_of_load_generator(&self) -> bool {
        self.remarks.get(JOURNAL).is_some_and(|remark| remark.starts_with(LOAD_GENERATOR))
    }
}

/// Where a run ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// On simulated cards.
    Sim,
    /// On real ones.
    Live,
}

/// What is left out of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarmupRule {
    /// As MSER-5 says.
    Auto,
    /// So long.
    Fixed(Span),
    /// This share of the run.
    Share(f64),
}

/// A device, as reports need to know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceFacts {
    /// Its name.
    pub name: String,
    /// Whether any model may be placed on it.
    pub used: bool,
    /// How much more it does at most when its instances run side by side than when they take turns: 1 with perfect time
    /// slicing, the number of its instances where they do not disturb each other.
    #[serde(default = "one")]
    pub side_by_side: f64,
}

fn one() -> f64 {
    1.0
}

/// A model, as reports need to know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelFacts {
    /// Its name.
    pub name: String,
    /// The most inputs a second that it can do on each device alone, by device id; `None` where it may not be placed or
    /// where that is not known.
    pub capacity: Vec<Option<f64>>,
    /// The most inputs in a batch, or its slots.
    pub at_once: u32,
}

/// A workload, as reports need to know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadFacts {
    /// Its name.
    pub name: String,
    /// How its requests come, in words: `poisson 1500/s`.
    pub arrivals: String,
    /// Whether new requests wait for the end of earlier ones.
    pub closed_loop: bool,
    /// The class of its requests.
    pub class: windtunnel_core::Class,
    /// The capacity of the devices and models that serve it, alone, in requests a second, where that is known.
    pub capacity: Option<f64>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// When.
    pub t: Time,
    /// Why.
    pub cause: EndCause,
    /// How often the scheduler's invariants were checked.
    pub invariants_checked: u64,
    /// What they found broken.
    pub violations: Vec<String>,
    /// What was only known at the end and is worth telling, by what it is about, such as how late a load generator was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remarks: BTreeMap<String, String>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// Its horizon was reached.
    Horizon,
    /// So many jobs had arrived.
    Jobs,
    /// Nothing was left to happen.
    Exhausted,
    /// Every job had ended after the horizon.
    Drained,
    /// Somebody stopped it.
    Interrupted,
}
