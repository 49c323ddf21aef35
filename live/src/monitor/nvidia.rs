//! NVIDIA's cards, read through NVML, which is loaded when it is first asked for: without a driver this program starts and
//! serves from what else there is.
//!
//! What is in use is all that is not free, what the driver keeps for itself included. Where NVML does not tell (a device
//! whose memory is the machine's), the machine's own figures are taken. What a process uses is unknown where the processes
//! of the list carry other numbers than here, as in a container. A card that is divided into instances (MIG) is not one
//! device: the instance has to be named.

use std::{collections::BTreeMap, ffi::OsStr, fmt, path::PathBuf};

use nvml_wrapper::{
    Device, Nvml, enums::device::UsedGpuMemory, error::NvmlError, struct_wrappers::device::ProcessInfo,
};
use windtunnel_core::{Bytes, DeviceKind};

use super::{
    host::Host,
    kin::Kin,
    reading::{Figure, Process, Reading, Source, Unreadable},
};

/// The library as drivers install it, and as their developer packages do.
const LIBRARIES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// A card, or an instance of a divided one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its UUID: `GPU-..` or `MIG-..`.
    pub id: String,
    /// What it is sold as.
    pub name: String,
    /// Whose memory it has.
    pub kind: DeviceKind,
    /// How much, where NVML tells.
    pub memory: Option<Bytes>,
}

/// The driver's library, loaded.
pub struct Driver {
    nvml: Nvml,
}

/// Reads one card.
#[derive(Debug)]
pub struct Nvidia {
    driver: Driver,
    id: String,
    root: PathBuf,
}

/// What NVML shows of a card at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shown {
    /// All and free bytes.
    memory: Option<(u64, u64)>,
    /// Processes with what they use, where that is told; `None`: there is no list.
    processes: Option<Vec<(u32, Option<u64>)>>,
}

impl Driver {
    /// Loads the library and starts it.
    ///
    /// # Errors
    /// Why there is none, and what would be right.
    pub fn load() -> Result<Driver, Unreadable> {
        let mut wrong = None;
        for library in LIBRARIES {
            match Nvml::builder().lib_path(OsStr::new(library)).init() {
                Ok(nvml) => return Ok(Driver { nvml }),
                // What a library that is there says counts, not that another is missing.
                Err(error) if wrong.is_none() || !matches!(error, NvmlError::LibloadingError(_)) => wrong = Some(error),
                Err(_) => {}
            }
        }
        Err(Unreadable(wrong.map_or_else(|| "there is no NVML".to_owned(), |error| why(&error))))
    }

    /// Every card and every instance of divided ones.
    pub fn cards(&self) -> Vec<Card> {
        let count = self.nvml.device_count().unwrap_or(0);
        let devices = (0..count).filter_map(|at| self.nvml.device_by_index(at).ok());
        devices
            .flat_map(|device| if divided(&device) { instances(&device) } else { card(&device).into_iter().collect() })
            .collect()
    }

    fn shown(&self, id: &str) -> Result<Shown, Unreadable> {
        let device = self.nvml.device_by_uuid(id);
        let device = device.map_err(|error| Unreadable(format!("NVML has no device {id}: {}", why(&error))))?;
        if divided(&device) {
            let names: Vec<String> = instances(&device).into_iter().map(|card| card.id).collect();
            let names = if names.is_empty() { "none is set up".to_owned() } else { names.join(", ") };
            return Err(Unreadable(format!("{id} is divided into instances (MIG); name one of them: {names}")));
        }
        let memory = match device.memory_info() {
            Ok(memory) => Some((memory.total, memory.free)),
            Err(NvmlError::NotSupported) => None,
            Err(error) => return Err(Unreadable(format!("the memory of {id} cannot be read: {}", why(&error)))),
        };
        let lists = [device.running_compute_processes(), device.running_graphics_processes()];
        let told = lists.iter().any(Result::is_ok);
        let processes = told.then(|| once_each(lists.into_iter().flatten().flatten()));
        Ok(Shown { memory, processes })
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NVML")
    }
}

impl Nvidia {
    /// The card or instance of this UUID; of an empty one, the only card there is.
    ///
    /// # Errors
    /// If there is no driver, or more than one card to choose from.
    pub fn open(id: Option<&str>) -> Result<Nvidia, Unreadable> {
        let driver = Driver::load()?;
        let cards = driver.cards();
        let id = match id {
            Some(id) => id.parse::<usize>().ok().and_then(|at| cards.get(at)).map_or(id, |card| &card.id).to_owned(),
            None => match &cards[..] {
                [card] => card.id.clone(),
                [] => return Err(Unreadable("NVML knows no card".to_owned())),
                cards => {
                    let names: Vec<&str> = cards.iter().map(|card| card.id.as_str()).collect();
                    return Err(Unreadable(format!(
                        "there are several cards; give the id of one: {}",
                        names.join(", ")
                    )));
                }
            },
        };
        Ok(Nvidia { driver, id, root: PathBuf::from("/") })
    }
}

impl Source for Nvidia {
    fn read(&mut self, pids: &[u32]) -> Result<Reading, Unreadable> {
        let shown = self.driver.shown(&self.id)?;
        let kin = if pids.is_empty() { Kin::default() } else { Kin::look(&self.root) };
        let families: Vec<Vec<u32>> = pids.iter().map(|pid| kin.of(*pid)).collect();
        Ok(reading(&shown, &families, &Host::below(&self.root)))
    }
}

