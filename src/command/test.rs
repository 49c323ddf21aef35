//! `windtunnel test`: scenarios with expectations, in parallel. A failed one keeps its journal.

mod claims;
mod files;
mod junit;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rayon::prelude::*;
use windtunnel_config::{Claim, Expectation, Override, Scenario, ScenarioFile};
use windtunnel_reports::{Report, RunMetrics, Tee, journal::EventCheck};
use windtunnel_sim::{Control, Setup};

use crate::{
    args::{Format, TestArgs},
    failure::Failure,
    output::print,
    session::Session,
};

/// One setting of a scenario and what is expected of it.
struct Case {
    file: PathBuf,
    /// Which of the file's settings it is, from 0.
    number: usize,
    /// How the setting differs from the file.
    setting: Vec<String>,
    scenario: Scenario,
}

/// What became of a case.
struct Verdict {
    file: PathBuf,
    name: String,
    title: String,
    checked: usize,
    /// Why it failed; empty: it passed.
    failures: Vec<String>,
    /// The journal of a failed case.
    journal: Option<PathBuf>,
    took: Duration,
}

pub fn run(args: &TestArgs, session: &Session) -> Result<(), Failure> {
    let cases = cases(args, session)?;
    let progress = session.progress("testing");
    let judged: Vec<Option<Verdict>> =
        cases.par_iter().map(|case| judge(case, &args.keep, &session.control)).collect::<Result<_, Failure>>()?;
    drop(progress);
    let verdicts: Vec<Verdict> = judged.into_iter().flatten().collect();
    if let Some(path) = &args.junit {
        junit::write(path, &verdicts)?;
    }
    print(&match session.format {
        Format::Table => table(&verdicts),
        Format::Json => format!("{}\n", json(&verdicts)),
        Format::Csv => csv(&verdicts),
    })?;
    session.unless_interrupted(&format!("{} of {} scenarios were tested", verdicts.len(), cases.len()))?;
    if verdicts.iter().all(Verdict::passed) { Ok(()) } else { Err(Failure::Unmet) }
}

/// Every case of every file; all files are read before anything runs, and everything that is wrong with them is said.
fn cases(args: &TestArgs, session: &Session) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    let mut wrong = Vec::new();
    for file in files::scenarios(&args.paths)? {
        match cases_of(&file, session) {
            Ok(found) => cases.extend(found),
            Err(failure) => wrong.push(failure.to_string()),
        }
    }
    if wrong.is_empty() { Ok(cases) } else { Err(Failure::BadInput(wrong.join("\n"))) }
}

fn cases_of(path: &Path, session: &Session) -> Result<Vec<Case>, Failure> {
    let overrides = &session.overrides;
    let file = session.load(path)?;
    let scenario = file.resolve(overrides)?;
    if scenario.expectations.is_empty() {
        let message = format!("{} expects nothing; add an [[expect]] or leave it out", path.display());
        return Err(Failure::BadInput(message));
    }
    let mut settings: Vec<Vec<String>> = Vec::new();
    for expectation in &scenario.expectations {
        if !settings.contains(&expectation.set) {
            settings.push(expectation.set.clone());
        }
    }
    let numbered = settings.into_iter().enumerate();
    numbered.map(|(number, setting)| case_of(path, &file, (number, setting), overrides)).collect()
}

fn case_of(
    path: &Path,
    file: &ScenarioFile,
    (number, setting): (usize, Vec<String>),
    overrides: &[Override],
) -> Result<Case, Failure> {
    let mut all = setting.iter().map(|set| Override::parse(set)).collect::<Result<Vec<_>, _>>()?;
    all.extend_from_slice(overrides);
    let mut scenario = file.resolve(&all)?;
    scenario.expectations.retain(|expectation| expectation.set == setting);
    Ok(Case { file: path.to_owned(), number, setting, scenario })
}

