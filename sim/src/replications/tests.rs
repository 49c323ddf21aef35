use std::path::PathBuf;

use windtunnel_config::{Arrivals, Dejitter, Trace, TraceFormat};
use windtunnel_core::{Input, Span};
use windtunnel_reports::journal::Record;

use super::*;
use crate::fixtures::{Asking, Transcript, poisson, scenario, workload};

fn setup(replications: u32) -> Setup {
    let mut scenario = scenario(2).asked_by(poisson("w", 2500.0));
    scenario.run.horizon = Some(Span::from_secs(2));
    scenario.run.replications = replications;
    Setup::new(scenario).unwrap()
}

fn on_threads<T: Send>(threads: usize, task: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(task)
}

/// A place for a file that no other test uses.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("windtunnel-sim-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The replications of a journal in the order of their headers.
fn replications(journal: &[u8]) -> Vec<u32> {
    let lines = std::str::from_utf8(journal).unwrap().lines();
    let headers = lines.filter_map(|line| match serde_json::from_str(line).unwrap() {
        Record::Header(header) => Some(header.replication),
        _ => None,
    });
    headers.collect()
}

#[test]
fn the_report_and_the_journal_do_not_depend_on_the_threads() {
    let scratch = Scratch::new("threads");
    let written = |threads: usize| {
        let path = scratch.0.join(format!("{threads}.jsonl"));
        let outcome = on_threads(threads, || setup(5).run_all(Some(&path), &Control::new()).unwrap());
        assert!(outcome.is_complete());
        (outcome.report.to_json(), std::fs::read(path).unwrap())
    };
    let (one, three) = (written(1), written(3));
    assert_eq!(one.0, three.0);
    assert!(one.1 == three.1, "journals differ");
    assert_eq!(replications(&one.1), [0, 1, 2, 3, 4]);
    assert_eq!(setup(5).run_all(None, &Control::new()).unwrap().report.to_json(), one.0);
    let left: Vec<_> = std::fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn figures_come_in_the_order_of_replications_and_differ() {
    let runs = setup(1).replications(3..9, &Control::new()).unwrap();
    assert!(runs.iter().map(|run| run.header.replication).eq(3..9));
    let offered: Vec<u64> = runs.iter().map(|run| run.workload(0).offered).collect();
    assert!(offered.windows(2).any(|pair| pair[0] != pair[1]), "{offered:?}");
    assert_eq!(setup(1).replications(5..6, &Control::new()).unwrap()[0], runs[2]);
}

#[test]
fn an_interruption_keeps_what_has_ended() {
    let setup = setup(6);
    let control = Control::new();
    let stop_after_two = |number: u32| {
        if number == 2 {
            control.interrupt();
        }
        Ok(RunMetrics::new())
    };
    let runs = on_threads(1, || setup.recorded(0..6, stop_after_two, RunMetrics::into_run, &control).unwrap());
    assert!(runs.iter().map(|run| run.header.replication).eq(0..2));
    let outcome = setup.run_all(None, &control).unwrap();
    assert_eq!((outcome.finished, outcome.is_complete()), (0, false));
}

#[test]
fn progress_counts_whole_runs() {
    let control = Control::new();
    setup(3).run_all(None, &control).unwrap();
    assert_eq!((control.runs_planned(), control.millionths_done()), (3, 3_000_000));
    assert!(control.steps() > 3 * 2 * 2500);
}

#[test]
fn throughput_is_what_is_offered_below_capacity() {
    let report = setup(4).run_all(None, &Control::new()).unwrap().report;
    let figure = |name: &str| report.figure(name).unwrap().mean;
    assert!((figure("workload.w.throughput") / 2500.0 - 1.0).abs() < 0.05);
    assert!((figure("workload.w.offered_rate") / 2500.0 - 1.0).abs() < 0.05);
    assert_eq!(figure("invariants.violated"), 0.0, "{:?}", report.invariants.details);
}

#[test]
fn a_journal_that_cannot_be_written_is_an_error() {
    let nowhere = std::env::temp_dir().join("windtunnel-sim-no-such-folder/journal.jsonl");
    let error = setup(2).run_all(Some(&nowhere), &Control::new()).unwrap_err();
    assert!(error.to_string().starts_with("write the journal: "), "{error}");
}

#[test]
fn a_trace_is_run_as_it_stands_and_its_dirt_is_told() {
    let scratch = Scratch::new("trace");
    let path = scratch.0.join("trace.csv");
    let rows = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:00.25,7,3\n2024-01-01 00:00:00,5,2\n\
                2024-01-01 00:00:01,9,0\n";
    std::fs::write(&path, rows).unwrap();
    let mut traced = scenario(1).asked_by(workload("w"));
    traced.workloads[0].arrivals = Arrivals::Trace(Trace {
        file: path,
        format: TraceFormat::Auto,
        time_scale: 0.5,
        from: Span::ZERO,
        to: None,
        dejitter: Dejitter::None,
    });
    traced.run.replications = 2;
    let mut transcript = Transcript::default();
    let setup = Setup::new(traced).unwrap();
    setup.run(0, &mut transcript, &Control::new()).unwrap();
    let requests: Vec<_> = transcript
        .steps
        .iter()
        .filter_map(|(t, input, _)| match input {
            Input::Submitted { submission, .. } => Some((t.as_nanos(), submission.prompt_tokens)),
            _ => None,
        })
        .collect();
    assert_eq!(requests, [(0, 5), (500_000_000, 7)]);
    let remarks = setup.header(0).remarks;
    let said = "2 of 3 rows, 1 without output left out, 1 out of order, stamps taken as UTC";
    assert_eq!(remarks.get("trace of w").map(String::as_str), Some(said));
    assert!(remarks["replications"].starts_with("nothing is drawn at random"), "{remarks:?}");
    assert!((setup.open_rate() - 2.0).abs() < 1e-9);
    assert!((setup.at_rate(8.0).unwrap().open_rate() - 8.0).abs() < 1e-9);
}
