//! Simulated cards: what becomes of granted work.
//!
//! A card runs instances, an instance runs grants. Work is measured in **dedicated time**, the nanoseconds it would take
//! on a card of speed 1 with nobody else on it. While n instances of a card have a grant under way, its dedicated clock
//! advances at the factor f = speed / (1 + sharing * (n - 1)) of real time, for all of them alike; f changes when n does,
//! for work under way too. Inside an instance ([`Timed`], [`Fluid`]) dedicated time is all there is. So a card has one
//! next event: the smallest rest of its instances, divided by f.
//!
//! Rounding: every end (of a batch, a prefill, a generation) falls on the nearest nanosecond of real time and is taken
//! as having happened there; nothing else is rounded, so nothing accumulates. Rests are `f64`, in which whole nanoseconds
//! are exact up to 104 days: at a factor of 1 all arithmetic is that of integers, and a batch takes exactly T.
//!
//! Ends of one card at one moment are handed out by instance, within an instance by grant.

mod card;
mod fluid;
mod service;
mod timed;

pub use card::{Card, Ended, Seat};
pub use service::{ServiceModel, SlotTimes, Work};
use {fluid::Fluid, timed::Timed};

#[cfg(test)]
mod tests;
