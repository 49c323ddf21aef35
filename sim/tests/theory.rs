//! The exact formulas against values that were computed independently of them.
//!
//! `reference_values.csv` holds one case a line: the queue, its parameters, and what is expected of it.

use std::collections::BTreeMap;

use windtunnel_sim::theory::{
    AdmissionQueue, BatchQueue, BatchSojourn, BatchTime, Mdk, Mmk, MmkK, PriorityClass, ServiceMoments, erlang_b,
    mg1_mean_wait, priority_mean_waits,
};

/// Closed forms and chains must agree to this share.
const TOLERANCE: f64 = 1e-6;

type Values<'a> = BTreeMap<&'a str, f64>;

#[test]
fn mmk() {
    check("mmk", 19, |p| {
        let queue = Mmk::new(p["servers"] as u32, p["arrival"], 1.0).expect("it settles");
        Box::new(move |name| match name {
            "wait_probability" => queue.wait_probability(),
            "mean_wait" => queue.mean_wait(),
            "mean_sojourn" => queue.mean_sojourn(),
            "mean_waiting" => queue.mean_waiting(),
            "mean_in_system" => queue.mean_in_system(),
            "wait_variance" => queue.wait_variance(),
            name if name.starts_with("wait_p") => queue.wait_quantile(percent(name)),
            name => queue.sojourn_quantile(percent(name)),
        })
    });
}

#[test]
fn mmk_with_bounded_room() {
    check("mmkk", 18, |p| {
        let queue = MmkK::new(p["servers"] as u32, p["room"] as u32, p["arrival"], 1.0);
        Box::new(move |name| match name {
            "blocking" => queue.blocking(),
            "throughput" => queue.throughput(),
            "mean_in_system" => queue.mean_in_system(),
            "mean_waiting" => queue.mean_waiting(),
            "mean_wait" => queue.mean_wait(),
            "mean_sojourn" => queue.mean_sojourn(),
            "wait_probability" => queue.wait_probability(),
            name => queue.wait_quantile(percent(name)),
        })
    });
}

#[test]
fn erlang_loss() {
    check("loss", 26, |p| {
        let lost = erlang_b(p["servers"] as u32, p["load"]);
        Box::new(move |_| lost)
    });
}

#[test]
fn mdk() {
    check("mdk", 12, |p| {
        let queue = Mdk::new(p["servers"] as u32, p["arrival"], 1.0).expect("it settles");
        Box::new(move |name| match name {
            "wait_probability" => queue.wait_probability(),
            "mean_wait" => queue.mean_wait(),
            "mean_sojourn" => queue.mean_sojourn(),
            "mean_waiting" => queue.mean_waiting(),
            "mean_in_system" => queue.mean_in_system(),
            name => queue.wait_quantile(percent(name)),
        })
    });
}

#[test]
fn mg1() {
    check("mg1", 21, |p| {
        let service = ServiceMoments::with_cv(1.0, p["scv"].sqrt());
        let wait = mg1_mean_wait(p["arrival"], service).expect("it settles");
        Box::new(move |_| wait)
    });
}

#[test]
fn priorities() {
    check("priority", 12, |p| {
        let of = |name: &str, class: usize| p[format!("{name}{class}").as_str()];
        let classes = [1, 2, 3].map(|class| PriorityClass {
            arrival: of("arrival", class),
            service: ServiceMoments::with_cv(of("mean", class), of("scv", class).sqrt()),
        });
        let wait = priority_mean_waits(&classes)[p["class"] as usize - 1].expect("it settles");
        Box::new(move |_| wait)
    });
}

#[test]
fn batches_with_constant_times() {
    check("batch_constant", 21, |p| batch(p, BatchTime::Constant));
}

#[test]
fn batches_with_exponential_times() {
    check("batch_exponential", 15, |p| batch(p, BatchTime::Exponential));
}

