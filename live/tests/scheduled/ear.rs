//! Hearing what is told of a job, on a thread that may wait for it.

use windtunnel_live::{Told, dispatcher::Listener};

/// The next that is told; `None`: it was the last.
pub fn hear(told: &mut Listener) -> Option<Told> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be had");
    runtime.block_on(told.next())
}
