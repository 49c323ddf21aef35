//! Journals: read record by record, reported, told as events, replayed, and gathered to be played again.

use std::{fs, num::NonZero, path::PathBuf};

use serde_json::Value;
use windtunnel_config::{Override, ScenarioFile};
use windtunnel_core::Span;
use windtunnel_replay::{Rules, Start, replay};
use windtunnel_reports::{
    Report,
    journal::{JournalError, JournalWriter, Lines, Records, read_runs},
    table::{report_csv, report_table},
};
use windtunnel_sim::{Control, Setup, recorded::Reader};

use crate::{dice::Dice, hunt::Hunt, text, tree};

/// Worlds whose journals hold every kind of record.
const WORLDS: [&str; 5] = ["family", "crash", "mixed-load-16gb", "learned-prediction", "pressure-critical"];
/// Lines of a journal in a case.
const MOST_LINES: usize = 150;

fn recorded(world: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("scenarios/{world}.toml"));
    let file = ScenarioFile::load(&path).unwrap_or_else(|wrong| panic!("{wrong}"));
    let short = ["run.horizon=15s", "run.warmup=0s"].map(|setting| Override::parse(setting).expect("a setting"));
    let scenario = file.resolve(&short).unwrap_or_else(|wrong| panic!("{world}: {wrong}"));
    let setup = Setup::new(scenario).expect("it can be simulated").with_checkpoints(Span::from_secs(2));
    let mut journal = JournalWriter::new(Vec::new());
    setup.run(0, &mut journal, &Control::new()).expect("it runs");
    journal.into_inner().expect("it is written")
}

/// Journals as lists of lines.
fn corpus() -> Vec<Vec<Vec<u8>>> {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = fs::read_dir(golden).expect("the folder is there").filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|kind| kind == "jsonl")).collect();
    files.sort();
    assert!(files.len() > 2, "{files:?}");
    let golden = files.iter().map(|path| fs::read(path).expect("it can be read"));
    let lines = |text: Vec<u8>| text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    golden.chain(WORLDS.iter().map(|world| recorded(world))).map(lines).collect()
}

#[test]
fn a_changed_journal_is_read_or_refused_with_its_line() {
    let journals = corpus();
    let make = move |dice: &mut Dice| {
        let journal = dice.pick(&journals);
        let most = 2 + dice.roll(MOST_LINES);
        let mut lines: Vec<Vec<u8>> = journal.iter().take(most).cloned().collect();
        if dice.one_in(2) {
            lines.extend(journal.last().cloned());
        }
        let changes = dice.roll(4);
        for _ in 0..changes {
            // The first lines decide most.
            let at = if dice.one_in(3) { dice.roll(2) } else { dice.roll(lines.len()) };
            change_line(&mut lines[at], dice);
        }
        let mut text = lines.concat();
        if changes == 0 || dice.one_in(4) {
            text::change(&mut text, &dice.pick(&journals).concat(), dice);
        }
        text
    };
    Hunt { name: "journal", usual: 500, make, read }.run();
}

/// Changes what a line says and leaves it JSON.
fn change_line(line: &mut Vec<u8>, dice: &mut Dice) {
    let Ok(mut value) = serde_json::from_slice::<Value>(line) else { return };
    tree::change(&mut value, dice);
    *line = serde_json::to_vec(&value).expect("JSON");
    line.push(b'\n');
}

fn read(journal: &[u8]) -> Result<(), String> {
    let mut reader = Reader::new();
    let (mut lines, mut told) = (Lines::new(), Vec::new());
    let mut records = Records::new(journal);
    for record in records.by_ref() {
        match record {
            Ok(record) => {
                lines.record(&record, &mut |line| told.push(line));
                for line in told.drain(..) {
                    let _ = lines.print(&line);
                }
                reader.record(record);
            }
            Err(wrong) => placed(&wrong)?,
        }
    }
    let _ = reader.finish();
    report(journal)?;
    for start in [Start::Beginning, Start::Checkpoint(NonZero::<u32>::MIN)] {
        match replay([journal], Rules { start, ..Rules::default() }) {
            Ok(outcome) => drop(outcome.to_string()),
            Err(wrong) => named(&wrong.to_string())?,
        }
    }
    Ok(())
}

fn report(journal: &[u8]) -> Result<(), String> {
    let mut figures = Vec::new();
    for run in read_runs(journal) {
        match run {
            Ok(run) => figures.push(run),
            Err(wrong) => return placed(&wrong),
        }
    }
    if !figures.is_empty() {
        let report = Report::from_runs(figures);
        drop((report.to_json(), report_table(&report), report_csv(&report)));
    }
    Ok(())
}

fn placed(wrong: &JournalError) -> Result<(), String> {
    named(&wrong.to_string())
}

fn named(shown: &str) -> Result<(), String> {
    if shown.contains("line ") { Ok(()) } else { Err(format!("an error without a line: {shown}")) }
}
