//! What people read.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use windtunnel_core::{Admission, Span};
use windtunnel_reports::{
    Report, RunMetrics,
    knee::{Bracket, Confirmation, KneeReport, Limit, RateReading, Shape, TargetKnee},
    report::{PointReport, Reported, SweepReport, schema_report},
    table::{WIDTH, report_csv, report_table, sweep_csv, sweep_table},
};

use super::small::Small;

fn report(rate: f64, replications: u32) -> Report {
    let run = |replication| {
        let mut small = Small::new(32).poisson(rate, Span::from_secs(2), replication);
        small.admission = Admission::Deadline;
        small.deadline = Some(Span::from_millis(100));
        let mut metrics = RunMetrics::new();
        small.run(&mut metrics);
        metrics.into_run()
    };
    Report::from_runs((0..replications).map(run).collect())
}

fn sweep() -> SweepReport {
    let point = |rate: f64| PointReport {
        devices: 1,
        set: BTreeMap::from([("workload.w.arrivals.rate".to_owned(), serde_json::json!(rate))]),
        report: report(rate, 3),
    };
    let bracket = |low, high| Bracket { mean: Some((low + high) / 2.0), low: Some(low), high: Some(high) };
    let knee = KneeReport {
        devices: 1,
        set: BTreeMap::new(),
        capacity: Some(1882.353),
        at_target: Some(TargetKnee {
            metric: "workload.w.p99".to_owned(),
            limit: Limit::AtMost(0.05),
            rate: bracket(1768.0, 1785.0),
            shape: Shape::Smooth,
            confirmation: Confirmation::Confirmed,
            undecided: None,
            probes: Vec::new(),
        }),
        saturation: Some(RateReading { rate: bracket(1500.0, 3000.0) }),
        power: Some(RateReading { rate: bracket(1500.0, 1500.0) }),
        kneedle: None,
    };
    SweepReport { points: [500.0, 1500.0, 3000.0].map(point).to_vec(), knees: vec![knee] }
}

fn narrow(text: &str) {
    let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > WIDTH || !line.is_ascii()).collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn a_report_can_be_read() {
    let table = report_table(&report(3000.0, 3));
    narrow(&table);
    assert_snapshot!(table);
}

#[test]
fn an_unstable_report_says_so_loudly() {
    let run = |replication| {
        let mut metrics = RunMetrics::new();
        Small::new(32).poisson(3000.0, Span::from_secs(2), replication).run(&mut metrics);
        metrics.into_run()
    };
    let table = report_table(&Report::from_runs((0..4).map(run).collect()));
    narrow(&table);
    assert!(table.contains("\nUNSTABLE: "), "{table}");
}

#[test]
fn a_sweep_can_be_read() {
    let table = sweep_table(&sweep());
    narrow(&table);
    assert_snapshot!(table);
}

#[test]
fn spreadsheets_get_every_figure() {
    let report = report(1500.0, 3);
    let text = report_csv(&report).unwrap();
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<String> = rows.records().map(|row| row.unwrap()[0].to_owned()).collect();
    assert_eq!(names.len(), report.figures().len());
    assert!(names.iter().all(|name| report.knows(name)));
    let text = sweep_csv(&sweep()).unwrap();
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let columns = rows.headers().unwrap().len();
    let rates: Vec<String> = rows
        .records()
        .map(|row| {
            let row = row.unwrap();
            assert_eq!(row.len(), columns);
            row[2].to_owned()
        })
        .collect();
    assert_eq!(rates, ["500.0", "1500.0", "3000.0"]);
}

#[test]
fn json_keeps_to_its_schema_and_comes_back() {
    let sweep = sweep();
    let text = sweep.to_json();
    assert_eq!(serde_json::from_str::<SweepReport>(&text).unwrap(), sweep);
    assert!(matches!(serde_json::from_str(&text).unwrap(), Reported::Sweep(_)));
    let one = serde_json::to_value(&sweep.points[0].report).unwrap();
    for path in [
        "/workload/w/latency/p99/mean",
        "/class/interactive/latency_all/p999/n",
        "/model/m/mean_batch/low",
        "/device/gpu0/capacity_fraction/high",
        "/invariants/checked",
        "/run/replications",
    ] {
        assert!(one.pointer(path).is_some(), "{path} is missing");
    }
    let schema = serde_json::to_value(schema_report()).unwrap();
    assert!(schema.pointer("/$defs/Report/properties/workload").is_some());
}
