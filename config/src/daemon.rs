//! A daemon's configuration: every default filled in, every name resolved, every unit converted.
//!
//! Models and devices are the scheduler's, so their ids index every list here too. What the scheduler has no use for lies
//! beside it: how a model is started ([`Launch`]), which real device is meant ([`DeviceSource`]), who may ask
//! ([`ClientKey`]), and how the daemon listens and starts processes ([`Server`]).

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use windtunnel_core::{Bytes, Capacity, Class, Configuration, DeviceKind, Span};

use crate::scenario::{Card, Footprint, Service};

/// A daemon's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Daemon {
    /// What the scheduler is told. Its labels are `anonymous` and then the keys by name.
    pub configuration: Configuration,
    /// How the daemon listens and starts processes.
    pub server: Server,
    /// Who may ask for what, in the order of the file; label 0 is whoever has no key, key i has label i + 1.
    pub keys: Vec<ClientKey>,
    /// How each model is started, by model.
    pub launches: Vec<Launch>,
    /// Which real device each one is, by device.
    pub sources: Vec<DeviceSource>,
    /// The memory of an instance of each model as the file has it, by model; it takes the place of an estimate.
    pub footprints: Vec<Footprint>,
    /// How often each device is read, and how it behaves where it is simulated; by device.
    pub cards: Vec<Card>,
    /// How long work takes on simulated devices: `services[model][device]`, `None` where a model may not be placed.
    pub services: Vec<Vec<Option<Service>>>,
}

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whether it may listen beyond this machine although there are no keys.
    pub public: bool,
    /// Names that a request's `Host` may have beside those of the address and of this machine.
    pub hosts: Vec<String>,
    /// Origins whose pages may ask; none: CORS is off.
    pub cors: Vec<String>,
    /// The largest request body.
    pub body_limit: Bytes,
    /// No request body takes longer to arrive.
    pub body_time: Span,
    /// A streaming request that waits gets its first comment frame after so long.
    pub keepalive_after: Span,
    /// And further ones after so long each.
    pub keepalive_every: Span,
    /// How long streams may go on when the daemon is asked to end.
    pub drain: Span,
    /// The runtime of models that name none: a bare name is looked for on PATH.
    pub llama_server: PathBuf,
    /// Where profiles and what is known of processes are kept; `None`: where the system keeps such things.
    pub state_dir: Option<PathBuf>,
    /// The journal; `None`: none is written.
    pub journal: Option<PathBuf>,
    /// The size of a journal's file, at which the next one begins.
    pub journal_limit: Bytes,
    /// A start without output and without growing memory for so long has stalled.
    pub start_stall: Span,
    /// No start takes longer.
    pub start_limit: Span,
    /// A process with work in flight that neither sends nor computes for so long is wedged.
    pub wedged_after: Span,
    /// From asking a process to end until it is killed.
    pub stop_grace: Span,
}

/// `[[keys]]`: who may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientKey {
    /// Its name in reports and metrics, unique.
    pub name: String,
    /// What clients send.
    pub secret: Secret,
    /// The classes it may ask for; empty: all.
    pub classes: Vec<Class>,
    /// The class of a request that names none; `None`: the policy's default class, or the highest allowed one if that is
    /// not allowed.
    pub class: Option<Class>,
    /// Whether it may give orders to the daemon.
    pub admin: bool,
    /// Requests it may have under way, waiting ones included; `None`: any number.
    pub max_in_flight: Option<u32>,
}

/// Where the text of a key is. What it is never shows in messages.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// In the configuration.
    Inline(String),
    /// In this environment variable.
    Environment(String),
    /// In this file, blanks around it left out.
    File(PathBuf),
}

/// How a model's process is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Its file; `None`: its arguments say what it serves, or it is simulated.
    pub gguf: Option<PathBuf>,
    /// The file of its projector, for images and sound.
    pub mmproj: Option<PathBuf>,
    /// Tokens of all slots together; `None`: as many as the model was trained with.
    pub ctx: Option<u32>,
    /// Further arguments: those for every model, then its own.
    pub args: Vec<String>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Its program; `None`: [`Server::llama_server`].
    pub runtime: Option<PathBuf>,
}

