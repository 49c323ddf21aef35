//! Everything the policy is told about its world before it decides anything: integers and names, nothing to parse.

use alloc::{string::String, vec::Vec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId, ModelId, Needs, Ppm, ServiceTimes, Span};

/// A priority class; the order of declaration is the order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Somebody is waiting in front of a screen.
    Interactive,
    /// Somebody will look soon.
    Background,
    /// Nobody is waiting.
    Batch,
}

impl Class {
    /// All classes, highest first.
    pub const ALL: [Class; 3] = [Class::Interactive, Class::Background, Class::Batch];

    /// 0 for the highest class, 2 for the lowest.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its name in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Interactive => "interactive",
            Class::Background => "background",
            Class::Batch => "batch",
        }
    }
}

/// The whole configuration. Positions in the vectors are the ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// The rules' numbers.
    pub policy: Policy,
    /// The cards.
    pub devices: Vec<Device>,
    /// The models.
    pub models: Vec<Model>,
    /// The families.
    pub families: Vec<Family>,
    /// Names of workloads or API keys.
    pub labels: Vec<String>,
    /// Seeds the hash of `power_of_two` routing.
    pub seed: u64,
}

/// The numbers of the rules; every field is a key of `[policy]` with the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    /// Interactive mode lasts this long after the last interactive step ended.
    pub interactive_idle: Span,
    /// A background or batch job without progress for so long is starved; zero: strict exclusivity.
    pub background_max_starvation: Span,
    /// The guard's share of a device's time, in (0, 1].
    pub background_share: Ppm,
    /// Guard grants under way side by side on one device.
    pub guard_parallel: u32,
    /// A batch job without progress for so long gets a turn in idle mode; zero: off.
    pub batch_max_starvation: Span,
    /// How long such a turn lasts.
    pub batch_turn: Span,
    /// A model is hot for this long after its last interactive step.
    pub hot_ttl: Span,
    /// Slots of a hot instance that lower classes leave free; one slot at least is for everybody.
    pub reserve_interactive_slots: u32,
    /// The class of a request that names none.
    pub default_class: Class,
    /// Inputs of an embedding request that make one step.
    pub embedding_chunk: u32,
    /// How jobs find one of several instances.
    pub routing: Routing,
    /// A model loaded for lower classes is not evicted by its own class for this long; nor one that background used by batch.
    pub min_residency: Span,
    /// How long a model keeps its memory against interactive work for another that does not fit beside it; zero: not at all.
    pub interactive_turn: Span,
    /// Such a turn ends early after so long without interactive work.
    pub interactive_gap: Span,
    /// How victims are chosen.
    pub eviction: Eviction,
    /// Memory of a process that is gone stays booked until it is seen to be free, or for this long.
    pub release_timeout: Span,
    /// A device whose memory was not read for so long gets no new loads.
    pub monitor_stale: Span,
    /// Rules per class, by [`Class::index`].
    pub classes: [ClassPolicy; 3],
}

/// Keys of `[policy.classes.X]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassPolicy {
    /// Which waiting job is next.
    pub order: Order,
    /// Which arriving jobs are refused.
    pub admission: Admission,
    /// Jobs that may wait; `None`: any number.
    pub max_queued: Option<u32>,
    /// Bytes of request bodies that may wait.
    pub max_queued_bytes: Bytes,
    /// Drop a queued job that can no longer meet its deadline.
    pub drop_hopeless: bool,
    /// What a job of the class counts in the demand for a model, when victims are chosen.
    pub weight: Ppm,
}

/// The order of waiting jobs within class and target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// By arrival.
    Fifo,
    /// Earliest deadline first; jobs without one after those with one.
    Edf,
}

/// Admission of arriving jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    /// Everything is admitted.
    None,
    /// A job whose predicted finish is past its deadline is refused.
    Deadline,
    /// The same with a margin that is steered so that one admitted job in a hundred is late.
    Adaptive,
}

