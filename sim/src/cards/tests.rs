use windtunnel_config::{Noise, Service};
use windtunnel_core::{Attempt, InstanceId, Sent, Span, Time};

use super::*;
use crate::arrivals::UnitNoise;

const MS: f64 = 1e6;

struct Bench {
    card: Card,
    seats: Vec<Seat>,
}

/// A card with two batch instances (0 and 1) and two of continuous batching (2 and 3): alpha 8 ms, beta 2 ms, slice
/// 10 ms.
fn bench(sharing: f64, speed: f64) -> Bench {
    let batch = Service::Batch { alpha: Span::ZERO, beta: Span::ZERO, noise: Noise::None };
    let slots = Service::Slots {
        prefill_fixed: Span::ZERO,
        prefill_per_token: Span::ZERO,
        decode_alpha: Span::from_millis(8),
        decode_beta: Span::from_millis(2),
        prefill_slice: Span::from_millis(10),
    };
    let mut card = Card::new(&windtunnel_config::Card { sharing, speed, ..Default::default() });
    let services = [&batch, &batch, &slots, &slots];
    let seats = services.iter().zip(0..).map(|(service, at)| card.seat(InstanceId(at), &ServiceModel::new(service, 1)));
    let seats = seats.collect();
    Bench { card, seats }
}

impl Bench {
    fn time(&mut self, at: f64, instance: usize, attempt: u64, time: f64) {
        self.card.begin(ms(at), self.seats[instance], Attempt(attempt), Work::Time(time * MS), 0);
    }

    fn generation(&mut self, at: f64, instance: usize, attempt: u64, prefill: f64, output_tokens: u32) {
        let work = Work::Generation { prefill: prefill * MS, output_tokens, stretch: 1.0 };
        self.card.begin(ms(at), self.seats[instance], Attempt(attempt), work, output_tokens);
    }

    /// Everything that ends up to `until` (milliseconds): grant, when, first token.
    fn ends(&mut self, until: f64) -> Vec<(u64, f64, Option<f64>)> {
        let mut ends = Vec::new();
        while self.card.next() <= ms(until) {
            let now = self.card.next();
            if let Some(ended) = self.card.take_due(now) {
                ends.push((ended.attempt.0, in_ms(now), ended.measured.first_token.map(in_ms)));
            }
        }
        ends
    }
}

fn ms(at: f64) -> Time {
    Time::from_nanos((at * MS) as u64)
}

fn in_ms(at: Time) -> f64 {
    at.as_nanos() as f64 / MS
}

#[test]
fn alone_a_batch_takes_exactly_its_time() {
    let mut bench = bench(1.0, 1.0);
    bench.card.begin(Time::from_nanos(5), bench.seats[0], Attempt(0), Work::Time(17e6), 0);
    assert_eq!(bench.card.next(), Time::from_nanos(17_000_005));
    assert_eq!(bench.ends(100.0).len(), 1);
    assert_eq!(bench.card.next(), Time::MAX);
}

#[test]
fn a_faster_card_divides_times() {
    let mut bench = bench(1.0, 2.5);
    bench.time(0.0, 0, 0, 10.0);
    assert_eq!(bench.ends(100.0), [(0, 4.0, None)]);
}

#[test]
fn an_end_between_two_nanoseconds_falls_on_the_nearest() {
    let mut bench = bench(0.0, 2.5);
    for (start, work, end) in [(0, 6.0, 2), (10, 7.0, 13), (20, 8.0, 23)] {
        bench.card.begin(Time::from_nanos(start), bench.seats[0], Attempt(0), Work::Time(work), 0);
        assert_eq!(bench.card.next(), Time::from_nanos(end));
        assert!(bench.card.take_due(Time::from_nanos(end)).is_some(), "{work}");
    }
}

#[test]
fn two_instances_slow_each_other_while_both_work() {
    // The first has 6 ms left when the second comes: 12 ms at half speed. Then the second, 6 of 10 ms done, is alone.
    let mut sliced = bench(1.0, 1.0);
    sliced.time(0.0, 0, 0, 10.0);
    assert_eq!(sliced.ends(4.0), []);
    sliced.time(4.0, 1, 1, 10.0);
    assert_eq!(sliced.ends(100.0), [(0, 16.0, None), (1, 20.0, None)]);
    // At 2/3 of full speed 6 ms take 9.
    let mut half = bench(0.5, 1.0);
    half.time(0.0, 0, 0, 10.0);
    half.time(4.0, 1, 1, 10.0);
    assert_eq!(half.ends(100.0), [(0, 13.0, None), (1, 17.0, None)]);
    let mut apart = bench(0.0, 1.0);
    apart.time(0.0, 0, 0, 10.0);
    apart.time(4.0, 1, 1, 10.0);
    assert_eq!(apart.ends(100.0), [(0, 10.0, None), (1, 14.0, None)]);
}

#[test]
fn an_aborted_grant_leaves_the_card_at_once() {
    let mut bench = bench(1.0, 1.0);
    bench.time(0.0, 0, 0, 10.0);
    bench.time(4.0, 1, 1, 10.0);
    // At 10 ms both have had 3 ms of the last 6: 3 and 7 ms are left.
    assert_eq!(bench.card.abort(ms(10.0), bench.seats[0], Attempt(0)), Some(Sent::Nothing));
    assert_eq!(bench.card.abort(ms(10.0), bench.seats[0], Attempt(0)), None);
    assert_eq!(bench.ends(100.0), [(1, 17.0, None)]);
}

