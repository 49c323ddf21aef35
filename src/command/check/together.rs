//! What fits with what on a device, by footprints: every pair, and as many models as possible.

use serde_json::{Value, json};
use windtunnel_core::Bytes;

use super::budget_text;
use crate::{inventory::Entry, rows::size};

/// A device and the models that may be placed on it.
pub struct Together {
    /// The device's name.
    pub device: String,
    /// What models may have of it.
    pub budget: Bytes,
    /// Two models and what they take together, in the order of the file.
    pairs: Vec<(String, String, Bytes)>,
    /// The models that stay side by side if each, in the order of the file, stays where it still fits.
    set: Vec<String>,
    taken: Bytes,
    /// How many models there are whose footprints are known.
    count: usize,
}

impl Together {
    /// What fits on a device; `None`: no model with a known footprint may be placed there.
    pub fn on(device: &str, budget: Bytes, entries: &[Entry]) -> Option<Together> {
        let here = entries.iter().filter(|entry| entry.on == device);
        let known: Vec<(&str, Bytes)> =
            here.filter_map(|entry| Some((entry.name.as_str(), entry.footprint?))).collect();
        let mut pairs = Vec::new();
        for (at, (one, bytes)) in known.iter().enumerate() {
            let others = known.iter().skip(at + 1);
            pairs.extend(others.map(|(other, more)| ((*one).to_owned(), (*other).to_owned(), bytes.plus(*more))));
        }
        let (mut set, mut taken) = (Vec::new(), Bytes::ZERO);
        for (name, bytes) in &known {
            if taken.plus(*bytes) <= budget {
                taken = taken.plus(*bytes);
                set.push((*name).to_owned());
            }
        }
        let (device, count) = (device.to_owned(), known.len());
        (count > 0).then_some(Together { device, budget, pairs, set, taken, count })
    }

    pub fn text(&self) -> String {
        let Together { device, budget, pairs, set, taken, count } = self;
        let mut text = format!("on {device} ({}):\n", budget_text(*budget));
        let taken = size(taken.get());
        match set.len() {
            0 => text.push_str("  no model fits\n"),
            1 if *count == 1 => text.push_str(&format!("  {} fits ({taken})\n", set.join(""))),
            all if all == *count => {
                text.push_str(&format!("  all models fit together: {} ({taken})\n", set.join(", ")))
            }
            _ => text.push_str(&format!("  side by side: {} ({taken})\n", set.join(", "))),
        }
        let apart = pairs.iter().filter(|(_, _, bytes)| bytes > budget);
        for (one, other, bytes) in apart {
            text.push_str(&format!("  {one} and {other} take turns: together {}\n", size(bytes.get())));
        }
        text
    }

    pub fn json(&self) -> Value {
        let pair = |(one, other, bytes): &(String, String, Bytes)| json!({ "models": [one, other], "bytes": bytes.get(), "fits": *bytes <= self.budget });
        json!({
            "device": self.device,
            "budget_bytes": self.budget.get(),
            "pairs": self.pairs.iter().map(pair).collect::<Vec<_>>(),
            "side_by_side": { "models": self.set, "bytes": self.taken.get() },
        })
    }
}
