//! What a daemon does now, as a page: lines of toned pieces that are printed once, or drawn again and again.
//!
//! ```text
//! /admin/status, /admin/events -> page (lines with tones) -> text, or a terminal (screen)
//! ```
//!
//! The page knows neither a terminal nor a daemon; both ways show the same lines, so what is tested of one holds for both.

mod bar;
mod page;
mod screen;
mod watch;

pub use page::{page, text};
pub use watch::watch;
