//! The distribution of the time in a [`BatchQueue`] with constant batch times.
//!
//! A request that arrives while a batch of b is served, v before its end, finds m waiting: those left when the batch began
//! and those that came in the T(b) - v since. It waits v, then for m / max full batches, and is then served together with
//! the m mod max before it and with those that came behind it meanwhile. Given b and v all of that is Poisson; v is uniform
//! (arrivals see time averages), and it is integrated over between the points where one more request in the batch would
//! exceed the time asked for.

use super::batch::{BatchFigures, BatchQueue, BatchTime};
use super::poisson::{cumulated, poisson};

/// Probabilities below this are left out of the requests left waiting.
const NEGLIGIBLE: f64 = 1e-14;

/// Gauss-Legendre on (-1, 1) with four points: abscissas and weights of the positive half. Over a piece in which one arrival
/// is expected its error is below 1e-9.
const NODES: [(f64, f64); 2] =
    [(0.339_981_043_584_856_26, 0.652_145_154_862_546_2), (0.861_136_311_594_052_6, 0.347_854_845_137_453_85)];

/// The time from arrival until the end of its batch, for a queue with constant batch times.
#[derive(Clone, Debug)]
pub struct BatchSojourn {
    queue: BatchQueue,
    idle: f64,
    /// For each size of batch, the probability to arrive during one, and how many it left waiting when it began.
    under_way: Vec<(usize, f64, Vec<f64>)>,
}

impl BatchSojourn {
    /// The distribution for a queue and its solution. `None` unless its batch times are constant.
    pub fn new(queue: BatchQueue, figures: &BatchFigures) -> Option<BatchSojourn> {
        match queue.time {
            BatchTime::Exponential => return None,
            BatchTime::Constant => {}
        }
        let mut under_way = Vec::new();
        for size in 1..=queue.max {
            let held = held_back(&queue, &figures.left, size);
            let share: f64 = held.iter().sum();
            if share > NEGLIGIBLE {
                let held = held.iter().map(|weight| weight / share).collect();
                under_way.push((size, share * queue.batch_time(size) / figures.cycle, held));
            }
        }
        Some(BatchSojourn { queue, idle: 1.0 - figures.busy, under_way })
    }

    /// P(sojourn <= t).
    pub fn at_most(&self, t: f64) -> f64 {
        let at_once = if self.queue.batch_time(1) <= t { self.idle } else { 0.0 };
        let later = self.under_way.iter().map(|(size, share, held)| share * self.at_most_during(*size, held, t));
        at_once + later.sum::<f64>()
    }

    /// The quantile, to a relative precision of 1e-8. The function is dear, so a chord is tried in turn with a halving: chords
    /// are quick where it is smooth, halvings sure where it jumps.
    pub fn quantile(&self, p: f64) -> f64 {
        let excess = |t: f64| self.at_most(t) - p;
        let mut high = (self.queue.batch_time(self.queue.max), excess(self.queue.batch_time(self.queue.max)));
        let mut low = (0.0, -p);
        while high.1 < 0.0 {
            low = high;
            high = (2.0 * high.0, excess(2.0 * high.0));
        }
        let mut chord = true;
        while high.0 - low.0 > 1e-8 * high.0 {
            let share = if chord { low.1 / (low.1 - high.1) } else { 0.5 };
            // a chord's point may fall on an end for want of digits, so it keeps a little off both
            let next = low.0 + (high.0 - low.0) * share.clamp(1e-3, 1.0 - 1e-3);
            let found = (next, excess(next));
            if found.1 >= 0.0 {
                high = found
            } else {
                low = found
            }
            chord = !chord;
        }
        high.0
    }

    /// The mean over the rest v of a batch of `size`, piece by piece.
    fn at_most_during(&self, size: usize, held: &[f64], t: f64) -> f64 {
        let whole = self.queue.batch_time(size);
        let mut sum = 0.0;
        for piece in self.pieces(whole, t).windows(2) {
            let (middle, half) = ((piece[0] + piece[1]) / 2.0, (piece[1] - piece[0]) / 2.0);
            for (node, weight) in NODES {
                let both = self.at_most_after(size, held, middle - half * node, t)
                    + self.at_most_after(size, held, middle + half * node, t);
                sum += half * weight * both;
            }
        }
        sum / whole
    }

    /// Points between which the probability is smooth in v and not more than one arrival is expected.
    fn pieces(&self, whole: f64, t: f64) -> Vec<f64> {
        let full = self.queue.batch_time(self.queue.max);
        let mut points = vec![0.0, whole];
        let mut base = 0.0;
        while base <= t {
            points.extend((1..=self.queue.max).map(|size| t - base - self.queue.batch_time(size)));
            base += full;
        }
        let steps = (self.queue.arrival * whole).ceil();
        points.extend((1..steps as usize).map(|step| whole * step as f64 / steps));
        points.retain(|point| (0.0..=whole).contains(point));
        points.sort_by(f64::total_cmp);
        points
    }

    /// The probability for a request that arrives `rest` before the end of a batch of `size`.
    fn at_most_after(&self, size: usize, held: &[f64], rest: f64, t: f64) -> f64 {
        let max = self.queue.max;
        let before = poisson(self.queue.arrival * (self.queue.batch_time(size) - rest));
        let ahead = folded(held, &before);
        let mut sum = 0.0;
        for (batches, ahead) in ahead.chunks(max).enumerate() {
            let wait = rest + batches as f64 * self.queue.batch_time(max);
            let room = self.largest_batch_within(t - wait);
            if room >= max {
                sum += ahead.iter().sum::<f64>();
            } else if room > 0 {
                let behind = cumulated(&poisson(self.queue.arrival * wait));
                let at_most = |n: usize| behind.get(n).copied().unwrap_or(1.0);
                sum +=
                    ahead.iter().take(room).enumerate().map(|(n, weight)| weight * at_most(room - 1 - n)).sum::<f64>();
            }
        }
        sum
    }

    /// The most requests, up to `max`, whose batch takes at most `time`.
    fn largest_batch_within(&self, time: f64) -> usize {
        (1..=self.queue.max).take_while(|size| self.queue.batch_time(*size) <= time).count()
    }
}

/// The probabilities that a batch takes `size` and leaves 0, 1, 2, .. behind.
fn held_back(queue: &BatchQueue, left: &[f64], size: usize) -> Vec<f64> {
    let mut held = Vec::new();
    for (waiting, weight) in left.iter().enumerate() {
        if queue.taken(waiting) == size {
            let behind = waiting.saturating_sub(size);
            held.resize(behind + 1, 0.0);
            held[behind] += weight;
        }
    }
    let matters = held.iter().rposition(|weight| *weight > NEGLIGIBLE).map_or(0, |last| last + 1);
    held.truncate(matters);
    held
}

/// The distribution of the sum of two.
fn folded(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (i, left) in a.iter().enumerate() {
        for (target, right) in sum[i..].iter_mut().zip(b) {
            *target += left * right;
        }
    }
    sum
}
