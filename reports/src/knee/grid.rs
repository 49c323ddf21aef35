//! Readings off the points of a grid: saturation, the power point, Kneedle.

use super::report::{Bracket, KneedleReading, RateReading};
use super::verdict::Stability;

/// Throughput short of what is offered by this share means saturation.
pub const SHORTFALL: f64 = 0.02;

/// One rate of a grid, measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridPoint {
    /// The rate that was set, in requests per second.
    pub rate: f64,
    /// Completed over offered requests, both per second: its mean over replications.
    pub completed_share: f64,
    /// Half the width of that share's interval; `None` where there is no interval.
    pub completed_share_half_width: Option<f64>,
    /// Completed requests per second.
    pub throughput: f64,
    /// Mean latency of completed requests in seconds; `None` where there is none.
    pub mean_latency: Option<f64>,
    /// Whether the system settles at this rate.
    pub stability: Stability,
}

/// Where throughput first falls 2% short of what is offered: between the last point before it that surely does not and the
/// first after it that surely does, interpolated in between. `points` ascend in rate. `None`: it never falls short.
pub fn saturation(points: &[GridPoint]) -> Option<RateReading> {
    let least = 1.0 - SHORTFALL;
    let short = points.iter().position(|point| point.completed_share < least)?;
    let surely_short = |point: &&GridPoint| point.share_at_most() < least;
    let surely_enough = |point: &&GridPoint| point.share_at_least() >= least;
    let low = points[..short].iter().rev().find(surely_enough).map(|point| point.rate);
    let high = points[short..].iter().find(surely_short).map(|point| point.rate);
    let mean = short.checked_sub(1).map(|before| crossing(&points[before], &points[short], least));
    Some(RateReading { rate: Bracket { mean, low, high } })
}

/// The rate with the largest throughput per mean latency (Kleinrock, 1979), refined by the parabola through the largest
/// point and its two neighbours, which are the bracket. Unstable points have no steady latency and are left out. `None`
/// where no point has a latency.
pub fn power_point(points: &[GridPoint]) -> Option<RateReading> {
    let powers: Vec<(f64, f64)> = points.iter().filter_map(GridPoint::power).collect();
    let top = (0..powers.len()).max_by(|a, b| powers[*a].1.total_cmp(&powers[*b].1))?;
    let below = top.checked_sub(1).map(|index| powers[index]);
    let above = powers.get(top + 1).copied();
    let mean = match (below, above) {
        (Some(below), Some(above)) => vertex(below, powers[top], above),
        (Some(_), None) | (None, Some(_)) | (None, None) => powers[top].0,
    };
    let rate = Bracket { mean: Some(mean), low: below.map(|point| point.0), high: above.map(|point| point.0) };
    Some(RateReading { rate })
}

/// Kneedle for a convex, rising latency curve: the rate where the curve, scaled to the unit square, lies furthest below
/// its diagonal (Satopää, Albrecht, Irwin and Raghavan, 2011). A property of the range at least as much as of the queue.
/// `None` with fewer than three points with a latency.
pub fn kneedle(points: &[GridPoint]) -> Option<KneedleReading> {
    let curve: Vec<(f64, f64)> = points.iter().filter_map(GridPoint::steady_latency).collect();
    let (first, last) = (*curve.first()?, *curve.last()?);
    if curve.len() < 3 || last.1 <= first.1 {
        return None;
    }
    let below_diagonal =
        |point: &(f64, f64)| (point.0 - first.0) / (last.0 - first.0) - (point.1 - first.1) / (last.1 - first.1);
    let knee = curve.iter().max_by(|a, b| below_diagonal(a).total_cmp(&below_diagonal(b)))?;
    Some(KneedleReading { rate: knee.0, over: [first.0, last.0] })
}

impl GridPoint {
    fn share_at_most(&self) -> f64 {
        self.completed_share + self.completed_share_half_width.unwrap_or(0.0)
    }

    fn share_at_least(&self) -> f64 {
        self.completed_share - self.completed_share_half_width.unwrap_or(0.0)
    }

    fn steady_latency(&self) -> Option<(f64, f64)> {
        match self.stability {
            Stability::Stable => self.mean_latency.map(|latency| (self.rate, latency)),
            Stability::Unstable => None,
        }
    }

