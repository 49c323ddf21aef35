//! The policy, told as stories and searched by random worlds.

mod accounts;
mod admission;
mod batching;
mod bounds;
mod crowded;
mod ends;
mod footprints;
mod forgotten;
mod guard;
mod lifecycle;
mod machine;
mod modes;
mod operator;
mod order;
mod placement;
mod random;
mod residency;
mod restored;
mod routing;
mod shortage;
mod turns;
mod world;
