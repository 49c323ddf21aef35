//! How a device spent its time: busy, and in which mode.

use windtunnel_core::{Bytes, Mode};

use super::stretch::{Absorb, Stretched, count};

/// What a device did over time.
#[derive(Clone, Debug, Default)]
pub struct DeviceTime {
    active: u32,
    since: u64,
    mode: Option<Mode>,
    mode_since: u64,
    /// Shares of the stretch that lasts.
    current: Shares,
    pub stretches: Stretched<Shares>,
    /// The most memory seen in use.
    pub memory_peak: Option<Bytes>,
}

/// Nanoseconds of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// With a grant under way.
    pub busy: u64,
    /// In interactive mode.
    pub interactive: u64,
}

impl DeviceTime {
    /// One more of its instances is busy.
    #[inline]
    pub fn start(&mut self, now: u64) {
        if self.active == 0 {
            self.since = now;
        }
        self.active = self.active.saturating_add(1);
    }

    /// One of its instances is no longer busy.
    #[inline]
    pub fn stop(&mut self, now: u64) {
        self.active = self.active.saturating_sub(1);
        if self.active == 0 {
            self.pass_busy(now);
        }
    }

    #[inline]
    fn pass_busy(&mut self, now: u64) {
        count(&mut self.current.busy, now.wrapping_sub(self.since));
        self.since = now;
    }

    /// Charges the time since the last change of mode.
    fn pass_mode(&mut self, now: u64) {
        match self.mode {
            Some(Mode::Interactive) => {
                let span = now.saturating_sub(self.mode_since);
                self.current.interactive = self.current.interactive.saturating_add(span);
            }
            Some(Mode::Idle) | None => {}
        }
        self.mode_since = now;
    }

    /// It changes its mode.
    pub fn change(&mut self, mode: Mode, now: u64) {
        self.pass_mode(now);
        self.mode = Some(mode);
    }

    /// A stretch ends: what lasts is charged to it and goes on.
    pub fn close_stretch(&mut self, now: u64, stretch: usize) {
        if self.active > 0 {
            self.pass_busy(now);
        }
        self.pass_mode(now);
        self.stretches[stretch].absorb(std::mem::take(&mut self.current));
    }

    /// Whether the device ever said in which mode it is.
    pub fn mode_known(&self) -> bool {
        self.mode.is_some()
    }
}

impl Absorb for Shares {
    fn absorb(&mut self, other: Shares) {
        self.busy = self.busy.saturating_add(other.busy);
        self.interactive = self.interactive.saturating_add(other.interactive);
    }
}
