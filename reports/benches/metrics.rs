//! What metrics cost for a job of one step: a submission, a grant, its end, and the job's.
//!
//! The same stream of records is made once for nobody and once for the metrics; the difference is the cost. Times are wall
//! clock and only mean something relative to each other.

use std::{collections::VecDeque, hint::black_box, time::Instant};

use rand_distr::{Distribution, Exp1};
use rand_xoshiro::{Xoshiro256PlusPlus, rand_core::SeedableRng};
use windtunnel_core::{
    Attempt, Class, DeviceId, Effect, Finish, Grant, GrantedStep, Input, InstanceId, JobId, JobKind, LabelId, Measured,
    ModelId, Needs, Outcome, Right, Submission, Time, Wanted,
};
use windtunnel_reports::{
    Recorder, RunMetrics,
    journal::{DeviceFacts, End, EndCause, Header, ModelFacts, SCHEMA, Source, WarmupRule, WorkloadFacts},
};

const JOBS: u64 = 1_000_000;

/// Takes records.
trait Sink {
    fn input(&mut self, t: Time, input: &Input);
    fn effect(&mut self, t: Time, effect: &Effect<()>, steps: &[GrantedStep]);
}

struct Nobody;

impl Sink for Nobody {
    fn input(&mut self, t: Time, input: &Input) {
        black_box((t, input));
    }

    fn effect(&mut self, t: Time, effect: &Effect<()>, steps: &[GrantedStep]) {
        black_box((t, effect, steps));
    }
}

struct Metrics(RunMetrics);

impl Sink for Metrics {
    fn input(&mut self, t: Time, input: &Input) {
        self.0.input(t, black_box(input));
    }

    fn effect(&mut self, t: Time, effect: &Effect<()>, steps: &[GrantedStep]) {
        self.0.effect(t, black_box(effect), black_box(steps));
    }
}

fn main() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let draws: Vec<f64> = Exp1.sample_iter(&mut rng).take(1 << 16).collect();
    let mut best = [f64::INFINITY; 2];
    for _ in 0..7 {
        let start = Instant::now();
        single_server(&draws, &mut Nobody);
        best[0] = best[0].min(start.elapsed().as_secs_f64());
        let mut metrics = RunMetrics::new();
        metrics.begin(&header()).expect("metrics in memory take everything");
        let mut sink = Metrics(metrics);
        let start = Instant::now();
        let end = single_server(&draws, &mut sink);
        best[1] = best[1].min(start.elapsed().as_secs_f64());
        sink.0.end(&end).expect("metrics in memory take everything");
        assert!(sink.0.into_run().all().offered > 0);
    }
    let [without, with] = best.map(|seconds| seconds * 1e9 / JOBS as f64);
    println!("records alone {without:.1} ns a job, with metrics {with:.1}, metrics {:.1}", with - without);
}

/// M/M/1 at load 0.9 as a stream of records.
fn single_server(draws: &[f64], sink: &mut impl Sink) -> End {
    let mut waiting: VecDeque<(u64, u64)> = VecDeque::new();
    let (mut arrival, mut departure, mut started, mut next, mut attempt) = (0u64, u64::MAX, 0u64, 0u64, 0u64);
    let mut ended = 0;
    let mut now = 0;
    let draw = |at: u64, mean: f64| (draws[(at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as usize] * mean) as u64 + 1;
    while ended < JOBS {
        let mut begin = false;
        if departure <= arrival || next == JOBS {
            now = departure;
            let t = Time::from_nanos(now);
            let (job, arrived) = waiting.pop_front().expect("somebody is served");
            let measured = Measured { first_token: None, output_tokens: 0 };
            sink.input(t, &Input::GrantFinished { attempt: Attempt(attempt), instance: InstanceId(0), measured });
            sink.effect(t, &Effect::Finish(finish(job, arrived, started)), &[]);
            attempt += 1;
            ended += 1;
            departure = u64::MAX;
            begin = !waiting.is_empty();
        } else {
            now = arrival;
            let t = Time::from_nanos(now);
            sink.input(t, &Input::Submitted { job: JobId(next), submission: submission() });
            waiting.push_back((next, now));
            next += 1;
            arrival += draw(next, 1_000_000.0 / 0.9);
            begin |= waiting.len() == 1;
        }
        if begin {
            started = now;
            departure = now + draw(attempt * 31 + 7, 1_000_000.0);
            let step = GrantedStep { job: JobId(waiting[0].0), step: 0, of: 1, weight: 1 };
            sink.effect(Time::from_nanos(now), &grant(attempt), &[step]);
        }
    }
    End {
        t: Time::from_nanos(now),
        cause: EndCause::Exhausted,
        invariants_checked: 0,
        violations: Vec::new(),
        remarks: std::collections::BTreeMap::new(),
    }
}

fn submission() -> Submission {
    Submission {
        label: LabelId(0),
        wanted: Wanted::Model(ModelId(0)),
        class: Some(Class::Interactive),
        kind: JobKind::Chat,
        inputs: 1,
        prompt_tokens: 0,
        max_tokens: None,
        deadline: None,
        max_wait: None,
        drop_hopeless: None,
        quality: None,
        needs: Needs::NONE,
        body: windtunnel_core::Bytes::ZERO,
        client: None,
        affinity: None,
    }
}

fn grant(attempt: u64) -> Effect<()> {
    Effect::Grant(Grant {
        attempt: Attempt(attempt),
        instance: InstanceId(0),
        model: ModelId(0),
        device: DeviceId(0),
        class: Class::Interactive,
        right: Right::Order,
        weight: 1,
        steps: (),
    })
}

fn finish(job: u64, arrived: u64, started: u64) -> Finish {
    Finish {
        job: JobId(job),
        outcome: Outcome::Completed,
        label: LabelId(0),
        class: Class::Interactive,
        model: Some(ModelId(0)),
        arrived: Time::from_nanos(arrived),
        started: Some(Time::from_nanos(started)),
        first_token: None,
        deadline: None,
    }
}

fn header() -> Header {
    Header {
        schema: SCHEMA,
        program: "bench".to_owned(),
        source: Source::Sim,
        title: "M/M/1".to_owned(),
        seed: 1,
        replication: 0,
        horizon: None,
        jobs: Some(JOBS),
        warmup: WarmupRule::Auto,
        wall_clock: None,
        devices: vec![DeviceFacts { name: "gpu0".to_owned(), used: true, side_by_side: 1.0 }],
        models: vec![ModelFacts { name: "m".to_owned(), capacity: vec![Some(1000.0)], at_once: 1 }],
        workloads: vec![WorkloadFacts {
            name: "w".to_owned(),
            arrivals: "poisson 900/s".to_owned(),
            closed_loop: false,
            class: Class::Interactive,
            capacity: Some(1000.0),
        }],
        remarks: std::collections::BTreeMap::new(),
    }
}
