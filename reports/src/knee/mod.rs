//! The knee of a system: the load beyond which it no longer keeps what it promised, in four readings.
//!
//! "The" knee of a latency curve depends on the picture it is seen in, so four questions with answers are asked instead,
//! and only the first two are answers to plan with:
//!
//! 1. **Capacity**: what the cards can do at most, known analytically.
//! 2. **The rate at the target** ([`Search`]): the highest rate at which a metric still meets its target, found by
//!    stochastic bisection. A rate passes or fails only when a 99% interval lies wholly on one side of the target, and
//!    both ends of the answer are run once more with fresh seeds.
//! 3. **Saturation** ([`saturation`]): where throughput first falls 2% short of what is offered.
//! 4. **The power point** ([`power_point`]): the largest throughput per mean latency; and [`kneedle`], which is stated
//!    only together with the range it was computed on, because it moves with that range.
//!
//! This module knows no simulator: whoever can measure a metric at a rate implements [`Probe`], or hands over the points
//! of a grid.

mod grid;
mod report;
mod search;
mod verdict;

pub use grid::*;
pub use report::*;
pub use search::*;
pub use verdict::*;
