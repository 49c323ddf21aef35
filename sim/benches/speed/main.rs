//! How fast the simulator is: the production scheduler with metrics on every event, as a ratio to a loop that only computes
//! what the queue does.
//!
//! Machines are shared and their clocks wander, so nothing is compared with a number from another day. Whatever is compared
//! is run in turns within one process, several times, and the median of the ratios of neighbouring runs is what counts.
//! A *logical event* is an arrival or a completion.
//!
//! `cargo bench --bench speed` prints a table; with `-- --json` one object a line instead. `-- --quick` takes a tenth of the
//! requests.

mod memory;
mod recursion;
mod timing;

use std::hint::black_box;

use rayon::ThreadPoolBuilder;
use windtunnel_config::{Arrivals, Noise, Request, Scenario, Warmup};
use windtunnel_core::{Class, Order, Span};
use windtunnel_reports::{NoRecord, RunMetrics};
use windtunnel_sim::{
    Control, Setup,
    selftest::{Flow, System},
};

use timing::{Line, Sheet, in_turns};

const MS: Span = Span::from_millis(1);
const HALF_MS: Span = Span::from_micros(500);

/// Rounds of taking turns.
const ROUNDS: usize = 7;

fn main() {
    let has = |name: &str| std::env::args().any(|argument| argument == name);
    if has(memory::CHILD) {
        return memory::child();
    }
    let requests: u64 = if has("--quick") { 100_000 } else { 1_000_000 };
    let mut sheet = Sheet::new(has("--json"));
    against_recursion(&mut sheet, requests);
    orders(&mut sheet, requests);
    long_queues(&mut sheet, requests / 2);
    a_year(&mut sheet);
    cores(&mut sheet, requests / 2);
    memory::in_flight(&mut sheet, requests);
}

/// Jobs A and B: M/M/4 at load 0.9, and batches of up to 32 in 1 ms + 0.5 ms B at 1500/s.
fn against_recursion(sheet: &mut Sheet, requests: u64) {
    let events = 2 * requests;
    let a = setup(&mm4().scenario("A", requests, 1));
    let runs = in_turns(
        ROUNDS,
        &mut [
            &mut || recursion::mm4(requests, recursion::Detail::Mean),
            &mut || recursion::mm4(requests, recursion::Detail::Quantile),
            &mut || bare(&a),
            &mut || measured(&a),
        ],
    );
    sheet.compare("A: M/M/4, load 0.9", events, &NAMES, &runs, 10.0);
    let b = setup(&batching(1500.0, Order::Fifo, &[]).scenario("B", requests, 1));
    let runs = in_turns(
        ROUNDS,
        &mut [
            &mut || recursion::batches(requests, recursion::Detail::Mean),
            &mut || recursion::batches(requests, recursion::Detail::Quantile),
            &mut || bare(&b),
            &mut || measured(&b),
        ],
    );
    sheet.compare("B: batches at 1500/s", events, &NAMES, &runs, 10.0);
}

/// What is run in turns; the second is what the others are compared with.
const NAMES: [&str; 4] =
    ["recursion, mean only", "recursion with exact p99", "scheduler, nothing recorded", "scheduler with metrics"];

/// Requests with two deadlines in the order of their arrival and of their deadlines.
fn orders(sheet: &mut Sheet, requests: u64) {
    let deadlines = [Span::from_millis(50), Span::from_millis(500)];
    let fifo = setup(&batching(1500.0, Order::Fifo, &deadlines).scenario("FIFO", requests, 1));
    let edf = setup(&batching(1500.0, Order::Edf, &deadlines).scenario("EDF", requests, 1));
    let runs = in_turns(ROUNDS, &mut [&mut || measured(&fifo), &mut || measured(&edf)]);
    sheet.ratio("EDF against FIFO, batches at 1500/s", 2 * requests, &runs, 1.3);
}

/// A queue that stays as long as it is at the beginning: requests come exactly as fast as they are served.
fn long_queues(sheet: &mut Sheet, requests: u64) {
    for (order, name, most) in [(Order::Fifo, "FIFO", 1.5), (Order::Edf, "EDF", 4.0)] {
        let short = setup(&standing_queue(10, order).scenario("short", requests, 1));
        let long = setup(&standing_queue(100_000, order).scenario("long", requests + 100_000, 1));
        // the long run begins with 100,000 arrivals that are not served within it
        let events = [2 * requests, 2 * requests + 100_000];
        let runs = in_turns(ROUNDS, &mut [&mut || measured(&short), &mut || measured(&long)]);
        sheet.ratio_of(&format!("100,000 queued against 10, {name}"), events, &runs, most);
    }
}

