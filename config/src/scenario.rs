//! A scenario as the simulator takes it: every default filled in, every name resolved, every unit converted.

use std::path::PathBuf;

use windtunnel_core::{Bytes, Capability, Class, Configuration, DeviceId, JobKind, Needs, Quality, Span, Wanted};

use crate::fault::Fault;

/// A whole scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// A sentence.
    pub title: String,
    /// How long, how often, from which seed.
    pub run: Run,
    /// What the scheduler is told.
    pub configuration: Configuration,
    /// The true cards, by [`DeviceId`].
    pub cards: Vec<Card>,
    /// The true service of each model on each card: `services[model][device]`, `None` where it may not be placed. The card's
    /// speed is not in it.
    pub services: Vec<Vec<Option<Service>>>,
    /// Where each model is loaded when the run starts: `residents[model]`.
    pub residents: Vec<Vec<DeviceId>>,
    /// Who asks for what; their places are the labels' ids.
    pub workloads: Vec<Workload>,
    /// What a sweep varies.
    pub sweeps: Vec<Sweep>,
    /// What a knee search looks for.
    pub target: Option<Target>,
    /// What a test checks.
    pub expectations: Vec<Expectation>,
    /// The memory of an instance of each model; models beyond its end have none that is known.
    pub footprints: Vec<Footprint>,
    /// What goes wrong, in the order of the file.
    pub faults: Vec<Fault>,
}

/// `[run]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Virtual time after which the run ends.
    pub horizon: Option<Span>,
    /// Arrivals, over all workloads, after which the run ends. Where neither is given, every workload ends by itself (fixed
    /// moments, a trace, a window) and the run ends when all its jobs have.
    pub jobs: Option<u64>,
    /// What is left out of the figures.
    pub warmup: Warmup,
    /// The seed of every stream.
    pub seed: u64,
    /// Independent runs, at least 1.
    pub replications: u32,
    /// Whether the run goes on after its horizon until every job has ended.
    pub drain: bool,
}

/// The beginning of a run that is left out of the figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warmup {
    /// As MSER-5 says.
    Auto,
    /// So long.
    Fixed(Span),
    /// This share of the run, in [0, 1).
    Share(f64),
}

/// A simulated card.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// n busy instances each run at 1/(1 + sharing*(n-1)) of full speed.
    pub sharing: f64,
    /// Service times are divided by this; above 0.
    pub speed: f64,
    /// How processes come and go on it.
    pub upkeep: Upkeep,
}

/// How processes come and go on a card, and how often its memory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upkeep {
    /// Time of every load before the first byte of a model is in memory.
    pub fixed: Span,
    /// Bytes a second that all loads under way share; `None`: no limit.
    pub bandwidth: Option<Bytes>,
    /// From asking a process to stop until it has ended.
    pub stop: Span,
    /// From the end of a process until its memory is free.
    pub release: Span,
    /// Between two readings of the memory, above zero.
    pub poll: Span,
}

/// The memory of an instance of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// What it truly takes; `None`: nobody counts it.
    pub truth: Option<Bytes>,
    /// What the estimator says, where it is wrong.
    pub estimate: Option<Bytes>,
    /// Whether a stored measurement of it exists.
    pub measured: bool,
}

impl Default for Upkeep {
    fn default() -> Upkeep {
        Upkeep {
            fixed: Span::ZERO,
            bandwidth: None,
            stop: Span::ZERO,
            release: Span::ZERO,
            poll: Span::from_millis(500),
        }
    }
}

impl Default for Card {
    fn default() -> Card {
        Card { sharing: 1.0, speed: 1.0, upkeep: Upkeep::default() }
    }
}

impl Upkeep {
    /// How long a load of `footprint` takes that has the card's bandwidth for itself, to the nearest nanosecond.
    pub fn load_time(&self, footprint: Bytes) -> Span {
        let filling = self.bandwidth.map_or(0, |bandwidth| {
            let bandwidth = u128::from(bandwidth.get().max(1));
            (u128::from(footprint.get()) * 1_000_000_000 + bandwidth / 2) / bandwidth
        });
        self.fixed.plus(Span::from_nanos(u64::try_from(filling).unwrap_or(u64::MAX)))
    }
}

/// True service times.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// T(B) = alpha + beta*B.
    Batch {
        /// Time per batch.
        alpha: Span,
        /// Time per input.
        beta: Span,
        /// How T varies.
        noise: Noise,
    },
    /// Continuous batching, fluid.
    Slots {
        /// Time per prompt.
        prefill_fixed: Span,
        /// Time per prompt token.
        prefill_per_token: Span,
        /// Time per decoding iteration.
        decode_alpha: Span,
        /// Time per decoding slot and iteration.
        decode_beta: Span,
        /// Prefill done in one iteration beside decoding slots; above 0 unless all prefill times are.
        prefill_slice: Span,
    },
}

/// How a batch's time varies around T(B).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Not at all.
    None,
    /// Exponential with mean T(B).
    Exponential,
    /// Lognormal with mean T(B) and this coefficient of variation.
    Lognormal {
        /// The coefficient of variation, not its square.
        cv: f64,
    },
}

