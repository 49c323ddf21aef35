//! From a scenario's text to the pictures of its sweep.

use std::path::Path;

use windtunnel_config::ScenarioFile;
use windtunnel_reports::{Report, chart::Picture, chart::report_charts, chart::sweep_charts};
use windtunnel_sim::{
    Control, Setup,
    sweep::{SweepOptions, sweep},
};

const ONE_CARD: &str = r#"
title = "a card under a rising load"
[run]
jobs = 2_000
replications = 2
[[devices]]
name = "gpu"
[models.m]
batch = { max = 32 }
resident = true
service = { kind = "batch", alpha = "1ms", beta = "0.5ms" }
[[workload]]
name = "requests"
class = "interactive"
model = "m"
kind = "embedding"
arrivals = { process = "poisson", rate = 900 }
[[sweep]]
key = "workload.requests.arrivals.rate"
values = [600, 1200, 1500, 4000]
"#;

const TARGET: &str = "[sweep.target]\nmetric = \"workload.requests.p99\"\nat_most = \"20ms\"\n";

fn pictures(text: &str, devices: &[u32]) -> Vec<Picture> {
    let file = ScenarioFile::parse(text, Path::new("test.toml")).expect("a valid scenario");
    let options = SweepOptions { devices: devices.to_vec(), ..SweepOptions::default() };
    let outcome = sweep(&file, &options, &Control::new()).expect("it can be swept");
    sweep_charts(&outcome.report).expect("drawn")
}

fn names(pictures: &[Picture]) -> Vec<&str> {
    pictures.iter().map(|picture| picture.file.as_str()).collect()
}

fn svg<'a>(pictures: &'a [Picture], file: &str) -> &'a str {
    &pictures.iter().find(|picture| picture.file == file).expect("a picture of that name").svg
}

#[test]
fn a_single_system_shows_both_quantiles_its_knee_and_its_capacity() {
    let pictures = pictures(&format!("{ONE_CARD}{TARGET}"), &[]);
    assert_eq!(names(&pictures), ["throughput.svg", "refusals.svg", "latency.svg", "waiting.svg", "batch-m.svg"]);
    let latency = svg(&pictures, "latency.svg");
    for word in ["p50", "p99 \u{2264} 20 ms up to 1", "capacity 1882/s", "target 20 ms", "unstable: no steady value"] {
        assert!(latency.contains(word), "{word}");
    }
    assert!(svg(&pictures, "throughput.svg").contains("all that is offered"));
}

#[test]
fn several_systems_are_told_apart_and_each_quantile_has_its_picture() {
    let pictures = pictures(ONE_CARD, &[1, 2]);
    assert_eq!(
        names(&pictures),
        ["throughput.svg", "refusals.svg", "p50.svg", "p99.svg", "waiting.svg", "batch-m.svg"]
    );
    let p99 = svg(&pictures, "p99.svg");
    assert!(p99.contains("1 card") && p99.contains("2 cards"));
    assert!(!p99.contains("target"), "no target was named");
}

#[test]
fn another_setting_than_the_rate_becomes_the_axis() {
    let text = ONE_CARD
        .replace("workload.requests.arrivals.rate", "models.m.batch.max")
        .replace("[600, 1200, 1500, 4000]", "[4, 8, 16]");
    let pictures = pictures(&text, &[]);
    let throughput = svg(&pictures, "throughput.svg");
    assert!(throughput.contains("against models.m.batch.max"));
    assert!(!throughput.contains("offered rate") && !throughput.contains("all that is offered"));
}

#[test]
fn the_number_of_cards_becomes_the_axis_where_nothing_else_is_swept() {
    let (one_rate, _) = ONE_CARD.split_once("[[sweep]]").expect("an axis");
    let pictures = pictures(one_rate, &[1, 2, 4]);
    assert_eq!(names(&pictures), ["throughput.svg", "refusals.svg", "latency.svg", "waiting.svg", "batch-m.svg"]);
    assert!(svg(&pictures, "latency.svg").contains("against the number of cards"));
}

#[test]
fn a_single_point_has_no_pictures() {
    let (one_rate, _) = ONE_CARD.split_once("[[sweep]]").expect("an axis");
    assert_eq!(names(&pictures(one_rate, &[])), [""; 0]);
}

#[test]
fn a_report_shows_its_distribution_its_queue_and_its_batches() {
    let file = ScenarioFile::parse(ONE_CARD, Path::new("test.toml")).expect("a valid scenario");
    let setup = Setup::new(file.resolve(&[]).expect("it resolves")).expect("it can be simulated");
    let runs = setup.replications(0..2, &Control::new()).expect("it runs");
    let pictures = report_charts(&Report::from_runs(runs)).expect("drawn");
    assert_eq!(names(&pictures), ["distribution.svg", "queue.svg", "batches-m.svg"]);
    assert!(svg(&pictures, "distribution.svg").contains("How latencies of requests are distributed"));
    assert!(svg(&pictures, "batches-m.svg").contains("of inputs, by the batch they are in"));
}
