//! A fake `llama-server`: it answers like build b10068 of the real one, with canned text, at the pace of a simulated card
//! or at once, and it can misbehave in every way that the real one was seen to.
//!
//! * [`FakeServer`] runs inside a program on a listener of its own. `fake-llama-server` is the same as a process, with the
//!   flags of the real one (`process`).
//! * A [`Card`] gives several servers one clock, on which they slow each other down as on a simulated card. One that is
//!   alone has a card of its own.
//! * [`Settings`] say what it is like, [`Faults`] what it does wrong.
//!
//! ```text
//!   listener -> server -> routes -> question -> a slot -> card: fluid -> generation -> dialects: whole, or a stream
//! ```

mod answer;
mod card;
mod dialects;
mod fluid;
mod generation;
pub mod process;
mod question;
mod routes;
mod server;
mod settings;
mod simulated;
mod stream;
mod vectors;
mod wire;

pub use card::{Card, Seat, Work};
pub use server::{FakeServer, Process};
pub use settings::{AnswerFault, Counting, Death, Faults, Frames, Kind, Pace, Settings, Watching};
pub use simulated::{Simulated, SimulatedControls, SimulatedDevice, SimulatedModel, SimulatedSettings};