#[test]
fn grants_of_one_slot_instance_do_not_count_as_instances() {
    let mut bench = bench(1.0, 1.0);
    bench.time(0.0, 0, 0, 10.0);
    bench.time(4.0, 0, 1, 3.0);
    assert_eq!(bench.ends(100.0), [(1, 7.0, None), (0, 10.0, None)]);
}

#[test]
fn a_lone_generation_prefills_and_then_decodes() {
    let mut bench = bench(1.0, 1.0);
    bench.generation(0.0, 2, 0, 25.0, 3);
    assert_eq!(bench.ends(100.0), [(0, 45.0, Some(25.0))]);
    bench.generation(100.0, 2, 1, 25.0, 1);
    bench.generation(100.0, 2, 2, 5.0, 0);
    assert_eq!(bench.ends(200.0), [(1, 125.0, Some(125.0)), (2, 130.0, None)]);
}

#[test]
fn a_prefill_beside_a_decoding_slot_slows_both() {
    let mut bench = bench(1.0, 1.0);
    bench.generation(0.0, 2, 0, 10.0, 5);
    assert_eq!(bench.ends(20.0), []);
    // At 20 ms one of four tokens is made. The prefill of 10 ms runs at 10 / (10 + 10): until 40 ms, one token more.
    bench.generation(20.0, 2, 1, 10.0, 2);
    // Then two slots at 12 ms a token: at 52 ms the second is done; the first has one left, at 10 ms.
    assert_eq!(bench.ends(100.0), [(1, 52.0, Some(40.0)), (0, 62.0, Some(10.0))]);
}

#[test]
fn prompts_prefill_one_after_the_other() {
    let mut bench = bench(1.0, 1.0);
    bench.generation(0.0, 2, 0, 10.0, 2);
    bench.generation(0.0, 2, 1, 10.0, 2);
    // From 10 ms the first decodes at 20 ms a token while the second prefills at half pace: both are done at 30 ms.
    // The second then decodes alone, at 10 ms a token.
    assert_eq!(bench.ends(100.0), [(0, 30.0, Some(10.0)), (1, 40.0, Some(30.0))]);
}

#[test]
fn contention_reaches_into_continuous_batching() {
    let mut bench = bench(1.0, 1.0);
    bench.generation(0.0, 2, 0, 10.0, 2);
    bench.time(0.0, 0, 1, 15.0);
    // Both at half speed: the prefill ends at 20 ms, the batch at 30 ms; half a token is left then, 5 ms alone.
    assert_eq!(bench.ends(100.0), [(1, 30.0, None), (0, 35.0, Some(20.0))]);
}

#[test]
fn an_aborted_generation_says_whether_its_client_had_a_token() {
    let mut bench = bench(1.0, 1.0);
    bench.generation(0.0, 2, 0, 10.0, 50);
    bench.generation(0.0, 2, 1, 10.0, 50);
    assert_eq!(bench.ends(15.0), []);
    assert_eq!(bench.card.abort(ms(15.0), bench.seats[2], Attempt(0)), Some(Sent::Something));
    assert_eq!(bench.card.abort(ms(15.0), bench.seats[2], Attempt(1)), Some(Sent::Nothing));
    assert_eq!(bench.card.next(), Time::MAX);
}

#[test]
fn perfect_time_slicing_conserves_work() {
    let mut stream = crate::random::Stream::from_seed(4);
    for _ in 0..200 {
        let mut bench = bench(1.0, 1.0);
        let service = Service::Batch { alpha: Span::ZERO, beta: Span::ZERO, noise: Noise::None };
        let model = ServiceModel::new(&service, 1);
        bench.seats = (0..40).map(|at| bench.card.seat(InstanceId(at), &model)).collect();
        let mut work = 0.0;
        let mut now = 0.0;
        for grant in 0..40 {
            let time = 1.0 + stream.below(5_000_000) as f64 / MS;
            bench.time(now, grant, grant as u64, time);
            work += time;
            // Always before the work so far is done.
            now = ((now + 0.9 * (work - now) * stream.uniform()) * MS).floor() / MS;
            bench.ends(now);
        }
        let end = bench.ends(1e6).last().map_or(0.0, |&(_, at, _)| at);
        assert!((end - work).abs() < 40e-6, "{end} instead of {work}");
    }
}

#[test]
fn the_noise_of_a_grant_scales_its_time() {
    let service = Service::Batch { alpha: Span::from_millis(2), beta: Span::ZERO, noise: Noise::Exponential };
    let model = ServiceModel::new(&service, 1);
    let mut card = Card::new(&windtunnel_config::Card::default());
    let seat = card.seat(InstanceId(0), &model);
    let noise = UnitNoise { exponential: 0.25, normal: 0.0 };
    card.begin(Time::ZERO, seat, Attempt(0), model.work(1, noise, 0, 0), 0);
    assert_eq!(card.next(), ms(0.5));
}
