use std::path::Path;

use serde_json::json;
use windtunnel_reports::knee::{Shape, Verdict};

use super::*;
use crate::theory::{BatchQueue, BatchTime};

const SCENARIO: &str = r#"
title = "batches"
[run]
horizon = "4s"
warmup = "0s"
seed = 3
replications = 3
[[devices]]
name = "gpu"
[models.m]
batch = { max = 32 }
resident = true
service = { kind = "batch", alpha = "1ms", beta = "0.5ms" }
[[workload]]
name = "w"
class = "interactive"
model = "m"
arrivals = { process = "poisson", rate = 1500 }
"#;

fn file(more: &str) -> ScenarioFile {
    ScenarioFile::parse(&format!("{SCENARIO}{more}"), Path::new("batches.toml")).unwrap()
}

fn swept(more: &str, options: SweepOptions) -> SweepReport {
    let outcome = sweep(&file(more), &options, &Control::new()).unwrap();
    assert!(!outcome.interrupted && outcome.asked == outcome.report.points.len());
    outcome.report
}

fn figure(point: &PointReport, name: &str) -> f64 {
    point.report.figure(name).unwrap().mean
}

#[test]
fn the_grid_is_the_product_of_its_axes() {
    let axes = "[[sweep]]\nkey = \"workload.w.arrivals.rate\"\nvalues = [500, 1000]\n\
                [[sweep]]\nkey = \"models.m.batch.max\"\nvalues = { from = 8, to = 16, steps = 2 }\n";
    let report = swept(axes, SweepOptions { devices: vec![1, 2], ..SweepOptions::default() });
    let set: Vec<_> = report.points.iter().map(|point| (point.devices, json!(point.set))).collect();
    let at = |devices: u32, rate: u32, max: u32| {
        (devices, json!({ "workload.w.arrivals.rate": rate, "models.m.batch.max": max }))
    };
    let expected = [(500, 8), (500, 16), (1000, 8), (1000, 16)];
    let expected = [1, 2].map(|devices| expected.map(|(rate, max)| at(devices, rate, max))).concat();
    assert_eq!(set, expected);
    let systems: Vec<_> = report.knees.iter().map(|knee| (knee.devices, json!(knee.set))).collect();
    let system = |devices: u32, max: u32| (devices, json!({ "models.m.batch.max": max }));
    assert_eq!(systems, [system(1, 8), system(1, 16), system(2, 8), system(2, 16)]);
    assert!((report.knees[3].capacity.unwrap() - 2.0 * 16.0 / 0.009).abs() < 1e-6);
}

#[test]
fn rates_scale_all_open_workloads_in_proportion_and_replace_their_axes() {
    let more = "[[workload]]\nname = \"v\"\nclass = \"background\"\nmodel = \"m\"\n\
                arrivals = { process = \"constant\", rate = 500 }\n\
                [[sweep]]\nkey = \"workload.w.arrivals.rate\"\nvalues = [1, 2, 3]\n";
    let report = swept(more, SweepOptions { rates: vec![400.0, 800.0], ..SweepOptions::default() });
    let set: Vec<_> = report.points.iter().map(|point| json!(point.set)).collect();
    let at = |w: u32, v: u32| json!({ "workload.w.arrivals.rate": w, "workload.v.arrivals.rate": v });
    assert_eq!(set, [at(300, 100), at(600, 200)]);
    assert!((figure(&report.points[1], "workload.v.offered_rate") - 200.0).abs() < 1.0);
    assert!((figure(&report.points[1], "workload.w.offered_rate") - 600.0).abs() < 30.0);
}

#[test]
fn the_points_are_what_single_runs_give_on_any_number_of_threads() {
    let options = || SweepOptions { rates: vec![500.0, 1500.0], ..SweepOptions::default() };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| swept("", options()).to_json())
    };
    assert_eq!(run(1), run(3));
    let alone = crate::Setup::new(file("").resolve(&[]).unwrap()).unwrap().run_all(None, &Control::new()).unwrap();
    assert_eq!(swept("", options()).points[1].report, alone.report);
}

#[test]
fn beyond_capacity_throughput_stays_at_it_and_saturation_is_found() {
    let report = swept("", SweepOptions { rates: vec![1000.0, 1700.0, 2500.0, 4000.0], ..SweepOptions::default() });
    let capacity = 32.0 / 0.017;
    assert!((figure(&report.points[0], "workload.w.throughput") / 1000.0 - 1.0).abs() < 0.03);
    for point in &report.points[2..] {
        assert!((figure(point, "workload.w.throughput") / capacity - 1.0).abs() < 0.01);
        assert!(point.report.unstable);
    }
    let knee = &report.knees[0];
    assert!((knee.capacity.unwrap() - capacity).abs() < 1e-6);
    let saturation = knee.saturation.unwrap().rate;
    assert!((saturation.mean.unwrap() / capacity - 1.0).abs() < 0.1, "{saturation:?}");
    assert_eq!(saturation.high, Some(2500.0));
    assert!(knee.at_target.is_none());
}

#[test]
fn the_search_brackets_the_rate_at_the_target() {
    let target = "[[sweep]]\nkey = \"workload.w.arrivals.rate\"\nvalues = [800, 1400]\n\
                  [sweep.target]\nmetric = \"workload.w.mean\"\nat_most = \"5ms\"\n";
    let report = swept(target, SweepOptions::default());
    let knee = report.knees[0].at_target.clone().unwrap();
    let (low, high) = (knee.rate.low.unwrap(), knee.rate.high.unwrap());
    let mean_at = |arrival: f64| {
        BatchQueue { arrival, alpha: 0.001, beta: 0.0005, max: 32, time: BatchTime::Constant }
            .solve()
            .unwrap()
            .mean_sojourn
    };
    assert!(mean_at(low * 0.98) < 0.005 && mean_at(high * 1.02) > 0.005, "{knee:?}");
    assert!(high < 1.2 * low, "{knee:?}");
    assert_eq!(knee.shape, Shape::Smooth);
    assert!(knee.probes.iter().any(|probe| probe.verdict == Verdict::Pass));
}

#[test]
fn a_target_that_names_no_figure_is_an_error() {
    let target = "[[sweep]]\nkey = \"workload.w.arrivals.rate\"\nvalues = [800]\n\
                  [sweep.target]\nmetric = \"workload.v.p99\"\nat_most = \"5ms\"\n";
    let error = sweep(&file(target), &SweepOptions::default(), &Control::new()).unwrap_err().to_string();
    assert!(error.contains("`workload.v.p99`"), "{error}");
}

#[test]
fn an_interrupted_sweep_keeps_its_finished_points() {
    let control = Control::new();
    control.interrupt();
    let outcome = sweep(&file(""), &SweepOptions { rates: vec![500.0], ..SweepOptions::default() }, &control).unwrap();
    assert_eq!((outcome.report.points.len(), outcome.asked, outcome.interrupted), (0, 1, true));
}
