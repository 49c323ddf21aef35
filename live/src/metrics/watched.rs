//! The latest events as readable lines, for whoever asks. Lines cost more than the steps they tell of, so the steps are kept,
//! and are put into words when somebody asks.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use windtunnel_core::{Effect, Effects, Input, Time};
use windtunnel_reports::{
    Recorder,
    journal::{End, EventLine, Header, Lines},
};

/// Steps that are kept.
const KEPT: usize = 500;

/// Where people ask.
#[derive(Clone, Debug)]
pub struct Seen(Arc<Mutex<Kept>>);

/// Keeps the latest steps.
#[derive(Debug)]
pub struct Watched(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// What was known of names and jobs before the first step that is kept.
    before: Lines,
    /// The number of the step after the last.
    next: u64,
    steps: VecDeque<Arc<Step>>,
}

/// A step that there may be something to tell of.
#[derive(Debug)]
struct Step {
    t: Time,
    input: Input,
    effects: Effects,
}

impl Watched {
    /// A keeper of steps, and where to ask for them.
    pub fn new() -> (Watched, Seen) {
        let kept = Arc::new(Mutex::new(Kept { before: Lines::only(Vec::new()), ..Kept::default() }));
        (Watched(Arc::clone(&kept)), Seen(kept))
    }
}

/// Whether there may be a line about a step. What most steps are about says nothing by itself.
fn is_told(input: &Input, effects: &Effects) -> bool {
    let quiet = match input {
        Input::Cancelled { .. }
        | Input::GrantFinished { .. }
        | Input::GrantFailed { .. }
        | Input::Snapshot(_)
        | Input::TimerDue => true,
        Input::Started(_)
        | Input::Reconfigured(_)
        | Input::Submitted { .. }
        | Input::LoadFinished { .. }
        | Input::LoadFailed { .. }
        | Input::Exited { .. }
        | Input::StopFinished { .. }
        | Input::SnapshotFailed { .. }
        | Input::Pressure { .. }
        | Input::OutOfMemory { .. }
        | Input::Operator(_) => false,
    };
    !quiet || effects.iter().any(|effect| !matches!(effect, Effect::Snapshot { .. } | Effect::Learned(_)))
}

impl Kept {
    fn push(&mut self, step: Arc<Step>) {
        self.next += 1;
        self.steps.push_back(step);
        if self.steps.len() > KEPT
            && let Some(oldest) = self.steps.pop_front()
        {
            oldest.tell(&mut self.before, &mut |_, _| {});
        }
    }
}

impl Step {
    fn tell(&self, lines: &mut Lines, out: &mut dyn FnMut(&Lines, EventLine)) {
        let mut made = Vec::new();
        lines.input(self.t, &self.input, &mut |line| made.push(line));
        for effect in &self.effects {
            let steps = if let Effect::Grant(grant) = effect { self.effects.steps(grant.steps) } else { &[] };
            lines.effect(self.t, effect, steps, &mut |line| made.push(line));
        }
        made.into_iter().for_each(|line| out(lines, line));
    }
}

impl Seen {
    /// The lines of the steps from number `from` on that are still kept, and the number of the next step.
    pub fn since(&self, from: u64) -> (u64, Vec<String>) {
        // Words are found after the lock is given back: the scheduler's thread must not wait for them.
        let (next, mut lines, steps) = {
            let kept = locked(&self.0);
            (kept.next, kept.before.clone().with_all_words(), kept.steps.clone())
        };
        let mut said = Vec::new();
        for (number, step) in (next - steps.len() as u64..).zip(&steps) {
            step.tell(&mut lines, &mut |lines, line| {
                if number >= from {
                    said.push(lines.print(&line));
                }
            });
        }
        (next, said)
    }
}

impl Recorder for Watched {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        locked(&self.0).before.begin(header, &mut |_| {});
        Ok(())
    }

    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        if is_told(input, effects) {
            let step = Arc::new(Step { t, input: input.clone(), effects: effects.clone() });
            locked(&self.0).push(step);
        }
        Ok(())
    }

    fn reads_reasons(&self) -> bool {
        true
    }

    fn end(&mut self, _end: &End) -> io::Result<()> {
        Ok(())
    }
}

fn locked(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use windtunnel_core::DeviceId;

    use super::*;

    fn step(watched: &mut Watched, second: u64, input: Input) {
        watched.step(Time::from_nanos(second * 1_000_000_000), &input, &Effects::new()).unwrap();
    }

    #[test]
    fn the_latest_steps_are_there_at_the_first_question_and_long_after_the_last() {
        let (mut watched, seen) = Watched::new();
        for second in 0..3 {
            step(&mut watched, second, Input::SnapshotFailed { device: DeviceId(0) });
            step(&mut watched, second, Input::TimerDue);
        }
        let (next, lines) = seen.since(0);
        assert_eq!((next, lines.len()), (3, 3), "{lines:?}");
        assert!(lines[2].contains("2.000000s note      snapshot failed"), "{lines:?}");
        assert_eq!(seen.since(2).1, lines[2..], "what was asked for before is not told again");
        for second in 3..2000 {
            step(&mut watched, second, Input::SnapshotFailed { device: DeviceId(0) });
        }
        let (next, lines) = seen.since(3);
        assert_eq!((next, lines.len()), (2000, KEPT));
        assert!(lines[0].contains("1500.000000s"), "{}", lines[0]);
    }
}
