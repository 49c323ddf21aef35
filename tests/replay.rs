//! A journal is a recording: its inputs, fed into a fresh scheduler or one restored from a checkpoint in it, give its effects.

use std::{num::NonZero, path::Path};

use serde_json::Value;
use windtunnel_config::ScenarioFile;
use windtunnel_core::Span;
use windtunnel_replay::{CheckpointRule, Outcome, Rules, Start, What, replay};
use windtunnel_reports::journal::JournalWriter;
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

fn replayed(journal: &[u8], rules: Rules) -> Outcome {
    replay([journal], rules).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn from_checkpoint(number: u32) -> Rules {
    Rules { start: Start::Checkpoint(NonZero::new(number).expect("they count from 1")), ..Rules::default() }
}

/// The lines of a journal with their ends.
fn lines(journal: &[u8]) -> Vec<&str> {
    std::str::from_utf8(journal).expect("journals are text").split_inclusive('\n').collect()
}

/// The places of the lines that begin so.
fn places(lines: &[&str], start: &str) -> Vec<usize> {
    (0..lines.len()).filter(|&at| lines[at].starts_with(start)).collect()
}

/// The journal with other lines in place of its own.
fn changed(journal: &[u8], change: impl Fn(usize, &str) -> String) -> Vec<u8> {
    lines(journal).into_iter().enumerate().map(|(at, line)| change(at, line)).collect::<String>().into_bytes()
}

#[test]
fn inputs_of_a_journal_give_its_effects_and_states_from_the_start_and_from_any_checkpoint() {
    let journal = journal();
    let all = replayed(&journal, Rules::default());
    assert!(all.equal && all.remarks.is_empty(), "{all} {:?}", all.remarks);
    assert!(all.tally.inputs > 500 && all.tally.effects > 900, "{all}");
    assert_eq!((all.tally.runs, all.tally.checkpoints, all.tally.inputs_left_out), (1, 5, 0));
    for number in 1..=5 {
        let later = replayed(&journal, from_checkpoint(number));
        assert!(later.equal && later.tally.inputs > 50, "{later}");
        assert_eq!(later.tally.checkpoints, u64::from(5 - number));
        assert_eq!(later.tally.inputs + later.tally.inputs_left_out, all.tally.inputs);
    }
    let none = replayed(&journal, from_checkpoint(6));
    assert_eq!((none.tally.runs, none.tally.inputs), (0, 0));
    assert!(none.remarks[0].contains("has 5 checkpoints, not 6: it is left out"), "{:?}", none.remarks);
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    assert_eq!(journal(), journal());
}

#[test]
fn a_changed_effect_is_found_and_told_with_what_led_to_it() {
    let journal = journal();
    let lines = lines(&journal);
    let grant =
        places(&lines, "{\"effect\"").into_iter().filter(|&at| lines[at].contains("\"grant\"")).nth(40).unwrap();
    let tampered = changed(&journal, |at, line| match at == grant {
        true => line.replace("\"weight\":", "\"weight\":7"),
        false => line.to_owned(),
    });
    let difference = replayed(&tampered, Rules::default()).difference.expect("it differs");
    assert_eq!((difference.line, &difference.what), (grant as u64 + 1, &What::Effect));
    let input = (0..grant).rev().find(|&at| lines[at].starts_with("{\"input\"")).unwrap();
    assert_eq!(difference.input.as_ref().map(|(line, _)| *line), Some(input as u64 + 1));
    let (theirs, ours) = (difference.journal.as_ref().unwrap(), difference.replay.as_ref().unwrap());
    assert_eq!(ours.json.to_string(), lines[grant].trim_end());
    assert!(theirs.lines[0].contains("dispatch") && theirs.lines[0].contains("batch=7"), "{:?}", theirs.lines);
    assert!(ours.lines[0].contains("dispatch") && !ours.lines[0].contains("batch=7"), "{:?}", ours.lines);
    assert!(!difference.before.is_empty(), "{difference}");
    let told = difference.to_string();
    assert!(told.starts_with(&format!("line {}: replication 0 of \"three classes", grant + 1)), "{told}");
}

#[test]
fn an_effect_too_much_and_one_too_few_are_found() {
    let journal = journal();
    let lines = lines(&journal);
    let finish = places(&lines, "{\"effect\"").into_iter().find(|&at| lines[at].contains("\"finish\"")).unwrap();
    let twice = changed(&journal, |at, line| line.repeat(1 + usize::from(at == finish)));
    let difference = replayed(&twice, Rules::default()).difference.expect("it differs");
    assert_eq!(difference.line, finish as u64 + 2);
    let gone = changed(&journal, |at, line| line.repeat(usize::from(at != finish)));
    let difference = replayed(&gone, Rules::default()).difference.expect("it differs");
    assert_eq!(difference.line, finish as u64 + 1);
    let wanted = difference.replay.expect("the scheduler wants it");
    assert_eq!(wanted.json.to_string(), lines[finish].trim_end());
}

#[test]
fn another_state_is_found_at_its_place_unless_states_are_not_compared() {
    let journal = journal();
    let lines = lines(&journal);
    let checkpoint = places(&lines, "{\"checkpoint\"")[1];
    let tampered = changed(&journal, |at, line| match at == checkpoint {
        true => line.replacen("\"next_job\":", "\"next_job\":1", 1),
        false => line.to_owned(),
    });
    let difference = replayed(&tampered, Rules::default()).difference.expect("it differs");
    assert_eq!(difference.what, What::State { place: "next_job".to_owned() });
    let passed = Rules { checkpoints: CheckpointRule::Passed, ..Rules::default() };
    assert!(replayed(&tampered, passed).equal);
}

#[test]
fn a_journal_in_which_instances_stand_in_lists_replays() {
    let journal = journal();
    let lines = lines(&journal);
    let states = places(&lines, "{\"checkpoint\"");
    let old = |damage: &str| {
        changed(&journal, |at, line| {
            if !states.contains(&at) {
                return line.to_owned();
            }
            let mut record: Value = serde_json::from_str(line).expect("a record");
            let instances = &mut record["checkpoint"]["state"]["instances"];
            let living = instances["living"].as_array().expect("a list").iter();
            *instances = living.map(|pair| pair[1].clone()).collect();
            assert_eq!(instances.as_array().map(Vec::len), Some(4), "nobody is gone here");
            instances[0]["booked"] = serde_json::from_str(damage).expect("a number");
            format!("{record}\n")
        })
    };
    let all = replayed(&old("0"), Rules::default());
    assert!(all.equal && all.tally.checkpoints == 5, "{all}");
    assert!(replayed(&old("0"), from_checkpoint(2)).equal);
    let difference = replayed(&old("1"), Rules::default()).difference.expect("it differs");
    assert_eq!(difference.what, What::State { place: "instances.living.0.1.booked".to_owned() });
}

#[test]
fn a_journal_may_break_off_anywhere() {
    let journal = journal();
    let lines = lines(&journal);
    let middle: usize = lines[..lines.len() / 2].iter().map(|line| line.len()).sum();
    for cut in [middle, middle + 1, middle + 40, journal.len() - 2] {
        let outcome = replayed(&journal[..cut], Rules::default());
        assert!(outcome.equal && outcome.tally.inputs > 100, "{outcome}");
        assert!(outcome.remarks.iter().any(|remark| remark.contains("breaks off")), "{:?}", outcome.remarks);
    }
}

#[test]
fn after_a_gap_the_replay_goes_on_from_a_checkpoint_if_there_is_one() {
    let journal = journal();
    let lines = lines(&journal);
    let checkpoints = places(&lines, "{\"checkpoint\"");
    let gap = "{\"gap\":{\"t\":0,\"lines\":20}}\n";
    let missing_from = |first: usize| {
        changed(&journal, |at, line| match at {
            at if at == first => gap.to_owned(),
            at if (first..first + 20).contains(&at) => String::new(),
            _ => line.to_owned(),
        })
    };
    let mended = replayed(&missing_from(checkpoints[0] + 10), Rules::default());
    assert!(mended.equal && mended.tally.inputs_left_out > 20, "{mended}");
    assert_eq!(mended.tally.checkpoints, 4, "one is where it goes on");
    assert!(mended.remarks[0].contains("goes on from the checkpoint of line"), "{:?}", mended.remarks);
    let lost = replayed(&missing_from(checkpoints[4] + 10), Rules::default());
    assert!(lost.equal && lost.tally.inputs_left_out > 20, "{lost}");
    assert!(lost.remarks[0].contains("no checkpoint follows"), "{:?}", lost.remarks);
}

#[test]
fn rotated_files_go_on_where_the_one_before_ends_or_begin_with_their_checkpoint() {
    let journal = journal();
    let lines = lines(&journal);
    let rotation = places(&lines, "{\"checkpoint\"")[2];
    let (first, second) = (lines[..rotation].concat(), lines[rotation..].concat());
    let both = replay([first.as_bytes(), second.as_bytes()], Rules::default()).unwrap();
    assert_eq!(both, replayed(&journal, Rules::default()));
    let alone = replayed(second.as_bytes(), Rules::default());
    assert!(alone.equal && alone.tally.runs == 1 && alone.tally.inputs > 100, "{alone}");
    let headless = lines[rotation + 1..].concat();
    let wrong = replay([headless.as_bytes()], Rules::default()).unwrap_err();
    assert_eq!(wrong.to_string(), "line 1: a journal begins with a header, found another record");
}

#[test]
fn another_version_is_said_and_replayed_all_the_same() {
    let journal = changed(&journal(), |at, line| match at {
        0 => line.replacen(&format!("\"program\":\"{}\"", env!("CARGO_PKG_VERSION")), "\"program\":\"0.0.9\"", 1),
        _ => line.to_owned(),
    });
    let outcome = replayed(&journal, Rules::default());
    assert!(outcome.equal, "{outcome}");
    assert!(outcome.remarks[0].starts_with("written by version 0.0.9, replayed by "), "{:?}", outcome.remarks);
}
