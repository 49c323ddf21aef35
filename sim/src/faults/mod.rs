//! What goes wrong: which faults strike what, and when.
//!
//! Every fault of a scenario has a seed of its own, so faults disturb neither requests nor each other. Where a fault takes
//! an **occasion** (an exit, a stop, a load, a grant) its coins are numbered by occasion: under two policies the n-th load
//! it looks at meets the same fate. Moments, given or random, belong to the world and not to what happens in it. A moment
//! strikes the first occasion from then on; crashes and wedges strike at the moment itself where something runs.

mod exits;
mod grants;
mod loads;
mod memory;
mod trigger;

use windtunnel_config::{Fault, FaultKind, Scenario};
use windtunnel_core::{DeviceId, ModelId, Span, Time};

pub use exits::ExitFate;
pub use grants::{Peril, Strike};
pub use memory::Trouble;
pub use trigger::Window;

use crate::random::{Purpose, Seed, Stream};
use trigger::Trigger;

/// The faults of one replication.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    plagues: Vec<Plague>,
}

/// A fault at work.
#[derive(Clone, Debug)]
struct Plague {
    fault: Fault,
    seed: Seed,
    trigger: Trigger,
    /// Moments that found nothing to strike.
    armed: u32,
    /// Occasions looked at.
    occasions: u64,
    /// When it is on, where it is that kind.
    window: Option<Window>,
}

impl Faults {
    /// The faults of `scenario` in one replication.
    pub fn new(scenario: &Scenario, replication: u32) -> Faults {
        let plague =
            |(number, fault): (u64, &Fault)| Plague::new(fault, Seed::of_fault(scenario.run.seed, replication, number));
        Faults { plagues: (0..).zip(&scenario.faults).map(plague).collect() }
    }

    /// When one of them strikes by itself or begins or ends; [`Time::MAX`]: none does.
    pub fn next(&self) -> Time {
        self.plagues.iter().map(Plague::next).min().unwrap_or(Time::MAX)
    }

    /// Lets everything that is to come be `by` later.
    pub fn delay(&mut self, by: Span) {
        for plague in &mut self.plagues {
            if let Trigger::Moments(moments) = &mut plague.trigger {
                moments.delay(by);
            }
            plague.window.iter_mut().for_each(|window| window.delay(by));
        }
    }

    /// How long the host sleeps that falls asleep at `now`.
    pub fn sleep(&mut self, now: Time) -> Option<Span> {
        self.plagues.iter_mut().find_map(|plague| {
            let FaultKind::ClockJump { by } = plague.fault.kind else { return None };
            plague.take_moment(now).then_some(by)
        })
    }

    /// How many times as long work on `device` takes at `now`.
    pub fn slowness(&mut self, now: Time, device: DeviceId) -> f64 {
        let mut slowness = 1.0;
        for plague in self.plagues.iter_mut().filter(|plague| plague.fault.reaches(device)) {
            if let (FaultKind::SlowDevice { factor, .. }, Some(window)) = (&plague.fault.kind, &mut plague.window) {
                window.pass(now);
                if window.is_on(now) {
                    slowness *= f64::from(factor.get()) / 1e6;
                }
            }
        }
        slowness
    }

    /// What `pick` takes of the faults that strike `model` on `device` on an occasion of `now`, each with more draws of it.
    fn struck<T>(
        &mut self,
        now: Time,
        model: ModelId,
        device: DeviceId,
        pick: impl Fn(&FaultKind) -> Option<T>,
    ) -> impl Iterator<Item = (T, Stream)> {
        self.plagues.iter_mut().filter_map(move |plague| {
            let picked = pick(&plague.fault.kind)?;
            Some((picked, plague.strikes(now, model, device)?))
        })
    }

    /// Whether a device is ever slow.
    pub fn slow_devices(&self) -> bool {
        self.plagues.iter().any(|plague| matches!(plague.fault.kind, FaultKind::SlowDevice { .. }))
    }
}

impl Plague {
    fn new(fault: &Fault, seed: Seed) -> Plague {
        let moments = || seed.stream(Purpose::Moments);
        let (trigger, window) = if let FaultKind::SlowDevice { lasts, .. } = fault.kind {
            (Trigger::Always, Some(Window::new(fault, lasts, moments())))
        } else {
            (Trigger::new(fault, moments()), None)
        };
        Plague { fault: fault.clone(), seed, trigger, armed: 0, occasions: 0, window }
    }

    /// Whether it strikes by itself when its moments come.
    fn acts_by_itself(&self) -> bool {
        matches!(
            self.fault.kind,
            FaultKind::Crash | FaultKind::Wedge { .. } | FaultKind::MemoryGrowth { .. } | FaultKind::ClockJump { .. }
        )
    }

    fn next(&self) -> Time {
        match (&self.window, &self.trigger) {
            (Some(window), _) => window.next(),
            (None, Trigger::Moments(moments)) if self.acts_by_itself() => moments.next(),
            (None, Trigger::Moments(_) | Trigger::Always | Trigger::Coin(_)) => Time::MAX,
        }
    }

    /// Takes a moment that has come.
    fn take_moment(&mut self, now: Time) -> bool {
        match &mut self.trigger {
            Trigger::Moments(moments) => moments.take(now),
            Trigger::Always | Trigger::Coin(_) => false,
        }
    }

    /// Whether it strikes `model` on `device` on an occasion of `now`; more draws of the occasion come with it.
    fn strikes(&mut self, now: Time, model: ModelId, device: DeviceId) -> Option<Stream> {
        let open = self.fault.concerns(model, device) && self.is_open(now);
        if !open {
            return None;
        }
        let mut draws = self.seed.of_occasion(self.occasions).stream(Purpose::Occasion);
        self.occasions += 1;
        let strikes = match &mut self.trigger {
            Trigger::Always => true,
            Trigger::Coin(probability) => draws.uniform() < *probability,
            Trigger::Moments(_) if self.armed > 0 => {
                self.armed -= 1;
                true
            }
            Trigger::Moments(moments) => moments.take(now),
        };
        strikes.then_some(draws)
    }

    fn is_open(&self, now: Time) -> bool {
        let from = Time::ZERO.after(self.fault.from);
        let to = self.fault.to.map_or(Time::MAX, |to| Time::ZERO.after(to));
        from <= now && now < to
    }
}
