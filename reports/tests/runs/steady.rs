//! Figures against what is known exactly.

use windtunnel_core::{Admission, Class, Span};
use windtunnel_reports::{Report, RunFigures, RunMetrics, journal::WarmupRule};

use super::small::Small;

fn figures(small: &Small) -> RunFigures {
    let mut metrics = RunMetrics::new();
    small.run(&mut metrics);
    metrics.into_run()
}

fn report(replications: u32, of: impl Fn(u32) -> Small) -> Report {
    Report::from_runs((0..replications).map(|replication| figures(&of(replication))).collect())
}

fn mean(report: &Report, name: &str) -> f64 {
    report.figure(name).unwrap_or_else(|| panic!("no figure {name} among {:?}", report.figure_names())).mean
}

/// Three jobs by hand: the first runs alone for 1.5 ms, the second and third wait for it and share a batch of 2 ms.
#[test]
fn three_jobs_give_exactly_what_a_pencil_gives() {
    let mut small = Small::new(4);
    small.arrivals = [0, 500_000, 1_000_000].map(|t| (t, Class::Interactive, None)).to_vec();
    let report = report(1, |_| small.clone());
    let is =
        |name: &str, value: f64| assert!((mean(&report, name) - value).abs() < 1e-12, "{name} {}", mean(&report, name));
    is("workload.w.offered", 3.0);
    is("workload.w.completed", 3.0);
    is("workload.w.wait.mean", (1.0e-3 + 0.5e-3) / 3.0);
    is("workload.w.wait_p50", 0.5e-3);
    is("workload.w.service.max", 2.0e-3);
    is("workload.w.p50", 2.5e-3);
    is("class.interactive.max", 3.0e-3);
    is("model.m.mean_batch", 1.5);
    is("model.m.mean_batch_seen", 5.0 / 3.0);
    is("device.gpu0.busy", 1.0);
    is("device.gpu0.capacity_fraction", 3.0 * 0.75e-3 / 3.5e-3);
    is("workload.w.arrivals.rate", 2000.0);
    is("workload.w.arrivals.cv", 0.0);
    is("run.in_system", (1.5 + 3.0 + 2.5) / 3.5);
    is("run.little", (1.5 + 3.0 + 2.5) / 3.5);
    is("invariants.violated", 0.0);
    assert_eq!(report.figure("workload.w.p99").unwrap().low, None);
    assert!(report.remarks.iter().any(|remark| remark.starts_with("one replication")), "{:?}", report.remarks);
}

/// The batch queue of Poisson arrivals at 1500/s: alpha 1 ms, beta 0.5 ms, at most 32. Its embedded chain gives a mean
/// batch of 6.066, busy 0.99727, a latency of 7.5636 ms and 17.655 ms at p99.
#[test]
fn the_batch_queue_has_its_known_values() {
    let report = report(10, |replication| Small::new(32).poisson(1500.0, Span::from_secs(20), replication));
    for (name, truth, within) in [
        ("workload.w.throughput", 1500.0, 0.01),
        ("model.m.mean_batch", 6.06623, 0.02),
        ("device.gpu0.busy", 0.99727, 0.001),
        ("workload.w.mean", 7.563610e-3, 0.02),
        ("workload.w.p99", 17.655e-3, 0.03),
        ("run.in_system", 11.34541, 0.02),
        ("device.gpu0.capacity_fraction", 1500.0 / 1882.353, 0.01),
        ("workload.w.arrivals.cv", 1.0, 0.02),
    ] {
        let found = mean(&report, name);
        assert!((found / truth - 1.0).abs() < within, "{name} is {found}, not {truth}");
    }
    let p99 = report.figure("workload.w.p99").unwrap();
    assert!(p99.half().is_some_and(|half| half > 0.0 && half < 0.1 * p99.mean), "{p99:?}");
    assert!(!report.unstable);
    assert_eq!(report.invariants.violated, 0, "{:?}", report.invariants.details);
}

#[test]
fn twice_the_capacity_is_unstable_and_has_no_steady_latency() {
    let report = report(4, |replication| Small::new(32).poisson(3800.0, Span::from_secs(3), replication));
    assert!(report.unstable);
    let latency = report.figure("class.interactive.p99").unwrap();
    assert!(latency.mean > 0.5 && latency.low.is_none(), "{latency:?}");
    assert!(report.remarks[0].contains("of the horizon"), "{:?}", report.remarks);
    assert!((mean(&report, "workload.w.throughput") / 1882.353 - 1.0).abs() < 0.01);
    assert!(mean(&report, "workload.w.latency_all.p99").is_infinite());
    assert_eq!(report.invariants.violated, 0, "{:?}", report.invariants.details);
}

