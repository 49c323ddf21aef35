//! What a request says of itself to the connection it came over.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// Whether the request under way was taken in whole and waits, so that nothing is to be read of its client or sent to him. Said
/// by the task that drives the connection, to itself.
#[derive(Clone, Debug, Default)]
pub(in crate::gateway) struct Lull(Arc<AtomicBool>);

impl Lull {
    /// The request waits from now on.
    pub(in crate::gateway) fn begins(&self) {
        self.0.store(true, Relaxed);
    }

    /// It waits no more.
    pub(in crate::gateway) fn ends(&self) {
        self.0.store(false, Relaxed);
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.load(Relaxed)
    }
}
