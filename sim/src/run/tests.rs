use windtunnel_config::{Arrivals, Distribution, Fault, FaultKind, Occurrence, Scenario, Service, Workload};
use windtunnel_core::{
    Admission, Attempt, Capacity, DeviceId, Input, InstanceId, JobId, JobKind, ModelId, Request as Asked, Span,
};
use windtunnel_reports::NoRecord;

use super::{world::Next, *};
use crate::fixtures::{Asking, Transcript, poisson, scenario, workload};

fn transcript(scenario: Scenario) -> Transcript {
    let mut transcript = Transcript::default();
    Setup::new(scenario).unwrap().run(0, &mut transcript, &Control::new()).unwrap();
    transcript
}

fn end(scenario: Scenario) -> End {
    Setup::new(scenario).unwrap().run(0, &mut NoRecord, &Control::new()).unwrap()
}

fn at(name: &str, millis: &[u64]) -> Workload {
    let request = |&at| windtunnel_config::Request {
        at: Span::from_millis(at),
        inputs: None,
        prompt_tokens: None,
        output_tokens: None,
    };
    Workload { arrivals: Arrivals::At(millis.iter().map(request).collect()), ..workload(name) }
}

fn clients(name: &str, count: u32, think: f64) -> Workload {
    Workload { arrivals: Arrivals::Clients { count, think: Distribution::Constant(think) }, ..workload(name) }
}

/// Time in microseconds, what happened and to which job or grant.
fn story(transcript: &Transcript) -> Vec<(u64, &'static str, u64)> {
    let line = |(t, input, _): &(Time, Input, Vec<String>)| {
        let (word, number) = match input {
            Input::Submitted { job, .. } => ("submitted", job.0),
            Input::Cancelled { job } => ("cancelled", job.0),
            Input::GrantFinished { attempt, .. } => ("finished", attempt.0),
            Input::GrantFailed { attempt, .. } => ("failed", attempt.0),
            Input::TimerDue => ("timer", 0),
            other => panic!("unexpected {other:?}"),
        };
        (t.as_nanos() / 1000, word, number)
    };
    transcript.steps[1..].iter().filter(|(_, input, _)| *input != Input::TimerDue).map(line).collect()
}

#[test]
fn requests_are_served_in_batches_as_the_card_gets_free() {
    let transcript = transcript(scenario(1).asked_by(at("w", &[0, 1, 1, 9])));
    // The first is alone (1.5 ms), the two at 1 ms share a batch (2 ms), the last is alone again.
    let expected = [
        (0, "submitted", 0),
        (1000, "submitted", 1),
        (1000, "submitted", 2),
        (1500, "finished", 0),
        (3500, "finished", 1),
        (9000, "submitted", 3),
        (10_500, "finished", 2),
    ];
    assert_eq!(story(&transcript), expected);
    let end = transcript.end.unwrap();
    assert_eq!((end.t, end.cause), (Time::from_nanos(10_500_000), EndCause::Exhausted));
    assert_eq!(end.violations, [""; 0]);
}

#[test]
fn at_one_moment_ends_come_before_arrivals_in_the_order_of_devices() {
    // Two cards, one of twice the speed of the other: T(1) is 1.5 ms and 0.75 ms.
    let mut two = scenario(2);
    two.cards[1].speed = 2.0;
    two.run.horizon = Some(Span::from_millis(100));
    let mut arrivals = at("w", &[0]);
    let request = |at| windtunnel_config::Request {
        at: Span::from_micros(at),
        inputs: None,
        prompt_tokens: None,
        output_tokens: None,
    };
    arrivals.arrivals = Arrivals::At(vec![request(0), request(750), request(1500), request(1500)]);
    let story = story(&transcript(two.asked_by(arrivals)));
    let moments: Vec<_> = story.iter().filter(|&&(t, ..)| t == 1500).map(|&(_, word, _)| word).collect();
    assert_eq!(moments, ["finished", "finished", "submitted", "submitted"], "{story:?}");
}

#[test]
fn a_client_without_think_time_comes_after_the_batch_it_made_room_for() {
    let mut closed = scenario(1).asked_by(clients("w", 2, 0.0));
    closed.run.horizon = Some(Span::from_millis(4));
    // Both ask at 0; job 0 runs alone (1.5 ms). At its end job 1 is granted before client 0 asks again: they never share.
    let expected = [
        (0, "submitted", 0),
        (0, "submitted", 1),
        (1500, "finished", 0),
        (1500, "submitted", 2),
        (3000, "finished", 1),
        (3000, "submitted", 3),
    ];
    assert_eq!(story(&transcript(closed)), expected);
}

