//! What devices a machine has, and who reads them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use windtunnel_config::{Backend, DeviceSource, FoundDevice};
use windtunnel_core::DeviceKind;

use super::{
    amd::{self, Amd},
    apple::{Apple, Commands},
    host::{Host, is_linux},
    nvidia::{self, Nvidia},
    reading::{Source, Unreadable},
};

/// No tool of the system takes longer, unless it hangs.
const LONGEST: Duration = Duration::from_secs(5);
/// A runtime that lists its devices starts its drivers first.
const LISTING: Duration = Duration::from_secs(20);

/// The devices of this machine: cards in the order of their drivers, then the processor, which is always there. `runtime`
/// is a `llama-server`, which a Mac is asked through.
pub fn devices(runtime: Option<&Path>) -> Vec<FoundDevice> {
    let nvidia = nvidia::Driver::load().map(|driver| driver.cards()).unwrap_or_default();
    let nvidia = nvidia.into_iter().map(|card| (Backend::Cuda, Some(card.id), card.kind, card.memory));
    let amd = amd::cards(Path::new("/")).into_iter().map(|card| {
        let reading = Amd::new("/", card.clone(), card.kind).read(&[]).unwrap_or_default();
        (Backend::Hip, Some(card.id), card.kind, reading.total.map(|total| total.bytes))
    });
    let apple = cfg!(target_os = "macos").then(|| {
        let mut apple = Apple::new(Commands::within(LISTING), runtime.map(PathBuf::from));
        let memory = apple.total().ok().flatten().map(|total| total.bytes);
        (Backend::Metal, None, DeviceKind::Unified, memory)
    });
    let cards = nvidia.chain(amd).chain(apple).enumerate().map(|(at, (backend, id, kind, memory))| {
        let name = format!("gpu{at}");
        FoundDevice { name, backend, id, kind, memory }
    });
    cards.chain([processor()]).collect()
}

fn processor() -> FoundDevice {
    let memory = match Host::new().memory() {
        Ok((total, _)) => total.map(|total| total.bytes),
        Err(_) if cfg!(target_os = "macos") => {
            let mut apple = Apple::new(Commands::within(LONGEST), None);
            apple.total().ok().flatten().map(|total| total.bytes)
        }
        Err(_) => None,
    };
    FoundDevice { name: "cpu".to_owned(), backend: Backend::Cpu, id: None, kind: DeviceKind::Unified, memory }
}

/// Who reads the device that `source` means, whose memory is of this kind.
///
/// # Errors
/// Why nobody can, and what would be right.
pub fn open(source: &DeviceSource, kind: DeviceKind, runtime: Option<&Path>) -> Result<Box<dyn Source>, Unreadable> {
    let id = source.id.as_deref();
    match (source.backend, kind) {
        (Some(Backend::Cuda), _) => Ok(Box::new(Nvidia::open(id)?)),
        (Some(Backend::Hip), _) => Ok(Box::new(card_of_amd(id, kind)?)),
        (Some(Backend::Vulkan), DeviceKind::Discrete) => match Nvidia::open(id) {
            Ok(nvidia) => Ok(Box::new(nvidia)),
            Err(Unreadable(nvidia)) => match card_of_amd(id, kind) {
                Ok(amd) => Ok(Box::new(amd)),
                Err(Unreadable(amd)) => Err(Unreadable(format!("nobody reads this card: {nvidia}; {amd}"))),
            },
        },
        // Integrated graphics, and the software device, live in the machine's memory.
        (Some(Backend::Vulkan | Backend::Cpu), _) => machine(),
        (Some(Backend::Metal), _) => mac(runtime),
        (Some(Backend::Simulated), _) => {
            Err(Unreadable("it is simulated; whoever simulates it tells its memory".to_owned()))
        }
        (None, DeviceKind::Unified) => machine(),
        (None, DeviceKind::Discrete) => Err(Unreadable(
            "no such device was found; say which it is with backend = \"cuda\" or another, and its id".to_owned(),
        )),
    }
}

fn machine() -> Result<Box<dyn Source>, Unreadable> {
    if cfg!(target_os = "macos") {
        return mac(None);
    }
    if is_linux(Path::new("/")) {
        return Ok(Box::new(Host::new()));
    }
    Err(Unreadable("the memory of this system cannot be read; give the device a `memory`".to_owned()))
}

fn mac(runtime: Option<&Path>) -> Result<Box<dyn Source>, Unreadable> {
    if !cfg!(target_os = "macos") {
        return Err(Unreadable("Metal is there on a Mac only".to_owned()));
    }
    let listing = runtime.map(PathBuf::from);
    let limit = if listing.is_some() { LISTING } else { LONGEST };
    Ok(Box::new(Apple::new(Commands::within(limit), listing)))
}

fn card_of_amd(id: Option<&str>, kind: DeviceKind) -> Result<Amd, Unreadable> {
    let cards = amd::cards(Path::new("/"));
    let names: Vec<&str> = cards.iter().map(|card| card.id.as_str()).collect();
    let found = match id {
        Some(id) => {
            cards.iter().find(|card| card.id == id || card.bus == id).or_else(|| cards.get(id.parse::<usize>().ok()?))
        }
        None if cards.len() > 1 => {
            return Err(Unreadable(format!("there are several cards; give the id of one: {}", names.join(", "))));
        }
        None => cards.first(),
    };
    match found {
        Some(card) => Ok(Amd::new("/", card.clone(), kind)),
        None if cards.is_empty() => Err(Unreadable("the driver amdgpu serves no card".to_owned())),
        None => Err(Unreadable(format!("there is no such card; the driver amdgpu serves {}", names.join(", ")))),
    }
}
