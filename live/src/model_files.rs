//! Models as a configuration names them: their files, their arguments and a device together tell the memory they take.

use std::{fs, path::Path, sync::Arc};

use windtunnel_config::{self as config, Daemon, Estimator, Launch, Site};
use windtunnel_core::{Bytes, Capacity, DeviceId, DeviceKind, Estimate, ModelId, Span};

use crate::{
    footprint::{Arguments, Backend, Footprint, Memory, Platform, estimate},
    gguf::{GgufError, Header, HeaderCache, Model},
};

/// What a disk is taken to read in a second before a load was seen: a common solid-state disk.
const READ_A_SECOND: u64 = 2 << 30;
/// What a start takes beyond reading.
const START: Span = Span::from_secs(1);

/// Reads the headers of models and says what they take. May be shared between threads; every file is read once, and again
/// when it has changed.
#[derive(Debug, Default)]
pub struct ModelFiles {
    headers: HeaderCache,
}

/// A model and what it takes.
#[derive(Clone, Debug)]
pub struct Explained {
    /// What its files say of it.
    pub model: Model,
    /// The arguments as its runtime understands them.
    pub arguments: Arguments,
    /// The memory it takes.
    pub footprint: Footprint,
}

/// A model whose memory cannot be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// The model.
    pub model: ModelId,
    /// Why.
    pub why: String,
}

impl ModelFiles {
    /// Nothing is read yet.
    pub fn new() -> ModelFiles {
        ModelFiles::default()
    }

    /// The headers of the model at `path`.
    ///
    /// # Errors
    /// If a file of it cannot be read or is damaged.
    pub fn open(&self, path: &Path) -> Result<Model, GgufError> {
        Model::open(path, &self.headers)
    }

    /// The header of any file, such as a projector.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn header(&self, path: &Path) -> Result<Arc<Header>, GgufError> {
        self.headers.header(path)
    }

    /// What an instance takes that is started so, to do so much at once.
    ///
    /// # Errors
    /// Why that cannot be told, as a person reads it: a file, or an argument.
    pub fn explain(&self, launch: &Launch, capacity: Capacity, site: Site) -> Result<Explained, String> {
        let gguf = launch.gguf.as_deref().ok_or("no model file is named")?;
        let model = self.open(gguf).map_err(|wrong| wrong.to_string())?;
        let arguments = Arguments::parse(&arguments(launch, capacity, site)).map_err(|wrong| wrong.to_string())?;
        let projector = arguments.projector.as_deref().map(|path| self.header(path)).transpose();
        let projector = projector.map_err(|wrong| wrong.to_string())?;
        let footprint = estimate(&model, projector.as_deref(), &arguments, platform(site));
        let footprint = footprint.map_err(|wrong| wrong.to_string())?;
        Ok(Explained { model, arguments, footprint })
    }

    /// What every model of a daemon takes on each of its devices, and which cannot be told. What the configuration says of a
    /// footprint takes the place of an estimate. A file that is named has to be there in any case, since the model could not be
    /// loaded without; only a simulated device needs none. Times of loads are a guess until one was seen.
    pub fn estimates(&self, daemon: &Daemon) -> (Vec<Estimate>, Vec<Untold>) {
        let (mut told, mut untold) = (Vec::new(), Vec::new());
        for (at, model) in (0..).zip(&daemon.configuration.models) {
            let id = ModelId(at);
            if let Err(why) = files_are_there(daemon, id) {
                untold.push(Untold { model: id, why });
                continue;
            }
            for placement in &model.placements {
                match self.footprint_on(daemon, id, placement.device) {
                    Ok(Some(bytes)) => told.push(Estimate {
                        model: id,
                        device: placement.device,
                        footprint: bytes,
                        load_time: load_time(daemon, placement.device, bytes),
                    }),
                    Ok(None) => {}
                    Err(why) => {
                        untold.push(Untold { model: id, why });
                        break;
                    }
                }
            }
        }
        (told, untold)
    }

    /// What an instance of a daemon's model takes on a device; `None` where neither file nor configuration tells.
    ///
    /// # Errors
    /// Why it cannot be told although there is a file.
    fn footprint_on(&self, daemon: &Daemon, model: ModelId, device: DeviceId) -> Result<Option<Bytes>, String> {
        let launch = daemon.launches.get(model.index()).filter(|launch| launch.gguf.is_some());
        let configured = daemon.footprints.get(model.index()).and_then(|one| one.estimate.or(one.truth));
        let (None, Some(launch)) = (configured, launch) else { return Ok(configured) };
        let Some(told) = daemon.configuration.model(model) else { return Ok(None) };
        let Some(site) = site(daemon, device) else { return Ok(None) };
        self.explain(launch, told.capacity, site).map(|told| Some(told.footprint.charged()))
    }
}

impl Estimator for ModelFiles {
    fn footprint(&self, launch: &Launch, capacity: Capacity, site: Site) -> Result<Bytes, String> {
        self.explain(launch, capacity, site).map(|told| told.footprint.charged())
    }
}

