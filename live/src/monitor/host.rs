//! The processor and the memory of a machine with Linux, as one device.
//!
//! What there is: the limit of the control group the daemon runs in, else all memory. What is in use: everything that
//! could not be had for something else, which the kernel estimates as `MemAvailable`; within a limit, whatever is tighter.
//! What a process takes: its proportional share of every page (PSS), so that pages two processes share count once.
//! How scarce memory is: the share of the last ten seconds in which somebody, or everybody, waited for memory.

use std::{
    fs,
    path::{Path, PathBuf},
};

use windtunnel_core::PressureLevel;

use super::{
    cgroup,
    kin::Kin,
    reading::{Figure, Process, Reading, Source, Unreadable},
};

/// Somebody waits for memory so much of the time: little is left. In percent, over ten seconds.
const SOMEBODY_WAITS: f64 = 20.0;
/// Everybody waits for memory so much of the time: nothing is left. In percent, over ten seconds.
const EVERYBODY_WAITS: f64 = 20.0;

/// Reads the memory of this machine.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
}

impl Host {
    /// This machine.
    pub fn new() -> Host {
        Host::below("/")
    }

    /// A machine whose `/proc` and `/sys` lie below `root`.
    pub fn below(root: impl Into<PathBuf>) -> Host {
        Host { root: root.into() }
    }

    /// All memory that may be used, and what is in use of it.
    ///
    /// # Errors
    /// If the kernel tells neither.
    pub fn memory(&self) -> Result<(Option<Figure>, Option<Figure>), Unreadable> {
        let path = self.root.join("proc/meminfo");
        let text = fs::read_to_string(&path).map_err(|wrong| Unreadable(format!("{}: {wrong}", path.display())))?;
        let (total, available) = (kibibytes(&text, "MemTotal"), kibibytes(&text, "MemAvailable"));
        if total.is_none() && available.is_none() {
            return Err(Unreadable(format!("{} tells neither MemTotal nor MemAvailable", path.display())));
        }
        let limit = cgroup::limit(&self.root).filter(|group| total.is_none_or(|total| group.limit < total));
        let Some(group) = limit else {
            let used = total.zip(available).map(|(total, available)| total.saturating_sub(available));
            return Ok((figure(total, "/proc/meminfo MemTotal"), figure(used, "/proc/meminfo MemAvailable")));
        };
        let left = group.used.map(|used| group.limit.saturating_sub(used));
        let least = left.into_iter().chain(available).min();
        let used = least.map(|left| group.limit.saturating_sub(left));
        Ok((figure(Some(group.limit), group.source), figure(used, "cgroup and /proc/meminfo MemAvailable")))
    }

    /// What was moved out of memory.
    fn swapped(&self) -> Option<Figure> {
        let text = fs::read_to_string(self.root.join("proc/meminfo")).ok()?;
        let used = kibibytes(&text, "SwapTotal")?.saturating_sub(kibibytes(&text, "SwapFree")?);
        Some(Figure::new(used, "/proc/meminfo SwapFree"))
    }

    /// What a process takes; `None`: it is gone, or somebody else's.
    fn process(&self, pid: u32) -> Option<Figure> {
        let folder = self.root.join(format!("proc/{pid}"));
        let rollup = fs::read_to_string(folder.join("smaps_rollup")).unwrap_or_default();
        let share = kibibytes(&rollup, "Pss").map(|bytes| Figure::new(bytes, "/proc/PID/smaps_rollup Pss"));
        share.or_else(|| {
            let status = fs::read_to_string(folder.join("status")).ok()?;
            Some(Figure::new(kibibytes(&status, "VmRSS")?, "/proc/PID/status VmRSS"))
        })
    }

    /// What a process and its descendants take.
    fn family(&self, kin: &Kin, pid: u32) -> Option<Figure> {
        let members = kin.of(pid);
        let figures: Vec<Figure> = members.into_iter().filter_map(|pid| self.process(pid)).collect();
        let bytes = figures.iter().fold(0_u64, |sum, figure| sum.saturating_add(figure.bytes.get()));
        figures.first().map(|first| Figure::new(bytes, first.source))
    }

    fn pressure(&self) -> Option<PressureLevel> {
        pressure(&fs::read_to_string(self.root.join("proc/pressure/memory")).ok()?)
    }
}

impl Default for Host {
    fn default() -> Host {
        Host::new()
    }
}

impl Source for Host {
    fn read(&mut self, pids: &[u32]) -> Result<Reading, Unreadable> {
        let (total, used) = self.memory()?;
        let kin = if pids.is_empty() { Kin::default() } else { Kin::look(&self.root) };
        let processes = pids.iter().map(|&pid| Process { pid, used: self.family(&kin, pid) }).collect();
        Ok(Reading { total, used, processes, pressure: self.pressure(), swapped: self.swapped() })
    }
}

/// A line `NAME:   123 kB`, in bytes.
pub(super) fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let mut words = line.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    match words.next() {
        Some("kB" | "KiB") => number.checked_mul(1 << 10),
        Some("MiB") => number.checked_mul(1 << 20),
        Some("GiB") => number.checked_mul(1 << 30),
        Some(_) => None,
        None => Some(number),
    }
}

/// Reads the lines `some avg10=0.00 ..` and `full avg10=0.00 ..`.
fn pressure(text: &str) -> Option<PressureLevel> {
    let share = |who: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(who))?;
        line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse::<f64>().ok()
    };
    let some = share("some")?;
    Some(match share("full") {
        Some(full) if full >= EVERYBODY_WAITS => PressureLevel::Critical,
        Some(_) | None if some >= SOMEBODY_WAITS => PressureLevel::Warn,
        Some(_) | None => PressureLevel::Normal,
    })
}

fn figure(bytes: Option<u64>, source: &'static str) -> Option<Figure> {
    bytes.map(|bytes| Figure::new(bytes, source))
}

/// Whether `root` has a `/proc` at all.
pub(super) fn is_linux(root: &Path) -> bool {
    root.join("proc/meminfo").exists()
}
