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
        match (self.instances.get_mut(seat.0), work) {
            (Some((_, Run::Timed(timed))), Work::Time(time)) if self.busy == 0 => {
                timed.begin(attempt, time, output_tokens);
                (self.busy, self.since, self.factor) = (1, now, self.speed);
                self.next = self.after(time);
            }
            _ => self.begin_beside(now, seat, attempt, work, output_tokens),
        }
    }

    /// The same where other work is under way on the card, or may be.
    #[inline(never)]
    fn begin_beside(&mut self, now: Time, seat: Seat, attempt: Attempt, work: Work, output_tokens: u32) {
        self.pass(now);
        let Some((_, run)) = self.instances.get_mut(seat.0) else { return };
        self.busy += u32::from(!run.is_busy());
        run.begin(attempt, work, output_tokens);
        self.plan();
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

    /// The grants of an instance that are under way.
    pub fn attempts(&self, seat: Seat) -> Vec<Attempt> {
        self.instances.get(seat.0).map_or_else(Vec::new, |(_, run)| run.attempts())
    }

    /// Work under way and work to come run at another speed from now on.
    pub fn set_speed(&mut self, now: Time, speed: f64) {
        if speed != self.speed {
            self.pass(now);
            self.speed = speed;
            self.plan();
        }
    }

    /// Nothing gets on for `by`.
    pub fn delay(&mut self, now: Time, by: Span) {
        self.pass(now);
        self.since = now.after(by);
        self.next = self.next.after(by);
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
    pub fn take_only(&mut self, now: Time) -> Option<Ended> {
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
            (Run::Fluid(fluid), Work::Generation { prefill, output_tokens, stretch }) => {
                fluid.begin(attempt, prefill, output_tokens, stretch);
            }
            (Run::Fluid(fluid), Work::Time(_)) => fluid.begin(attempt, 0.0, 0, 1.0),
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

    fn attempts(&self) -> Vec<Attempt> {
        match self {
            Run::Timed(timed) => timed.attempts(),
            Run::Fluid(fluid) => fluid.attempts(),
        }
    }

    fn abort(&mut self, attempt: Attempt) -> Option<Sent> {
        match self {
            Run::Timed(timed) => timed.abort(attempt),
            Run::Fluid(fluid) => fluid.abort(attempt),
        }
    }
}
