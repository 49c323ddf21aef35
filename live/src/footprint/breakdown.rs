//! What an estimate consists of.

use std::fmt;

use windtunnel_core::Bytes;

use super::platform::Memory;

/// Whose memory something takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The device's.
    Device,
    /// The host's.
    Host,
}

/// What memory is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Weights that are computed with.
    Weights,
    /// Embeddings of tokens, which are only looked up.
    Embeddings,
    /// Keys and values of layers that look at the whole context.
    FullCache,
    /// Keys and values of layers that look at a sliding window.
    WindowCache,
    /// Compressed keys and values of multi-head latent attention.
    LatentCache,
    /// States of recurrent layers.
    States,
    /// The projector that turns images or sound into embeddings.
    Projector,
    /// Room for the projector's own computations.
    ProjectorCompute,
    /// Room for computations.
    Compute,
    /// Logits or embeddings on their way out.
    Outputs,
    /// What the backend and the process take for themselves.
    Overhead,
}

/// A line of an estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What for.
    pub part: Part,
    /// Whose memory.
    pub side: Side,
    /// How much.
    pub bytes: Bytes,
    /// How that came about, with the figures.
    pub formula: String,
}

/// How much memory a model will take, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The lines, none of them zero.
    pub rows: Vec<Row>,
    /// What a person should know about the estimate.
    pub notes: Vec<String>,
    /// Whether the host's side counts against the device.
    pub memory: Memory,
}

impl Footprint {
    pub(super) fn new(memory: Memory) -> Footprint {
        Footprint { rows: Vec::new(), notes: Vec::new(), memory }
    }

    /// Adds a line, unless it is empty.
    pub(super) fn add(&mut self, part: Part, side: Side, bytes: u64, formula: impl Into<String>) {
        if bytes > 0 {
            self.rows.push(Row { part, side, bytes: Bytes::new(bytes), formula: formula.into() });
        }
    }

    /// What it takes of the device's own memory.
    pub fn device(&self) -> Bytes {
        self.sum(|row| row.side == Side::Device)
    }

    /// What it takes of the host's memory.
    pub fn host(&self) -> Bytes {
        self.sum(|row| row.side == Side::Host)
    }

    /// Both sides together.
    pub fn total(&self) -> Bytes {
        self.sum(|_| true)
    }

    /// What counts against the device's capacity: its own side on a card, both sides where they share memory.
    pub fn charged(&self) -> Bytes {
        match self.memory {
            Memory::Discrete => self.device(),
            Memory::Unified => self.total(),
        }
    }

    /// What `part` takes on `side`.
    pub fn of(&self, part: Part, side: Side) -> Bytes {
        self.sum(|row| row.part == part && row.side == side)
    }

    fn sum(&self, counts: impl Fn(&Row) -> bool) -> Bytes {
        self.rows.iter().filter(|row| counts(row)).fold(Bytes::ZERO, |sum, row| sum.plus(row.bytes))
    }
}

impl Part {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Part::Weights => "weights",
            Part::Embeddings => "embeddings",
            Part::FullCache => "cache, full",
            Part::WindowCache => "cache, window",
            Part::LatentCache => "cache, latent",
            Part::States => "recurrent states",
            Part::Projector => "projector",
            Part::ProjectorCompute => "projector compute",
            Part::Compute => "compute",
            Part::Outputs => "outputs",
            Part::Overhead => "overhead",
        }
    }
}

impl Side {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Side::Device => "device",
            Side::Host => "host",
        }
    }
}

/// The table of `models --explain`: a line a row, in MiB with two decimals, then the sums and the notes.
impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            line(f, row.side.name(), row.bytes, row.part.name(), &row.formula)?;
        }
        line(f, "device", self.device(), "in all", "")?;
        line(f, "host", self.host(), "in all", "")?;
        let why = match self.memory {
            Memory::Discrete => "the device's side",
            Memory::Unified => "both sides: they share one memory",
        };
        line(f, "charged", self.charged(), "in all", why)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

fn line(f: &mut fmt::Formatter<'_>, side: &str, bytes: Bytes, part: &str, why: &str) -> fmt::Result {
    let hundredths = (u128::from(bytes.get()) * 100 + (1 << 19)) >> 20;
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    let text = format!("{side:7}  {whole:7}.{rest:02} MiB  {part:17}  {why}");
    writeln!(f, "{}", text.trim_end())
}
