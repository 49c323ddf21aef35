//! The queues that are checked, and what is known of them.

use windtunnel_config::Noise;
use windtunnel_core::{Admission, Class, Span};

use super::{Flow, QuantityUnit, System};
use crate::theory::{
    AdmissionQueue, BatchFigures, BatchQueue, BatchSojourn, BatchTime, Mdk, Mmk, PriorityClass, ServiceMoments,
    mg1_mean_wait, priority_mean_waits,
};

/// A system and its exact figures.
pub(super) struct Case {
    pub queue: &'static str,
    pub system: System,
    pub quantities: Vec<Quantity>,
}

/// One exact figure.
pub(super) struct Quantity {
    pub measure: Measure,
    pub unit: QuantityUnit,
    pub exact: f64,
    /// The share of the value by which the measuring itself may be off.
    pub resolution: f64,
}

/// Where to find the measured one.
pub(super) enum Measure {
    /// A figure of the report.
    Figure(&'static str),
    /// One figure by another.
    Ratio(&'static str, &'static str),
    /// Whether the report calls the system unstable, as 1 or 0.
    Unstable,
}

/// Times are rounded to nanoseconds, and the last requests of a run are seen only in part.
const ROUNDING: f64 = 1e-4;

/// A quantile is interpolated within a bin of 1/64 of its value.
const BIN: f64 = 4e-4;

const MS: Span = Span::from_millis(1);
const HALF_MS: Span = Span::from_micros(500);

pub(super) fn all() -> Vec<Case> {
    let mut cases = vec![mm1(), mm4(), md1(), mg1(), priorities()];
    cases.extend(
        [batches(), exponential_batches(), no_alpha(), no_beta(), admission(), overload()].into_iter().flatten(),
    );
    cases
}

fn mm1() -> Case {
    Case {
        queue: "M/M/1, load 0.8",
        system: System::single(MS, Noise::Exponential, 800.0),
        quantities: Mmk::new(1, 800.0, 1000.0).as_ref().map(mmk_quantities).unwrap_or_default(),
    }
}

fn mm4() -> Case {
    Case {
        queue: "M/M/4, load 0.9",
        system: System { cards: 4, ..System::single(MS, Noise::Exponential, 3600.0) },
        quantities: Mmk::new(4, 3600.0, 1000.0).as_ref().map(mmk_quantities).unwrap_or_default(),
    }
}

fn mmk_quantities(queue: &Mmk) -> Vec<Quantity> {
    vec![
        seconds("workload.interactive.wait.mean", queue.mean_wait()),
        seconds("workload.interactive.latency.mean", queue.mean_sojourn()),
        quantile("workload.interactive.wait.p99", queue.wait_quantile(0.99)),
        quantile("workload.interactive.latency.p50", queue.sojourn_quantile(0.5)),
        quantile("workload.interactive.latency.p99", queue.sojourn_quantile(0.99)),
        number("run.in_system", queue.mean_in_system()),
        share("model.m.busy", queue.utilisation()),
    ]
}

/// A service of 1 ms + 0.5 ms for the one request of a batch: the corner of batching where there is none.
fn md1() -> Case {
    let queue = Mdk::new(1, 600.0, 0.0015);
    let quantities = queue.as_ref().map(|queue| {
        vec![
            seconds("workload.interactive.wait.mean", queue.mean_wait()),
            seconds("workload.interactive.latency.mean", queue.mean_sojourn()),
            quantile("workload.interactive.wait.p95", queue.wait_quantile(0.95)),
            quantile("workload.interactive.wait.p99", queue.wait_quantile(0.99)),
            number("run.in_system", queue.mean_in_system()),
            number("model.m.mean_batch", 1.0),
        ]
    });
    Case {
        queue: "M/D/1 (batches of 1), load 0.9",
        system: System::batching(MS, HALF_MS, 1, 600.0),
        quantities: quantities.unwrap_or_default(),
    }
}

fn mg1() -> Case {
    let service = ServiceMoments::with_cv(0.001, 1.5);
    let quantities = mg1_mean_wait(700.0, service).map(|wait| {
        vec![
            seconds("workload.interactive.wait.mean", wait),
            seconds("workload.interactive.latency.mean", wait + service.mean),
            number("run.in_system", 700.0 * (wait + service.mean)),
            share("device.gpu0.busy", 0.7),
        ]
    });
    Case {
        queue: "M/G/1, lognormal with CV 1.5, load 0.7",
        system: System::single(MS, Noise::Lognormal { cv: 1.5 }, 700.0),
        quantities: quantities.unwrap_or_default(),
    }
}

fn priorities() -> Case {
    let rates = [(Class::Interactive, 200.0), (Class::Background, 300.0), (Class::Batch, 300.0)];
    let service = ServiceMoments::with_cv(0.001, 1.0);
    let waits = priority_mean_waits(&rates.map(|(_, arrival)| PriorityClass { arrival, service }));
    let names = ["workload.interactive.wait.mean", "workload.background.wait.mean", "workload.batch.wait.mean"];
    let quantities = names.into_iter().zip(waits).filter_map(|(name, wait)| Some(seconds(name, wait?)));
    Case {
        queue: "M/M/1 with three classes, load 0.8",
        system: System {
            flows: rates.map(|(class, rate)| Flow::poisson(class, rate)).to_vec(),
            ..System::single(MS, Noise::Exponential, 0.0)
        },
        quantities: quantities.collect(),
    }
}

fn batches() -> Option<Case> {
    batch_case("batches of up to 32 in 1 ms + 0.5 ms B, 1500/s", MS, HALF_MS, 32, 1500.0, BatchTime::Constant)
}

fn exponential_batches() -> Option<Case> {
    batch_case(
        "exponential batches of up to 8, mean 1 ms + 0.5 ms B, 1000/s",
        MS,
        HALF_MS,
        8,
        1000.0,
        BatchTime::Exponential,
    )
}

fn no_alpha() -> Option<Case> {
    batch_case("batches of up to 32 in 0.5 ms B, 1500/s", Span::ZERO, HALF_MS, 32, 1500.0, BatchTime::Constant)
}

fn no_beta() -> Option<Case> {
    let alpha = Span::from_millis(4);
    batch_case("batches of up to 8 in 4 ms, 1600/s", alpha, Span::ZERO, 8, 1600.0, BatchTime::Constant)
}

fn batch_case(queue: &'static str, alpha: Span, beta: Span, max: u32, rate: f64, time: BatchTime) -> Option<Case> {
    let model = batch_queue(alpha, beta, max, rate, time);
    let figures = model.solve()?;
    let noise = match time {
        BatchTime::Constant => Noise::None,
        BatchTime::Exponential => Noise::Exponential,
    };
    let mut quantities = batch_quantities(&figures);
    if let Some(sojourn) = BatchSojourn::new(model, &figures) {
        quantities.push(quantile("workload.interactive.latency.p50", sojourn.quantile(0.5)));
        quantities.push(quantile("workload.interactive.latency.p99", sojourn.quantile(0.99)));
    }
    Some(Case { queue, system: System { noise, ..System::batching(alpha, beta, max, rate) }, quantities })
}

fn batch_quantities(figures: &BatchFigures) -> Vec<Quantity> {
    vec![
        number("model.m.mean_batch", figures.mean_batch),
        number("model.m.mean_batch_seen", figures.mean_batch_seen),
        share("device.gpu0.busy", figures.busy),
        seconds("workload.interactive.wait.mean", figures.mean_wait),
        seconds("workload.interactive.latency.mean", figures.mean_sojourn),
        number("run.in_system", figures.mean_in_system),
        Quantity { resolution: 0.0, ..number_of(Measure::Unstable, 0.0) },
    ]
}

fn admission() -> Option<Case> {
    let queue = batch_queue(MS, HALF_MS, 32, 2000.0, BatchTime::Constant);
    let deadline = Span::from_millis(100);
    let exact = AdmissionQueue { queue, deadline: 0.1 }.solve();
    let refused = Measure::Ratio("workload.interactive.rejected", "workload.interactive.offered");
    Some(Case {
        queue: "the same at 2000/s, refusing whom 100 ms cannot serve",
        system: System {
            admission: Admission::Deadline,
            flows: vec![Flow { deadline: Some(deadline), ..Flow::poisson(Class::Interactive, 2000.0) }],
            ..System::batching(MS, HALF_MS, 32, 2000.0)
        },
        quantities: vec![
            per_second("workload.interactive.throughput", exact.throughput),
            Quantity { unit: QuantityUnit::Share, ..number_of(refused, exact.refused) },
            number("model.m.mean_batch", exact.mean_batch),
            share("device.gpu0.busy", exact.busy),
        ],
    })
}

/// One card far beyond its capacity: full batches without a pause. What is measured is whole batches in a window.
fn overload() -> Option<Case> {
    let capacity = batch_queue(MS, HALF_MS, 32, 20_000.0, BatchTime::Constant).capacity();
    let throughput = Quantity { resolution: 0.02, ..per_second("workload.interactive.throughput", capacity) };
    Some(Case {
        queue: "the same at 20,000/s, without a limit",
        system: System::batching(MS, HALF_MS, 32, 20_000.0),
        quantities: vec![
            throughput,
            share("device.gpu0.busy", 1.0),
            number("model.m.mean_batch", 32.0),
            Quantity { resolution: 0.0, ..number_of(Measure::Unstable, 1.0) },
        ],
    })
}

fn batch_queue(alpha: Span, beta: Span, max: u32, rate: f64, time: BatchTime) -> BatchQueue {
    let seconds = |span: Span| span.as_nanos() as f64 / 1e9;
    BatchQueue { arrival: rate, alpha: seconds(alpha), beta: seconds(beta), max: max as usize, time }
}

fn seconds(name: &'static str, exact: f64) -> Quantity {
    Quantity { unit: QuantityUnit::Seconds, ..number(name, exact) }
}

fn quantile(name: &'static str, exact: f64) -> Quantity {
    Quantity { resolution: BIN, ..seconds(name, exact) }
}

fn share(name: &'static str, exact: f64) -> Quantity {
    Quantity { unit: QuantityUnit::Share, ..number(name, exact) }
}

fn per_second(name: &'static str, exact: f64) -> Quantity {
    Quantity { unit: QuantityUnit::PerSecond, ..number(name, exact) }
}

fn number(name: &'static str, exact: f64) -> Quantity {
    number_of(Measure::Figure(name), exact)
}

fn number_of(measure: Measure, exact: f64) -> Quantity {
    Quantity { measure, unit: QuantityUnit::Number, exact, resolution: ROUNDING }
}
