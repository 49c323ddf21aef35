//! One card and the instances on it.

use windtunnel_core::{Attempt, InstanceId, Measured, Sent, Span, Time};

use super::{Fluid, ServiceModel, Timed, Work};

/// A card: its instances share it as the module head says.
#[derive(Clone, Debug)]
pub struct Card {
    speed: f64,
    sharing: f64,
    instances: Vec<(InstanceId, Run)>,
    /// Seats that are free again.
    free: Vec<Seat>,
    /// Instances with a grant under way.
    busy: u32,
    /// Dedicated nanoseconds per nanosecond.
    factor: f64,
    /// Up to when dedicated time has passed.
    since: Time,
    /// The next end of anything.
    next: Time,
}

#[derive(Clone, Debug)]
enum Run {
    Timed(Timed),
    Fluid(Fluid),
}

/// A grant that an instance is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The grant.
    pub attempt: Attempt,
    /// When its first token was out.
    pub first_token: Option<Time>,
    /// Tokens it gave out.
    pub output_tokens: u32,
}

/// A grant that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The grant.
    pub attempt: Attempt,
    /// Where it ran.
    pub instance: InstanceId,
    /// What it took.
    pub measured: Measured,
}

/// Where an instance stands on its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat(usize);

impl Card {
    /// An empty card.
    pub fn new(card: &windtunnel_config::Card) -> Card {
        Card {
            speed: card.speed,
            sharing: card.sharing,
            instances: Vec::new(),
            free: Vec::new(),
            busy: 0,
            factor: card.speed,
            since: Time::ZERO,
            next: Time::MAX,
        }
    }

    /// Seats an instance that serves as `service` says.
    pub fn seat(&mut self, instance: InstanceId, service: &ServiceModel) -> Seat {
        let run = match service {
            ServiceModel::Batch { .. } => Run::Timed(Timed::default()),
            ServiceModel::Slots(times) => Run::Fluid(Fluid::new(*times)),
        };
        match self.free.pop() {
            Some(seat) => {
                self.instances[seat.0] = (instance, run);
                seat
            }
            None => {
                self.instances.push((instance, run));
                Seat(self.instances.len() - 1)
            }
        }
    }

    /// Frees the seat of an instance that has no grant under way.
    pub fn unseat(&mut self, seat: Seat) {
        self.free.push(seat);
    }

    /// When something on the card ends next; [`Time::MAX`]: nothing is under way.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Begins `work` on an instance. Work that does not fit the kind of its instance takes no time.
    #[inline]
    pub fn begin(&mut self, now: Time, seat: Seat, attempt: Attempt, work: Work, output_tokens: u32) {
        self.pass(now);
        let Some((_, run)) = self.instances.get_mut(seat.0) else { return };
        let alone = self.busy == 0;
        self.busy += u32::from(!run.is_busy());
        match (run, work) {
            (Run::Timed(timed), Work::Time(time)) if alone => {
                timed.begin(attempt, time, output_tokens);
                self.factor = self.speed;
                self.next = self.after(time);
            }
            (run, work) => {
                run.begin(attempt, work, output_tokens);
                self.plan();
            }
        }
    }

    /// Breaks a grant off. Whether its client had bytes of an answer; `None`: it is not under way.
    pub fn abort(&mut self, now: Time, seat: Seat, attempt: Attempt) -> Option<Sent> {
        self.pass(now);
        let (_, run) = self.instances.get_mut(seat.0)?;
        let sent = run.abort(attempt)?;
        self.busy -= u32::from(!run.is_busy());
        self.plan();
        Some(sent)
    }

    /// Takes out one grant that has ended by `now`. To be called when [`Card::next`] has come; nothing comes out where
    /// only a prefill ended.
    #[inline]
    pub fn take_due(&mut self, now: Time) -> Option<Ended> {
        if let Some(ended) = self.take_only(now) {
            return Some(ended);
        }
        self.pass(now);
        let slack = 0.5 * self.factor;
        let due = self.instances.iter_mut().find_map(|(instance, run)| {
            let done = run.take_due(now, slack)?;
            Some((*instance, done, run.is_busy()))
        });
        if let Some((_, _, false)) = due {
            self.busy -= 1;
        }
        self.plan();
        due.map(|(instance, done, _)| done.on(instance))
    }

    /// The same where the card has one instance with one grant of a given time: nothing else has to be looked at.
    #[inline]
    fn take_only(&mut self, now: Time) -> Option<Ended> {
        let [(instance, Run::Timed(timed))] = &mut self.instances[..] else { return None };
        if now < self.next {
            return None;
        }
        let done = timed.take_only()?;
        (self.busy, self.since, self.next) = (0, now, Time::MAX);
        Some(done.on(*instance))
    }

