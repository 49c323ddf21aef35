//! Keys of `[models.X]` that say how its process is started, and what its memory is where they alone tell.

use windtunnel_core::{Bytes, Capacity, DeviceId};

use super::devices::Devices;
use crate::daemon::{Backend, Launch};
use crate::decode::Section;
use crate::estimate::Estimator;
use crate::form::{Key, Scalar, Shape};

pub(super) const GGUF: Key =
    Key::scalar("gguf", Scalar::Name, "the model's file, from which its footprint is estimated if none is given");
pub(super) const MMPROJ: Key = Key::scalar("mmproj", Scalar::Name, "the file of its projector, for images and sound");
pub(super) const CTX: Key = Key::scalar(
    "ctx",
    Scalar::Count(1, i32::MAX as u64),
    "tokens of context, of all slots together; default: as many as the model was trained with",
);
pub(super) const ARGS: Key =
    Key::new("args", Shape::Any(&Shape::Scalar(Scalar::Text)), "further arguments of its runtime");
pub(super) const ENV: Key = Key::new("env", Shape::Texts, "environment variables of its runtime");
pub(super) const RUNTIME: Key =
    Key::scalar("runtime", Scalar::Name, "its program, instead of that of `[server]`: a path, or a name on PATH");

/// The names of all of these.
pub fn launch_keys() -> [&'static str; 6] {
    [GGUF, MMPROJ, CTX, ARGS, ENV, RUNTIME].map(|key| key.name)
}

/// Reads how a model is started; `standing` are arguments of every model.
pub(crate) fn read(section: &Section<'_>, standing: &[String]) -> Launch {
    let own = section.texts("args").unwrap_or_default();
    Launch {
        gguf: section.path_beside("gguf"),
        mmproj: section.path_beside("mmproj"),
        ctx: section.count32("ctx"),
        args: standing.iter().cloned().chain(own.into_iter().map(|(text, _)| text.to_owned())).collect(),
        env: section.named_texts("env"),
        runtime: section.program("runtime"),
    }
}

/// What an instance of the model takes on that of its devices where it takes most; `None` where its file is not named, or
/// where that was complained of.
pub(crate) fn estimated(
    section: &Section<'_>,
    launch: &Launch,
    capacity: Capacity,
    (allowed, devices): (&[DeviceId], &Devices),
    estimator: &dyn Estimator,
) -> Option<Bytes> {
    launch.gguf.as_ref()?;
    let mut most = None;
    for site in allowed.iter().filter_map(|device| devices.site(*device)) {
        match estimator.footprint(launch, capacity, site) {
            Ok(bytes) => most = most.max(Some(bytes)),
            Err(why) => {
                section.wrong("gguf", &format!("gives no footprint: {why}"));
                return None;
            }
        }
    }
    most
}

/// Complains of a model that no process could be started for.
pub(crate) fn check(section: &Section<'_>, launch: &Launch, allowed: &[DeviceId], devices: &Devices) {
    let simulated = |device: &DeviceId| {
        devices.sources.get(device.index()).is_some_and(|source| source.backend == Some(Backend::Simulated))
    };
    if launch.gguf.is_some() || section.has("footprint") || allowed.iter().all(simulated) {
        return;
    }
    section.complain(
        "has no `gguf`, the path of its model file; a runtime that finds its model by its `args` needs a `footprint`",
    );
}
