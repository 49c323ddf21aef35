//! What is reported of a knee; the shapes of a sweep's JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::verdict::{Limit, Verdict};

/// The four readings of one system's knee. Rates are requests per second, offered to all of its cards together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneeReport {
    /// How many cards the system has.
    pub devices: u32,
    /// Other settings of the sweep that hold for this knee, by dotted key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, serde_json::Value>,
    /// The most it can do, where that is known analytically.
    pub capacity: Option<f64>,
    /// The highest rate that meets the target, where there is a target.
    pub at_target: Option<TargetKnee>,
    /// Where throughput falls short of what is offered.
    pub saturation: Option<RateReading>,
    /// Where throughput per mean latency is largest.
    pub power: Option<RateReading>,
    /// Where the latency curve bends most within the stated range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kneedle: Option<KneedleReading>,
}

/// A rate and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bracket {
    /// The best guess; `None` where the rate lies outside of what was looked at.
    pub mean: Option<f64>,
    /// It is not below this; `None`: no such rate was found.
    pub low: Option<f64>,
    /// It is not above this; `None`: no such rate was found.
    pub high: Option<f64>,
}

/// A rate read off a grid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateReading {
    /// The rate.
    pub rate: Bracket,
}

/// Kneedle's reading (Satopää, Albrecht, Irwin and Raghavan, 2011) with the range without which it means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneedleReading {
    /// The rate where the curve bends most.
    pub rate: f64,
    /// The lowest and the highest rate of the curve.
    pub over: [f64; 2],
}

/// The highest rate that meets a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetKnee {
    /// The metric, by its dotted name.
    pub metric: String,
    /// What it has to keep to.
    #[serde(flatten)]
    pub limit: Limit,
    /// The rate: `low` is the highest that passed, `high` the lowest that failed, both once more with fresh seeds.
    pub rate: Bracket,
    /// How the metric gets across the target.
    pub shape: Shape,
    /// What the second run of the bracket's ends said.
    pub confirmation: Confirmation,
    /// A rate that stayed undecided after the most replications; the search ended there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided: Option<f64>,
    /// Every rate that was judged, in the order of judging.
    pub probes: Vec<ProbeRecord>,
}

/// How a metric gets across its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// It rises through it.
    Smooth,
    /// It jumps over it: beyond the bracket the system is unstable, or one percent more load changes the metric by half
    /// or more.
    Cliff,
    /// Every rate looked at passes, or every one fails, or none could be judged.
    NotBracketed,
}

/// What the second run of a bracket's ends, with fresh seeds, said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confirmation {
    /// The same as the first.
    Confirmed,
    /// At least one end did not hold and was moved outwards until it did.
    Widened,
    /// An end did not hold, nor did any rate further out that was tried.
    Contradicted,
    /// There was no end to run again.
    Nothing,
}

/// One rate that was judged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRecord {
    /// The rate.
    pub rate: f64,
    /// Whether it was one of the search or of the second run.
    pub seeds: SeedSet,
    /// How many replications it took.
    pub replications: u32,
    /// The metric over all of them, where there is one.
    pub value: Option<f64>,
    /// The lower end of its 99% interval, where there is one.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// What was decided.
    pub verdict: Verdict,
}

/// Which seeds a probe uses. All probes of one set share theirs (common random numbers), so that only the rate differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeedSet {
    /// Those of the search.
    Search,
    /// Fresh ones, for running the ends of the bracket again.
    Fresh,
}

impl Bracket {
    /// Nothing was found.
    pub const NOWHERE: Bracket = Bracket { mean: None, low: None, high: None };
}

impl Shape {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Shape::Smooth => "smooth",
            Shape::Cliff => "cliff",
            Shape::NotBracketed => "not bracketed",
        }
    }
}