/// How the victims of an eviction are chosen among those that may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Eviction {
    /// The set that costs least: reload times times demand.
    Cost,
    /// The least recently used first.
    Lru,
}

/// How jobs find one of several instances of their target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// One queue; the free instance with the smallest predicted finish takes the head.
    Shared,
    /// In turn, at arrival.
    RoundRobin,
    /// The one with the least predicted work, at arrival.
    JoinShortest,
    /// The better of two candidates drawn by a hash of job and seed, at arrival.
    PowerOfTwo,
}

/// A card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Its name, unique.
    pub name: String,
    /// Where its memory is.
    pub kind: DeviceKind,
    /// All its memory, where known.
    pub memory: Option<Bytes>,
    /// The most of it that may be used.
    pub limit: Option<Bytes>,
    /// How much of it is left free.
    pub headroom: Bytes,
    /// Loads that may be under way at a time, at least 1.
    pub parallel_loads: u32,
}

/// Where a device's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// Its own.
    Discrete,
    /// The host's, shared.
    Unified,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Model {
    /// Its name, unique among models, families and aliases.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// What it can do.
    pub capabilities: Vec<Capability>,
    /// How much an instance does at once.
    pub capacity: Capacity,
    /// How many devices it may be on at once.
    pub replicas: Replicas,
    /// The devices it may be placed on, in order, each with what the predictor believes of it there.
    pub placements: Vec<Placement>,
    /// Whether predictions learn from finished steps.
    pub prediction: Prediction,
    /// Never evicted.
    pub pinned: bool,
    /// Loaded when the run starts.
    pub preload: bool,
    /// Unloaded after so long unused; `None`: never.
    pub idle_ttl: Option<Span>,
}

/// A device a model may be placed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// The device.
    pub device: DeviceId,
    /// What the predictor believes of service there, the device's speed included.
    pub predicted: ServiceTimes,
}

/// How much an instance of a model does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Capacity {
    /// So many steps side by side, each starting when a slot is free.
    Slots {
        /// The number of slots, at least 1.
        slots: u32,
    },
    /// One batch at a time of at most `max` inputs, held back up to `wait` to fill.
    Batch {
        /// The most inputs in a batch, at least 1.
        max: u32,
        /// How long an under-full batch may be held; zero: not at all.
        wait: Span,
    },
}

/// How many instances of a model there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replicas {
    /// At most so many.
    Count(u32),
    /// One on each device it may be placed on.
    All,
}

/// Where predictions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Prediction {
    /// The configured service times, as they are.
    Configured,
    /// The configured service times times a factor learned from finished steps.
    Learned,
}

/// What a model can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Chat messages.
    Chat,
    /// Plain completions.
    Completion,
    /// Embedding vectors.
    Embedding,
    /// Ranking of documents.
    Rerank,
    /// Audio input.
    Audio,
    /// Image input.
    Vision,
    /// Tool calls.
    Tools,
}

impl Capability {
    /// All of them, in the order in which they are listed to people.
    pub const ALL: [Capability; 7] = [
        Capability::Chat,
        Capability::Completion,
        Capability::Embedding,
        Capability::Rerank,
        Capability::Audio,
        Capability::Vision,
        Capability::Tools,
    ];

    /// Its name in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Capability::Chat => "chat",
            Capability::Completion => "completion",
            Capability::Embedding => "embedding",
            Capability::Rerank => "rerank",
            Capability::Audio => "audio",
            Capability::Vision => "vision",
            Capability::Tools => "tools",
        }
    }
}

/// A family: variants that can stand in for each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Family {
    /// Its name, unique among models, families and aliases.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// In order of preference.
    pub variants: Vec<Variant>,
}

/// One model of a family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// The model.
    pub model: ModelId,
    /// How good its answers are.
    pub quality: Quality,
}

/// How good an answer must be; the order of declaration is from best to least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// The best there is.
    Preferred,
    /// A middle way.
    Balanced,
    /// Anything of the family.
    Compact,
}

