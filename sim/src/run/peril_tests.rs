//! What befalls grants, in whole runs of models that are resident.

use windtunnel_config::{
    Arrivals, Fault, FaultKind, Footprint, MonitorTrouble, Occurrence, Scenario, Upkeep, Workload,
};
use windtunnel_core::{Bytes, Capacity, DeviceKind, Input, Ppm, Span, Time};

use windtunnel_reports::NoRecord;

use super::*;
use crate::fixtures::{Asking, Transcript, scenario, workload};

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

fn gib(gib: u64) -> Bytes {
    Bytes::from_mib(gib << 10)
}

fn at(moments: &[u64]) -> Occurrence {
    Occurrence::At(moments.iter().map(|&at| ms(at)).collect())
}

/// One card with a slot a request, each of which takes 101 ms for its one input, and requests at `millis`.
fn slow(slots: u32, millis: &[u64]) -> Scenario {
    let mut slow = scenario(1);
    slow.run.horizon = Some(Span::from_secs(400));
    slow.configuration.models[0].capacity = Capacity::Slots { slots };
    slow.cards[0].speed = 0.01;
    slow.cards[0].upkeep = Upkeep { release: ms(50), ..Upkeep::default() };
    let request =
        |&at| windtunnel_config::Request { at: ms(at), inputs: None, prompt_tokens: None, output_tokens: None };
    slow.asked_by(Workload { arrivals: Arrivals::At(millis.iter().map(request).collect()), ..workload("w") })
}

fn struck(mut world: Scenario, kind: FaultKind, when: Occurrence) -> Scenario {
    world.faults.push(Fault { kind, devices: None, model: None, when, from: Span::ZERO, to: None });
    world
}

/// Milliseconds and what happened, up to the first `count` facts that are neither submissions nor timers.
fn facts(scenario: Scenario, count: usize) -> Vec<String> {
    let mut transcript = Transcript::default();
    Setup::new(scenario).unwrap().run(0, &mut transcript, &Control::new()).unwrap();
    let fact = |(t, input, _): &(Time, Input, Vec<String>)| {
        let what = match input {
            Input::GrantFinished { attempt, .. } => format!("finished {}", attempt.0),
            Input::GrantFailed { attempt, cause, sent, .. } => format!("failed {} {cause:?} {sent:?}", attempt.0),
            Input::Exited { instance, cause } => format!("exited {} {cause:?}", instance.0),
            Input::OutOfMemory { instance, .. } => format!("out of memory {}", instance.0),
            Input::LoadFinished { instance, .. } => format!("loaded {}", instance.0),
            Input::StopFinished { instance, .. } => format!("stopped {}", instance.0),
            Input::Cancelled { job } => format!("cancelled {}", job.0),
            _ => return None,
        };
        Some(format!("{} {what}", t.as_nanos() / 1_000_000))
    };
    transcript.steps.iter().filter_map(fact).take(count).collect()
}

#[test]
fn a_process_dies_at_the_moment_and_its_grants_fail_after_it_is_said() {
    let crash = struck(slow(2, &[0, 10]), FaultKind::Crash, at(&[100]));
    let expected = ["100 exited 0 Signal(11)", "100 failed 0 Crashed Nothing", "100 failed 1 Crashed Nothing"];
    assert_eq!(facts(crash, 3), expected);
}

#[test]
fn a_moment_that_finds_nothing_running_strikes_in_the_middle_of_the_next_grant() {
    let crash = struck(slow(1, &[100]), FaultKind::Crash, at(&[50]));
    let facts = facts(crash, 2);
    let time: u64 = facts[0].split(' ').next().unwrap().parse().unwrap();
    assert!((100..250).contains(&time), "{facts:?}");
    assert_eq!(facts, [format!("{time} exited 0 Signal(11)"), format!("{time} failed 0 Crashed Nothing")]);
}

#[test]
fn a_wedged_process_is_killed_after_a_while_with_all_its_grants() {
    let wedge = struck(slow(2, &[0, 10_000]), FaultKind::Wedge { lasts: ms(120_000) }, at(&[60]));
    let expected = ["120060 exited 0 Wedged", "120060 failed 0 Wedged Nothing", "120060 failed 1 Wedged Nothing"];
    assert_eq!(facts(wedge, 3), expected);
}

#[test]
fn a_client_of_a_wedged_process_may_still_give_up() {
    let mut wedge = struck(slow(1, &[0]), FaultKind::Wedge { lasts: ms(120_000) }, at(&[60]));
    wedge.workloads[0].patience = Some(windtunnel_config::Distribution::Constant(5.0));
    let expected = ["5000 cancelled 0", "5000 failed 0 Aborted Nothing"];
    assert_eq!(facts(wedge, 2), expected);
}

#[test]
fn every_grant_after_so_many_meets_a_closed_connection() {
    let limit = struck(slow(1, &[0, 1000, 2000]), FaultKind::ConnectionLimit { requests: 2 }, Occurrence::Always);
    let facts = facts(limit, 4);
    assert_eq!(facts[..3], ["150 finished 0", "1150 finished 1", "2000 failed 2 Disconnected Nothing"]);
}

#[test]
fn a_slow_device_slows_the_work_under_way() {
    let lasts = Some(ms(100));
    let slow = struck(slow(1, &[0, 1000]), FaultKind::SlowDevice { factor: Ppm::new(3_000_000), lasts }, at(&[50]));
    // 50 ms of 150 ms are done at 50 ms, a third of 100 ms passes in the next 100 ms, and the rest takes 66.7 ms.
    assert_eq!(facts(slow, 2), ["216 finished 0", "1150 finished 1"]);
}

