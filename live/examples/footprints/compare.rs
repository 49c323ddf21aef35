//! Estimates beside reports.

use std::{fmt::Write, path::Path};

use windtunnel_core::Bytes;
use windtunnel_live::{
    footprint::{Arguments, Footprint, Part, Platform, Side, estimate},
    gguf::{HeaderCache, Model},
};

use super::{Outcome, server::Reported};

/// An estimate and what a server reported for the same arguments.
pub struct Comparison {
    device: Pair,
    host: Pair,
    resident: Option<Pair>,
}

/// Bytes.
#[derive(Clone, Copy)]
struct Pair {
    reported: u64,
    estimated: u64,
}

impl Comparison {
    /// Estimates `model` and puts it beside the report. What the backend and the process take is in no report of
    /// buffers and is left out, except beside the resident memory.
    pub fn new(model: &Path, arguments: &[String], platform: Platform, reported: Reported) -> Outcome {
        let model = Model::open(model, &HeaderCache::new())?;
        let footprint = estimate(&model, None, &Arguments::parse(arguments)?, platform)?;
        let pair = |side, reported| Pair { reported, estimated: buffers(&footprint, side).get() };
        let resident = reported.resident.map(|bytes| Pair { reported: bytes, estimated: footprint.total().get() });
        let (device, host) = (pair(Side::Device, reported.device), pair(Side::Host, reported.host));
        Ok(Comparison { device, host, resident })
    }
}

fn buffers(footprint: &Footprint, side: Side) -> Bytes {
    let rows = footprint.rows.iter().filter(|row| row.side == side && row.part != Part::Overhead);
    rows.fold(Bytes::ZERO, |sum, row| sum.plus(row.bytes))
}

impl Pair {
    /// By how many percent the estimate is above the report, if there is something to compare.
    fn error(self) -> Option<f64> {
        let (reported, estimated) = (self.reported as f64, self.estimated as f64);
        (self.reported > 0).then(|| (estimated - reported) / reported * 100.0)
    }

    fn cells(self) -> String {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let error = self.error().map_or_else(String::new, |error| format!("{error:+.1} %"));
        format!("{:.1} | {:.1} | {error}", mib(self.reported), mib(self.estimated))
    }
}

/// A Markdown table, sizes in MiB, with the range of errors below.
pub fn table(outcomes: &[(String, Outcome)]) -> String {
    let mut text = String::from(
        "| arguments | device: reported | estimated | error | host: reported | estimated | error \
         | resident | estimated | error |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let (mut device, mut host, mut resident) = (Vec::new(), Vec::new(), Vec::new());
    for (what, outcome) in outcomes {
        match outcome {
            Err(wrong) => {
                let _ = writeln!(text, "| `{what}` | {} |", wrong.to_string().replace('|', "/"));
            }
            Ok(one) => {
                let last = one.resident.map_or_else(|| " | | ".to_owned(), Pair::cells);
                let _ = writeln!(text, "| `{what}` | {} | {} | {last} |", one.device.cells(), one.host.cells());
                device.extend(one.device.error());
                host.extend(one.host.error());
                resident.extend(one.resident.and_then(Pair::error));
            }
        }
    }
    let _ = writeln!(text);
    for (name, errors) in [("device", device), ("host", host), ("resident", resident)] {
        if !errors.is_empty() {
            let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
            let most = errors.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let _ = writeln!(text, "{name}: {least:+.1} to {most:+.1} % over {} runs.", errors.len());
        }
    }
    text
}
