//! What other settings would have done to recorded requests, request by request.
//!
//! Three tellings of the same requests are held side by side: as they were recorded, simulated again under the settings
//! they were recorded with, and simulated under others. How far the second is from the first says how much the simulation
//! is to be trusted; the change is the difference between the third and the second, which met the same requests. Requests
//! that come one after another meet the same queue, so the differences are averaged over blocks of time, and the interval
//! is that of the blocks' means. Differences of quantiles have theirs from blocks that are drawn again and again.

mod change;
mod ends;

pub use change::{Change, ClassChange, Difference, Differences, Fidelity, Figures, Shift, Story, Verdict, judge};
pub use ends::{JobEnd, JobEnds};