/// Which real device is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceSource {
    /// What computes; `None`: no such device was found and the file does not say.
    pub backend: Option<Backend>,
    /// The UUID of the device, or its number among those of its backend; `None`: its backend has only one.
    pub id: Option<String>,
    /// Whether the machine was found to have it.
    pub found: bool,
}

/// What computes, and who knows about the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backend {
    /// NVIDIA.
    Cuda,
    /// AMD.
    Hip,
    /// Any GPU with a Vulkan driver.
    Vulkan,
    /// Apple.
    Metal,
    /// The processor and its memory.
    Cpu,
    /// Nothing: time passes as the file says.
    Simulated,
}

/// A device that a machine was found to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDevice {
    /// What it is called where the configuration names no devices.
    pub name: String,
    /// What computes.
    pub backend: Backend,
    /// What tells it from others of its backend.
    pub id: Option<String>,
    /// Whose memory it has.
    pub kind: DeviceKind,
    /// How much, where that is known.
    pub memory: Option<Bytes>,
}

impl Secret {
    /// The text itself.
    ///
    /// # Errors
    /// Where it cannot be had, as the end of a sentence that names the key.
    pub fn read(&self) -> Result<String, String> {
        let text = match self {
            Secret::Inline(text) => text.clone(),
            Secret::Environment(name) => {
                std::env::var(name).map_err(|_| format!("needs the environment variable {name}, which is not set"))?
            }
            Secret::File(path) => {
                std::fs::read_to_string(path).map_err(|error| crate::decode::unreadable(path, &error))?
            }
        };
        match text.trim() {
            "" => Err(format!("is empty in {self:?}")),
            text => Ok(text.to_owned()),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Inline(_) => f.write_str("the configuration"),
            Secret::Environment(name) => write!(f, "the environment variable {name}"),
            Secret::File(path) => write!(f, "the file {}", path.display()),
        }
    }
}

impl Backend {
    /// All of them, as [`Backend::NAMES`] has them.
    pub const ALL: [Backend; 6] =
        [Backend::Cuda, Backend::Hip, Backend::Vulkan, Backend::Metal, Backend::Cpu, Backend::Simulated];

    /// Their names in files.
    pub const NAMES: &'static [&'static str] = &["cuda", "hip", "vulkan", "metal", "cpu", "simulated"];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Cuda => "cuda",
            Backend::Hip => "hip",
            Backend::Vulkan => "vulkan",
            Backend::Metal => "metal",
            Backend::Cpu => "cpu",
            Backend::Simulated => "simulated",
        }
    }

    /// Whose memory such a device usually has.
    pub fn usual_kind(self) -> DeviceKind {
        match self {
            Backend::Cuda | Backend::Hip | Backend::Vulkan | Backend::Simulated => DeviceKind::Discrete,
            Backend::Metal | Backend::Cpu => DeviceKind::Unified,
        }
    }
}

/// Sequences that a `llama-server` of any build can have.
const MOST_SLOTS: u32 = 64;

impl Launch {
    /// The slots of a `llama-server`: one for each input where batches are what it gets, as many as it can have.
    pub fn slots(capacity: Capacity) -> u32 {
        match capacity {
            Capacity::Slots { slots } => slots,
            Capacity::Batch { max, .. } => max.clamp(1, MOST_SLOTS),
        }
    }

    /// The arguments of a `llama-server` that say what it serves and how: file, context, slots, projector, and then
    /// whatever the configuration adds, which has the last word. The inputs of a batch share its context, so that a long one
    /// finds room.
    pub fn arguments(&self, capacity: Capacity) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut pair = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
        let text = |path: &Path| path.to_string_lossy().into_owned();
        if let Some(gguf) = &self.gguf {
            pair("--model", text(gguf));
        }
        if let Some(ctx) = self.ctx {
            pair("--ctx-size", ctx.to_string());
        }
        pair("--parallel", Launch::slots(capacity).to_string());
        if let Some(mmproj) = &self.mmproj {
            pair("--mmproj", text(mmproj));
        }
        match capacity {
            Capacity::Slots { .. } => {}
            Capacity::Batch { .. } => arguments.push("--kv-unified".to_owned()),
        }
        arguments.extend(self.args.iter().cloned());
        arguments
    }
}
