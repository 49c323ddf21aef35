//! The policy, told as stories and searched by random worlds.

mod admission;
mod batching;
mod crowded;
mod ends;
mod guard;
mod lifecycle;
mod machine;
mod modes;
mod order;
mod random;
mod residency;
mod restored;
mod routing;
mod turns;
mod world;
