//! What is reported of a setting: figures over replications with their intervals, as scenario.md's JSON has them.
//!
//! A [`Report`] is made of [`RunFigures`](crate::RunFigures), one a replication. Rates and shares are means over
//! replications with Student-t intervals; a quantile is that of all replications together, its interval from the spread of
//! the replications' own quantiles. Where there is too little data for an interval there is none, and a remark says so.

mod build;
mod distribution;
mod figure;
mod flow;
mod lookup;
mod named;
mod run;
mod service;
mod starved;
mod sweep;
mod thrash;

use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};

pub use distribution::Distribution;
pub use figure::Figure;
pub use flow::{ArrivalReport, ClassReport, FlowReport, WorkloadReport};
pub use named::Named;
pub use run::{RunReport, SeriesReport, WarmupReport};
pub use service::{BatchSize, DeviceReport, ModeReport, ModelReport};
pub use starved::Starved;
pub use sweep::{PointReport, SweepReport};

use crate::journal::{SchemaVersion, Source};

/// The version of the report's JSON.
pub const REPORT_SCHEMA: SchemaVersion = SchemaVersion { major: 1, minor: 0 };

/// The report of one setting. Times are in seconds, sizes in bytes, rates per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The version of this form.
    pub schema: SchemaVersion,
    /// What the runs were for.
    pub title: String,
    /// The seed of their streams.
    pub seed: u64,
    /// Where they ran.
    pub source: Source,
    /// Whether the backlog grows without end; then latencies are those of the horizon and have no intervals.
    pub unstable: bool,
    /// What should be known when reading the figures.
    pub remarks: Vec<String>,
    /// By workload or key.
    pub workload: Named<WorkloadReport>,
    /// By class; those without jobs are left out.
    pub class: Named<ClassReport>,
    /// By model.
    pub model: Named<ModelReport>,
    /// By device.
    pub device: Named<DeviceReport>,
    /// Who of the lower classes got nothing for longer than is meant to be, the longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starved: Vec<Starved>,
    /// What was checked.
    pub invariants: Invariants,
    /// The runs themselves.
    pub run: RunReport,
}

/// Invariants that were checked while the runs went on and on their figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Invariants {
    /// How often.
    pub checked: u64,
    /// How often something was found broken.
    pub violated: u64,
    /// What.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl Report {
    /// Its JSON, indented, with a line feed at the end.
    pub fn to_json(&self) -> String {
        json(self)
    }
}

/// What a file of figures holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Reported {
    /// The points of a sweep.
    Sweep(SweepReport),
    /// One setting.
    One(Box<Report>),
}

/// The JSON Schema of reports and sweeps.
pub fn schema_report() -> Schema {
    schema_for!(Reported)
}

/// The JSON of a report; none of its parts can fail to be written.
fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