#[test]
fn a_refused_client_does_not_ask_for_ever_at_one_moment() {
    let mut full = scenario(1).asked_by(clients("w", 3, 0.0));
    full.configuration.policy.classes[0].max_queued = Some(1);
    full.run.horizon = Some(Span::from_millis(2));
    let story = story(&transcript(full));
    // One runs, one waits, one is refused and asks again a millisecond later.
    assert_eq!(story[..4], [(0, "submitted", 0), (0, "submitted", 1), (0, "submitted", 2), (1000, "submitted", 3)]);
}

#[test]
fn clients_that_give_up_cancel_while_they_wait_and_while_they_are_served() {
    let mut impatient = at("w", &[0, 0]);
    impatient.patience = Some(Distribution::Constant(0.001));
    let transcript = transcript(scenario(1).asked_by(impatient));
    let expected =
        [(0, "submitted", 0), (0, "submitted", 1), (1000, "cancelled", 0), (1000, "failed", 0), (1000, "cancelled", 1)];
    let story = story(&transcript);
    assert_eq!(story[..3], expected[..3], "{story:?}");
    // Whether the running one is broken off is the scheduler's to say; both end, and nothing is left.
    let cancelled = transcript.steps.iter().flat_map(|(_, _, wanted)| wanted).filter(|one| one.contains("Cancelled"));
    assert!(cancelled.count() >= 2);
    assert_eq!(transcript.end.unwrap().cause, EndCause::Exhausted);
}

#[test]
fn a_run_ends_at_its_horizon_or_after_its_jobs_or_drained() {
    let busy = || {
        let mut busy = scenario(1).asked_by(poisson("w", 5000.0));
        busy.run.horizon = Some(Span::from_millis(500));
        busy
    };
    let horizon = end(busy());
    assert_eq!((horizon.t, horizon.cause), (Time::from_nanos(500_000_000), EndCause::Horizon));

    let mut counted = busy();
    counted.run.jobs = Some(100);
    let jobs = transcript(counted.clone());
    let submitted = jobs.steps.iter().filter(|(_, input, _)| matches!(input, Input::Submitted { .. })).count();
    assert_eq!((submitted, jobs.end.unwrap().cause), (100, EndCause::Jobs));

    counted.run.drain = true;
    let drained = transcript(counted);
    let count =
        |word: &str| drained.steps.iter().flat_map(|(.., wanted)| wanted).filter(|one| one.starts_with(word)).count();
    assert_eq!(count("Finish"), 100);
    assert_eq!(drained.end.clone().unwrap().cause, EndCause::Drained);

    let mut long = busy();
    long.run.drain = true;
    long.run.horizon = Some(Span::from_millis(100));
    let long = end(long);
    assert!(long.t > Time::from_nanos(100_000_000) && long.cause == EndCause::Drained, "{long:?}");
}

#[test]
fn clients_send_nothing_while_a_run_drains() {
    let mut closed = scenario(1).asked_by(clients("w", 3, 0.01));
    closed.run.drain = true;
    closed.run.horizon = Some(Span::from_millis(105));
    let drained = transcript(closed);
    let late = |(t, input, _): &&(Time, Input, Vec<String>)| {
        *t > Time::from_nanos(105_000_000) && matches!(input, Input::Submitted { .. })
    };
    assert_eq!(drained.steps.iter().filter(late).count(), 0);
    assert_eq!(drained.end.unwrap().cause, EndCause::Drained);
}

#[test]
fn invariants_are_counted_as_checked_every_so_many_steps_and_at_the_end() {
    let mut short = scenario(1).asked_by(poisson("w", 1000.0));
    short.run.horizon = None;
    let after = |jobs| {
        let mut counted = short.clone();
        counted.run.jobs = Some(jobs);
        end(counted).invariants_checked
    };
    // An arrival each, and the end of a batch for some two of them.
    assert_eq!([after(100), after(60_000)], [1, 2]);
}

#[test]
fn an_interrupted_run_says_so() {
    let control = Control::new();
    control.interrupt();
    let setup = Setup::new(scenario(1).asked_by(poisson("w", 1000.0))).unwrap();
    assert_eq!(setup.run(0, &mut NoRecord, &control).unwrap().cause, EndCause::Interrupted);
}

