//! What the supervisor is told of devices and models, by their ids.

use std::{path::PathBuf, time::Duration};

use windtunnel_core::DeviceKind;

use crate::footprint::Pool;

/// Everything it is told. Ids keep their meaning when it is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The program that becomes a child: called with [`BECOME_CHILD`](super::BECOME_CHILD) first it must hand the rest of
    /// its arguments to [`become_child`](super::become_child()).
    pub own_program: PathBuf,
    /// Where the list of children lies, for a start after a crash.
    pub state_folder: PathBuf,
    /// The devices.
    pub devices: Vec<ChildDevice>,
    /// The models.
    pub models: Vec<ChildModel>,
    /// How long things may take.
    pub limits: Limits,
}

/// A device, as its processes are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildDevice {
    /// Where its memory is. On unified memory a process keeps nothing beside its model, unless its arguments say otherwise.
    pub kind: DeviceKind,
    /// How processes are kept to it.
    pub select: Select,
    /// Further environment of its processes.
    pub environment: Vec<(String, String)>,
}

/// How processes are kept to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// They see only one anyway.
    Only,
    /// The processor: nothing is offloaded.
    Processor,
    /// An NVIDIA card or an instance of one, by its UUID.
    Cuda {
        /// `GPU-...` or `MIG-...`.
        uuid: String,
    },
    /// A device of Vulkan.
    Vulkan {
        /// Its number in the loader's order.
        index: u32,
    },
    /// An AMD card under HIP.
    Hip {
        /// Its UUID (`GPU-...`) or its number.
        name: String,
    },
}

/// A model, as its processes are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildModel {
    /// Its name, which its answers carry.
    pub name: String,
    /// The `llama-server`, a path or a name that `PATH` is searched for.
    pub program: PathBuf,
    /// The model's file.
    pub file: PathBuf,
    /// The file of its projector.
    pub projector: Option<PathBuf>,
    /// What it is for.
    pub purpose: Purpose,
    /// Tokens of context, all slots together; `None`: as the server thinks.
    pub context: Option<u32>,
    /// Slots.
    pub slots: u32,
    /// How they share the context.
    pub pool: Pool,
    /// `-ngl`; `None`: as the server thinks.
    pub gpu_layers: Option<String>,
    /// Further arguments, which go before what is derived from the rest: what they say is not said again. Host, port and
    /// key are always ours.
    pub arguments: Vec<String>,
    /// Further environment.
    pub environment: Vec<(String, String)>,
}

/// What a process is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Text.
    Text,
    /// Embedding vectors.
    Embedding,
    /// Ranking.
    Rerank,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A start that says nothing and takes no more memory for so long is given up.
    pub stall: Duration,
    /// So is every start after so long.
    pub start: Duration,
    /// From TERM to KILL.
    pub grace: Duration,
    /// From KILL until a process counts as unkillable.
    pub kill: Duration,
    /// A process with work that is silent and idle for so long is wedged.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            stall: Duration::from_secs(60),
            start: Duration::from_secs(30 * 60),
            grace: Duration::from_secs(10),
            kill: Duration::from_secs(10),
            silence: Duration::from_secs(120),
        }
    }
}
