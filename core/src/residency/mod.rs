//! Residency: which models are in memory, which come and which go.
//!
//! After an input [`plan`] looks at the heads of the queues that it can have touched, higher classes first, and decides for
//! each that lacks an instance whether its model is loaded now, waits for memory that is being freed, lets victims go, or has
//! to wait; the reason is kept with the target. A decision to evict makes a [`Pending`] load that owns the bytes it waits
//! for, so that two decisions never count on the same memory.

mod books;
mod breaker;
mod demand;
mod fit;
mod loads;
mod pending;
mod permission;
mod plan;
mod precedence;
mod raise;
mod relief;
mod turn;
mod unload;
mod variant;
mod victims;
mod way;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Class;

pub(crate) use books::Books;
pub(crate) use breaker::{Breaker, FailedLoad};
pub(crate) use demand::Demand;
pub(crate) use fit::Needs;
pub(crate) use loads::{Load, Loads};
pub(crate) use pending::{Guarded, Pending};
pub(crate) use precedence::Precedence;

/// What has changed since the planner looked last. Most arrivals and cancellations change nothing that it decides on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Touched {
    /// Anything may have.
    pub all: bool,
    /// These queues have another head: targets and classes.
    pub heads: Vec<(u32, Class)>,
}

/// Whether models come and go at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Residency {
    /// Every model is where it may be and no memory is counted: there is nothing to plan.
    Fixed,
    /// They are loaded on demand.
    Managed,
}
