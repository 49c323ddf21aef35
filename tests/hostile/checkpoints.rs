//! States changed at random: either they are refused, or the scheduler goes on from them.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use serde_json::Value;
use windtunnel_config::{Override, ScenarioFile};
use windtunnel_core::{
    Attempt, Bytes, Checkpoint, Class, DeviceId, Effect, Effects, ExitCause, GrantFailure, Input, InstanceId, JobId,
    JobKind, LabelId, LoadFailure, Measured, ModelId, Needs, PressureLevel, ProcessMemory, Reconfiguration, Request,
    Scheduler, Sent, Snapshot, Span, Submission, Time, Wanted,
};
use windtunnel_reports::{
    Recorder,
    journal::{End, Header},
};
use windtunnel_sim::{Control, Setup};

use crate::{dice::Dice, hunt::Hunt, tree};

/// Worlds with memory, families, batches, guard, turns, faults and every routing and order.
const WORLDS: [(&str, &[&str]); 14] = [
    ("mixed-load-16gb", &["run.horizon=60s"]),
    ("family", &[]),
    ("family-interactive", &[]),
    ("family-background", &[]),
    ("guard-parallel-and-share", &["run.horizon=60s"]),
    ("guard-share", &[]),
    ("batch-turn", &["run.horizon=200s"]),
    ("batch-hold", &[]),
    ("routing", &["policy.routing=join_shortest"]),
    ("edf-against-fifo", &["run.horizon=20s", "policy.classes.interactive.order=edf"]),
    ("learned-prediction", &[]),
    ("adaptive-admission", &[]),
    ("crash", &[]),
    ("breaker", &[]),
];
/// States kept of each world.
const STATES: usize = 8;
/// Inputs that a state has to bear once it is accepted.
const INPUTS: usize = 60;

/// Keeps states as they are written into journals.
#[derive(Default)]
struct States(Vec<Value>);

impl Recorder for States {
    fn begin(&mut self, _header: &Header) -> io::Result<()> {
        Ok(())
    }

    fn step(&mut self, _t: Time, _input: &Input, _effects: &Effects) -> io::Result<()> {
        Ok(())
    }

    fn checkpoint(&mut self, _t: Time, state: &Checkpoint) -> io::Result<()> {
        self.0.push(serde_json::to_value(state)?);
        Ok(())
    }

    fn end(&mut self, _end: &End) -> io::Result<()> {
        Ok(())
    }
}

/// States of a world while it is busy.
fn states_of(world: &str, settings: &[&str]) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("scenarios/{world}.toml"));
    let file = ScenarioFile::load(&path).unwrap_or_else(|wrong| panic!("{wrong}"));
    let settings = settings.iter().map(|setting| Override::parse(setting).expect("a setting"));
    let scenario = file.resolve(&settings.collect::<Vec<_>>()).unwrap_or_else(|wrong| panic!("{world}: {wrong}"));
    let setup = Setup::new(scenario).expect("it can be simulated").with_checkpoints(Span::from_millis(50));
    let mut states = States::default();
    setup.run(0, &mut states, &Control::new()).expect("it runs");
    let jobs = |state: &Value| state["jobs"].as_array().map_or(0, Vec::len);
    let mut busy: Vec<Value> = states.0.into_iter().filter(|state| (1..200).contains(&jobs(state))).collect();
    assert!(!busy.is_empty(), "{world} is never busy");
    let step = busy.len().div_ceil(STATES);
    busy = busy.into_iter().step_by(step).collect();
    busy
}

fn states() -> Vec<Value> {
    WORLDS.iter().flat_map(|(world, settings)| states_of(world, settings)).collect()
}

#[test]
fn every_recorded_state_is_taken_up() {
    for state in states() {
        let checkpoint: Checkpoint = serde_json::from_value(state.clone()).expect("a state");
        let scheduler = Scheduler::restore(checkpoint).unwrap_or_else(|wrong| panic!("{wrong}: {state}"));
        assert_eq!(serde_json::to_value(scheduler.checkpoint()).expect("a state"), state);
    }
}

#[test]
fn a_changed_state_is_refused_or_gone_on_from() {
    let states = states();
    let make = move |dice: &mut Dice| {
        let mut state = dice.pick(&states).clone();
        for _ in 0..1 + dice.roll(3) {
            tree::change(&mut state, dice);
        }
        serde_json::to_vec(&state).expect("JSON")
    };
    let accepted = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&accepted);
    let read = move |text: &[u8]| {
        count.fetch_add(u64::from(take_up(text)?), Relaxed);
        Ok(())
    };
    let cases = Hunt { name: "checkpoint", usual: 1_500, make, read }.run();
    let accepted = accepted.load(Relaxed);
    assert!(20 * accepted >= cases, "hardly any state is gone on from: {accepted} of {cases}");
}

/// Restores a state and feeds it whatever its own text and the time suggest; whether it was accepted.
fn take_up(text: &[u8]) -> Result<bool, String> {
    let state: Value = serde_json::from_slice(text).map_err(|wrong| wrong.to_string())?;
    let Ok(checkpoint) = serde_json::from_slice::<Checkpoint>(text) else { return Ok(false) };
    let scheduler = match Scheduler::restore(checkpoint) {
        Ok(scheduler) => scheduler,
        Err(wrong) if wrong.place.is_empty() => return Err(format!("no place is named: {wrong}")),
        Err(_) => return Ok(false),
    };
    let next_job = state["next_job"].as_u64().unwrap_or(0);
    let dice = Dice::of(text.len() as u64 ^ next_job);
    Life { scheduler, dice, next_job, attempts: under_way(&state), effects: Effects::new() }.live();
    Ok(true)
}

