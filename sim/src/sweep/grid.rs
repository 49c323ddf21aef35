//! The points of a grid.

use std::collections::BTreeMap;

use serde_json::Value;
use windtunnel_config::{Override, Scenario, ScenarioFile, Sweep};

use super::{
    SweepOptions,
    axis::{self, as_json, rate_as_json, rate_key, sets_a_rate},
};
use crate::{SimError, setup::Setup};

/// One setting of the scenario.
#[derive(Clone, Debug)]
pub struct Point {
    /// How many cards it has.
    pub devices: u32,
    /// What was set, by dotted key.
    pub set: BTreeMap<String, Value>,
    /// The scenario.
    pub setup: Setup,
}

/// A point in the making.
#[derive(Clone, Debug, Default)]
struct Corner {
    overrides: Vec<Override>,
    set: BTreeMap<String, Value>,
}

/// All points: by number of cards, then by the axes in the order of the scenario, the last one fastest, then by rate.
pub fn points(file: &ScenarioFile, options: &SweepOptions) -> Result<Vec<Point>, SimError> {
    let base = file.resolve(&options.overrides)?;
    let mut corners =
        Corner { overrides: options.overrides.clone(), set: BTreeMap::new() }.with_devices(&base, options)?;
    for sweep in base.sweeps.iter().filter(|sweep| !is_replaced(sweep, options)) {
        let mut finer = Vec::new();
        for corner in corners {
            finer.extend(corner.along(sweep, file)?);
        }
        corners = finer;
    }
    let mut points = Vec::new();
    for corner in corners {
        let setup = Setup::new(file.resolve(&corner.overrides)?)?;
        points.extend(corner.at_rates(&setup, &options.rates)?);
    }
    Ok(points)
}

fn is_replaced(sweep: &Sweep, options: &SweepOptions) -> bool {
    let by_rates = !options.rates.is_empty() && sets_a_rate(&sweep.key);
    let by_devices = !options.devices.is_empty() && sweep.key.starts_with("devices.") && sweep.key.ends_with(".count");
    by_rates || by_devices
}

impl Corner {
    fn with_devices(self, base: &Scenario, options: &SweepOptions) -> Result<Vec<Corner>, SimError> {
        if options.devices.is_empty() {
            return Ok(vec![self]);
        }
        let first = base.configuration.devices.first().map_or("gpu0", |device| device.name.as_str());
        let group = first.strip_suffix('0').unwrap_or(first);
        let key = format!("devices.\"{group}\".count");
        let corner = |count: &u32| {
            let mut corner = self.clone();
            corner.overrides.push(Override::new(&key, &count.to_string())?);
            Ok(corner)
        };
        options.devices.iter().map(corner).collect()
    }

    fn along(&self, sweep: &Sweep, file: &ScenarioFile) -> Result<Vec<Corner>, SimError> {
        let values = axis::values(sweep, &file.resolve(&self.overrides)?)?;
        let corner = |value: &String| {
            let mut corner = self.clone();
            corner.overrides.push(Override::new(&sweep.key, value)?);
            corner.set.insert(sweep.key.clone(), as_json(value));
            Ok(corner)
        };
        values.iter().map(corner).collect()
    }

    fn at_rates(self, setup: &Setup, rates: &[f64]) -> Result<Vec<Point>, SimError> {
        if rates.is_empty() {
            return Ok(vec![self.point(setup.clone())]);
        }
        let point = |&rate: &f64| {
            let setup = setup.at_rate(rate)?;
            let mut corner = self.clone();
            for (workload, rate) in setup.open_rates() {
                corner.set.insert(rate_key(&workload), rate_as_json(rate));
            }
            Ok(corner.point(setup))
        };
        rates.iter().map(point).collect()
    }

    fn point(self, setup: Setup) -> Point {
        Point { devices: setup.scenario().cards.len() as u32, set: self.set, setup }
    }
}