/// `[[workload]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its name, unique.
    pub name: String,
    /// Its class; `None`: the policy's default class.
    pub class: Option<Class>,
    /// The model or family it asks for.
    pub wanted: Wanted,
    /// What it asks for.
    pub kind: JobKind,
    /// For families: the least quality accepted.
    pub quality: Option<Quality>,
    /// Capabilities required.
    pub needs: Needs,
    /// The same, listed.
    pub needs_listed: Vec<Capability>,
    /// Clients give up after this.
    pub patience: Option<Distribution>,
    /// Drop hopeless jobs; `None`: as the class says.
    pub drop_hopeless: Option<bool>,
    /// Due so long after arrival.
    pub deadline: Option<Span>,
    /// The longest wait.
    pub max_wait: Option<Span>,
    /// Inputs of a request, rounded to whole ones, at least 1.
    pub inputs: Distribution,
    /// Prompt tokens of an input, rounded, at least 0.
    pub prompt_tokens: Distribution,
    /// Output tokens of a request, rounded, at least 0.
    pub output_tokens: Distribution,
    /// The most tokens a client asks for, where it says.
    pub max_tokens: Option<u32>,
    /// When requests come.
    pub arrivals: Arrivals,
    /// The gaps of an open workload are divided by this; 1 unless a search scales the load.
    pub rate_scale: f64,
    /// Active from then.
    pub from: Span,
    /// Active until then.
    pub to: Option<Span>,
}

/// A distribution of sizes, or of times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always this.
    Constant(f64),
    /// Uniform on [low, high].
    Uniform {
        /// The least.
        low: f64,
        /// The most.
        high: f64,
    },
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: f64,
    },
    /// Lognormal.
    Lognormal {
        /// Its median.
        median: f64,
        /// Its coefficient of variation.
        cv: f64,
    },
    /// Gamma.
    Gamma {
        /// Its mean.
        mean: f64,
        /// Its coefficient of variation.
        cv: f64,
    },
    /// One of these, each as likely; never empty.
    Empirical(Vec<f64>),
}

/// When requests come. Rates are per second.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Exponential gaps.
    Poisson {
        /// Requests per second.
        rate: f64,
    },
    /// Equal gaps; the first at a random phase of one gap.
    Constant {
        /// Requests per second.
        rate: f64,
    },
    /// Gamma gaps.
    Gamma {
        /// Requests per second.
        rate: f64,
        /// The gaps' coefficient of variation.
        cv: f64,
    },
    /// Poisson with a rate that jumps from each state to the next, staying exponentially long.
    Mmpp {
        /// The rate in each state.
        rates: Vec<f64>,
        /// The mean stay in each state.
        means: Vec<Span>,
    },
    /// Closed loop: each client sends its next request a think time after the end of its last.
    Clients {
        /// How many.
        count: u32,
        /// Seconds of thinking.
        think: Distribution,
    },
    /// As recorded.
    Trace(Trace),
    /// At these moments, in order.
    At(Vec<Request>),
}

/// A recorded trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Where it is, relative to the working directory or absolute.
    pub file: PathBuf,
    /// Its format.
    pub format: TraceFormat,
    /// Times are multiplied by 1/this after the first arrival: 2 is twice as fast.
    pub time_scale: f64,
    /// Rows from this long after the first.
    pub from: Span,
    /// Rows up to this long after the first.
    pub to: Option<Span>,
    /// How equal stamps are spread.
    pub dejitter: Dejitter,
}

/// Formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// Recognised by its header.
    Auto,
    /// `arrival,prompt_tokens,output_tokens`, arrivals in seconds.
    Csv,
    /// Azure's language-model traces: `TIMESTAMP,ContextTokens,GeneratedTokens`.
    Azure,
}

/// How equal stamps of a trace are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dejitter {
    /// They stay equal.
    None,
    /// Uniformly over the gap to the next stamp.
    Uniform,
}

/// One request at a fixed moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// When, from the start of the run.
    pub at: Span,
    /// Instead of a draw.
    pub inputs: Option<u32>,
    /// Instead of a draw.
    pub prompt_tokens: Option<u32>,
    /// Instead of a draw.
    pub output_tokens: Option<u32>,
}

/// `[[sweep]]`: one axis of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The dotted key it varies.
    pub key: String,
    /// The values it takes, each as TOML would write it.
    pub values: SweepValues,
}

/// The values of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum SweepValues {
    /// These, written as TOML.
    List(Vec<String>),
    /// Equal steps from `from` to `to`, both included, times `of`.
    Steps {
        /// The first factor.
        from: f64,
        /// The last factor.
        to: f64,
        /// How many values, at least 2.
        steps: u32,
        /// What the factors multiply.
        of: SweepUnit,
    },
}

/// What the factors of an axis multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepUnit {
    /// One.
    One,
    /// The capacity of the devices that serve the workload whose rate is varied.
    Capacity,
}

/// `[sweep.target]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// A dotted name of the report.
    pub metric: String,
    /// The most it may be, in the report's unit (seconds, requests per second, counts).
    pub at_most: f64,
}

/// `[[expect]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The line of the file where it stands, from 1.
    pub line: usize,
    /// What must hold.
    pub claim: Claim,
    /// The settings under which it must hold, each as `--set` takes it; none: those of the file.
    pub set: Vec<String>,
}

/// What must hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// A figure lies in a range.
    Metric {
        /// A dotted name of the report.
        name: String,
        /// The range.
        range: Range,
    },
    /// These lines occur in this order.
    Events(Vec<String>),
    /// No such line occurs.
    Never(String),
}

/// A range of values, in the report's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// At most so much.
    AtMost(f64),
    /// At least so much.
    AtLeast(f64),
    /// Exactly so much.
    Equals(f64),
    /// From and to, both included.
    Between(f64, f64),
    /// Within this share of a value.
    Within {
        /// The share: 0.05 for 5%.
        share: f64,
        /// The value.
        of: f64,
    },
}
