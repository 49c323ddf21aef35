//! Points that differ in nothing but the load, and what is read off them.

use std::collections::BTreeMap;

use serde_json::Value;
use windtunnel_config::Scenario;
use windtunnel_reports::knee::{GridPoint, KneeReport, kneedle, power_point, saturation};

use super::{Course, Measured, axis::sets_a_rate, knee, reading::grid_point};
use crate::SimError;

/// Points that differ in nothing but the load.
struct System<'a> {
    devices: u32,
    /// What else was set.
    set: BTreeMap<String, Value>,
    points: Vec<&'a Measured>,
}

/// The knees of all systems that have a target or at least two rates, in the order of their first points.
pub fn knees(measured: &[Measured], course: Course<'_>) -> Result<Vec<KneeReport>, SimError> {
    let mut knees = Vec::new();
    for mut system in systems(measured) {
        if course.control.is_interrupted() {
            break;
        }
        system.points.sort_by(|a, b| a.point.setup.open_rate().total_cmp(&b.point.setup.open_rate()));
        knees.extend(system.knee(course)?);
    }
    Ok(knees)
}

fn systems(measured: &[Measured]) -> Vec<System<'_>> {
    let mut systems: Vec<System<'_>> = Vec::new();
    for one in measured {
        let devices = one.point.devices;
        let set = settings(one);
        match systems.iter_mut().find(|system| system.devices == devices && system.set == set) {
            Some(system) => system.points.push(one),
            None => systems.push(System { devices, set, points: vec![one] }),
        }
    }
    systems
}

fn settings(measured: &Measured) -> BTreeMap<String, Value> {
    let others = measured.point.set.iter().filter(|(key, _)| !sets_a_rate(key));
    others.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl System<'_> {
    fn knee(self, course: Course<'_>) -> Result<Option<KneeReport>, SimError> {
        let Some(first) = self.points.first() else { return Ok(None) };
        let scenario = first.point.setup.scenario();
        let grid: Vec<GridPoint> = self.points.iter().map(|point| grid_point(point)).collect();
        let several = grid.windows(2).any(|pair| pair[0].rate < pair[1].rate);
        let open = first.point.setup.open_rate() > 0.0;
        if !open || !(several || scenario.target.is_some()) {
            return Ok(None);
        }
        let capacity = course.runner.capacity(capacity(scenario));
        let at_target = match &scenario.target {
            Some(target) => knee::search(target, &self.points, capacity, course)?,
            None => None,
        };
        Ok(Some(KneeReport {
            devices: self.devices,
            set: self.set,
            capacity,
            at_target,
            saturation: saturation(&grid),
            power: if several { power_point(&grid) } else { None },
            kneedle: kneedle(&grid),
        }))
    }
}

/// The total rate that the cards can carry: where all open workloads ask for the same model or family, the mix of what
/// each of them alone could get. `None` where that is not known.
fn capacity(scenario: &Scenario) -> Option<f64> {
    let open: Vec<(usize, f64)> =
        (0..).zip(&scenario.workloads).filter_map(|(label, one)| Some((label, one.open_rate()?))).collect();
    let wanted = scenario.workloads[open.first()?.0].wanted;
    if open.iter().any(|&(label, _)| scenario.workloads[label].wanted != wanted) {
        return None;
    }
    let total: f64 = open.iter().map(|(_, rate)| rate).sum();
    let load = open.iter().map(|&(label, rate)| Some(rate / scenario.capacity(label)?)).sum::<Option<f64>>()?;
    (load > 0.0).then(|| total / load)
}
