//! A server that takes everything waiting, up to a most, and serves it together.
//!
//! Whenever it is free it starts a batch of what waits, at most `max`, which takes T(B) = alpha + beta B, constant or
//! exponential; with nothing waiting it takes the next arrival alone. The number left waiting when a batch ends is a Markov
//! chain (Bailey, 1954, for constant maximum and any service; here with a service that depends on the batch, as in Inoue,
//! 2021), and the rest follows from counting over the cycle between two such moments.

use super::chain::stationary_of_endless;
use super::poisson::{geometric, poisson};

/// How a batch's time varies around T(B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchTime {
    /// Not at all.
    Constant,
    /// Exponential with mean T(B).
    Exponential,
}

/// The parameters of the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchQueue {
    /// Arrivals per unit of time.
    pub arrival: f64,
    /// Time per batch.
    pub alpha: f64,
    /// Time per request of the batch.
    pub beta: f64,
    /// The most requests in a batch, at least 1.
    pub max: usize,
    /// How T varies.
    pub time: BatchTime,
}

/// What is known of the queue.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchFigures {
    /// The share of batches that leave nothing waiting.
    pub empties: f64,
    /// Requests per batch, over batches.
    pub mean_batch: f64,
    /// Requests in its batch that a request sees, itself included.
    pub mean_batch_seen: f64,
    /// The share of batches with `max` requests.
    pub full: f64,
    /// The share of time in which a batch is served.
    pub busy: f64,
    /// Mean time between the ends of two batches.
    pub cycle: f64,
    /// Mean number waiting.
    pub mean_waiting: f64,
    /// Mean number waiting or being served.
    pub mean_in_system: f64,
    /// Mean wait.
    pub mean_wait: f64,
    /// Mean time from arrival until the end of its batch.
    pub mean_sojourn: f64,
    /// The probability that a batch leaves 0, 1, 2, .. waiting.
    pub left: Vec<f64>,
}

impl BatchQueue {
    /// The most it can serve per unit of time: max / T(max).
    pub fn capacity(&self) -> f64 {
        self.max as f64 / self.batch_time(self.max)
    }

    /// T(B).
    pub fn batch_time(&self, requests: usize) -> f64 {
        self.alpha + self.beta * requests as f64
    }

    /// How many are taken when so many wait at the end of a batch; an arrival is awaited when none do.
    pub fn taken(&self, waiting: usize) -> usize {
        waiting.clamp(1, self.max)
    }

    /// Solves the chain. `None` when the queue does not settle, or so slowly that the chain is too long.
    pub fn solve(&self) -> Option<BatchFigures> {
        if self.arrival >= self.capacity() {
            return None;
        }
        let arriving: Vec<Vec<f64>> = (0..=self.max).map(|requests| self.arriving(requests)).collect();
        let left = stationary_of_endless(|waiting| {
            let taken = self.taken(waiting);
            (waiting.saturating_sub(taken), arriving[taken].clone())
        })?;
        Some(self.count(left))
    }

    /// Probabilities of 0, 1, 2, .. arrivals during a batch.
    fn arriving(&self, requests: usize) -> Vec<f64> {
        match self.time {
            BatchTime::Constant => poisson(self.arrival * self.batch_time(requests)),
            BatchTime::Exponential => geometric(self.arrival, self.batch_time(requests)),
        }
    }

    /// E\[T^2\].
    fn batch_time_square(&self, requests: usize) -> f64 {
        let mean = self.batch_time(requests);
        match self.time {
            BatchTime::Constant => mean * mean,
            BatchTime::Exponential => 2.0 * mean * mean,
        }
    }

    /// Renewal-reward over the cycles: a batch that starts with r left waiting has r T + lambda T^2 / 2 of waiting and B T of
    /// service in it.
    fn count(&self, left: Vec<f64>) -> BatchFigures {
        let mean = |of: &dyn Fn(usize) -> f64| left.iter().enumerate().map(|(n, weight)| weight * of(n)).sum::<f64>();
        let batch = |waiting: usize| self.taken(waiting);
        let time = |waiting: usize| self.batch_time(batch(waiting));
        let mean_batch = mean(&|n| batch(n) as f64);
        let mean_time = mean(&time);
        let cycle = mean_time + left[0] / self.arrival;
        let held = |n: usize| (n.saturating_sub(batch(n))) as f64 * time(n);
        let waiting = mean(&|n| held(n) + self.arrival * self.batch_time_square(batch(n)) / 2.0) / cycle;
        let served = mean(&|n| batch(n) as f64 * time(n)) / cycle;
        BatchFigures {
            empties: left[0],
            mean_batch,
            mean_batch_seen: mean(&|n| (batch(n) as f64).powi(2)) / mean_batch,
            full: mean(&|n| if batch(n) == self.max { 1.0 } else { 0.0 }),
            busy: mean_time / cycle,
            cycle,
            mean_waiting: waiting,
            mean_in_system: waiting + served,
            mean_wait: waiting / self.arrival,
            mean_sojourn: (waiting + served) / self.arrival,
            left,
        }
    }
}