/// Attempts under way in a state, with their instances.
fn under_way(state: &Value) -> Vec<(Attempt, InstanceId)> {
    fn attempts(value: &Value, instance: InstanceId, found: &mut Vec<(Attempt, InstanceId)>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("attempt").and_then(Value::as_u64).map(|one| (Attempt(one), instance)));
                map.values().for_each(|value| attempts(value, instance, found));
            }
            Value::Array(list) => list.iter().for_each(|value| attempts(value, instance, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    for entry in state["instances"]["living"].as_array().into_iter().flatten() {
        let id = entry[0].as_u64().and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
        attempts(&entry[1]["slot"], InstanceId(id), &mut found);
    }
    found
}

/// A scheduler that goes on, and what is known of it from outside.
struct Life {
    scheduler: Scheduler,
    dice: Dice,
    next_job: u64,
    attempts: Vec<(Attempt, InstanceId)>,
    effects: Effects,
}

impl Life {
    fn live(mut self) {
        for _ in 0..INPUTS {
            let now = self.scheduler.now();
            let due =
                self.scheduler.wake_at().filter(|_| self.dice.one_in(3)).map(|due| (due.max(now), Input::TimerDue));
            let later = now.after(Span::from_millis(self.dice.roll(400) as u64));
            let (t, input) = due.unwrap_or_else(|| (later, self.input()));
            self.scheduler.step(t, &input, &mut self.effects);
            for effect in &self.effects {
                match effect {
                    Effect::Grant(grant) => self.attempts.push((grant.attempt, grant.instance)),
                    Effect::Load { attempt, instance, .. } | Effect::Stop { attempt, instance, .. } => {
                        self.attempts.push((*attempt, *instance));
                    }
                    Effect::Abort { .. }
                    | Effect::Snapshot { .. }
                    | Effect::Learned(_)
                    | Effect::Finish(_)
                    | Effect::Note(_) => {}
                }
            }
        }
        // A state that lies may break a rule later, but looking must not panic.
        let _ = self.scheduler.check();
        let _ = self.scheduler.view();
    }

    fn input(&mut self) -> Input {
        let at = self.dice.roll(self.attempts.len());
        let known = self.attempts.get(at).copied();
        let (attempt, instance) = known.unwrap_or((Attempt(0), InstanceId(0)));
        let device = DeviceId(self.dice.roll(3) as u32);
        let (output_tokens, first_token) = (self.dice.roll(300) as u32, None);
        let measured = Measured { first_token, output_tokens };
        match self.dice.roll(22) {
            0..=5 => self.submission(),
            6..=9 => Input::GrantFinished { attempt, instance, measured },
            10 | 11 => {
                let causes = [GrantFailure::Crashed, GrantFailure::Rejected, GrantFailure::Disconnected];
                let cause = *self.dice.pick(&causes);
                Input::GrantFailed { attempt, instance, cause, sent: Sent::Nothing }
            }
            12 | 13 => Input::LoadFinished {
                attempt,
                instance,
                footprint: Some(Bytes::from_mib(self.dice.roll(20_000) as u64)),
            },
            14 => Input::LoadFailed { attempt, instance, cause: LoadFailure::OutOfMemory },
            15 => Input::StopFinished { attempt, instance },
            16 => Input::Exited { instance, cause: ExitCause::Signal(9) },
            17 => Input::Cancelled { job: JobId(self.next_job.saturating_sub(1 + self.dice.roll(20) as u64)) },
            18 => self.snapshot(device, instance),
            19 => Input::Pressure { device, level: *self.dice.pick(&[PressureLevel::Normal, PressureLevel::Critical]) },
            20 => match self.dice.roll(3) {
                0 => Input::Operator(Request::Unload { instance }),
                1 => Input::Operator(Request::Load { model: ModelId(self.dice.roll(4) as u32), device }),
                _ => Input::OutOfMemory { device, instance },
            },
            _ => Input::Reconfigured(Box::new(Reconfiguration {
                configuration: self.scheduler.configuration().clone(),
                removed: if self.dice.one_in(4) { vec![ModelId(0)] } else { Vec::new() },
                estimates: Vec::new(),
            })),
        }
    }

    fn snapshot(&mut self, device: DeviceId, instance: InstanceId) -> Input {
        let used = Some(Bytes::from_mib(self.dice.roll(30_000) as u64));
        let processes = vec![ProcessMemory { instance, used }];
        Input::Snapshot(Snapshot { device, total: Some(Bytes::from_mib(24_000)), used, processes })
    }

    fn submission(&mut self) -> Input {
        let job = JobId(self.next_job);
        self.next_job = self.next_job.wrapping_add(1);
        let configuration = self.scheduler.configuration();
        let (models, families) = (configuration.models.len(), configuration.families.len());
        let wanted = match families {
            1.. if self.dice.one_in(2) => Wanted::Family(windtunnel_core::FamilyId(self.dice.roll(families) as u32)),
            _ => Wanted::Model(ModelId(self.dice.roll(models) as u32)),
        };
        let deadline = self.dice.one_in(2).then(|| Span::from_millis(self.dice.roll(9_000) as u64));
        Input::Submitted {
            job,
            submission: Submission {
                label: LabelId(0),
                wanted,
                class: Some(*self.dice.pick(&Class::ALL)),
                kind: *self.dice.pick(&[JobKind::Embedding, JobKind::Chat]),
                inputs: 1 + self.dice.roll(90) as u32,
                prompt_tokens: self.dice.roll(2_000) as u32,
                max_tokens: None,
                deadline,
                max_wait: self.dice.one_in(3).then(|| Span::from_millis(900)),
                drop_hopeless: self.dice.one_in(3).then_some(true),
                quality: None,
                needs: Needs::NONE,
                body: Bytes::new(self.dice.roll(9_000) as u64),
                client: None,
                affinity: None,
            },
        }
    }
}