/// Whether the files are there that a model needs on one of its devices.
fn files_are_there(daemon: &Daemon, model: ModelId) -> Result<(), String> {
    let placements = daemon.configuration.model(model).map_or(&[][..], |model| &model.placements);
    let mut sites = placements.iter().filter_map(|place| site(daemon, place.device));
    if !sites.any(|site| site.backend != Some(config::Backend::Simulated)) {
        return Ok(());
    }
    let launch = daemon.launches.get(model.index());
    let named = launch.map_or([None, None], |launch| [launch.gguf.as_deref(), launch.mmproj.as_deref()]);
    named.into_iter().flatten().try_for_each(is_file)
}

fn is_file(path: &Path) -> Result<(), String> {
    let found = fs::metadata(path).map_err(|wrong| format!("{}: {wrong}", path.display()))?;
    if found.is_file() { Ok(()) } else { Err(format!("{} is no file; the file of a model is wanted", path.display())) }
}

/// Where a model on a device of a daemon runs.
pub fn site(daemon: &Daemon, device: DeviceId) -> Option<Site> {
    let kind = daemon.configuration.device(device)?.kind;
    Some(Site { kind, backend: daemon.sources.get(device.index())?.backend })
}

/// The arguments with those that a daemon adds: on unified memory the file is not mapped unless the configuration says so,
/// since mapped pages are nobody's until they are touched.
fn arguments(launch: &Launch, capacity: Capacity, site: Site) -> Vec<String> {
    let mut arguments = launch.arguments(capacity);
    if site.kind == DeviceKind::Unified && !launch.args.iter().any(|one| one == "--mmap" || one == "--no-mmap") {
        arguments.push("--no-mmap".to_owned());
    }
    arguments
}

/// A card of unknown make is taken for the most common one, a device of unknown make with unified memory too.
fn platform(site: Site) -> Platform {
    let backend = match (site.backend, site.kind) {
        (Some(config::Backend::Cuda), _) => Backend::Cuda,
        (Some(config::Backend::Hip), _) => Backend::Hip,
        (Some(config::Backend::Vulkan), _) => Backend::Vulkan,
        (Some(config::Backend::Metal), _) => Backend::Metal,
        (Some(config::Backend::Cpu), _) => return Platform::host(),
        (Some(config::Backend::Simulated) | None, DeviceKind::Discrete) => Backend::Cuda,
        (Some(config::Backend::Simulated) | None, DeviceKind::Unified) => Backend::Metal,
    };
    let memory = match site.kind {
        DeviceKind::Discrete => Memory::Discrete,
        DeviceKind::Unified => Memory::Unified,
    };
    Platform { backend, memory, largest_tensor: None }
}

/// How long a load takes before one was seen: of a simulated device it is known.
fn load_time(daemon: &Daemon, device: DeviceId, bytes: Bytes) -> Span {
    let simulated =
        daemon.sources.get(device.index()).is_some_and(|one| one.backend == Some(config::Backend::Simulated));
    if let Some(card) = daemon.cards.get(device.index()).filter(|_| simulated) {
        return card.upkeep.load_time(bytes);
    }
    let nanos = u128::from(bytes.get()) * 1_000_000_000 / u128::from(READ_A_SECOND);
    START.plus(Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use windtunnel_config::DaemonFile;

    use super::*;

    fn untold(backend: &str, files: &str) -> Vec<Untold> {
        let text = format!(
            "devices = [{{ name = \"a\", backend = \"{backend}\", memory = \"8GiB\" }}]\n\
             models.chat = {{ {files}, footprint = \"1GiB\" }}\n"
        );
        let file = DaemonFile::parse(&text, Path::new("windtunnel.toml")).unwrap_or_else(|wrong| panic!("{wrong}"));
        let daemon = file.resolve(&[], &[]).unwrap_or_else(|wrong| panic!("{wrong}"));
        ModelFiles::new().estimates(&daemon).1
    }

    #[test]
    fn a_file_that_is_not_there_shows_although_its_footprint_is_known() {
        let [there, folder] = [concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), env!("CARGO_MANIFEST_DIR")];
        let cases = [
            (r#"gguf = "/nowhere/chat.gguf""#.to_owned(), "/nowhere/chat.gguf: ".to_owned()),
            (format!(r#"gguf = "{there}", mmproj = "/nowhere/eyes.gguf""#), "/nowhere/eyes.gguf: ".to_owned()),
            (format!(r#"gguf = "{folder}""#), format!("{folder} is no file; ")),
        ];
        for (files, why) in cases {
            let [one] = &untold("cpu", &files)[..] else { panic!("one model is missing its file: {files}") };
            assert!(one.model == ModelId(0) && one.why.starts_with(&why), "{}", one.why);
            assert_eq!(untold("simulated", &files), [], "nothing is read there");
        }
        assert_eq!(untold("cpu", &format!(r#"gguf = "{there}""#)), [], "its footprint is known");
    }
}
