//! What the tools print, read. Everything here is `None` for text of another form.

use windtunnel_core::PressureLevel;

/// A device as a `llama-server` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name: `MTL0`, `Vulkan0`, `CUDA0`.
    pub name: String,
    /// What it is.
    pub description: String,
    /// All its memory, in bytes.
    pub total: u64,
    /// What is free of it, in bytes.
    pub free: u64,
}

/// The lines of `llama-server --list-devices`: `  MTL0: Apple M4 Pro (18186 MiB, 18185 MiB free)`.
pub fn devices(text: &str) -> Vec<Listed> {
    text.lines().filter_map(listed).collect()
}

fn listed(line: &str) -> Option<Listed> {
    let (name, rest) = line.trim().split_once(": ")?;
    // The description may have brackets of its own; memory stands in the last ones.
    let (description, memory) = rest.strip_suffix(" free)")?.rsplit_once(" (")?;
    let (total, free) = memory.split_once(", ")?;
    let mebibytes = |text: &str| text.strip_suffix(" MiB")?.parse::<u64>().ok()?.checked_mul(1 << 20);
    let (total, free) = (mebibytes(total)?, mebibytes(free)?);
    Some(Listed { name: name.to_owned(), description: description.to_owned(), total, free })
}

/// A line `NAME: NUMBER` of `sysctl`.
pub fn setting(text: &str, name: &str) -> Option<u64> {
    value(text, name)?.parse().ok()
}

/// The kernel's level: 1, 2 or 4.
pub fn pressure(text: &str) -> Option<PressureLevel> {
    match setting(text, "kern.memorystatus_vm_pressure_level")? {
        1 => Some(PressureLevel::Normal),
        2 => Some(PressureLevel::Warn),
        4 => Some(PressureLevel::Critical),
        _ => None,
    }
}

/// What is used of `vm.swapusage: total = 2048.00M  used = 1024.25M  free = 1023.75M  (encrypted)`, in bytes.
pub fn swapped(text: &str) -> Option<u64> {
    let (_, rest) = value(text, "vm.swapusage")?.split_once("used = ")?;
    amount(rest.split_whitespace().next()?)
}

/// The memory in use by the accelerator's driver, in bytes: `"In use system memory"=1143226368` among the performance
/// statistics of `ioreg`. Of several accelerators the sum.
pub fn in_use(text: &str) -> Option<u64> {
    const NAME: &str = "\"In use system memory\"=";
    let figures = text.match_indices(NAME).filter_map(|(at, _)| {
        let rest = text.get(at + NAME.len()..)?;
        let end = rest.find(|one: char| !one.is_ascii_digit()).unwrap_or(rest.len());
        rest.get(..end)?.parse::<u64>().ok()
    });
    figures.reduce(u64::saturating_add)
}

/// The figure in `llama-server [4242]: 64-bit    Footprint: 5049942016 B (16384 bytes per page)`, in bytes.
pub fn footprint(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("Footprint: ")?;
    let mut words = rest.split_whitespace();
    let (number, unit) = (words.next()?, words.next()?);
    amount(&format!("{number}{}", unit.trim_end_matches('B')))
}

fn value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::trim)
}

/// `1024.25M`, in bytes. Such figures have two decimals at most, so they are exact as floating-point numbers.
fn amount(text: &str) -> Option<u64> {
    let (number, scale) = match text.strip_suffix(['K', 'M', 'G']) {
        None => (text, 1_u64),
        Some(number) if text.ends_with('K') => (number, 1 << 10),
        Some(number) if text.ends_with('M') => (number, 1 << 20),
        Some(number) => (number, 1 << 30),
    };
    let bytes = number.parse::<f64>().ok()? * scale as f64;
    (bytes.is_finite() && bytes >= 0.0).then_some(bytes as u64)
}