    fn power(&self) -> Option<(f64, f64)> {
        let (rate, latency) = self.steady_latency()?;
        (latency > 0.0).then(|| (rate, self.throughput / latency))
    }
}

/// Where the completed rate, taken as a straight line between two points, is the share `least` of the offered one. A line
/// in the rate, not in the share: beyond saturation the completed rate is level and the share is a hyperbola.
fn crossing(before: &GridPoint, after: &GridPoint, least: f64) -> f64 {
    let excess = |point: &GridPoint| (point.completed_share - least) * point.rate;
    let (above, below) = (excess(before), excess(after));
    before.rate + (after.rate - before.rate) * above / (above - below)
}

/// The top of the parabola through three points, the middle one the highest; kept between the outer ones.
fn vertex(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> f64 {
    let (left, right) = (b.0 - a.0, b.0 - c.0);
    let (up, down) = (b.1 - a.1, b.1 - c.1);
    let bend = left * down - right * up;
    if bend == 0.0 {
        return b.0;
    }
    let top = b.0 - 0.5 * (left * left * down - right * right * up) / bend;
    top.clamp(a.0, c.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An M/M/1 queue with one service per second, and throughput that stops at the capacity.
    fn point(rate: f64) -> GridPoint {
        let stability = if rate < 1.0 { Stability::Stable } else { Stability::Unstable };
        GridPoint {
            rate,
            completed_share: rate.min(1.0) / rate,
            completed_share_half_width: Some(0.001),
            throughput: rate.min(1.0),
            mean_latency: Some(1.0 / (1.0 - rate).max(0.01)),
            stability,
        }
    }

    fn grid(from: u32, to: u32) -> Vec<GridPoint> {
        (from..=to).map(|tenths| point(f64::from(tenths) / 10.0)).collect()
    }

    #[test]
    fn saturation_lies_between_the_last_full_point_and_the_first_short_one() {
        let rate = saturation(&grid(5, 14)).expect("it falls short").rate;
        assert_eq!((rate.low, rate.high), (Some(1.0), Some(1.1)));
        // the level line from 1.0 to 1.1 meets 0.98 of the rate at 1/0.98
        assert!((rate.mean.expect("bracketed") - 1.0 / 0.98).abs() < 1e-9);
    }

    #[test]
    fn a_point_that_may_be_either_is_neither_end_of_the_bracket() {
        let mut points = grid(5, 14);
        points[5].completed_share_half_width = Some(0.03);
        points[6].completed_share_half_width = Some(0.1);
        let rate = saturation(&points).expect("it falls short").rate;
        assert_eq!((rate.low, rate.high), (Some(0.9), Some(1.2)));
    }

    #[test]
    fn no_saturation_below_the_capacity() {
        assert_eq!(saturation(&grid(1, 9)), None);
        let beyond = saturation(&grid(12, 14)).expect("all fall short").rate;
        assert_eq!((beyond.mean, beyond.low, beyond.high), (None, None, Some(1.2)));
    }

    #[test]
    fn the_power_point_of_mm1_is_half_of_its_capacity() {
        // power = rate * (1 - rate) is a parabola, so three points give its top exactly, wherever they lie
        let points: Vec<_> = [0.1, 0.25, 0.45, 0.7, 0.9, 1.2].map(point).to_vec();
        let rate = power_point(&points).expect("stable points").rate;
        assert!((rate.mean.expect("a top") - 0.5).abs() < 1e-12, "{rate:?}");
        assert_eq!((rate.low, rate.high), (Some(0.25), Some(0.7)));
        let edge = power_point(&points[..2]).expect("stable points").rate;
        assert_eq!((edge.mean, edge.low, edge.high), (Some(0.25), Some(0.1), None));
    }

    #[test]
    fn kneedle_moves_with_the_range_and_says_which() {
        let far: Vec<_> = (1..=98).map(|percent| point(f64::from(percent) / 100.0)).collect();
        let near = kneedle(&far[..80]).expect("a curve");
        let knee = kneedle(&far).expect("a curve");
        assert_eq!((near.over, knee.over), ([0.01, 0.8], [0.01, 0.98]));
        assert!((near.rate - 0.56).abs() < 0.011, "{near:?}");
        assert!((knee.rate - 0.86).abs() < 0.011, "{knee:?}");
        assert_eq!(kneedle(&far[..2]), None);
    }
}