#[test]
fn a_host_that_sleeps_does_nothing_and_everything_is_later() {
    let asleep = struck(slow(1, &[0, 1000]), FaultKind::ClockJump { by: ms(60_000) }, at(&[100]));
    assert_eq!(facts(asleep, 2), ["60150 finished 0", "61150 finished 1"]);
}

#[test]
fn timers_that_came_due_in_sleep_come_at_the_awakening() {
    let mut asleep = struck(slow(1, &[0, 10]), FaultKind::ClockJump { by: ms(60_000) }, at(&[100]));
    asleep.workloads[0].max_wait = Some(ms(500));
    let mut transcript = Transcript::default();
    Setup::new(asleep).unwrap().run(0, &mut transcript, &Control::new()).unwrap();
    let ended = transcript.steps.iter().find(|(.., wanted)| wanted.iter().any(|one| one.contains("TimedOut")));
    let (t, input, _) = ended.unwrap();
    assert_eq!((*t, input), (Time::ZERO.after(ms(60_100)), &Input::TimerDue));
    assert!(transcript.steps.array_windows().all(|[one, two]| one.0 <= two.0));
}

#[test]
fn on_overcommitted_unified_memory_every_grant_fails_at_its_end() {
    let mut crowded = slow(1, &[0]);
    crowded.configuration.devices[0].kind = DeviceKind::Unified;
    crowded.configuration.devices[0].memory = Some(gib(16));
    crowded.footprints = vec![Footprint { truth: Some(gib(8)), ..Footprint::default() }];
    let curve = vec![(ms(100), gib(12))];
    let crowded = struck(crowded, FaultKind::ForeignMemory { curve }, Occurrence::Always);
    assert_eq!(facts(crowded, 2), ["150 out of memory 0", "150 failed 0 OutOfMemory Nothing"]);
}

#[test]
fn two_policies_meet_the_same_crashes() {
    let crash = struck(slow(1, &[0, 1000, 2000, 3000]), FaultKind::Crash, Occurrence::Probability(0.5));
    let again = facts(crash.clone(), 100);
    assert_eq!(facts(crash, 100), again);
    assert!(again.iter().any(|line| line.contains("Signal")), "{again:?}");
}

/// Two cards with a process each that grows out of its memory at 1 s, and a request at 900 ms that takes 500 ms.
const BOTH_DIE: &str = r#"
run = { horizon = "10s", drain = true }
devices = [{ name = "gpu", memory = "8GiB", count = 2 }]
models.m = { footprint = "4GiB", resident = true, service = { kind = "batch", alpha = "500ms" } }
workload = [{ name = "w", model = "m", arrivals = { process = "at", times = ["900ms"] } }]
faults = [{ kind = "memory_growth", bytes = "5GiB", at = "1s" }]
"#;

#[test]
fn a_grant_for_a_process_that_died_in_the_same_breath_fails_as_well() {
    let file = windtunnel_config::ScenarioFile::parse(BOTH_DIE, std::path::Path::new("both.toml")).unwrap();
    let seen = facts(file.resolve(&[]).unwrap(), 6);
    let expected = [
        "1000 exited 0 OutOfMemory",
        "1000 failed 0 OutOfMemory Nothing",
        "1000 exited 1 OutOfMemory",
        "1000 failed 1 Crashed Nothing",
    ];
    assert_eq!(seen, expected);
}

/// A card of 8 GiB and a model of 6 that is not loaded, for which somebody asks at once and nobody will again.
fn wanted_for_ever(kind: FaultKind) -> Scenario {
    let mut wanted = slow(1, &[20_000]);
    (wanted.run.horizon, wanted.run.jobs) = (None, Some(2));
    wanted.configuration.devices[0].memory = Some(gib(8));
    wanted.cards[0].upkeep.poll = ms(500);
    wanted.footprints = vec![Footprint { truth: Some(gib(6)), estimate: None, measured: true }];
    wanted.residents[0].clear();
    struck(wanted, kind, Occurrence::Always)
}

#[test]
fn a_run_ends_although_its_monitor_is_read_or_asked_for_ever() {
    let end = |world: Scenario| Setup::new(world).unwrap().run(0, &mut NoRecord, &Control::new()).unwrap();
    let monitor = |trouble| FaultKind::Monitor { trouble, lasts: None };
    let day = |end: &End| end.t.as_nanos() / 1_000_000_000 / 3600;
    for trouble in [MonitorTrouble::Stale, MonitorTrouble::Missing] {
        let unread = end(wanted_for_ever(monitor(trouble)));
        assert_eq!((day(&unread), unread.cause), (24, EndCause::Exhausted), "{trouble:?}");
    }
    let taken = FaultKind::ForeignMemory { curve: vec![(ms(0), gib(7))] };
    let waits = end(wanted_for_ever(taken.clone()));
    assert_eq!((day(&waits), waits.cause), (24, EndCause::Exhausted));
    let mut drained = wanted_for_ever(taken);
    (drained.run.horizon, drained.run.jobs, drained.run.drain) = (Some(Span::from_secs(60)), None, true);
    let drained = end(drained);
    assert_eq!((day(&drained), drained.cause), (24, EndCause::Exhausted));
    // What will change is waited for, however long that takes.
    let left = FaultKind::ForeignMemory { curve: vec![(ms(0), gib(7)), (Span::from_secs(200_000), gib(0))] };
    let served = end(wanted_for_ever(left));
    assert_eq!((day(&served), served.cause), (55, EndCause::Exhausted));
}
