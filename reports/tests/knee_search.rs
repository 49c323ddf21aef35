//! The search for the rate at a target, on metrics whose crossing is known.

use std::convert::Infallible;

use windtunnel_reports::knee::{Confirmation, Limit, Measurement, Probe, Search, SeedSet, Shape, Stability, Verdict};

/// A system with a known curve, seen through noise that is the same at every rate for one replication of one seed set.
struct Synthetic<F> {
    curve: F,
    /// Relative standard deviation of a replication.
    noise: f64,
    /// Relative error of everything seen with the search's seeds, and with fresh ones.
    bias: [f64; 2],
    unstable_from: f64,
    asked: Vec<(f64, SeedSet, u32)>,
}

impl<F: Fn(f64) -> f64> Probe for Synthetic<F> {
    type Error = Infallible;

    fn measure(&mut self, rate: f64, seeds: SeedSet, replications: u32) -> Result<Measurement, Infallible> {
        self.asked.push((rate, seeds, replications));
        let bias = match seeds {
            SeedSet::Search => self.bias[0],
            SeedSet::Fresh => self.bias[1],
        };
        let stability = if rate < self.unstable_from { Stability::Stable } else { Stability::Unstable };
        let each: Vec<f64> = (0..replications)
            .map(|replication| (self.curve)(rate) * (1.0 + bias + self.noise * wobble(replication)))
            .collect();
        let pooled = Some(each.iter().sum::<f64>() / f64::from(replications));
        Ok(Measurement { each, pooled, stability })
    }
}

/// Mean 0 and standard deviation 1 over every even number of replications.
fn wobble(replication: u32) -> f64 {
    if replication.is_multiple_of(2) { 1.0 } else { -1.0 }
}

fn quiet<F: Fn(f64) -> f64>(curve: F) -> Synthetic<F> {
    Synthetic { curve, noise: 0.0, bias: [0.0, 0.0], unstable_from: f64::INFINITY, asked: Vec::new() }
}

/// The p99 of the time in an M/M/1 system that serves 1000 a second: ln(100) / (1000 - rate) seconds.
fn p99(rate: f64) -> f64 {
    100.0_f64.ln() / (1000.0 - rate).max(1e-9)
}

/// The rate at which that is 50 ms.
const AT_50_MS: f64 = 907.896_596_280_238_2;

fn search() -> Search {
    Search::new("latency.p99", Limit::AtMost(0.050), 300.0, 1200.0)
}

fn within(value: Option<f64>, low: f64, high: f64) -> bool {
    value.is_some_and(|value| (low..=high).contains(&value))
}

#[test]
fn without_noise_the_bracket_holds_the_crossing_at_one_percent() {
    let mut system = quiet(p99);
    let knee = search().run(&mut system).expect("infallible");
    assert_eq!((knee.shape, knee.confirmation, knee.undecided), (Shape::Smooth, Confirmation::Confirmed, None));
    let (low, high) = (knee.rate.low.expect("a pass"), knee.rate.high.expect("a fail"));
    assert!(low <= AT_50_MS && AT_50_MS <= high && high <= low * 1.01, "{low} {high}");
    assert!(within(knee.rate.mean, AT_50_MS * 0.9995, AT_50_MS * 1.0005), "{:?}", knee.rate);
    // both ends once with the search's seeds and once with fresh ones, and never more replications than needed
    let seen = |rate, seeds| system.asked.contains(&(rate, seeds, 10));
    assert!(seen(low, SeedSet::Search) && seen(low, SeedSet::Fresh));
    assert!(seen(high, SeedSet::Search) && seen(high, SeedSet::Fresh));
    assert!(system.asked.iter().all(|(_, _, replications)| *replications == 10));
    assert_eq!(knee.probes.len(), system.asked.len());
}

#[test]
fn noise_costs_replications_up_to_forty_and_then_ends_the_search() {
    let mut system = Synthetic { noise: 0.2, ..quiet(p99) };
    let knee = search().run(&mut system).expect("infallible");
    let undecided = knee.undecided.expect("0.2 of noise hides 1% of rate");
    assert!(within(Some(undecided), AT_50_MS * 0.98, AT_50_MS * 1.02), "{undecided}");
    assert_eq!(knee.rate.mean, Some(undecided));
    assert!(system.asked.contains(&(undecided, SeedSet::Search, 40)));
    let last = knee.probes.iter().rposition(|probe| probe.seeds == SeedSet::Search).expect("a search");
    assert_eq!((knee.probes[last].rate, knee.probes[last].verdict), (undecided, Verdict::Undecided));
    // the bracket is what fresh seeds could tell apart: 40 replications see 8.6% of the metric, 0.9% of the rate
    assert!(within(knee.rate.low, AT_50_MS * 0.95, AT_50_MS), "{:?}", knee.rate);
    assert!(within(knee.rate.high, AT_50_MS, AT_50_MS * 1.05), "{:?}", knee.rate);
    assert_eq!(knee.shape, Shape::Smooth);
}

