//! Who got nothing, for how long and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windtunnel_core::{DeviceId, ModelId, Span, Wanted};

use super::Figure;
use crate::{
    journal::obstacle,
    metrics::{self, RunFigures},
};

/// The patience that stands in where the guard is off.
const USUAL: Span = Span::from_secs(3);

/// Jobs of a lower class that made no progress for longer than `background_max_starvation`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Starved {
    /// The model or family they asked for.
    pub wanted: String,
    /// Their class.
    pub class: String,
    /// The longest time over all replications, in seconds.
    pub longest: f64,
    /// What the scheduler said last when that time ended; null: nothing.
    pub why: Option<String>,
}

impl Starved {
    pub(super) fn of(runs: &[RunFigures]) -> Vec<Starved> {
        let mut worst: Vec<(&RunFigures, metrics::Starved)> = Vec::new();
        for (run, &one) in runs.iter().flat_map(|run| run.starved.iter().map(move |one| (run, one))) {
            match worst.iter_mut().find(|(_, known)| (known.wanted, known.class) == (one.wanted, one.class)) {
                Some(known) if known.1.longest < one.longest => *known = (run, one),
                Some(_) => {}
                None => worst.push((run, one)),
            }
        }
        worst.retain(|(run, one)| one.longest > if run.patience.is_zero() { USUAL } else { run.patience });
        worst.sort_by_key(|(_, one)| std::cmp::Reverse(one.longest));
        worst.into_iter().map(|(run, one)| named(run, one)).collect()
    }

    /// As a line of a report.
    pub(super) fn in_words(&self) -> String {
        let Starved { wanted, class, longest, why } = self;
        let why = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        format!("{class} work on {wanted} made no progress for up to {longest:.1} s{why}")
    }
}

fn named(run: &RunFigures, one: metrics::Starved) -> Starved {
    let device = |id: DeviceId| run.header.devices.get(id.index()).map_or("a device", |device| device.name.as_str());
    let model = |id: ModelId| run.header.models.get(id.index()).map(|model| model.name.clone());
    let wanted = match one.wanted {
        Wanted::Model(id) => model(id),
        Wanted::Family(id) => run.families.get(id.index()).cloned(),
    };
    Starved {
        wanted: wanted.unwrap_or_else(|| "?".to_owned()),
        class: one.class.name().to_owned(),
        longest: one.longest.as_nanos() as f64 / 1e9,
        why: one.why.map(|reason| obstacle(reason, device)),
    }
}

/// The longest that lower work which asked for a model made no progress; `None`: nobody asked.
pub(super) fn longest(runs: &[RunFigures], model: usize) -> Option<Figure> {
    let own = |one: &&metrics::Starved| matches!(one.wanted, Wanted::Model(id) if id.index() == model);
    let longest = runs.iter().flat_map(|run| run.starved.iter().filter(own).map(|one| one.longest)).max()?;
    Some(Figure::bare(longest.as_nanos() as f64 / 1e9, runs.len() as u32))
}
