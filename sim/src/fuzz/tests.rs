use super::*;

#[test]
fn random_worlds_break_no_rule() {
    let search = Search { seed: 1, ground: None };
    let findings = search.run(&Control::new(), |so_far| so_far.worlds < 60).unwrap();
    let found: Vec<String> =
        findings.finds.iter().map(|find| format!("seed {}: {}: {}", find.seed, find.rule, find.message)).collect();
    assert_eq!(found, [""; 0]);
    let tally = &findings.tally;
    let counts = [tally.completed, tally.otherwise, tally.guarded, tally.loads, tally.stops, tally.evictions];
    assert!(counts.iter().all(|&count| count > 0), "{tally:?}");
}

#[test]
fn a_search_is_the_same_search_every_time() {
    let search = || Search { seed: 7, ground: None }.run(&Control::new(), |so_far| so_far.worlds < 8).unwrap();
    let (one, other) = (search(), search());
    assert!(one.worlds >= 8 && one.tally.steps > 0);
    if one.worlds == other.worlds {
        assert_eq!(one.tally, other.tally);
    }
}