fn a_year(sheet: &mut Sheet) {
    let hourly = System::single(Span::from_secs(2), Noise::Exponential, 1.0 / 3600.0);
    let mut scenario = hourly.scenario("a year of one request an hour", 1, 1);
    scenario.run.jobs = None;
    scenario.run.horizon = Some(Span::from_secs(365 * 24 * 3600));
    let year = setup(&scenario);
    let seconds = in_turns(ROUNDS, &mut [&mut || measured(&year)]).median(0);
    sheet.line(Line::at_most("a year of one request an hour", "ms", seconds * 1e3, 10.0));
}

/// Eight replications on one thread and on all.
fn cores(sheet: &mut Sheet, requests: u64) {
    let setup = setup(&batching(1500.0, Order::Fifo, &[]).scenario("cores", requests, 1));
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let on = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let setup = setup.clone();
        move || {
            let replicate = || {
                use rayon::prelude::*;
                (0..8u32).into_par_iter().for_each(|replication| run(&setup, replication));
            };
            match &pool {
                Ok(pool) => pool.install(replicate),
                Err(_) => replicate(),
            }
        }
    };
    let (one, all) = (on(1), on(threads));
    let runs = in_turns(3, &mut [&mut || all(), &mut || one()]);
    let speedup = runs.median_ratio(1, 0);
    sheet.line(Line::at_least(
        &format!("8 replications on {threads} threads, speedup"),
        "x",
        speedup,
        0.8 * threads as f64,
    ));
}

fn mm4() -> System {
    System { cards: 4, ..System::single(MS, Noise::Exponential, 3600.0) }
}

/// Batches with the load split evenly over flows with these deadlines; none: one flow without.
fn batching(rate: f64, order: Order, deadlines: &[Span]) -> System {
    let flow = |(place, deadline): (usize, &Span)| Flow {
        name: format!("due-{place}"),
        deadline: Some(*deadline),
        ..Flow::poisson(Class::Interactive, rate / deadlines.len() as f64)
    };
    let flows: Vec<Flow> = deadlines.iter().enumerate().map(flow).collect();
    let system = System { order, ..System::batching(MS, HALF_MS, 32, rate) };
    if flows.is_empty() { system } else { System { flows, ..system } }
}

/// One server that takes 1 ms each, so many requests at the start and one every millisecond after.
fn standing_queue(length: usize, order: Order) -> System {
    let burst = Request { at: Span::ZERO, inputs: None, prompt_tokens: None, output_tokens: None };
    let flow =
        |name: &str, arrivals, deadline| Flow { name: name.to_owned(), class: Class::Interactive, arrivals, deadline };
    let first = flow("burst", Arrivals::At(vec![burst; length]), Some(Span::from_secs(100_000)));
    // half of the stream is due before everything that waits, half after it
    let soon = flow("soon", Arrivals::Constant { rate: 500.0 }, Some(Span::from_secs(1000)));
    let late = flow("late", Arrivals::Constant { rate: 500.0 }, Some(Span::from_secs(200_000)));
    System {
        flows: vec![first, soon, late],
        order,
        warmup: Warmup::Fixed(Span::ZERO),
        ..System::single(MS, Noise::None, 1.0)
    }
}

fn setup(scenario: &Scenario) -> Setup {
    Setup::new(scenario.clone()).expect("the benchmark's scenarios are valid")
}

/// A run with everything that a report needs.
fn measured(setup: &Setup) {
    run(setup, 0);
}

fn run(setup: &Setup, replication: u32) {
    let mut metrics = RunMetrics::new();
    setup.run(replication, &mut metrics, &Control::new()).expect("memory can be written to");
    black_box(metrics.into_run());
}

/// A run that nobody watches.
fn bare(setup: &Setup) {
    black_box(setup.run(0, &mut NoRecord, &Control::new()).expect("nothing is written"));
}
