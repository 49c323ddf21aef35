//! Integer quantities: time, spans, bytes, shares. Each constructor names its unit.

use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A moment: nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Time(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Span(u64);

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Bytes(u64);

/// A ratio in parts per million; 1,000,000 is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Ppm(u32);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than everything that happens.
    pub const MAX: Time = Time(u64::MAX);

    /// The moment `nanos` nanoseconds after the run began.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Nanoseconds since the run began.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`, zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The moment `span` after `self`, at most [`Time::MAX`].
    pub const fn after(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }

    /// The moment `span` before `self`, at least [`Time::ZERO`].
    pub const fn before(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than everything that lasts.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Span {
        Span(nanos)
    }

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Span {
        Span(micros.saturating_mul(1_000))
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000_000))
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(1_000_000_000))
    }

    /// Its length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whether it is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, at most [`Span::MAX`].
    pub const fn plus(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    pub const fn minus(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// `count` times this span, at most [`Span::MAX`].
    pub const fn times(self, count: u64) -> Span {
        Span(self.0.saturating_mul(count))
    }

    /// This span multiplied by `ratio`, rounded up, at most [`Span::MAX`].
    pub const fn scaled_up(self, ratio: Ppm) -> Span {
        Span(narrow((self.0 as u128 * ratio.0 as u128).div_ceil(1_000_000)))
    }

    /// This span divided by `ratio`, rounded up, at most [`Span::MAX`]; a zero ratio gives [`Span::MAX`].
    pub const fn divided_up(self, ratio: Ppm) -> Span {
        if ratio.0 == 0 {
            return Span::MAX;
        }
        Span(narrow((self.0 as u128 * 1_000_000).div_ceil(ratio.0 as u128)))
    }
}

const fn narrow(wide: u128) -> u64 {
    if wide > u64::MAX as u128 { u64::MAX } else { wide as u64 }
}

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Bytes {
        Bytes(bytes)
    }

    /// `mib` times 2^20 bytes.
    pub const fn from_mib(mib: u64) -> Bytes {
        Bytes(mib.saturating_mul(1 << 20))
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum, saturating.
    pub const fn plus(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    pub const fn minus(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl Ppm {
    /// The ratio one.
    pub const ONE: Ppm = Ppm(1_000_000);

    /// `parts` millionths.
    pub const fn new(parts: u32) -> Ppm {
        Ppm(parts)
    }

    /// The number of millionths.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

/// Seconds with as many decimals as it takes: `1.5s`, `0.0042s`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, mut fraction) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if fraction == 0 {
            return write!(f, "{secs}s");
        }
        let mut width = 9;
        while fraction.is_multiple_of(10) {
            fraction /= 10;
            width -= 1;
        }
        write!(f, "{secs}.{fraction:0width$}s")
    }
}

/// Whole MiB where that is exact, bytes otherwise.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 != 0 && self.0.is_multiple_of(1 << 20) {
            write!(f, "{}MiB", self.0 >> 20)
        } else {
            write!(f, "{}B", self.0)
        }
    }
}