#[test]
fn a_metric_that_jumps_is_a_cliff() {
    let jump = |rate: f64| if rate < 700.0 { 0.010 } else { 3.0 };
    let knee = search().run(&mut quiet(jump)).expect("infallible");
    assert_eq!(knee.shape, Shape::Cliff);
    assert!(within(knee.rate.low, 690.0, 700.0) && within(knee.rate.high, 700.0, 710.0), "{:?}", knee.rate);
    assert!(within(knee.rate.mean, knee.rate.low.expect("a pass"), knee.rate.high.expect("a fail")));
}

#[test]
fn an_unstable_rate_fails_even_with_a_small_metric() {
    let mut system = Synthetic { unstable_from: 800.0, ..quiet(|_| 0.010) };
    let knee = search().run(&mut system).expect("infallible");
    assert_eq!(knee.shape, Shape::Cliff);
    assert!(within(knee.rate.low, 790.0, 800.0) && within(knee.rate.high, 800.0, 808.0), "{:?}", knee.rate);
}

#[test]
fn a_target_that_is_always_met_or_never_is_not_bracketed() {
    let met = search().run(&mut quiet(|_| 0.010)).expect("infallible");
    assert_eq!((met.shape, met.confirmation), (Shape::NotBracketed, Confirmation::Confirmed));
    assert_eq!((met.rate.mean, met.rate.low, met.rate.high), (None, Some(9600.0), None));
    let never = search().run(&mut quiet(|_| 9.0)).expect("infallible");
    assert_eq!((never.rate.mean, never.rate.low, never.rate.high), (None, None, Some(300.0 / 64.0)));
    assert_eq!(never.shape, Shape::NotBracketed);
}

#[test]
fn first_rates_that_are_off_are_moved() {
    let low = Search { from: 960.0, to: 980.0, ..search() };
    let knee = low.run(&mut quiet(p99)).expect("infallible");
    assert!(within(knee.rate.low, 890.0, AT_50_MS) && within(knee.rate.high, AT_50_MS, 918.0), "{:?}", knee.rate);
    let high = Search { from: 100.0, to: 200.0, ..search() };
    let knee = high.run(&mut quiet(p99)).expect("infallible");
    assert!(within(knee.rate.low, 890.0, AT_50_MS) && within(knee.rate.high, AT_50_MS, 918.0), "{:?}", knee.rate);
}

#[test]
fn fresh_seeds_that_contradict_widen_the_bracket() {
    // with the search's seeds the metric looks 20% too small, so every rate near the crossing looks too good
    let mut system = Synthetic { bias: [-0.2, 0.0], ..quiet(p99) };
    let knee = search().run(&mut system).expect("infallible");
    assert_eq!(knee.confirmation, Confirmation::Widened);
    let (low, high) = (knee.rate.low.expect("a pass"), knee.rate.high.expect("a fail"));
    assert!(low <= AT_50_MS && AT_50_MS <= high, "{low} {high}");
    assert!(high > low * 1.01, "{low} {high}");
}

#[test]
fn fresh_seeds_that_never_agree_are_a_contradiction() {
    let mut system = Synthetic { bias: [0.0, 90.0], ..quiet(p99) };
    let knee = search().run(&mut system).expect("infallible");
    assert_eq!(knee.confirmation, Confirmation::Contradicted);
    assert_eq!((knee.rate.low, knee.shape), (None, Shape::NotBracketed));
}

#[test]
fn a_share_that_must_be_kept_is_searched_the_same_way() {
    let share = |rate: f64| 1000.0 / rate.max(1000.0);
    let saturation = Search::new("completed_share", Limit::AtLeast(0.98), 500.0, 2000.0);
    let knee = saturation.run(&mut quiet(share)).expect("infallible");
    assert!(within(knee.rate.mean, 1000.0 / 0.98 * 0.999, 1000.0 / 0.98 * 1.001), "{:?}", knee.rate);
    assert_eq!(knee.shape, Shape::Smooth);
}

#[test]
fn an_error_of_the_probe_ends_the_search() {
    struct Interrupted(u32);
    impl Probe for Interrupted {
        type Error = &'static str;
        fn measure(&mut self, rate: f64, _: SeedSet, _: u32) -> Result<Measurement, &'static str> {
            self.0 += 1;
            if self.0 == 3 {
                return Err("interrupted");
            }
            let value = p99(rate);
            Ok(Measurement { each: vec![value; 2], pooled: Some(value), stability: Stability::Stable })
        }
    }
    let mut probe = Interrupted(0);
    assert_eq!(search().run(&mut probe), Err("interrupted"));
    assert_eq!(probe.0, 3);
}
