//! Do 95% intervals hold the truth in 95% of all cases? Two hundred experiments of a million arrivals over ten replications,
//! on two queues whose figures are known exactly.
//!
//! `cargo bench --bench coverage` prints a table; with `-- --json` one object a line instead; with `-- --quick` the
//! experiments have a tenth of the arrivals, and intervals may cover less.

use rayon::prelude::*;
use windtunnel_config::{Noise, Warmup};
use windtunnel_core::Span;
use windtunnel_reports::{Figure, Report, RunFigures, RunMetrics};
use windtunnel_sim::{
    Control, Setup,
    selftest::System,
    theory::{BatchQueue, BatchSojourn, BatchTime, Mmk},
};

const EXPERIMENTS: u64 = 200;
const REPLICATIONS: u32 = 10;

/// Shares of the experiments between which the coverage of a 95% interval should lie.
const GOAL: std::ops::RangeInclusive<f64> = 0.90..=0.99;

/// A queue and its exact figures by their names in a report.
struct Subject {
    name: &'static str,
    system: System,
    exact: Vec<(&'static str, f64)>,
}

fn main() {
    let has = |name: &str| std::env::args().any(|argument| argument == name);
    let arrivals = if has("--quick") { 100_000 } else { 1_000_000 };
    for subject in [mm1(), batches()] {
        let reports: Vec<Report> =
            (0..EXPERIMENTS).into_par_iter().map(|number| experiment(&subject.system, number, arrivals)).collect();
        for (name, exact) in &subject.exact {
            let figures: Vec<Figure> = reports.iter().filter_map(|report| report.figure(name)).collect();
            print(&subject, name, *exact, &figures, has("--json"));
        }
    }
}

fn mm1() -> Subject {
    let queue = Mmk::new(1, 800.0, 1000.0).expect("it settles");
    Subject {
        name: "M/M/1, load 0.8",
        system: System::single(Span::from_millis(1), Noise::Exponential, 800.0),
        exact: vec![
            ("workload.interactive.wait.mean", queue.mean_wait()),
            ("workload.interactive.latency.p99", queue.sojourn_quantile(0.99)),
        ],
    }
}

fn batches() -> Subject {
    let queue = BatchQueue { arrival: 1500.0, alpha: 0.001, beta: 0.0005, max: 32, time: BatchTime::Constant };
    let figures = queue.solve().expect("it settles");
    let sojourn = BatchSojourn::new(queue, &figures).expect("its times are constant");
    Subject {
        name: "batches at 1500/s",
        system: System::batching(Span::from_millis(1), Span::from_micros(500), 32, 1500.0),
        exact: vec![
            ("workload.interactive.latency.mean", figures.mean_sojourn),
            ("workload.interactive.latency.p99", sojourn.quantile(0.99)),
        ],
    }
}

/// So many arrivals over ten replications, the warm-up found as it is by default.
fn experiment(system: &System, number: u64, arrivals: u64) -> Report {
    let system = System { warmup: Warmup::Auto, ..system.clone() };
    let scenario = system.scenario("coverage", arrivals / u64::from(REPLICATIONS), 1000 + number);
    let setup = Setup::new(scenario).expect("the benchmark's scenarios are valid");
    let run = |replication| -> RunFigures {
        let mut metrics = RunMetrics::new();
        setup.run(replication, &mut metrics, &Control::new()).expect("memory can be written to");
        metrics.into_run()
    };
    Report::from_runs((0..REPLICATIONS).map(run).collect())
}

fn print(subject: &Subject, name: &str, exact: f64, figures: &[Figure], json: bool) {
    let holds = |figure: &&Figure| figure.low.zip(figure.high).is_some_and(|(low, high)| (low..=high).contains(&exact));
    let covered = figures.iter().filter(holds).count() as f64 / EXPERIMENTS as f64;
    let mean = figures.iter().map(|figure| figure.mean).sum::<f64>() / figures.len() as f64;
    let bias = mean / exact - 1.0;
    let half = figures.iter().filter_map(Figure::half).sum::<f64>() / figures.len() as f64 / exact;
    let queue = subject.name;
    if json {
        println!(
            "{{\"queue\":\"{queue}\",\"figure\":\"{name}\",\"experiments\":{EXPERIMENTS},\"coverage\":{covered:.4},\
             \"bias\":{bias:.6},\"half_width\":{half:.6}}}"
        );
    } else {
        let met = if GOAL.contains(&covered) { "(90% to 99%: met)" } else { "(90% to 99%: MISSED)" };
        println!(
            "{queue:<20} {name:<36} covered {:>5.1}% {met}  bias {:+.2}%  half width {:.2}%",
            covered * 100.0,
            bias * 100.0,
            half * 100.0
        );
    }
}
