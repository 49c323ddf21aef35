//! What a profile is about.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use windtunnel_config::{Backend, Daemon};
use windtunnel_core::{DeviceId, ModelId};

use super::Subjects;

/// A file as it is: another content has another identity, another place has not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Where it was. Not part of the identity.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was last changed, in nanoseconds since 1970.
    pub modified: u64,
}

/// A model file, the arguments of its process, its runtime and a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The model's name. Not part of what tells subjects apart.
    pub model: String,
    /// The model's file.
    pub gguf: Option<FileIdentity>,
    /// The file of its projector.
    pub mmproj: Option<FileIdentity>,
    /// Every argument but the paths of those files.
    pub arguments: Vec<String>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// The runtime's program.
    pub runtime: Option<FileIdentity>,
    /// The device: its backend, and its id or its name.
    pub device: String,
}

impl FileIdentity {
    /// Of the file at `path`; `None`: it is not there.
    pub fn of(path: &Path) -> Option<FileIdentity> {
        let about = fs::metadata(path).ok()?;
        let modified = about.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let modified = u64::try_from(modified.as_nanos()).unwrap_or(u64::MAX);
        Some(FileIdentity { path: path.to_owned(), bytes: about.len(), modified })
    }

    /// Whether the file is where it was, as it was.
    pub fn is_current(&self) -> bool {
        FileIdentity::of(&self.path).is_some_and(|now| (now.bytes, now.modified) == (self.bytes, self.modified))
    }

    fn mark(&self) -> String {
        format!("{} {}", self.bytes, self.modified)
    }
}

impl Subject {
    /// A daemon's model on one of its devices. `runtime` is where the program of the model was found.
    pub fn of(daemon: &Daemon, model: ModelId, device: DeviceId, runtime: Option<&Path>) -> Option<Subject> {
        let (told, launch) = (daemon.configuration.model(model)?, daemon.launches.get(model.index())?);
        let identity = |path: &Option<PathBuf>| path.as_deref().and_then(FileIdentity::of);
        let unnamed = windtunnel_config::Launch { gguf: None, mmproj: None, ..launch.clone() };
        Some(Subject {
            model: told.name.clone(),
            gguf: identity(&launch.gguf),
            mmproj: identity(&launch.mmproj),
            arguments: unnamed.arguments(told.capacity),
            environment: launch.env.clone(),
            runtime: runtime.and_then(FileIdentity::of),
            device: device_text(daemon, device)?,
        })
    }

    /// What tells it from others, as the name of a file.
    pub fn key(&self) -> String {
        let mark = |identity: &Option<FileIdentity>| identity.as_ref().map(FileIdentity::mark);
        let parts = (
            mark(&self.gguf),
            mark(&self.mmproj),
            &self.arguments,
            &self.environment,
            mark(&self.runtime),
            &self.device,
            // Models without a file are told apart by name.
            self.gguf.is_none().then_some(&self.model),
        );
        let text = serde_json::to_string(&parts).unwrap_or_default();
        Sha256::digest(text.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether its files are still there, as they were.
    pub fn is_current(&self) -> bool {
        [&self.gguf, &self.mmproj, &self.runtime].into_iter().flatten().all(FileIdentity::is_current)
    }
}

/// The subjects of all models of a daemon; `runtime` finds the program that a model is started with.
pub fn subjects(daemon: &Daemon, mut runtime: impl FnMut(ModelId) -> Option<PathBuf>) -> Subjects {
    let mut all = Subjects::new();
    for (at, model) in (0..).zip(&daemon.configuration.models) {
        let id = ModelId(at);
        let program = runtime(id);
        for placement in &model.placements {
            if let Some(subject) = Subject::of(daemon, id, placement.device, program.as_deref()) {
                all.insert((id, placement.device), subject);
            }
        }
    }
    all
}

fn device_text(daemon: &Daemon, device: DeviceId) -> Option<String> {
    let (told, source) = (daemon.configuration.device(device)?, daemon.sources.get(device.index())?);
    let backend = source.backend.map_or("unknown", Backend::name);
    Some(format!("{backend} {}", source.id.as_deref().unwrap_or(&told.name)))
}
