use super::*;

#[test]
fn a_load_starts_then_fills_memory_and_is_read_until_nothing_changes() {
    let mut bench = Bench::new(&world());
    let expected = [
        "0 asked used 0 []",
        "500 used 0 [0:0]",
        "1000 used 2 [0:2]",
        "1500 used 4 [0:4]",
        "2000 used 6 [0:6]",
        "2500 loaded 0 8",
        "2500 used 8 [0:8]",
    ];
    assert_eq!(bench.read().load(0, 8.0).until(60_000).story(), expected);
}

#[test]
fn loads_that_fill_at_one_time_share_the_bandwidth() {
    let mut bench = Bench::new(&world());
    bench.load(0, 8.0).until(1500).load(1, 8.0).until(9000);
    // The first has 2 GiB left when the second begins to fill at 2 s: one more second at half the bandwidth.
    assert_eq!(bench.deeds(), ["3000 loaded 0 8", "4500 loaded 1 8"]);
}

#[test]
fn a_process_is_gone_before_its_memory_is_free() {
    let mut quick = world();
    quick.cards[0].upkeep.poll = ms(50);
    let mut bench = Bench::new(&quick);
    bench.resident(0).read().stop(0).until(60_000);
    let expected = [
        "0 asked used 8 [0:8]",
        "50 used 8 [0:8]",
        "100 used 8 [0:8]",
        "150 used 8 [0:8]",
        "200 stopped 0",
        "200 used 8 []",
        "250 used 8 []",
        "300 used 0 []",
    ];
    assert_eq!(bench.story(), expected);
}

#[test]
fn a_load_that_is_broken_off_fails_after_the_time_of_a_stop() {
    let mut bench = Bench::new(&world());
    bench.load(0, 8.0).until(1100).abort(0).read().until(60_000);
    let story = bench.story();
    assert_eq!(story[..2], ["500 used 0 [0:0]", "1000 used 2 [0:2]"]);
    assert!(story[2].starts_with("1100 asked used 2.3999"), "{story:?}");
    assert_eq!(story[3..], ["1300 failed 0 Stopped", "1500 used 0 []"]);
}

#[test]
fn what_does_not_fit_into_a_cards_own_memory_fails_at_its_end() {
    let mut bench = Bench::new(&world());
    bench.resident(0).load(1, 9.0).until(60_000);
    assert_eq!(bench.deeds(), ["2750 failed 1 OutOfMemory"]);
    assert!(!bench.is_overcommitted());
    bench.load(2, 8.0).until(120_000);
    assert_eq!(bench.deeds(), ["62500 loaded 2 8"]);
}

#[test]
fn unified_memory_is_overcommitted_in_silence_until_somebody_leaves() {
    let mut bench = Bench::new(&unified());
    bench.resident(0).load(1, 9.0).until(2500);
    assert!(!bench.is_overcommitted());
    bench.until(2750);
    assert!(bench.is_overcommitted());
    bench.stop(0).until(3000);
    assert!(bench.is_overcommitted(), "the process is gone and its memory is not free yet");
    bench.until(3050);
    assert!(!bench.is_overcommitted());
}

#[test]
fn unified_memory_reports_pressure_as_it_fills() {
    let mut bench = Bench::new(&unified());
    bench.resident(0).read().load(1, 7.5).until(60_000).stop(1).until(90_000);
    // 85% are 13.6 GiB, 95% are 15.2 GiB.
    let pressure: Vec<String> = bench.story().into_iter().filter(|line| line.contains("pressure")).collect();
    assert_eq!(pressure, ["2000 pressure Warn", "2375 pressure Critical", "60300 pressure Normal"]);
}

#[test]
fn a_card_without_known_footprints_shows_who_is_there_and_is_not_polled() {
    let mut unknown = world();
    unknown.footprints.clear();
    let mut bench = Bench::new(&unknown);
    bench.machine.settle_in(InstanceId(0), ModelId(0), None, super::super::LoadFate::NATURAL);
    assert_eq!(
        bench.read().stop(0).read().until(60_000).story(),
        ["0 asked used ? [0:?]", "0 asked used ? [0:?]", "200 stopped 0"]
    );
}