/// A correction learned from finished steps, and what steps were like; kept over restarts by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// The model it belongs to.
    pub model: ModelId,
    /// The device it was learned on.
    pub device: DeviceId,
    /// Actual over predicted service time, smoothed by 1/16.
    pub factor: Ppm,
    /// Finished steps it stands on.
    pub observations: u64,
    /// The memory an instance was measured to take; `None`: it never was, or the measurement proved wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub footprint: Option<Bytes>,
    /// How long its last load took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_time: Option<Span>,
}

/// A model that is already loaded when the run starts. Their places in [`Started::residents`] are their instance ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resident {
    /// The model.
    pub model: ModelId,
    /// Where it is.
    pub device: DeviceId,
}

/// What a model is believed to need on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The model.
    pub model: ModelId,
    /// The device.
    pub device: DeviceId,
    /// Memory of an instance.
    pub footprint: Bytes,
    /// Time from asking for an instance until it is ready.
    pub load_time: Span,
}

/// The first input: all that is known when the scheduler starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// The configuration.
    pub configuration: Configuration,
    /// Profiles stored by earlier runs.
    pub profiles: Vec<Profile>,
    /// Footprints and load times.
    pub estimates: Vec<Estimate>,
    /// What is loaded already.
    pub residents: Vec<Resident>,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            interactive_idle: Span::from_secs(2),
            background_max_starvation: Span::from_secs(3),
            background_share: Ppm::new(500_000),
            guard_parallel: 1,
            batch_max_starvation: Span::from_secs(120),
            batch_turn: Span::from_secs(5),
            hot_ttl: Span::from_secs(300),
            reserve_interactive_slots: 1,
            default_class: Class::Interactive,
            embedding_chunk: 32,
            routing: Routing::Shared,
            min_residency: Span::from_secs(30),
            interactive_turn: Span::from_secs(2),
            interactive_gap: Span::from_millis(250),
            eviction: Eviction::Cost,
            release_timeout: Span::from_secs(10),
            monitor_stale: Span::from_secs(10),
            classes: Class::ALL.map(ClassPolicy::of),
        }
    }
}

impl ClassPolicy {
    /// The rules of a class about which nothing is said.
    pub const fn of(class: Class) -> ClassPolicy {
        let weight = match class {
            Class::Interactive => Ppm::ONE,
            Class::Background => Ppm::new(300_000),
            Class::Batch => Ppm::new(100_000),
        };
        ClassPolicy {
            weight,
            order: Order::Fifo,
            admission: Admission::None,
            max_queued: None,
            max_queued_bytes: Bytes::from_mib(256),
            drop_hopeless: false,
        }
    }
}

impl Device {
    /// A device of that name and kind with the rules that hold when nothing is said: 512 MiB are left free and two loads may
    /// be under way, on unified memory 1 GiB and one load.
    pub fn new(name: String, kind: DeviceKind, memory: Option<Bytes>) -> Device {
        let (headroom, parallel_loads) = match kind {
            DeviceKind::Discrete => (Bytes::from_mib(512), 2),
            DeviceKind::Unified => (Bytes::from_mib(1024), 1),
        };
        Device { name, kind, memory, limit: None, headroom, parallel_loads }
    }
}

impl Configuration {
    /// The model of that id.
    pub fn model(&self, id: ModelId) -> Option<&Model> {
        self.models.get(id.index())
    }

    /// The device of that id.
    pub fn device(&self, id: DeviceId) -> Option<&Device> {
        self.devices.get(id.index())
    }
}

impl Model {
    /// Whether it has every capability of `needs`; a model that lists none is not checked.
    pub fn can(&self, needs: Needs) -> bool {
        self.capabilities.is_empty() || needs.met_by(&self.capabilities)
    }

    /// What the predictor believes of it on `device`; `None` where it may not be placed.
    pub fn predicted_on(&self, device: DeviceId) -> Option<ServiceTimes> {
        self.placements.iter().find(|place| place.device == device).map(|place| place.predicted)
    }
}
