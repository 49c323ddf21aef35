//! A journal gives the very figures that metrics in memory give, and its lines are readable.

use std::io::BufReader;

use insta::assert_snapshot;
use proptest::prelude::*;
use windtunnel_core::{Admission, Class, Span};
use windtunnel_reports::{
    Recorder, Report, RunMetrics, Tee,
    journal::{
        EventCheck, EventFilter, JournalWriter, Lines, Record, Records, WarmupRule, read_runs, report_from_journals,
    },
};

use super::small::Small;

/// The journal of some runs and the report that was made while they went on.
fn both(runs: &[Small]) -> (Vec<u8>, Report) {
    let mut journal = Vec::new();
    let mut figures = Vec::new();
    for small in runs {
        let mut tee = Tee(RunMetrics::new(), JournalWriter::new(&mut journal));
        small.run(&mut tee);
        figures.push(tee.0.into_run());
    }
    (journal, Report::from_runs(figures))
}

fn mixed() -> Small {
    let mut small = Small::new(2);
    small.arrivals = vec![
        (300_000_000, Class::Interactive, None),
        (300_100_000, Class::Background, None),
        (300_200_000, Class::Background, Some(Span::from_micros(900))),
        (300_300_000, Class::Interactive, None),
        (310_000_000, Class::Batch, Some(Span::from_micros(700))),
    ];
    small
}

#[test]
fn a_journal_gives_the_very_figures() {
    let runs: Vec<Small> = (0..3).map(|n| Small::new(8).poisson(900.0, Span::from_secs(2), n)).collect();
    let (journal, report) = both(&runs);
    let path = std::env::temp_dir().join(format!("windtunnel-reports-{}.jsonl", std::process::id()));
    std::fs::write(&path, &journal).unwrap();
    let read = report_from_journals(std::slice::from_ref(&path));
    std::fs::remove_file(&path).unwrap();
    let (read, warnings) = read.unwrap();
    assert_eq!(read.to_json(), report.to_json());
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
}

