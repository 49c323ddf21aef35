//! What has to hold of numbers that somebody else wrote before anything is built on them: how a flaw is said, and the
//! configuration. [`crate::restore`] looks at the whole state.

use alloc::string::{String, ToString};
use core::fmt;

use crate::{Capacity, Configuration, Violation};

/// Slots of an instance, at most.
const MOST_SLOTS: u32 = 65_536;
/// Inputs of a batch, at most.
const MOST_BATCH: u32 = 1_000_000;

/// A state or a configuration that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {flaw}")]
pub struct Unsound {
    /// Where: fields and places in lists, with dots between them.
    pub place: String,
    /// What is wrong there.
    pub flaw: Flaw,
}

/// What is wrong with a state or a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// It names something that does not exist.
    #[error("there is no number {found}, only {count} from 0 on")]
    Unknown {
        /// The number named.
        found: u64,
        /// How many there are.
        count: u64,
    },
    /// A number that is too small or too large.
    #[error("{found} is not from {least} to {most}")]
    Outside {
        /// The number found.
        found: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// A number that does not agree with what it counts or follows from.
    #[error("{found} where {expected} follows from the rest")]
    Differs {
        /// The number found.
        found: u64,
        /// What it should be.
        expected: u64,
    },
    /// Parts of it do not go together.
    #[error("{0}")]
    Contradicts(&'static str),
    /// An invariant does not hold.
    #[error(transparent)]
    Broken(#[from] Violation),
}

/// The place of a flaw, written out only where there is one.
pub(crate) type Place<'a> = fmt::Arguments<'a>;

pub(crate) fn flaw(place: Place<'_>, flaw: Flaw) -> Unsound {
    Unsound { place: place.to_string(), flaw }
}

/// A number that names one of `count` things.
pub(crate) fn known(place: Place<'_>, found: usize, count: usize) -> Result<(), Unsound> {
    numbered(place, found as u64, count as u64)
}

/// A number that was handed out before `next`.
pub(crate) fn numbered(place: Place<'_>, found: u64, next: u64) -> Result<(), Unsound> {
    if found < next {
        return Ok(());
    }
    Err(flaw(place, Flaw::Unknown { found, count: next }))
}

/// A number between bounds, both included.
pub(crate) fn within(place: Place<'_>, found: u64, least: u64, most: u64) -> Result<(), Unsound> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(flaw(place, Flaw::Outside { found, least, most }))
}

/// A number that follows from the rest.
pub(crate) fn equal(place: Place<'_>, found: u64, expected: u64) -> Result<(), Unsound> {
    if found == expected {
        return Ok(());
    }
    Err(flaw(place, Flaw::Differs { found, expected }))
}

/// A contradiction, for where a rule is broken.
pub(crate) fn contradiction(place: Place<'_>, what: &'static str) -> Unsound {
    flaw(place, Flaw::Contradicts(what))
}

impl Configuration {
    /// Whether everything that it names exists, and capacities are such that work can be done.
    ///
    /// # Errors
    /// The first flaw found.
    pub fn check(&self) -> Result<(), Unsound> {
        for (number, model) in self.models.iter().enumerate() {
            capacity(format_args!("models.{number}.capacity"), model.capacity)?;
            for (at, place) in model.placements.iter().enumerate() {
                let named = format_args!("models.{number}.placements.{at}.device");
                known(named, place.device.index(), self.devices.len())?;
            }
        }
        for (number, family) in self.families.iter().enumerate() {
            for (at, variant) in family.variants.iter().enumerate() {
                let named = format_args!("families.{number}.variants.{at}.model");
                known(named, variant.model.index(), self.models.len())?;
            }
        }
        Ok(())
    }
}

/// An instance takes at least one step or input, and not more than anything could hold.
pub(crate) fn capacity(place: Place<'_>, capacity: Capacity) -> Result<(), Unsound> {
    match capacity {
        Capacity::Slots { slots } => within(place, u64::from(slots), 1, u64::from(MOST_SLOTS)),
        Capacity::Batch { max, wait: _ } => within(place, u64::from(max), 1, u64::from(MOST_BATCH)),
    }
}