    /// Lets dedicated time pass up to `now`.
    #[inline]
    fn pass(&mut self, now: Time) {
        let elapsed = now.since(self.since);
        self.since = now;
        if self.busy > 0 && !elapsed.is_zero() {
            let by = elapsed.as_nanos() as f64 * self.factor;
            for (_, run) in &mut self.instances {
                run.advance(by);
            }
        }
    }

    /// Works out the factor and the next end.
    #[inline]
    fn plan(&mut self) {
        if self.busy == 0 {
            self.next = Time::MAX;
            return;
        }
        self.factor = match self.busy {
            1 => self.speed,
            busy => self.speed / (1.0 + self.sharing * f64::from(busy - 1)),
        };
        let rest = self.instances.iter().fold(f64::INFINITY, |least, (_, run)| least.min(run.rest())).max(0.0);
        self.next = self.after(rest);
    }

    /// When `rest` nanoseconds of dedicated time will have passed, to the nearest nanosecond.
    #[inline]
    fn after(&self, rest: f64) -> Time {
        let real = if self.factor == 1.0 { rest } else { rest / self.factor };
        self.since.after(Span::from_nanos((real + 0.5) as u64))
    }
}

impl Done {
    #[inline]
    fn on(self, instance: InstanceId) -> Ended {
        let Done { attempt, first_token, output_tokens } = self;
        Ended { attempt, instance, measured: Measured { first_token, output_tokens } }
    }
}

impl Run {
    #[inline]
    fn begin(&mut self, attempt: Attempt, work: Work, output_tokens: u32) {
        match (self, work) {
            (Run::Timed(timed), Work::Time(time)) => timed.begin(attempt, time, output_tokens),
            (Run::Timed(timed), Work::Generation { .. }) => timed.begin(attempt, 0.0, output_tokens),
            (Run::Fluid(fluid), Work::Generation { prefill, output_tokens }) => {
                fluid.begin(attempt, prefill, output_tokens);
            }
            (Run::Fluid(fluid), Work::Time(_)) => fluid.begin(attempt, 0.0, 0),
        }
    }

    #[inline]
    fn is_busy(&self) -> bool {
        match self {
            Run::Timed(timed) => timed.is_busy(),
            Run::Fluid(fluid) => fluid.is_busy(),
        }
    }

    #[inline]
    fn rest(&self) -> f64 {
        match self {
            Run::Timed(timed) => timed.rest(),
            Run::Fluid(fluid) => fluid.rest(),
        }
    }

    #[inline]
    fn advance(&mut self, by: f64) {
        match self {
            Run::Timed(timed) => timed.advance(by),
            Run::Fluid(fluid) => fluid.advance(by),
        }
    }

    #[inline]
    fn take_due(&mut self, now: Time, slack: f64) -> Option<Done> {
        match self {
            Run::Timed(timed) => timed.take_due(slack),
            Run::Fluid(fluid) => fluid.take_due(now, slack),
        }
    }

    fn abort(&mut self, attempt: Attempt) -> Option<Sent> {
        match self {
            Run::Timed(timed) => timed.abort(attempt),
            Run::Fluid(fluid) => fluid.abort(attempt),
        }
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_config::{Noise, Service};

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
        let mut card = Card::new(&windtunnel_config::Card { sharing, speed });
        let services = [&batch, &batch, &slots, &slots];
        let seats =
            services.iter().zip(0..).map(|(service, at)| card.seat(InstanceId(at), &ServiceModel::new(service, 1)));
        let seats = seats.collect();
        Bench { card, seats }
    }

    impl Bench {
        fn time(&mut self, at: f64, instance: usize, attempt: u64, time: f64) {
            self.card.begin(ms(at), self.seats[instance], Attempt(attempt), Work::Time(time * MS), 0);
        }

        fn generation(&mut self, at: f64, instance: usize, attempt: u64, prefill: f64, output_tokens: u32) {
            let work = Work::Generation { prefill: prefill * MS, output_tokens };
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
        let mut card = Card::new(&windtunnel_config::Card { sharing: 1.0, speed: 1.0 });
        let seat = card.seat(InstanceId(0), &model);
        let noise = UnitNoise { exponential: 0.25, normal: 0.0 };
        card.begin(Time::ZERO, seat, Attempt(0), model.work(1, noise, 0, 0), 0);
        assert_eq!(card.next(), ms(0.5));
    }
}
