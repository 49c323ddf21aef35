//! Those who carry out loads and stops: processes, or what stands for them.

use std::{future::Future, io, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use tokio::runtime::Handle;
use windtunnel_config::{Backend, Daemon, DeviceSource, Launch};
use windtunnel_core::{Capability, Capacity, DeviceId, Span};

use super::setting::lasting;
use crate::{
    Desk, Runtimes,
    children::{self, ChildDevice, ChildModel, Children, Limits, Purpose, Select, Witness},
    fake::{Simulated, SimulatedSettings},
    footprint::Pool,
    gateway::Work,
    monitor::{Monitors, Watched, devices},
};

/// Where things of this daemon are on disk.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The program that starts children.
    pub executable: PathBuf,
    /// The folder of what is kept over restarts.
    pub state: PathBuf,
}

/// What the daemon needs of them beside the orders of the scheduler.
pub(super) struct Fleet {
    /// Carries out orders.
    pub runtimes: Box<dyn Runtimes>,
    /// Takes up a new configuration.
    pub retell: Box<dyn Fn(&Daemon) + Send + Sync>,
    /// Ends every process that is left; may be asked to hurry after it was asked to.
    pub end: Box<dyn Fn(Pace) -> Ending + Send + Sync>,
}

/// How processes are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Each is asked to, and killed after its grace.
    InOrder,
    /// Each is killed.
    AtOnce,
}

/// Done when every process is gone, or never will be.
pub(super) type Ending = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Whether a configuration is about cards that exist nowhere.
///
/// # Errors
/// If it names both such cards and real ones.
pub(super) fn is_simulated(daemon: &Daemon) -> Result<bool, String> {
    let simulated = |at: &usize| daemon.sources[*at].backend == Some(Backend::Simulated);
    let all: Vec<usize> = (0..daemon.sources.len()).collect();
    let (of_air, real): (Vec<usize>, Vec<usize>) = all.into_iter().partition(simulated);
    match (of_air.first(), real.first()) {
        (Some(&one), Some(&other)) => {
            let name = |at: usize| daemon.configuration.devices.get(at).map_or("?", |device| device.name.as_str());
            Err(format!("{} is simulated and {} is not; a daemon has devices of one kind only", name(one), name(other)))
        }
        (Some(_), None) => Ok(true),
        (None, _) => Ok(false),
    }
}

/// Simulated runtimes.
pub(super) fn simulated(desk: Desk<Work>, daemon: &Daemon, runtime: Handle) -> Fleet {
    let runtimes = Simulated::new(desk, SimulatedSettings::from(daemon), runtime);
    let controls = runtimes.controls();
    Fleet {
        runtimes: Box::new(runtimes),
        retell: Box::new(move |daemon| controls.replace(SimulatedSettings::from(daemon))),
        end: Box::new(|_| Box::pin(std::future::ready(()))),
    }
}

/// Real processes, and monitors of real devices.
///
/// # Errors
/// If a thread or the state folder cannot be had.
pub(super) fn real(
    desk: Desk<Work>,
    daemon: &Daemon,
    place: Place,
    witness: Arc<dyn Witness>,
    runtime: Handle,
) -> io::Result<Fleet> {
    let watched = (0..).map(DeviceId).zip(&daemon.configuration.devices).map(|(id, device)| {
        let source = daemon.sources.get(id.index()).cloned().unwrap_or_default();
        let poll = daemon.cards.get(id.index()).map_or(Span::from_millis(500), |card| card.upkeep.poll);
        Watched {
            device: id,
            name: device.name.clone(),
            kind: device.kind,
            source: devices::open(&source, device.kind, Some(&daemon.server.llama_server)),
            poll: lasting(poll),
        }
    });
    // They end with those who keep children, the last of whom are `told` and `ended`.
    let monitors = Arc::new(Monitors::start(&desk, watched.collect())?);
    let children = Children::start(desk, children(daemon, &place), monitors, witness, runtime)?;
    let (told, ended) = (children.handle(), children.handle());
    let limit = lasting(daemon.server.stop_grace).saturating_mul(2).saturating_add(LAST_MOMENT);
    Ok(Fleet {
        runtimes: Box::new(children),
        retell: Box::new(move |daemon| told.replace(self::children(daemon, &place))),
        end: Box::new(move |pace| {
            let ended = ended.clone();
            Box::pin(async move {
                match pace {
                    Pace::InOrder => ended.shut_down(limit).await,
                    Pace::AtOnce => ended.kill(LAST_MOMENT).await,
                };
            })
        }),
    })
}

/// What is left beyond twice the grace when processes are ended, and all there is when they are killed.
const LAST_MOMENT: Duration = Duration::from_secs(5);

/// What the supervisor is told.
fn children(daemon: &Daemon, place: &Place) -> children::Settings {
    let server = &daemon.server;
    let devices = daemon.configuration.devices.iter().zip(&daemon.sources);
    children::Settings {
        own_program: place.executable.clone(),
        state_folder: place.state.clone(),
        devices: devices
            .map(|(device, source)| ChildDevice { kind: device.kind, select: select(source), environment: Vec::new() })
            .collect(),
        models: (0..daemon.configuration.models.len()).map(|at| child(daemon, at)).collect(),
        limits: Limits {
            stall: lasting(server.start_stall),
            start: lasting(server.start_limit),
            grace: lasting(server.stop_grace),
            silence: lasting(server.wedged_after),
            ..Limits::default()
        },
    }
}

/// How processes are kept to a device.
fn select(source: &DeviceSource) -> Select {
    let id = source.id.clone();
    match (source.backend, id) {
        (Some(Backend::Cpu), _) => Select::Processor,
        (Some(Backend::Cuda), Some(uuid)) => Select::Cuda { uuid },
        (Some(Backend::Hip), Some(name)) => Select::Hip { name },
        (Some(Backend::Vulkan), Some(id)) => id.parse().map_or(Select::Only, |index| Select::Vulkan { index }),
        (Some(Backend::Cuda | Backend::Hip | Backend::Vulkan), None)
        | (Some(Backend::Metal | Backend::Simulated) | None, _) => Select::Only,
    }
}

fn child(daemon: &Daemon, at: usize) -> ChildModel {
    let launch = daemon.launches.get(at).cloned().unwrap_or_default();
    let model = daemon.configuration.models.get(at);
    let can = |capability| model.is_some_and(|model| model.capabilities.contains(&capability));
    let purpose = match (can(Capability::Chat) || can(Capability::Completion), can(Capability::Embedding)) {
        (false, true) => Purpose::Embedding,
        (false, false) if can(Capability::Rerank) => Purpose::Rerank,
        (true, _) | (false, false) => Purpose::Text,
    };
    ChildModel {
        name: model.map_or_else(String::new, |model| model.name.clone()),
        program: launch.runtime.unwrap_or_else(|| daemon.server.llama_server.clone()),
        file: launch.gguf.unwrap_or_default(),
        projector: launch.mmproj,
        purpose,
        context: launch.ctx,
        slots: model.map_or(1, |model| Launch::slots(model.capacity)),
        pool: match model.map(|model| model.capacity) {
            Some(Capacity::Batch { .. }) => Pool::Shared,
            Some(Capacity::Slots { .. }) | None => Pool::Divided,
        },
        gpu_layers: None,
        arguments: launch.args,
        environment: launch.env,
    }
}