#[test]
fn the_rate_at_which_p99_meets_a_target() {
    check("batch_p99", 15, |p| {
        let queue = batch_queue(p, BatchTime::Constant);
        let figures = queue.solve().expect("it settles");
        let below = BatchSojourn::new(queue, &figures).expect("constant times").at_most(p["time"]);
        Box::new(move |name| if name == "mean_sojourn" { figures.mean_sojourn } else { below })
    });
}

#[test]
fn deadline_admission() {
    check("admission", 15, |p| {
        let queue = AdmissionQueue { queue: batch_queue(p, BatchTime::Constant), deadline: p["deadline"] };
        let figures = queue.solve();
        Box::new(move |name| match name {
            "throughput" => figures.throughput,
            "mean_batch" => figures.mean_batch,
            "busy" => figures.busy,
            name => {
                assert_eq!(name, "refused");
                figures.refused
            }
        })
    });
}

#[test]
fn queues_that_do_not_settle_have_no_figures() {
    assert_eq!(Mmk::new(4, 4.0, 1.0), None);
    assert!(Mdk::new(1, 1.0, 1.0).is_none());
    assert_eq!(mg1_mean_wait(1.0, ServiceMoments::with_cv(1.0, 0.0)), None);
    let half = PriorityClass { arrival: 0.5, service: ServiceMoments::with_cv(1.0, 1.0) };
    assert_eq!(priority_mean_waits(&[half, half]), [Some(2.0), None]);
    let batches = BatchQueue { arrival: 1882.4, alpha: 0.001, beta: 0.0005, max: 32, time: BatchTime::Constant };
    assert_eq!(batches.solve(), None);
}

fn batch_queue(p: &Values, time: BatchTime) -> BatchQueue {
    BatchQueue { arrival: p["arrival"], alpha: p["alpha"], beta: p["beta"], max: p["max"] as usize, time }
}

fn batch(p: &Values, time: BatchTime) -> Box<dyn Fn(&str) -> f64> {
    let queue = batch_queue(p, time);
    let figures = queue.solve().expect("it settles");
    let sojourn = BatchSojourn::new(queue, &figures);
    Box::new(move |name| match name {
        "empties" => figures.empties,
        "mean_batch" => figures.mean_batch,
        "mean_batch_seen" => figures.mean_batch_seen,
        "busy" => figures.busy,
        "cycle" => figures.cycle,
        "mean_waiting" => figures.mean_waiting,
        "mean_in_system" => figures.mean_in_system,
        "mean_wait" => figures.mean_wait,
        "mean_sojourn" => figures.mean_sojourn,
        name => sojourn.as_ref().expect("constant times").quantile(percent(name)),
    })
}

/// Checks every value of every case of a queue.
fn check(queue: &str, cases: usize, solve: impl Fn(&Values) -> Box<dyn Fn(&str) -> f64>) {
    let mut found = 0;
    for line in include_str!("reference_values.csv").lines().filter(|line| line.starts_with(&format!("{queue},"))) {
        let mut columns = line.split(',').skip(1);
        let parameters = values(columns.next().expect("parameters"));
        let solution = solve(&parameters);
        for (name, expected) in values(columns.next().expect("values")) {
            let value = solution(name);
            let error = (value - expected).abs() / expected.abs().max(1e-6);
            assert!(error < TOLERANCE, "{line}\n{name}: {value} instead of {expected}, off by {error:e}");
        }
        found += 1;
    }
    assert_eq!(found, cases, "cases of {queue}");
}

fn values(text: &str) -> Values<'_> {
    let pairs = text.split(' ').map(|pair| pair.split_once('=').expect("name=value"));
    pairs.map(|(name, value)| (name, value.parse().expect("a number"))).collect()
}

/// 0.99 of `wait_p99`.
fn percent(name: &str) -> f64 {
    let (_, digits) = name.rsplit_once("_p").expect("a quantile");
    digits.parse::<f64>().expect("a number") / 100.0
}
