//! Memory of models that a file only names: somebody else reads model files.

use std::fmt;

use windtunnel_core::{Bytes, Capacity, DeviceKind};

use crate::daemon::{Backend, Launch};

/// Where a model is to run, as far as its memory depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Whose memory it is.
    pub kind: DeviceKind,
    /// What computes; `None`: the file does not say.
    pub backend: Option<Backend>,
}

/// Says how much memory an instance of a model takes.
pub trait Estimator: fmt::Debug + Send + Sync {
    /// What an instance that is started so, to do so much at once, takes of a device.
    ///
    /// # Errors
    /// Why that cannot be told, as a person reads it.
    fn footprint(&self, launch: &Launch, capacity: Capacity, site: Site) -> Result<Bytes, String>;
}
