//! A daemon's configuration on this machine: its models with their files and what they take, and its devices as they are
//! now.

use std::path::{Path, PathBuf};

use windtunnel_config::{Backend, Daemon, DaemonFile, FoundDevice, Launch, Override};
use windtunnel_core::{Bytes, Capacity, DeviceId, DeviceKind, ModelId};
use windtunnel_live::{
    model_files::{Explained, ModelFiles, site},
    monitor::{Reading, devices},
    places,
    profiles::{self, Store, Stored, Subjects},
};

use crate::{failure::Failure, session::Session};

/// A configuration, resolved for this machine.
pub struct Inventory {
    pub path: PathBuf,
    pub daemon: Daemon,
    /// What earlier runs learned.
    pub profiles: Store,
    pub subjects: Subjects,
    /// Profiles that could not be read.
    pub remarks: Vec<String>,
}

/// A model on one of its devices.
pub struct Entry {
    pub model: ModelId,
    pub device: DeviceId,
    pub name: String,
    pub file: Option<PathBuf>,
    pub architecture: Option<String>,
    /// Tokens of all slots together.
    pub context: Option<u64>,
    pub slots: u32,
    /// How much an instance does at once.
    pub capacity: Capacity,
    pub on: String,
    pub footprint: Option<Bytes>,
    pub origin: Origin,
    /// Why something of it cannot be told.
    pub problem: Option<String>,
}

/// Where a footprint is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Measured,
    Configured,
    Estimated,
    Unknown,
}

impl Origin {
    pub fn name(self) -> &'static str {
        match self {
            Origin::Measured => "measured",
            Origin::Configured => "configured",
            Origin::Estimated => "estimated",
            Origin::Unknown => "unknown",
        }
    }
}

impl Inventory {
    /// Reads the configuration at `path`, or the one that lies where configurations do.
    pub fn load(path: Option<&Path>, session: &Session) -> Result<Inventory, Failure> {
        let path = path.map_or_else(usual, |path| Ok(path.to_owned()))?;
        let file = DaemonFile::load(&path)?;
        Inventory::of(&file, path, &session.overrides)
    }

    /// What is known of the configuration in `file`, which lies at `path`.
    pub fn of(file: &DaemonFile, path: PathBuf, overrides: &[Override]) -> Result<Inventory, Failure> {
        let found = devices::devices(places::program(Path::new("llama-server")).as_deref());
        let daemon = file.resolve(overrides, &found)?;
        let (profiles, remarks) = store(daemon.server.state_dir.as_deref())?;
        let subjects = profiles::subjects(&daemon, |model| runtime(&daemon, model));
        Ok(Inventory { path, daemon, profiles, subjects, remarks })
    }

    /// Every model on every device it may be placed on, in the order of the file.
    pub fn entries(&self, files: &ModelFiles) -> Vec<Entry> {
        let models = (0..).zip(&self.daemon.configuration.models);
        let places = models.flat_map(|(at, model)| model.placements.iter().map(move |one| (ModelId(at), one.device)));
        places.filter_map(|(model, device)| self.entry(model, device, files)).collect()
    }

    fn entry(&self, model: ModelId, device: DeviceId, files: &ModelFiles) -> Option<Entry> {
        let told = self.daemon.configuration.model(model)?;
        let on = self.daemon.configuration.device(device)?.name.clone();
        let launch = self.daemon.launches.get(model.index())?;
        let site = site(&self.daemon, device)?;
        let (explained, problem) = match launch.gguf.as_ref().map(|_| files.explain(launch, told.capacity, site)) {
            Some(Ok(explained)) => (Some(explained), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let (footprint, origin) = self.footprint(model, device, explained.as_ref().map(|one| one.footprint.charged()));
        Some(Entry {
            model,
            device,
            name: told.name.clone(),
            file: launch.gguf.clone(),
            architecture: explained.as_ref().map(|one| one.model.header().architecture().to_owned()),
            context: explained.as_ref().and_then(context),
            slots: Launch::slots(told.capacity),
            capacity: told.capacity,
            on,
            footprint,
            origin,
            problem,
        })
    }

    /// What is known best: a measurement, then what the configuration says, then the estimate.
    fn footprint(&self, model: ModelId, device: DeviceId, estimate: Option<Bytes>) -> (Option<Bytes>, Origin) {
        let stored = self.learned(model, device).and_then(|stored| stored.footprint);
        let configured = self.daemon.footprints.get(model.index()).and_then(|one| one.estimate.or(one.truth));
        let all = [(stored, Origin::Measured), (configured, Origin::Configured), (estimate, Origin::Estimated)];
        all.into_iter().find(|(bytes, _)| bytes.is_some()).unwrap_or((None, Origin::Unknown))
    }

    /// What earlier runs learned of a model on a device.
    pub fn learned(&self, model: ModelId, device: DeviceId) -> Option<&Stored> {
        self.profiles.get(self.subjects.get(&(model, device))?)
    }

    /// Looks at a device; an error says why it cannot be read.
    pub fn look(&self, device: DeviceId) -> Result<Reading, String> {
        let told = self.daemon.configuration.device(device).ok_or("there is no such device")?;
        let source = self.daemon.sources.get(device.index()).ok_or("there is no such device")?;
        let runtime = places::program(&self.daemon.server.llama_server);
        let mut open = devices::open(source, told.kind, runtime.as_deref()).map_err(|wrong| wrong.to_string())?;
        open.read(&[]).map(Reading::plausible).map_err(|wrong| wrong.to_string())
    }
}

/// The configuration that lies where configurations do.
fn usual() -> Result<PathBuf, Failure> {
    let places = places::configurations();
    places.iter().find(|path| path.exists()).cloned().ok_or_else(|| {
        let tried: Vec<String> = places.iter().map(|path| path.display().to_string()).collect();
        Failure::BadInput(format!("name a configuration; there is none at {}", tried.join(" or ")))
    })
}

/// The profiles in a state directory, or in the usual one.
pub fn store(state: Option<&Path>) -> Result<(Store, Vec<String>), Failure> {
    let folder = profiles::folder(&state_folder(state)?);
    Store::open(&folder).map_err(|wrong| Failure::file("read folder", &folder, &wrong))
}

/// A state directory, or the usual one.
pub fn state_folder(state: Option<&Path>) -> Result<PathBuf, Failure> {
    state.map(PathBuf::from).or_else(places::state_folder).ok_or_else(|| {
        Failure::BadInput("name a state directory: HOME is not set, so there is no usual one".to_owned())
    })
}

/// The program that a model is started with, where it was found.
pub fn runtime(daemon: &Daemon, model: ModelId) -> Option<PathBuf> {
    places::program(runtime_name(daemon, model))
}

/// The program that a model is started with, as the configuration names it.
pub fn runtime_name(daemon: &Daemon, model: ModelId) -> &Path {
    let own = daemon.launches.get(model.index()).and_then(|launch| launch.runtime.as_deref());
    own.unwrap_or(&daemon.server.llama_server)
}

/// Tokens of all slots together: what the arguments say, else what the model was trained with.
pub fn context(explained: &Explained) -> Option<u64> {
    let trained = || explained.model.header().of_architecture("context_length")?.as_u64();
    Some(explained.arguments.context).filter(|context| *context > 0).or_else(trained)
}

/// A device for what has nothing to do with devices.
pub fn no_device() -> FoundDevice {
    let (backend, kind) = (Backend::Cpu, DeviceKind::Unified);
    FoundDevice { name: "cpu".to_owned(), backend, id: None, kind, memory: None }
}
