//! The thread that owns the scheduler: it takes messages one by one, tells the scheduler, and hands out what it wants.

mod desk;
mod orders;
mod owner;
mod ready;
mod telling;
mod troubles;

pub use desk::Desk;
pub use orders::{BatchOrder, Order, Running, Ticket, Told};
pub use owner::{Dispatcher, Learned, Setting};
pub use ready::Ready;
pub use telling::{Listener, Teller, telling};
pub use troubles::{Trouble, TroubleCause};
