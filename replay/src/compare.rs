//! How a difference is found in a state, and how it is told with its context.

use std::borrow::Cow;

use serde_json::Value;
use windtunnel_core::{Checkpoint, Time};
use windtunnel_reports::journal::Record;

use crate::{
    Difference, ReplayError, Said, What,
    follower::Wanted,
    replay::{Position, Replay, Stage},
    state::first_difference,
};

impl Replay {
    pub(crate) fn compare(
        &mut self,
        line: u64,
        t: Time,
        state: &Value,
        position: Position,
    ) -> Result<Option<Box<Difference>>, ReplayError> {
        let Stage::Following(follower) = &self.stage else { return Ok(None) };
        let ours = serde_json::to_value(follower.scheduler().checkpoint());
        let ours = ours.map_err(|cause| ReplayError::Checkpoint { line, cause })?;
        let state = as_written_now(state, &ours);
        let Some((path, theirs, ours)) = first_difference(&state, &ours) else {
            self.tally.checkpoints += 1;
            return Ok(None);
        };
        let said = |value: &Value| Said { lines: Vec::new(), json: value.clone() };
        let mut hints = vec!["--no-checkpoints compares effects only".to_owned()];
        if position == Position::First {
            hints.push("if files between this one and the one before it are missing, replay it alone".to_owned());
        }
        let what = What::State { place: path.join(".") };
        let (theirs, ours) = (theirs.map(said), ours.map(said));
        Ok(Some(Box::new(Difference { hints, ..self.difference(line, t, what, theirs, ours) })))
    }

    pub(crate) fn other_effect(
        &self,
        line: u64,
        recorded: Option<(Time, Wanted)>,
        wanted: Option<(Time, Wanted)>,
    ) -> Option<Box<Difference>> {
        let what = match (&recorded, &wanted) {
            (Some(_), Some(_)) => What::Effect,
            (Some(_), None) => What::Unwanted,
            (None, _) => What::Missing,
        };
        let t = wanted.as_ref().or(recorded.as_ref()).map_or(Time::ZERO, |(t, _)| *t);
        let story = self.trail.story();
        let said = |(t, effect): (Time, Wanted)| {
            let lines = story.effect(t, &effect);
            Said { lines, json: json(&Record::Effect { t, effect }) }
        };
        let (recorded, wanted) = (recorded.map(said), wanted.map(said));
        let mut difference = self.difference(line, t, what, recorded, wanted);
        if difference.input.is_none() {
            difference.hints.push("the run begins neither with its first input nor with a checkpoint".to_owned());
        }
        Some(Box::new(difference))
    }

    fn difference(&self, line: u64, t: Time, what: What, journal: Option<Said>, replay: Option<Said>) -> Difference {
        let last = match &self.stage {
            Stage::Following(follower) => follower.last(),
            Stage::Closed | Stage::Lost(_) => None,
        };
        let input = last.map(|told| (told.line, json(&Record::Input { t: told.t, input: told.input.clone() })));
        let (file, run, before) = (self.file.clone(), self.run.clone(), self.trail.story().before);
        Difference { file, line, run, t, what, before, input, journal, replay, hints: Vec::new() }
    }
}

/// A recorded state in the form in which states are written now: once its instances stood in a list, in which those that were
/// gone kept their places. What their loads took was not written then; that is believed of ours.
fn as_written_now<'a>(state: &'a Value, ours: &Value) -> Cow<'a, Value> {
    if !state.get("instances").is_some_and(Value::is_array) {
        return Cow::Borrowed(state);
    }
    let renewed = || serde_json::to_value(serde_json::from_value::<Checkpoint>(state.clone()).ok()?).ok();
    let Some(mut renewed) = renewed() else { return Cow::Borrowed(state) };
    let living = renewed.pointer_mut("/instances/living").and_then(Value::as_array_mut);
    for (at, entry) in living.into_iter().flatten().enumerate() {
        let loaded = ours.pointer(&format!("/instances/living/{at}/1/loaded"));
        if let (Some(instance), Some(loaded)) = (entry.pointer_mut("/1").and_then(Value::as_object_mut), loaded) {
            instance.insert("loaded".to_owned(), loaded.clone());
        }
    }
    Cow::Owned(renewed)
}

/// Records are made of what JSON can hold.
fn json(record: &Record) -> Value {
    serde_json::to_value(record).unwrap_or(Value::Null)
}
