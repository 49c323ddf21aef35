//! The live side of Windtunnel, where time is real and a model is a process.
//!
//! One thread owns the scheduler ([`dispatcher`]). Everything else in the daemon talks to it through a [`Desk`]: the gateway
//! brings jobs and says what became of their grants, runtimes say what became of loads and stops, monitors bring readings
//! of memory. What the scheduler wants goes the other way: grants to whoever brought the job, loads and stops to the
//! [`Runtimes`], records to a [`journal`] that makes nobody wait.
//!
//! * [`gateway`] is the HTTP side: it brings what clients ask for to the desk, and passes on what children answer.
//! * [`gguf`] reads the headers of model files: what the file says of its architecture, and every tensor with its type
//!   and exact size. No weight is ever read.
//! * [`footprint`] says from headers and the arguments of a `llama-server` how much memory the process will take, on
//!   the device and on the host, row by row, before anything is started. An estimate is needed once per model, before its
//!   first load; afterwards the measurement replaces it.
//! * [`children`] are the processes that run models: started, watched, stopped, and never left behind.
//! * [`Lines`] are connections to them, kept for a moment between two requests.
//! * [`fake`] is a `llama-server` that only pretends, and runtimes made of such, for `serve --simulated` and for tests.
//! * [`monitor`] reads the memory of devices and finds out what a machine has.
//! * [`metrics`] counts what the scheduler does, for a monitoring system.
//! * [`daemon`] puts all rooms together: `windtunnel serve`.
//! * [`places`] knows where things lie on a machine; [`whole_file`] writes files that are there as a whole or not at all.
//! * [`profiles`] keeps what was learned of models over restarts.
//! * [`model_files`] brings both together for models as a configuration names them.
//! * [`operator`] is a client of a daemon: what it does now, orders, single requests.
//! * [`load`] is the other side of the wire: it sends the requests of a scenario to an endpoint, at their times, and
//!   records what a client sees.

pub mod children;
mod clock;
pub mod daemon;
mod descriptors;
pub mod dispatcher;
pub mod fake;
pub mod footprint;
pub mod gateway;
pub mod gguf;
pub mod journal;
mod lines;
pub mod load;
pub mod metrics;
pub mod model_files;
pub mod monitor;
pub mod operator;
pub mod places;
pub mod profiles;
mod progress;
mod runtimes;
pub mod whole_file;

pub use clock::Clock;
pub use dispatcher::{BatchOrder, Desk, Dispatcher, Order, Running, Ticket, Told};
pub use lines::Lines;
pub use progress::{Flight, Progress, Sight};
pub use runtimes::{Endpoint, LoadOrder, Runtimes, Watcher};