/// Runs a case and holds what came out against what is expected; `None` if it was interrupted.
fn judge(case: &Case, keep: &Path, control: &Control) -> Result<Option<Verdict>, Failure> {
    let started = Instant::now();
    let setup = Setup::new(case.scenario.clone())
        .map_err(|wrong| Failure::BadInput(format!("{}: {wrong}", case.file.display())))?;
    let (sequences, nevers) = claims::events(&case.scenario.expectations);
    let make = |_| Ok(Tee(RunMetrics::new(), EventCheck::new(sequences.clone(), nevers.clone())));
    let finish = |Tee(metrics, check): Tee<RunMetrics, EventCheck>| (metrics.into_run(), check.outcome());
    let replications = case.scenario.run.replications;
    let done = setup.recorded(0..replications, make, finish, control)?;
    if done.len() < replications as usize {
        return Ok(None);
    }
    let (runs, outcomes): (Vec<_>, Vec<_>) = done.into_iter().unzip();
    let mut events = windtunnel_reports::journal::EventOutcome::default();
    outcomes.into_iter().for_each(|outcome| events.merge(outcome));
    let report = Report::from_runs(runs);
    let failures = claims::failures(&case.scenario.expectations, &report, &events);
    let mut verdict = Verdict {
        file: case.file.clone(),
        name: case.name(),
        title: case.scenario.title.clone(),
        checked: case.scenario.expectations.len(),
        failures,
        journal: None,
        took: started.elapsed(),
    };
    if !verdict.passed() {
        verdict.journal = Some(keep_journal(case, keep, control)?);
    }
    Ok(Some(verdict))
}

/// Runs the first replication of a failed case once more and writes its journal.
fn keep_journal(case: &Case, keep: &Path, control: &Control) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(keep).map_err(|wrong| Failure::file("create folder", keep, &wrong))?;
    let number = if case.number == 0 { String::new() } else { format!("-{}", case.number) };
    let path = keep.join(format!("{}{number}.jsonl", case.stem()));
    let mut scenario = case.scenario.clone();
    scenario.run.replications = 1;
    Setup::new(scenario)?.run_all(Some(&path), control)?;
    Ok(path)
}

impl Case {
    fn stem(&self) -> String {
        self.file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
    }

    fn name(&self) -> String {
        self.setting.iter().fold(self.stem(), |name, set| format!("{name} {set}"))
    }
}

impl Verdict {
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

fn table(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for verdict in verdicts {
        let word = if verdict.passed() { "\u{1b}[32mok    \u{1b}[0m" } else { "\u{1b}[1;31mFAILED\u{1b}[0m" };
        text.push_str(&format!("{word} {}: {} ({} expectations)\n", verdict.name, verdict.title, verdict.checked));
        for failure in &verdict.failures {
            text.push_str(&format!("       {failure}\n"));
        }
        if let Some(journal) = &verdict.journal {
            text.push_str(&format!("       journal: {}\n", journal.display()));
        }
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.passed()).count();
    text.push_str(&format!("{} passed, {failed} failed\n", verdicts.len() - failed));
    text
}

fn json(verdicts: &[Verdict]) -> serde_json::Value {
    let tests: Vec<_> = verdicts
        .iter()
        .map(|verdict| {
            serde_json::json!({
                "name": verdict.name,
                "file": verdict.file,
                "title": verdict.title,
                "passed": verdict.passed(),
                "expectations": verdict.checked,
                "failures": verdict.failures,
                "journal": verdict.journal,
            })
        })
        .collect();
    let failed = verdicts.iter().filter(|verdict| !verdict.passed()).count();
    serde_json::json!({ "passed": verdicts.len() - failed, "failed": failed, "tests": tests })
}

fn csv(verdicts: &[Verdict]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut text = String::from("name,passed,expectations,failures\n");
    for verdict in verdicts {
        let failures = quoted(&verdict.failures.join("; "));
        text.push_str(&format!("{},{},{},{failures}\n", quoted(&verdict.name), verdict.passed(), verdict.checked));
    }
    text
}

/// The expectations of one kind with their places in the list.
fn kinds<'a, T>(
    expectations: &'a [Expectation],
    pick: impl Fn(&'a Claim) -> Option<T> + 'a,
) -> impl Iterator<Item = (&'a Expectation, T)> {
    expectations.iter().filter_map(move |one| pick(&one.claim).map(|claim| (one, claim)))
}
