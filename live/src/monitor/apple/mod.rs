//! Apple silicon: one memory for processor and graphics, read through the system's own tools.
//!
//! What there is: the most that Metal lets all processes wire, as the runtime lists it; else the limit that was set for the
//! driver; else the system's rule, two thirds of the memory, three quarters above 36 GB. What is in use: what the
//! accelerator's driver has in use. What a process takes: its whole footprint, since everything it has lies in this memory.
//! How scarce memory is: the kernel's own level.

mod commands;
pub mod parse;

use std::{fmt, path::PathBuf};

pub use commands::Commands;

use super::{
    kin::Kin,
    reading::{Figure, Process, Reading, Source, Unreadable},
};

/// Above this much memory three quarters of it may be wired, else two thirds.
const LARGE: u64 = 36 << 30;

/// Runs the system's tools.
pub trait Tools: Send + fmt::Debug {
    /// What a program prints.
    ///
    /// # Errors
    /// If it cannot be started, fails, or does not end in time.
    fn run(&mut self, program: &str, arguments: &[&str]) -> Result<String, Unreadable>;
}

/// Reads the memory of a Mac.
#[derive(Debug)]
pub struct Apple<T> {
    tools: T,
    runtime: Option<PathBuf>,
    listed: Option<u64>,
}

impl<T: Tools> Apple<T> {
    /// This machine; `runtime` is a `llama-server`, which is asked once what Metal allows.
    pub fn new(mut tools: T, runtime: Option<PathBuf>) -> Apple<T> {
        let listed = runtime.as_ref().and_then(|program| {
            let text = tools.run(&program.to_string_lossy(), &["--list-devices"]).ok()?;
            let mut devices = parse::devices(&text).into_iter();
            Some(devices.find(|one| one.name.starts_with("MTL") || one.name.starts_with("Metal"))?.total)
        });
        Apple { tools, runtime, listed }
    }

    /// All memory that may be used.
    ///
    /// # Errors
    /// If `sysctl` cannot be asked.
    pub fn total(&mut self) -> Result<Option<Figure>, Unreadable> {
        let text = self.sysctl()?;
        Ok(self.total_of(&text))
    }

    fn total_of(&self, sysctl: &str) -> Option<Figure> {
        if let Some(bytes) = self.listed {
            return Some(Figure::new(bytes, "llama-server --list-devices"));
        }
        let set = parse::setting(sysctl, "iogpu.wired_limit_mb").filter(|limit| *limit > 0);
        if let Some(bytes) = set.and_then(|limit| limit.checked_mul(1 << 20)) {
            return Some(Figure::new(bytes, "sysctl iogpu.wired_limit_mb"));
        }
        let all = parse::setting(sysctl, "hw.memsize")?;
        let share = if all > LARGE { all / 4 * 3 } else { all / 3 * 2 };
        Some(Figure::new(share, "a share of sysctl hw.memsize"))
    }

    fn sysctl(&mut self) -> Result<String, Unreadable> {
        let names = ["hw.memsize", "iogpu.wired_limit_mb", "kern.memorystatus_vm_pressure_level", "vm.swapusage"];
        self.tools.run("/usr/sbin/sysctl", &names)
    }

    fn used(&mut self) -> Option<Figure> {
        let text = self.tools.run("/usr/sbin/ioreg", &["-r", "-d", "1", "-w", "0", "-c", "IOAccelerator"]).ok()?;
        parse::in_use(&text).map(|bytes| Figure::new(bytes, "ioreg In use system memory"))
    }

    fn family(&mut self, kin: &Kin, pid: u32) -> Option<Figure> {
        let mut sum = None;
        for member in kin.of(pid) {
            let text = self.tools.run("/usr/bin/footprint", &["-f", "bytes", "-p", &member.to_string()]);
            if let Some(bytes) = text.ok().as_deref().and_then(parse::footprint) {
                sum = Some(u64::saturating_add(sum.unwrap_or(0), bytes));
            }
        }
        sum.map(|bytes| Figure::new(bytes, "footprint"))
    }

    /// The runtime it asked.
    pub fn runtime(&self) -> Option<&PathBuf> {
        self.runtime.as_ref()
    }
}

impl<T: Tools> Source for Apple<T> {
    fn read(&mut self, pids: &[u32]) -> Result<Reading, Unreadable> {
        let text = self.sysctl()?;
        let kin = match pids {
            [] => Kin::default(),
            _ => self
                .tools
                .run("/bin/ps", &["-axo", "pid=,ppid=,pgid="])
                .map(|text| Kin::listed(&text))
                .unwrap_or_default(),
        };
        let processes = pids.iter().map(|&pid| Process { pid, used: self.family(&kin, pid) }).collect();
        let swapped = parse::swapped(&text).map(|bytes| Figure::new(bytes, "sysctl vm.swapusage"));
        Ok(Reading {
            total: self.total_of(&text),
            used: self.used(),
            processes,
            pressure: parse::pressure(&text),
            swapped,
        })
    }
}
