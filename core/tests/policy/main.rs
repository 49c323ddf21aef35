//! The policy, told as stories and searched by random worlds.

mod admission;
mod batching;
mod ends;
mod guard;
mod lifecycle;
mod modes;
mod order;
mod random;
mod routing;
mod turns;
mod world;