/// What was shown, as figures about `families`, each headed by the process that was asked for.
fn reading(shown: &Shown, families: &[Vec<u32>], host: &Host) -> Reading {
    let (total, used) = match shown.memory {
        Some((total, free)) => (
            Some(Figure::new(total, "NVML memory info")),
            Some(Figure::new(total.saturating_sub(free), "NVML memory info")),
        ),
        None => host.memory().unwrap_or((None, None)),
    };
    let list = shown.processes.as_deref().unwrap_or_default();
    let processes = families.iter().filter_map(|family| {
        let members = list.iter().filter(|(pid, _)| family.contains(pid));
        let figures: Vec<u64> = members.filter_map(|(_, bytes)| *bytes).collect();
        let sum = figures.iter().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        let used = (!figures.is_empty()).then(|| Figure::new(sum, "NVML process list"));
        Some(Process { pid: *family.first()?, used })
    });
    Reading { total, used, processes: processes.collect(), pressure: None, swapped: None }
}

/// A process that computes and draws stands in both lists with all it uses.
fn once_each(infos: impl Iterator<Item = ProcessInfo>) -> Vec<(u32, Option<u64>)> {
    let mut found: BTreeMap<u32, Option<u64>> = BTreeMap::new();
    for info in infos {
        let bytes = match info.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        let known = found.entry(info.pid).or_default();
        *known = (*known).max(bytes);
    }
    found.into_iter().collect()
}

fn divided(device: &Device<'_>) -> bool {
    let instance = device.mig_is_mig_device_handle().unwrap_or(false);
    !instance && device.mig_mode().is_ok_and(|mode| mode.current != 0)
}

fn instances(device: &Device<'_>) -> Vec<Card> {
    let most = device.mig_device_count().unwrap_or(0);
    (0..most).filter_map(|at| card(&device.mig_device_by_index(at).ok()?)).collect()
}

fn card(device: &Device<'_>) -> Option<Card> {
    let memory = device.memory_info().ok().map(|memory| Bytes::new(memory.total));
    // Only devices that share the machine's memory do not tell how much they have.
    let kind = if memory.is_some() { DeviceKind::Discrete } else { DeviceKind::Unified };
    Some(Card { id: device.uuid().ok()?, name: device.name().unwrap_or_default(), kind, memory })
}

/// What went wrong, for a person.
fn why(error: &NvmlError) -> String {
    match error {
        NvmlError::LibloadingError(_) => {
            "libnvidia-ml.so.1 is not there: no NVIDIA driver is installed, or a container was not given it".to_owned()
        }
        NvmlError::DriverNotLoaded => "the NVIDIA driver is installed but not loaded".to_owned(),
        NvmlError::NoPermission => "this user may not talk to the NVIDIA driver".to_owned(),
        NvmlError::FailedToLoadSymbol(name) => format!("the NVIDIA driver is too old for this call ({name})"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nowhere() -> Host {
        Host::below("/no/such/machine")
    }

    fn info(pid: u32, used_gpu_memory: UsedGpuMemory) -> ProcessInfo {
        ProcessInfo { pid, used_gpu_memory, gpu_instance_id: None, compute_instance_id: None }
    }

    #[test]
    fn what_is_not_free_is_in_use_and_a_family_counts_together() {
        let processes = Some(vec![(7, Some(100)), (8, Some(20)), (9, Some(5)), (12, None)]);
        let shown = Shown { memory: Some((1_000, 300)), processes };
        let reading = reading(&shown, &[vec![7, 8], vec![12], vec![99]], &nowhere());
        assert_eq!(reading.used.map(|figure| figure.bytes.get()), Some(700));
        let used: Vec<Option<u64>> =
            reading.processes.iter().map(|one| one.used.map(|figure| figure.bytes.get())).collect();
        // The second does not say, and the third is not in the list: neither is zero.
        assert_eq!(used, [Some(120), None, None]);
        assert_eq!(reading.processes[2].pid, 99);
    }

    #[test]
    fn a_device_that_tells_no_totals_has_those_of_the_machine() {
        let shown = Shown { memory: None, processes: Some(vec![(7, Some(64))]) };
        let alone = reading(&shown, &[vec![7]], &nowhere());
        assert_eq!((alone.total, alone.used), (None, None));
        assert_eq!(alone.processes[0].used, Some(Figure::new(64, "NVML process list")));
        if cfg!(target_os = "linux") {
            let here = reading(&shown, &[], &Host::new());
            assert!(
                here.total.is_some_and(|figure| figure.source.contains("MemTotal") || figure.source.contains("cgroup"))
            );
        }
    }

    #[test]
    fn a_process_in_both_lists_counts_once_with_the_larger_figure() {
        let both =
            [info(7, UsedGpuMemory::Used(10)), info(8, UsedGpuMemory::Unavailable), info(7, UsedGpuMemory::Used(12))];
        assert_eq!(once_each(both.into_iter()), [(7, Some(12)), (8, None)]);
    }

    #[test]
    fn what_is_missing_is_said_in_plain_words() {
        assert!(why(&NvmlError::DriverNotLoaded).contains("not loaded"));
        // On a machine with a card this finds it; everywhere else it says why not.
        match Driver::load() {
            Ok(driver) => assert!(driver.cards().iter().all(|card| !card.id.is_empty())),
            Err(Unreadable(why)) => assert!(why.contains("NVIDIA") || why.contains("NVML"), "{why}"),
        }
    }
}
