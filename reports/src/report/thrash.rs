//! Models that were loaded again and again, and what helps.

use windtunnel_core::ModelId;

use super::Figure;
use crate::RunFigures;

/// How many loads of a model were thrashing.
pub(super) fn times(runs: &[RunFigures], model: usize) -> Figure {
    let of = |run: &RunFigures| run.thrash.iter().find(|one| one.model.index() == model).map_or(0, |one| one.times);
    let values: Vec<f64> = runs.iter().map(|run| of(run) as f64).collect();
    Figure::of_values(&values).unwrap_or(Figure::bare(0.0, 0))
}

/// A line of a report for every model that did, with the remedy.
pub(super) fn in_words(runs: &[RunFigures]) -> Vec<String> {
    let mut worst: Vec<(ModelId, u32)> = Vec::new();
    for one in runs.iter().flat_map(|run| &run.thrash) {
        match worst.iter_mut().find(|(model, _)| *model == one.model) {
            Some((_, most)) => *most = (*most).max(one.most),
            None => worst.push((one.model, one.most)),
        }
    }
    worst.sort();
    let models = runs.first().map(|run| run.header.models.as_slice()).unwrap_or_default();
    let line = |(model, most): (ModelId, u32)| {
        let name = models.get(model.index()).map_or("a model", |model| model.name.as_str());
        format!(
            "{name} thrashes: {most} loads within five minutes. Give the models more room or use smaller ones, or lengthen \
             `min_residency` (lower classes), `interactive_turn` (chats) or `hot_ttl` (chats against lower classes)"
        )
    };
    worst.into_iter().map(line).collect()
}
