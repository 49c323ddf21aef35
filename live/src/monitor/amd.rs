//! Cards and integrated graphics of AMD, read from the files of the kernel's driver (`amdgpu`).
//!
//! A card has its own memory, `mem_info_vram_*`. Integrated graphics have a small part of the machine's memory set aside
//! under the same name and take the rest from the pool that the host shares with them, `mem_info_gtt_*`; there both are
//! added, and figures say so. What a process uses stands in the descriptions of its open files (`drm-memory-vram`,
//! `drm-memory-gtt`), one for each client of the driver; a file that was opened twice names the same client.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use windtunnel_core::DeviceKind;

use super::{
    host::kibibytes,
    kin::Kin,
    reading::{Figure, Process, Reading, Source, Unreadable},
};

/// AMD among the makers of PCI devices.
const MAKER: &str = "0x1002";
/// No card has less memory of its own; what integrated graphics have set aside is usually 512 MiB or 2 GiB.
const SMALLEST_CARD: u64 = 3 << 30;

/// A card or integrated graphics that were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// `GPU-` and the unique id as the runtime names it, or the place on the bus where there is none.
    pub id: String,
    /// The place on the bus, such as `0000:03:00.0`.
    pub bus: String,
    /// Whether it has memory of its own, by how much that is.
    pub kind: DeviceKind,
    folder: PathBuf,
}

/// Reads one of them.
#[derive(Clone, Debug)]
pub struct Amd {
    root: PathBuf,
    card: Card,
    kind: DeviceKind,
}

/// All that the driver serves below `root`, in the order of their numbers.
pub fn cards(root: &Path) -> Vec<Card> {
    let folder = root.join("sys/class/drm");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |entry: &fs::DirEntry| entry.file_name().to_str()?.strip_prefix("card")?.parse::<u32>().ok();
    let mut found: Vec<(u32, PathBuf)> =
        entries.filter_map(|entry| Some((number(&entry)?, entry.path().join("device")))).collect();
    found.sort_unstable();
    found.into_iter().filter_map(|(_, folder)| Card::at(folder)).collect()
}

impl Card {
    fn at(folder: PathBuf) -> Option<Card> {
        let text = |name: &str| Some(fs::read_to_string(folder.join(name)).ok()?.trim().to_owned());
        if text("vendor")? != MAKER {
            return None;
        }
        let own = number(&folder, "mem_info_vram_total")?;
        let events = text("uevent").unwrap_or_default();
        let slot = events.lines().find_map(|line| line.strip_prefix("PCI_SLOT_NAME="));
        let bus = slot.map_or_else(|| folder.display().to_string(), str::to_owned);
        let unique = text("unique_id").filter(|id| !id.is_empty() && id.chars().any(|one| one != '0'));
        let id = unique.map_or_else(|| bus.clone(), |id| format!("GPU-{id}"));
        let kind = if own < SMALLEST_CARD { DeviceKind::Unified } else { DeviceKind::Discrete };
        Some(Card { id, bus, kind, folder })
    }
}

impl Amd {
    /// The card, whose memory is of this kind whatever it looks like.
    pub fn new(root: impl Into<PathBuf>, card: Card, kind: DeviceKind) -> Amd {
        Amd { root: root.into(), card, kind }
    }

    fn memory(&self, what: &str, source: &'static str, both: &'static str) -> Option<Figure> {
        let own = number(&self.card.folder, &format!("mem_info_vram_{what}"))?;
        match self.kind {
            DeviceKind::Discrete => Some(Figure::new(own, source)),
            DeviceKind::Unified => {
                let shared = number(&self.card.folder, &format!("mem_info_gtt_{what}"))?;
                Some(Figure::new(own.saturating_add(shared), both))
            }
        }
    }

    /// What a process and its descendants use; `None`: none of them says anything about this card.
    fn family(&self, kin: &Kin, pid: u32) -> Option<Figure> {
        let mut clients = BTreeMap::new();
        for pid in kin.of(pid) {
            self.clients_of(pid, &mut clients);
        }
        let sum = clients.values().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        let source = match self.kind {
            DeviceKind::Discrete => "/proc/PID/fdinfo drm-memory-vram",
            DeviceKind::Unified => "/proc/PID/fdinfo drm-memory-vram and drm-memory-gtt",
        };
        (!clients.is_empty()).then(|| Figure::new(sum, source))
    }

    fn clients_of(&self, pid: u32, clients: &mut BTreeMap<String, u64>) {
        let folder = self.root.join(format!("proc/{pid}/fdinfo"));
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            if value("drm-pdev").map(str::trim) != Some(self.card.bus.as_str()) {
                continue;
            }
            let Some(client) = value("drm-client-id").map(str::trim) else { continue };
            let own = first(&text, ["drm-memory-vram", "drm-resident-vram", "drm-total-vram"]);
            let shared = match self.kind {
                DeviceKind::Discrete => Some(0),
                DeviceKind::Unified => first(&text, ["drm-memory-gtt", "drm-resident-gtt", "drm-total-gtt"]),
            };
            if let (Some(own), Some(shared)) = (own, shared) {
                clients.insert(client.to_owned(), own.saturating_add(shared));
            }
        }
    }
}

impl Source for Amd {
    fn read(&mut self, pids: &[u32]) -> Result<Reading, Unreadable> {
        let total = self.memory("total", "mem_info_vram_total", "mem_info_vram_total and mem_info_gtt_total");
        let used = self.memory("used", "mem_info_vram_used", "mem_info_vram_used and mem_info_gtt_used");
        let kin = if pids.is_empty() { Kin::default() } else { Kin::look(&self.root) };
        let processes: Vec<Process> = pids.iter().map(|&pid| Process { pid, used: self.family(&kin, pid) }).collect();
        if total.is_none() && used.is_none() && processes.iter().all(|one| one.used.is_none()) {
            let folder = self.card.folder.display();
            return Err(Unreadable(format!(
                "the driver tells nothing about {}: {folder}/mem_info_vram_*",
                self.card.bus
            )));
        }
        Ok(Reading { total, used, processes, pressure: None, swapped: None })
    }
}

/// The first of these lines that is there, in bytes.
fn first(text: &str, names: [&str; 3]) -> Option<u64> {
    names.into_iter().find_map(|name| kibibytes(text, name))
}

fn number(folder: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
}
