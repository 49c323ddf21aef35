//! A card in real time: the instances on it, which slow each other down, and one clock for all of them.
//!
//! While n instances have work under way, dedicated time passes at f = speed / (1 + sharing * (n - 1)). What is due
//! happens at its exact moment, however late the thread wakes up to notice, so that lateness never adds up.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{
        Notify,
        mpsc::{self, UnboundedReceiver},
    },
    time::Instant,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use windtunnel_core::{ServiceTimes, Span};

use super::fluid::{Fluid, SlotTimes, Tokens};

/// A card; handles of the same one are equal. It ends with the last of them.
#[derive(Clone, Debug)]
pub struct Card(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    _ends: DropGuard,
}

/// What stands on the card, in the state of `since`.
#[derive(Debug)]
struct State {
    speed: f64,
    sharing: f64,
    since: Instant,
    seats: BTreeMap<u64, Fluid>,
    next_seat: u64,
}

/// An instance's place on a card, free again when it is dropped.
#[derive(Debug)]
pub struct Seat {
    card: Card,
    number: u64,
    service: ServiceTimes,
}

/// Work under way; dropping it breaks it off.
#[derive(Debug)]
pub struct Work {
    tokens: UnboundedReceiver<Instant>,
    card: Card,
}

impl Card {
    /// A card of this speed (1: as the service times say), where each busy instance beyond the first slows all of them
    /// down by `sharing`.
    pub fn start(speed: f64, sharing: f64, runtime: &Handle) -> Card {
        let state = State { speed, sharing, since: Instant::now(), seats: BTreeMap::new(), next_seat: 0 };
        let state = Arc::new(Mutex::new(state));
        let changed = Arc::new(Notify::new());
        let end = CancellationToken::new();
        runtime.spawn(drive(Arc::clone(&state), Arc::clone(&changed), end.clone()));
        Card(Arc::new(Inner { state, changed, _ends: end.drop_guard() }))
    }

    /// Seats an instance.
    pub fn seat(&self, service: ServiceTimes) -> Seat {
        let mut state = locked(&self.0.state);
        let number = state.next_seat;
        state.next_seat += 1;
        state.seats.insert(number, Fluid::new(slot_times(service)));
        Seat { card: self.clone(), number, service }
    }

    /// Changes the work under way as of now.
    fn change(&self, change: impl FnOnce(&mut State)) {
        {
            let mut state = locked(&self.0.state);
            state.catch_up(Instant::now());
            change(&mut state);
        }
        self.0.changed.notify_one();
    }
}

impl Seat {
    /// Begins a generation, which lets out `output` tokens.
    pub fn generate(&self, prompt: u32, output: u32) -> Work {
        match self.service {
            ServiceTimes::Slots { prefill_fixed, prefill_per_token, .. } => {
                let prefill = prefill_fixed.plus(prefill_per_token.times(u64::from(prompt)));
                self.begin(|fluid, tokens| fluid.generate(nanos(prefill), output, tokens))
            }
            ServiceTimes::Batch { .. } => self.work(1),
        }
    }

    /// Begins work on so many inputs, which lets out nothing.
    pub fn work(&self, inputs: u64) -> Work {
        let takes = self.service.batch(inputs);
        self.begin(|fluid, tokens| fluid.work(nanos(takes), tokens))
    }

    fn begin(&self, begin: impl FnOnce(&mut Fluid, Tokens)) -> Work {
        let (send, tokens) = mpsc::unbounded_channel();
        self.card.change(|state| {
            if let Some(fluid) = state.seats.get_mut(&self.number) {
                begin(fluid, send);
            }
        });
        Work { tokens, card: self.card.clone() }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.card.change(|state| drop(state.seats.remove(&self.number)));
    }
}

impl Work {
    /// Where its tokens come from: when each was out; `None`: it is over.
    pub fn tokens(&mut self) -> &mut UnboundedReceiver<Instant> {
        &mut self.tokens
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.tokens.close();
        self.card.change(|state| state.seats.values_mut().for_each(Fluid::forget_abandoned));
    }
}

impl State {
    fn factor(&self) -> f64 {
        let busy = self.seats.values().filter(|fluid| fluid.is_busy()).count();
        self.speed / (1.0 + self.sharing * busy.saturating_sub(1) as f64)
    }

