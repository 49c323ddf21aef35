use windtunnel_config::MonitorTrouble;
use windtunnel_core::{Ppm, PressureLevel};

use super::*;

fn at(moments: &[u64]) -> Occurrence {
    Occurrence::At(moments.iter().map(|&at| ms(at)).collect())
}

fn with(kind: FaultKind, when: Occurrence) -> Bench {
    Bench::new(&Scenario { faults: vec![fault(kind, when)], ..world() })
}

#[test]
fn phantom_memory_is_shown_in_so_many_readings_after_an_exit() {
    let mut phantom = always(FaultKind::PhantomMemory { polls: 2 });
    phantom.cards[0].upkeep.release = Span::ZERO;
    let mut bench = Bench::new(&phantom);
    bench.resident(0).read().stop(0).until(60_000);
    let expected = ["0 asked used 8 [0:8]", "200 stopped 0", "500 used 8 []", "1000 used 8 []", "1500 used 0 []"];
    assert_eq!(bench.story(), expected);
}

#[test]
fn lingering_memory_stays_taken_after_an_exit() {
    let mut bench = with(FaultKind::LingeringMemory { lasts: ms(700) }, Occurrence::Always);
    bench.resident(0).read().stop(0).until(60_000);
    assert_eq!(bench.story()[1..], ["200 stopped 0", "500 used 8 []", "1000 used 0 []"]);
}

#[test]
fn a_slow_exit_takes_longer_and_one_that_never_comes_is_forced() {
    let mut bench = with(FaultKind::SlowExit { lasts: ms(3000) }, at(&[1000]));
    bench.resident(0).resident(1).resident(2).stop(0).until(1000).stop(1).stop(2).until(60_000);
    // Only the first stop from the moment on is slow.
    assert_eq!(bench.deeds(), ["200 stopped 0", "1200 stopped 2", "4200 stopped 1"]);
    let mut bench = with(FaultKind::NeverExits, Occurrence::Always);
    assert_eq!(bench.resident(0).stop(0).until(60_000).deeds(), ["10000 stopped 0"]);
}

#[test]
fn a_slow_load_takes_a_multiple() {
    let mut bench = with(FaultKind::SlowLoad { factor: Ppm::new(2_000_000) }, Occurrence::Always);
    bench.load(0, 8.0).until(3000).read();
    assert_eq!(bench.story().last().unwrap(), "3000 asked used 4 [0:4]");
    assert_eq!(bench.until(60_000).deeds(), ["5000 loaded 0 8"]);
}

#[test]
fn a_stalled_load_is_given_up() {
    let mut bench = with(FaultKind::StalledLoad { lasts: ms(30_000) }, at(&[0]));
    bench.load(0, 8.0).load(1, 8.0).until(60_000);
    assert_eq!(bench.deeds(), ["2500 loaded 1 8", "30000 failed 0 Stalled"]);
}

#[test]
fn a_load_fails_or_runs_out_of_memory_when_it_would_have_been_ready() {
    for (kind, cause) in [(FaultKind::FailedLoad, "Crashed"), (FaultKind::LoadOom, "OutOfMemory")] {
        let mut bench = with(kind, at(&[100]));
        bench.load(0, 1.0).until(1000).load(1, 8.0).until(2000);
        assert_eq!(bench.deeds(), ["750 loaded 0 1"]);
        assert_eq!(bench.until(60_000).deeds(), [format!("3500 failed 1 {cause}")]);
        assert_eq!(bench.read().story(), ["60000 asked used 1 [0:1]"]);
    }
}

#[test]
fn a_process_grows_after_its_load_and_dies_where_it_outgrows_the_card() {
    let growth = FaultKind::MemoryGrowth { bytes: gib(2.0), over: ms(2000) };
    let mut bench = with(growth.clone(), Occurrence::Always);
    bench.load(0, 8.0).until(60_000);
    let expected = ["2500 loaded 0 8", "2500 used 8 [0:8]", "3000 used 8.5 [0:8.5]", "3500 used 9 [0:9]"];
    assert_eq!(bench.story()[4..8], expected);
    // With 7 GiB of others on the card one of the two GiB is there.
    let mut bench = with(growth, at(&[5000]));
    bench.load(0, 8.0).load(1, 7.0).until(60_000);
    let deeds = bench.deeds();
    assert_eq!(deeds[..2], ["4000 loaded 1 7", "4250 loaded 0 8"]);
    assert_eq!(deeds[2..], ["6000 exited 1 OutOfMemory"]);
}

#[test]
fn others_take_memory_as_their_curve_says() {
    let curve = vec![(ms(1200), gib(6.0)), (ms(5000), gib(0.0))];
    let mut bench = with(FaultKind::ForeignMemory { curve }, Occurrence::Always);
    bench.resident(0).read().until(2000);
    assert_eq!(bench.story(), ["0 asked used 8 [0:8]", "1500 used 14 [0:8]"]);
    bench.load(1, 4.0).until(3500);
    assert_eq!(bench.deeds(), ["3500 failed 1 OutOfMemory"]);
    bench.until(4600).story();
    assert_eq!(bench.until(60_000).story(), ["5500 used 8 [0:8]"]);
}

