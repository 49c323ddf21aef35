//! A [`BatchQueue`] with constant batch times that refuses whom it could not serve in time.
//!
//! Who arrives while q wait and the batch under way ends in v is refused when (ceil(q / max) + 1) T(max) + v exceeds the
//! deadline, and never while the server is free. During a batch the number waiting therefore grows like a Poisson process
//! that stops at a limit, and the limit rises at known moments; the number waiting when a batch ends is again a Markov chain,
//! and a finite one.

use super::batch::BatchQueue;
use super::chain::Chain;
use super::poisson::poisson;

/// The parameters of the queue. Its batches take constant times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissionQueue {
    /// Arrivals, batches and their times.
    pub queue: BatchQueue,
    /// Due so long after arrival; at least T(max).
    pub deadline: f64,
}

/// What is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissionFigures {
    /// Served per unit of time.
    pub throughput: f64,
    /// The share of arrivals that is refused.
    pub refused: f64,
    /// Requests per batch.
    pub mean_batch: f64,
    /// The share of time in which a batch is served.
    pub busy: f64,
}

impl AdmissionQueue {
    /// Solves the chain; it settles at any arrival rate.
    pub fn solve(&self) -> AdmissionFigures {
        let states = self.limit(0.0) + 1;
        let left = Chain::new(states, |waiting| (0, self.left_after(waiting))).stationary();
        let mean = |of: &dyn Fn(usize) -> f64| left.iter().enumerate().map(|(n, weight)| weight * of(n)).sum::<f64>();
        let mean_batch = mean(&|n| self.queue.taken(n) as f64);
        let mean_time = mean(&|n| self.queue.batch_time(self.queue.taken(n)));
        let cycle = mean_time + left[0] / self.queue.arrival;
        let throughput = mean_batch / cycle;
        AdmissionFigures {
            throughput,
            refused: 1.0 - throughput / self.queue.arrival,
            mean_batch,
            busy: mean_time / cycle,
        }
    }

    /// The most that can be waiting while the batch under way has this long to go: one more than the most that whoever is
    /// admitted may find.
    fn limit(&self, rest: f64) -> usize {
        let full = self.queue.batch_time(self.queue.max);
        let batches = ((self.deadline - rest) / full - 1.0).floor();
        if batches < 0.0 { 0 } else { batches as usize * self.queue.max + 1 }
    }

    /// The probabilities of 0, 1, 2, .. waiting at the end of the batch that starts when so many wait.
    fn left_after(&self, waiting: usize) -> Vec<f64> {
        let taken = self.queue.taken(waiting);
        let mut now = vec![0.0; self.limit(0.0).max(waiting) + 1];
        now[waiting.saturating_sub(taken)] = 1.0;
        for stretch in self.stretches(self.queue.batch_time(taken)).windows(2) {
            let limit = self.limit((stretch[0] + stretch[1]) / 2.0);
            now = grown(&now, &poisson(self.queue.arrival * (stretch[0] - stretch[1])), limit);
        }
        now
    }

    /// The rests of a batch between which the limit is the same, from its start to its end.
    fn stretches(&self, whole: f64) -> Vec<f64> {
        let full = self.queue.batch_time(self.queue.max);
        let mut rests = vec![whole];
        let changes = (1..=(self.deadline / full) as usize).map(|batches| self.deadline - full * batches as f64);
        let mut inner: Vec<f64> = changes.filter(|rest| 0.0 < *rest && *rest < whole).collect();
        inner.sort_by(|a, b| b.total_cmp(a));
        rests.extend(inner);
        rests.push(0.0);
        rests
    }
}

/// The distribution after arrivals that stop at the limit; who is beyond it stays there.
fn grown(now: &[f64], arriving: &[f64], limit: usize) -> Vec<f64> {
    let mut then = vec![0.0; now.len()];
    for (waiting, weight) in now.iter().enumerate() {
        let most = limit.max(waiting);
        let mut rest = *weight;
        for (n, share) in arriving.iter().enumerate().take_while(|(n, _)| waiting + n < most) {
            then[waiting + n] += weight * share;
            rest -= weight * share;
        }
        then[most] += rest.max(0.0);
    }
    then
}