#[test]
fn what_is_written_is_read() {
    let (journal, _) = both(&[mixed()]);
    let text = String::from_utf8(journal).unwrap();
    for line in text.lines() {
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
}

#[test]
fn an_operator_reads_what_happened() {
    let (journal, _) = both(&[mixed()]);
    assert_snapshot!(lines(&journal, &EventFilter::default()));
    let filter = EventFilter { job: Some(windtunnel_core::JobId(2)), model: Some("m".to_owned()) };
    assert_snapshot!(lines(&journal, &filter));
}

fn lines(journal: &[u8], filter: &EventFilter) -> String {
    let mut lines = Lines::new();
    let mut text = Vec::new();
    for record in Records::new(journal) {
        let mut found = Vec::new();
        lines.record(&record.unwrap(), &mut |line| found.extend(filter.takes(&line).then_some(line)));
        text.extend(found.iter().map(|line| lines.print(line)));
    }
    text.join("\n")
}

#[test]
fn a_live_journal_shows_the_time_of_day() {
    let mut small = mixed().header();
    small.wall_clock = Some(1_700_047_227.0);
    let mut lines = Lines::new();
    let mut text = String::new();
    lines.begin(&small, &mut |line| text = format!("{:?}", line.t));
    let line = windtunnel_reports::journal::EventLine {
        t: windtunnel_core::Time::from_nanos(194_999_999),
        word: "enqueue",
        rest: "background embedding nomic-embed steps=32".to_owned(),
        job: None,
        model: None,
    };
    assert_eq!(lines.print(&line), "11:20:27.194 enqueue   background embedding nomic-embed steps=32");
}

#[test]
fn expectations_hold_in_every_run_or_say_what_is_missing() {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let sequences = vec![
        words(&["enqueue interactive", "dispatch interactive -> m", "cancel background"]),
        words(&["cancel batch", "dispatch interactive"]),
    ];
    let mut check = EventCheck::new(sequences, words(&["evict m", "dispatch background"]));
    mixed().run(&mut check);
    let outcome = check.outcome();
    assert_eq!(outcome.sequences[0], None);
    assert_eq!(
        outcome.sequences[1].as_deref(),
        Some("\"dispatch interactive\" did not occur after \"cancel batch\" in replication 0")
    );
    assert_eq!(outcome.nevers[0], None);
    assert!(outcome.nevers[1].as_deref().is_some_and(|text| text.contains("dispatch  background step 1/1 -> m")));
    assert!(!outcome.held());
}

#[test]
fn checkpoints_and_gaps_do_not_disturb() {
    let (journal, report) = both(&[mixed()]);
    let text = String::from_utf8(journal).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(3, r#"{"checkpoint":{"t":5,"state":{"anything":[1,2,3]}}}"#);
    lines.insert(4, r#"{"gap":{"t":5,"lines":null}}"#);
    let text = lines.join("\n");
    let mut runs = read_runs(text.as_bytes());
    let run = runs.next().unwrap().unwrap();
    assert_eq!(Report::from_runs(vec![run]).to_json(), report.to_json());
    assert!(runs.next().is_none());
    let warnings: Vec<String> = runs.warnings().map(ToString::to_string).collect();
    assert_eq!(warnings, ["lines are missing: figures are incomplete"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_run_is_the_same_through_its_journal(small in any_run()) {
        let (journal, report) = both(&[small]);
        let read: Vec<_> = read_runs(BufReader::new(&journal[..])).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(report.invariants.violated, 0, "{:?}", report.invariants.details);
        let read = Report::from_runs(read);
        prop_assert_eq!(read.to_json(), report.to_json());
    }
}

fn any_run() -> impl Strategy<Value = Small> {
    let class = prop_oneof![Just(Class::Interactive), Just(Class::Background), Just(Class::Batch)];
    let patience = prop::option::weighted(0.2, (0..20_000_000u64).prop_map(Span::from_nanos));
    let arrivals = prop::collection::vec((0..2_000_000u64, class, patience), 0..80);
    let deadline = prop::option::of((0..30_000_000u64).prop_map(Span::from_nanos));
    let ends = (prop::option::of(1..60u64), prop::option::of(0..200_000_000u64));
    let warmup = prop_oneof![
        Just(WarmupRule::Auto),
        (0..60_000_000u64).prop_map(|nanos| WarmupRule::Fixed(Span::from_nanos(nanos))),
        (0.0..1.0f64).prop_map(WarmupRule::Share),
    ];
    let shape = (1..3u32, 1..8u32, warmup);
    (shape, arrivals, deadline, ends).prop_map(|((cards, max, warmup), gaps, deadline, (jobs, horizon))| {
        let mut t = 0;
        let mut small = Small::new(max);
        small.arrivals = gaps
            .into_iter()
            .map(|(gap, class, patience)| {
                t += gap;
                (t, class, patience)
            })
            .collect();
        small.admission = if deadline.is_some() { Admission::Deadline } else { Admission::None };
        small.warmup = warmup;
        (small.cards, small.deadline, small.jobs, small.horizon) =
            (cards, deadline, jobs, horizon.map(Span::from_nanos));
        small
    })
}

#[test]
fn a_recorder_can_be_left_out() {
    let mut recorder: Option<RunMetrics> = None;
    mixed().run(&mut recorder);
    let mut metrics = RunMetrics::new();
    metrics.begin(&mixed().header()).unwrap();
    mixed().run(&mut &mut metrics);
    assert_eq!(metrics.into_run().all().offered, 5);
}

#[test]
fn the_same_run_does_not_count_twice() {
    let (journal, _) = both(&[mixed()]);
    let twice = [journal.as_slice(), journal.as_slice()].concat();
    let second = read_runs(twice.as_slice()).nth(1).expect("the second run is noticed");
    assert!(second.expect_err("it is refused").to_string().contains("is there already"));
}