#[test]
fn one_run_far_above_capacity_is_unstable_by_itself() {
    assert!(report(1, |replication| Small::new(32).poisson(20_000.0, Span::from_secs(1), replication)).unstable);
}

#[test]
fn admission_keeps_an_overloaded_card_stable() {
    let report = report(4, |replication| {
        let mut small = Small::new(32).poisson(3800.0, Span::from_secs(3), replication);
        small.admission = Admission::Deadline;
        small.deadline = Some(Span::from_millis(100));
        small
    });
    assert!(!report.unstable);
    assert!(mean(&report, "workload.w.p99") <= 0.1);
    let (offered, rejected) = (mean(&report, "workload.w.offered_rate"), mean(&report, "workload.w.rejected"));
    let seconds = mean(&report, "run.window");
    assert!((rejected / seconds / (offered - 1882.353) - 1.0).abs() < 0.02, "{rejected} refused in {seconds} s");
    assert_eq!(mean(&report, "workload.w.reasons.deadline_unreachable"), rejected);
    assert_eq!(mean(&report, "model.m.rejected"), rejected, "a refused job counts for the model it asked for");
    assert!((mean(&report, "workload.w.goodput") - mean(&report, "workload.w.throughput")).abs() < 1e-9);
}

#[test]
fn a_fixed_warmup_is_cut_exactly() {
    let mut small = Small::new(1);
    small.warmup = WarmupRule::Fixed(Span::from_secs(3));
    small.horizon = Some(Span::from_secs(10));
    small.arrivals = (0..100).map(|i| (i * 100_000_000 + 50_000_000, Class::Interactive, None)).collect();
    let report = report(1, |_| small.clone());
    assert_eq!(mean(&report, "workload.w.offered"), 70.0);
    assert_eq!(mean(&report, "workload.w.offered_rate"), 10.0);
    assert_eq!(mean(&report, "run.window"), 7.0);
    assert!((mean(&report, "device.gpu0.busy") - 0.015).abs() < 1e-9);
}

#[test]
fn jobs_that_give_up_are_counted_and_never_completed() {
    let mut small = Small::new(1);
    small.arrivals = vec![
        (0, Class::Interactive, None),
        (100_000, Class::Background, Some(Span::from_micros(300))),
        (200_000, Class::Batch, None),
    ];
    let report = report(1, |_| small.clone());
    assert_eq!(mean(&report, "class.background.cancelled"), 1.0);
    assert_eq!(mean(&report, "class.batch.completed"), 1.0);
    assert_eq!(mean(&report, "class.background.unfinished"), 0.0);
    assert!(report.figure("class.background.p99").is_none() && report.knows("class.background.p99"));
    assert!(!report.knows("class.background.p98"));
    assert_eq!(mean(&report, "class.batch.starvation"), mean(&report, "class.batch.wait.max"));
    assert_eq!(report.invariants.violated, 0, "{:?}", report.invariants.details);
}

/// Chats leave the card no time, and background work is allowed none of theirs.
#[test]
fn a_starved_workload_is_unstable_and_leaves_the_others_their_latencies() {
    let report = report(5, |replication| {
        let mut small = Small::new(8).poisson(900.0, Span::from_secs(10), replication);
        let background = (0..100).map(|i| (i * 100_000_000, Class::Background, None));
        small.arrivals.extend(background);
        small.arrivals.sort_by_key(|(t, _, _)| *t);
        small.background_label = true;
        small.starvation = Span::ZERO;
        small
    });
    assert!(report.unstable);
    assert_eq!(report.growing_workloads(), ["v"]);
    assert!(report.figure("workload.w.p99").unwrap().low.is_some());
    assert!(mean(&report, "class.background.starvation") > 9.0);
    assert!(mean(&report, "workload.v.completed") < 2.0, "only before the first chat can any start");
}

#[test]
fn without_runs_there_is_an_empty_report() {
    let empty = Report::from_runs(Vec::new());
    assert_eq!((empty.run.replications, empty.unstable, empty.workload.len()), (0, false, 0));
    assert_eq!(serde_json::from_str::<Report>(&empty.to_json()).unwrap(), empty);
    let nothing = report(1, |_| Small::new(1));
    assert_eq!(mean(&nothing, "workload.w.offered"), 0.0);
    assert!(nothing.figure("workload.w.latency.p50").is_none());
}
