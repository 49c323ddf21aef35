//! A sweep: a report for every point of a grid, and the knees.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Report, json};
use crate::knee::KneeReport;

/// A whole sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepReport {
    /// Every setting that was run.
    pub points: Vec<PointReport>,
    /// What was found of knees.
    pub knees: Vec<KneeReport>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointReport {
    /// How many cards there were.
    pub devices: u32,
    /// What was set, by dotted key.
    pub set: BTreeMap<String, serde_json::Value>,
    /// What came out.
    #[serde(flatten)]
    pub report: Report,
}

impl SweepReport {
    /// Its JSON, indented, with a line feed at the end.
    pub fn to_json(&self) -> String {
        json(self)
    }
}