#[test]
fn another_policy_meets_the_same_requests() {
    let mut mixed = scenario(2).asked_by(Workload {
        prompt_tokens: Distribution::Lognormal { median: 400.0, cv: 1.0 },
        patience: Some(Distribution::Exponential { mean: 0.05 }),
        deadline: Some(Span::from_millis(30)),
        ..poisson("a", 3000.0)
    });
    mixed = mixed.asked_by(Workload { inputs: Distribution::Uniform { low: 1.0, high: 9.0 }, ..poisson("b", 200.0) });
    mixed.run.horizon = Some(Span::from_secs(1));
    let mut other = mixed.clone();
    other.configuration.policy.classes[0].admission = Admission::Deadline;
    other.configuration.policy.classes[0].order = windtunnel_core::Order::Edf;
    let requests = |scenario| {
        let submitted =
            transcript(scenario).steps.into_iter().filter(|(_, input, _)| matches!(input, Input::Submitted { .. }));
        submitted.map(|(t, input, _)| (t, input)).collect::<Vec<_>>()
    };
    let (one, two) = (requests(mixed), requests(other));
    assert!(one.len() > 3000);
    assert_eq!(one, two);
}

#[test]
fn replications_differ_and_repeat() {
    let setup = Setup::new(scenario(1).asked_by(poisson("w", 500.0))).unwrap();
    let run = |replication| {
        let mut transcript = Transcript::default();
        setup.run(replication, &mut transcript, &Control::new()).unwrap();
        transcript.steps.into_iter().map(|(t, input, wanted)| format!("{t} {input:?} {wanted:?}")).collect::<Vec<_>>()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3)[1], run(4)[1]);
}

#[test]
fn what_is_kept_is_in_proportion_to_the_jobs_in_flight() {
    // Patience far beyond the run: its events outlive their jobs by far.
    let patient = Workload { patience: Some(Distribution::Constant(3600.0)), ..poisson("w", 1000.0) };
    let setup = Setup::new(scenario(1).asked_by(patient)).unwrap();
    let control = Control::new();
    let mut none = NoRecord;
    let mut run = Run::new(&setup, 0, &mut none, &control);
    run.start().unwrap();
    for _ in 0..20_000 {
        let (at, next) = run.world.next(run.scheduler.wake_at().unwrap_or(Time::MAX));
        run.world.now = at;
        if let Some(told) = run.world.happen(next) {
            run.step(told).unwrap();
        }
        let (jobs, events) = (run.world.jobs.len(), run.world.agenda.len());
        assert_eq!(jobs, run.scheduler.jobs_in_flight());
        assert!(events <= 2 * jobs + 130, "{events} for {jobs}");
    }
    assert!(run.world.arrived > 8000 && run.world.jobs.len() < 200);
}

#[test]
fn the_header_tells_capacities_and_arrivals() {
    let mut two = scenario(2).asked_by(poisson("w", 1500.0));
    two.cards[1].speed = 0.5;
    let header = transcript(two).header.unwrap();
    let capacity = 32.0 / 0.017;
    assert_eq!(header.models[0].at_once, 32);
    assert!((header.models[0].capacity[0].unwrap() - capacity).abs() < 1e-6);
    assert!((header.models[0].capacity[1].unwrap() - capacity / 2.0).abs() < 1e-6);
    assert!((header.workloads[0].capacity.unwrap() - 1.5 * capacity).abs() < 1e-6);
    assert_eq!(header.workloads[0].arrivals, "poisson 1500/s");
}

#[test]
fn a_job_number_is_never_left_out() {
    let transcript = transcript(scenario(1).asked_by(poisson("a", 300.0)).asked_by(clients("b", 3, 0.01)));
    let jobs: Vec<JobId> = submitted(&transcript).collect();
    assert!(jobs.len() > 3000 && jobs.into_iter().eq((0..).map(JobId).take(submitted(&transcript).count())));
}

