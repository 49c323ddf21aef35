//! A journal is a recording: its inputs, fed into a fresh scheduler or one restored from a checkpoint in it, give its effects.

use std::path::Path;

use windtunnel_config::ScenarioFile;
use windtunnel_core::{Checkpoint, Effect, Effects, GrantedStep, Input, Scheduler, Span, Time};
use windtunnel_reports::journal::{JournalWriter, Record, Records};
use windtunnel_sim::{Control, Setup};

const SCENARIO: &str = r#"
title = "three classes, two cards, clients that give up"
[run]
horizon = "40s"
replications = 1
[[devices]]
name = "gpu"
count = 2
[models.chat]
slots = 2
prediction = "learned"
service = { kind = "slots", prefill_fixed = "5ms", prefill_per_token = "0.1ms", decode_alpha = "8ms", decode_beta = "1ms" }
[models.embed]
batch = { max = 32, wait = "5ms" }
service = { kind = "batch", alpha = "2ms", beta = "1ms", noise = "exponential" }
[policy.classes.interactive]
order = "edf"
admission = "deadline"
[[workload]]
name = "people"
class = "interactive"
model = "chat"
kind = "chat"
deadline = "3s"
patience = { exponential = "2s" }
prompt_tokens = { lognormal = { median = 200, cv = 1.0 } }
output_tokens = { exponential = 40 }
arrivals = { process = "poisson", rate = 4 }
[[workload]]
name = "indexer"
class = "background"
model = "embed"
kind = "embedding"
inputs = 100
max_wait = "4s"
arrivals = { process = "clients", count = 3, think = { exponential = "1s" } }
[[workload]]
name = "night"
class = "batch"
model = "embed"
kind = "embedding"
arrivals = { process = "poisson", rate = 5 }
"#;

fn journal() -> Vec<u8> {
    let file = ScenarioFile::parse(SCENARIO, Path::new("replay.toml")).expect("the scenario is right");
    let scenario = file.resolve(&[]).expect("the scenario is right");
    let setup = Setup::new(scenario).expect("it can be simulated").with_checkpoints(Span::from_secs(7));
    let mut journal = JournalWriter::new(Vec::new());
    setup.run(0, &mut journal, &Control::new()).expect("it runs");
    journal.into_inner().expect("it is written")
}

/// A scheduler that is fed a journal's inputs, and what it still owes of the effects.
struct Replay {
    scheduler: Scheduler,
    owed: Vec<Effect<Vec<GrantedStep>>>,
}

impl Replay {
    fn input(&mut self, t: Time, input: &Input) {
        assert!(self.owed.is_empty(), "at {t} the journal lacks {:?}", self.owed);
        let mut effects = Effects::new();
        self.scheduler.step(t, input, &mut effects);
        self.owed = effects.iter().map(|effect| effect.map_steps(|range| effects.steps(range).to_vec())).collect();
        self.owed.reverse();
    }

    fn effect(&mut self, t: Time, effect: &Effect<Vec<GrantedStep>>) {
        assert_eq!(self.owed.pop().as_ref(), Some(effect), "at {t}");
    }
}

/// Replays from the `start`-th checkpoint, 0 for the beginning; gives the number of inputs.
fn replay(journal: &[u8], start: usize) -> usize {
    let (mut seen, mut inputs) = (0, 0);
    let mut replay = (start == 0).then(|| Replay { scheduler: Scheduler::new(), owed: Vec::new() });
    for record in Records::new(journal) {
        match (record.expect("the journal is whole"), &mut replay) {
            (Record::Input { t, input }, Some(replay)) => {
                inputs += 1;
                replay.input(t, &input);
            }
            (Record::Effect { t, effect }, Some(replay)) => replay.effect(t, &effect),
            (Record::Checkpoint { state, .. }, None) => {
                seen += 1;
                if seen == start {
                    let state: Checkpoint = serde_json::from_value(state).expect("a checkpoint reads back");
                    replay = Some(Replay { scheduler: Scheduler::restore(state), owed: Vec::new() });
                }
            }
            _other_records => {}
        }
    }
    inputs
}

#[test]
fn inputs_of_a_journal_give_its_effects_from_the_start_and_from_any_checkpoint() {
    let journal = journal();
    let all = replay(&journal, 0);
    let later: Vec<usize> = (1..=5).map(|start| replay(&journal, start)).collect();
    assert!(all > 500, "{all} inputs are few");
    assert!(later.iter().all(|&inputs| inputs > 50 && inputs < all), "{later:?} of {all}");
    assert_eq!(replay(&journal, 6), 0, "forty seconds hold five checkpoints");
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    assert_eq!(journal(), journal());
}