#[test]
fn a_silent_overcommit_lasts_as_long_as_its_process() {
    let mut bench = with(FaultKind::SilentOvercommit, at(&[0]));
    bench.load(0, 1.0).load(1, 1.0).until(700);
    assert!(!bench.is_overcommitted());
    bench.until(1000);
    assert!(bench.is_overcommitted());
    bench.stop(1).until(2000);
    assert!(bench.is_overcommitted());
    bench.stop(0);
    assert!(!bench.is_overcommitted());
}

fn monitor(trouble: MonitorTrouble, lasts: u64) -> Bench {
    let mut bench = with(FaultKind::Monitor { trouble, lasts: Some(ms(lasts)) }, at(&[1000]));
    bench.resident(0).read().story();
    bench
}

#[test]
fn a_missing_monitor_fails_and_a_stale_one_is_silent() {
    let mut bench = monitor(MonitorTrouble::Missing, 1000);
    bench.until(1100).read().until(60_000);
    assert_eq!(bench.story(), ["1100 asked unread", "1500 unread", "2000 used 8 [0:8]"]);
    let mut bench = monitor(MonitorTrouble::Stale, 1000);
    bench.until(1100).read().until(60_000);
    assert_eq!(bench.story(), ["1100 asked silence", "2000 used 8 [0:8]"]);
}

#[test]
fn a_partial_monitor_lacks_one_figure_and_then_the_other() {
    let mut bench = monitor(MonitorTrouble::Partial, 1400);
    let expected = ["1500 used 8 [0:?]", "2000 used ? [0:8]", "2500 used 8 [0:8]"];
    assert_eq!(bench.until(60_000).story(), expected);
}

#[test]
fn a_jumping_monitor_makes_up_every_second_reading() {
    let mut bench = monitor(MonitorTrouble::Jumping, 10_000);
    let story = bench.until(60_000).story();
    assert_eq!(story.len(), 20);
    assert!(story.iter().skip(1).step_by(2).all(|line| line.ends_with("used 8 [0:8]")), "{story:?}");
    let jumps: Vec<&String> = story[..18].iter().step_by(2).collect();
    assert!(jumps.iter().all(|line| line.ends_with("[0:8]") && !line.contains("used 8 ")), "{story:?}");
    let mut again = monitor(MonitorTrouble::Jumping, 10_000);
    assert_eq!(again.until(60_000).story(), story);
}

#[test]
fn a_pressure_curve_has_the_last_word() {
    let level = |at, level| (ms(at), level);
    let curve =
        vec![level(100, PressureLevel::Warn), level(200, PressureLevel::Critical), level(400, PressureLevel::Normal)];
    let faults = vec![fault(FaultKind::Pressure { curve }, Occurrence::Always)];
    let mut bench = Bench::new(&Scenario { faults, ..unified() });
    bench.resident(0).resident(1).until(60_000);
    assert_eq!(bench.deeds(), ["100 pressure Warn", "200 pressure Critical", "400 pressure Normal"]);
}

#[test]
fn a_coin_is_that_of_its_occasion() {
    let half = fault(FaultKind::FailedLoad, Occurrence::Probability(0.5));
    let other = fault(FaultKind::LoadOom, Occurrence::Probability(0.5));
    let fates = |faults: Vec<Fault>| {
        let mut faults = Faults::new(&Scenario { faults, ..world() }, 0);
        let load = |_| faults.load(Time::ZERO, ModelId(0), DeviceId(0)).end;
        (0..200)
            .map(load)
            .map(|end| end == crate::memory::LoadEnd::Fails(windtunnel_core::LoadFailure::Crashed))
            .collect()
    };
    let alone: Vec<bool> = fates(vec![half.clone()]);
    let failed = alone.iter().filter(|failed| **failed).count();
    assert!((70..130).contains(&failed), "{failed}");
    assert_eq!(fates(vec![half, other]), alone, "another fault changes nothing");
}

#[test]
fn random_moments_come_at_their_rate_within_their_window() {
    let mut often = fault(FaultKind::Crash, Occurrence::Rate(3600.0));
    (often.from, often.to) = (Span::from_secs(100), Some(Span::from_secs(1100)));
    let mut faults = Faults::new(&Scenario { faults: vec![often], ..world() }, 0);
    let mut moments = Vec::new();
    while faults.next() < Time::MAX {
        let next = faults.next();
        moments.push(next.as_nanos() / 1_000_000_000);
        faults.strike(next, &[(ModelId(0), DeviceId(0))]);
    }
    assert!((900..1100).contains(&moments.len()), "{}", moments.len());
    assert!(moments[0] >= 100 && moments.last().is_some_and(|last| *last < 1100));
}