#[test]
fn a_generation_measures_its_first_token_and_its_output() {
    let mut fluid = scenario(1);
    fluid.configuration.models[0].capacity = Capacity::Slots { slots: 2 };
    fluid.services[0][0] = Some(Service::Slots {
        prefill_fixed: Span::from_millis(5),
        prefill_per_token: Span::from_millis(1),
        decode_alpha: Span::from_millis(8),
        decode_beta: Span::from_millis(2),
        prefill_slice: Span::from_millis(10),
    });
    let mut one = at("w", &[0]);
    (one.prompt_tokens, one.output_tokens) = (Distribution::Constant(15.0), Distribution::Constant(4.0));
    let transcript = transcript(fluid.asked_by(one));
    // Prefill 5 + 15 ms, then three tokens at 10 ms.
    let finished = transcript.steps.iter().find_map(|(t, input, _)| match input {
        Input::GrantFinished { measured, .. } => Some((*t, *measured)),
        _ => None,
    });
    let (t, measured) = finished.unwrap();
    assert_eq!(t, Time::from_nanos(50_000_000));
    assert_eq!((measured.first_token, measured.output_tokens), (Some(Time::from_nanos(20_000_000)), 4));
}

#[test]
fn services_may_differ_from_card_to_card() {
    let mut two = scenario(2);
    let slow = Service::Batch { alpha: Span::from_millis(40), beta: Span::ZERO, noise: windtunnel_config::Noise::None };
    two.services[0][1] = Some(slow);
    two.configuration.models[0].capacity = Capacity::Batch { max: 1, wait: Span::ZERO };
    let story = story(&transcript(two.asked_by(at("w", &[0, 0]))));
    let ends: Vec<_> = story.iter().filter(|(_, word, _)| *word == "finished").map(|&(t, ..)| t).collect();
    assert_eq!(ends, [1500, 40_000]);
}

#[test]
fn jobs_that_nothing_helps_wait_until_the_horizon() {
    let mut unloaded = scenario(1).asked_by(at("w", &[1]));
    unloaded.residents[0].clear();
    // Its load never gets anywhere.
    unloaded.faults.push(Fault {
        kind: FaultKind::StalledLoad { lasts: Span::MAX },
        devices: None,
        model: None,
        when: Occurrence::Always,
        from: Span::ZERO,
        to: None,
    });
    let waited = end(unloaded.clone());
    assert_eq!((waited.t, waited.cause), (Time::from_nanos(10_000_000_000), EndCause::Horizon));
    unloaded.run.horizon = None;
    unloaded.run.jobs = Some(2);
    let endless = end(unloaded);
    assert_eq!((endless.t, endless.cause), (Time::from_nanos(1_000_000), EndCause::Exhausted));
}

#[test]
fn every_chunk_of_a_job_is_a_grant_of_its_own() {
    let mut chunked = at("w", &[0]);
    (chunked.kind, chunked.inputs) = (JobKind::Embedding, Distribution::Constant(70.0));
    let transcript = transcript(scenario(1).asked_by(chunked));
    // Chunks of 32, 32 and 6 inputs: 17, 17 and 4 ms.
    let story = story(&transcript);
    assert_eq!(story[1..], [(17_000, "finished", 0), (34_000, "finished", 1), (38_000, "finished", 2)]);
}

#[test]
fn stops_and_loads_are_answered_at_once() {
    let setup = Setup::new(scenario(1).asked_by(poisson("w", 100.0))).unwrap();
    let control = Control::new();
    let mut transcript = Transcript::default();
    let mut run = Run::new(&setup, 0, &mut transcript, &control);
    let orders = [Asked::Unload { instance: InstanceId(0) }, Asked::Load { model: ModelId(0), device: DeviceId(0) }];
    run.start().unwrap();
    for order in orders {
        let told = run.world.tell(Input::Operator(order));
        run.step(told).unwrap();
        while !run.world.facts.is_empty() {
            let (at, next) = run.world.next(Time::MAX);
            assert_eq!((at, next), (Time::ZERO, Next::Fact));
            let told = run.world.happen(next).unwrap();
            run.step(told).unwrap();
        }
    }
    let facts: Vec<_> = transcript.steps.into_iter().map(|(_, input, _)| input).skip(1).collect();
    let unloaded = facts.contains(&Input::StopFinished { attempt: Attempt(0), instance: InstanceId(0) });
    let footprint = None;
    let loaded = facts.contains(&Input::LoadFinished { attempt: Attempt(1), instance: InstanceId(1), footprint });
    assert!(unloaded && loaded, "{facts:?}");
}

fn submitted(transcript: &Transcript) -> impl Iterator<Item = JobId> {
    transcript.steps.iter().filter_map(|(_, input, _)| match input {
        Input::Submitted { job, .. } => Some(*job),
        _ => None,
    })
}
