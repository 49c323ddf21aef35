//! What one look at a device shows.

use std::fmt;

use windtunnel_core::{Bytes, PressureLevel};

/// A figure and where it is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// How much.
    pub bytes: Bytes,
    /// The tool, file or call that says so.
    pub source: &'static str,
}

/// What one of the processes that were asked for uses of the device, its descendants included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process.
    pub pid: u32,
    /// What it uses; `None`: it cannot be told, or it is gone.
    pub used: Option<Figure>,
}

/// What one look at a device shows. What it does not show is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// All memory.
    pub total: Option<Figure>,
    /// What is in use, by anybody.
    pub used: Option<Figure>,
    /// The processes that were asked for, in that order.
    pub processes: Vec<Process>,
    /// How scarce memory is.
    pub pressure: Option<PressureLevel>,
    /// What was moved out of memory.
    pub swapped: Option<Figure>,
}

/// A device that cannot be read at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// Reads one device. May take its time: it has a thread of its own.
pub trait Source: Send + fmt::Debug {
    /// Looks at the device, and at what `pids` and their descendants use of it.
    ///
    /// # Errors
    /// If nothing can be told at all.
    fn read(&mut self, pids: &[u32]) -> Result<Reading, Unreadable>;
}

impl Figure {
    /// So many bytes, as `source` says.
    pub const fn new(bytes: u64, source: &'static str) -> Figure {
        Figure { bytes: Bytes::new(bytes), source }
    }
}

impl Reading {
    /// The same without figures that make no sense: no memory at all, or more of it in use than there is.
    pub fn plausible(mut self) -> Reading {
        self.total = self.total.filter(|total| total.bytes > Bytes::ZERO);
        let most = self.total.map_or(Bytes::new(u64::MAX), |total| total.bytes);
        self.used = self.used.filter(|used| used.bytes <= most);
        self
    }
}