    /// When something happens next, in nanoseconds from `since`.
    fn rest(&self) -> f64 {
        self.seats.values().map(Fluid::rest).fold(f64::INFINITY, f64::min) / self.factor()
    }

    /// Lets everything happen that is due by `now`.
    fn catch_up(&mut self, now: Instant) {
        loop {
            let left = now.saturating_duration_since(self.since).as_nanos() as f64;
            let rest = self.rest().max(0.0);
            let by = rest.min(left);
            let dedicated = by * self.factor();
            self.seats.values_mut().for_each(|fluid| fluid.advance(dedicated));
            self.since += Duration::from_nanos(by.round() as u64);
            if rest > left || !self.let_out() {
                self.since = self.since.max(now);
                return;
            }
        }
    }

    fn let_out(&mut self) -> bool {
        let (at, slack) = (self.since, 0.5 * self.factor());
        self.seats.values_mut().fold(false, |some, fluid| fluid.let_out(at, slack) | some)
    }
}

async fn drive(state: Arc<Mutex<State>>, changed: Arc<Notify>, end: CancellationToken) {
    loop {
        let next = {
            let mut state = locked(&state);
            state.catch_up(Instant::now());
            let rest = state.rest();
            rest.is_finite().then(|| state.since + Duration::from_nanos(rest.max(0.0).ceil() as u64))
        };
        let due = async {
            match next {
                Some(next) => tokio::time::sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = changed.notified() => {}
            () = end.cancelled() => return,
        }
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn slot_times(service: ServiceTimes) -> SlotTimes {
    match service {
        ServiceTimes::Batch { .. } => SlotTimes::default(),
        ServiceTimes::Slots { decode_alpha, decode_beta, prefill_slice, .. } => {
            SlotTimes { alpha: nanos(decode_alpha), beta: nanos(decode_beta), slice: nanos(prefill_slice) }
        }
    }
}

fn nanos(span: Span) -> f64 {
    span.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: SlotTimes = SlotTimes { alpha: 4e6, beta: 1e6, slice: 5e6 };

    fn state(sharing: f64) -> State {
        State { speed: 1.0, sharing, since: Instant::now(), seats: BTreeMap::new(), next_seat: 0 }
    }

    fn at(start: Instant, micros: u64) -> Instant {
        start + Duration::from_micros(micros)
    }

    /// Microseconds from `start` at which tokens were out.
    fn out(start: Instant, tokens: &mut UnboundedReceiver<Instant>) -> Vec<u128> {
        std::iter::from_fn(|| tokens.try_recv().ok()).map(|at| at.duration_since(start).as_micros()).collect()
    }

    #[test]
    fn a_prefill_beside_a_decoding_slot_slows_both_down() {
        let mut state = state(1.0);
        let start = state.since;
        let ((tell, mut first), (other, mut second)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let mut fluid = Fluid::new(TIMES);
        fluid.generate(10e6, 4, tell);
        state.seats.insert(0, fluid);
        state.catch_up(at(start, 10_000));
        state.seats.values_mut().for_each(|fluid| fluid.generate(10e6, 2, other.clone()));
        drop(other);
        state.catch_up(at(start, 1_000_000));
        // The second prefill takes two iterations of 4 + 1 + 5; a token of the first comes with each, then both decode.
        assert_eq!(out(start, &mut first), [10_000, 20_000, 30_000, 36_000]);
        assert_eq!(out(start, &mut second), [30_000, 36_000]);
        assert!(second.try_recv().is_err_and(|why| why == mpsc::error::TryRecvError::Disconnected));
    }

    #[test]
    fn busy_instances_of_a_card_share_its_time_until_one_is_done() {
        let mut state = state(0.5);
        let start = state.since;
        let mut begin = |number, takes| {
            let (tell, done) = mpsc::unbounded_channel();
            let mut fluid = Fluid::new(TIMES);
            fluid.generate(takes, 1, tell);
            state.seats.insert(number, fluid);
            done
        };
        let (mut short, mut long) = (begin(0, 10e6), begin(1, 20e6));
        state.catch_up(at(start, 1_000_000));
        // 10 ms at 1/1.5 each; then the long one has 10 ms to go, alone.
        assert_eq!((out(start, &mut short), out(start, &mut long)), (vec![15_000], vec![25_000]));
    }
}
