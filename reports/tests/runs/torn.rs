//! Journals that broke off, that a newer program wrote, or that somebody damaged.

use windtunnel_core::{Class, Span};
use windtunnel_reports::journal::{JournalError, JournalWriter, Record, Records, Warning, read_runs};

use super::small::Small;

fn journal() -> String {
    let mut small = Small::new(2);
    small.arrivals = (0..6).map(|i| (i * 400_000, Class::Interactive, Some(Span::from_millis(3)))).collect();
    let mut journal = Vec::new();
    small.run(&mut JournalWriter::new(&mut journal));
    String::from_utf8(journal).unwrap()
}

#[test]
fn a_journal_may_end_at_any_byte() {
    let whole = journal();
    for length in 0..whole.len() {
        let torn = &whole.as_bytes()[..length];
        let mut runs = read_runs(torn);
        let complete = runs.by_ref().map(|run| run.unwrap().all().offered).sum::<u64>();
        let lines = torn.iter().filter(|byte| **byte == b'\n').count();
        assert!(complete <= 6 && (lines < 10 || complete > 0), "{length}: {complete}");
    }
}

#[test]
fn a_torn_line_is_said() {
    let whole = journal();
    let torn = &whole[..whole.len() - 20];
    let lines = whole.lines().count() as u64;
    let mut runs = read_runs(torn.as_bytes());
    assert_eq!(runs.by_ref().count(), 1);
    let warnings: Vec<&Warning> = runs.warnings().collect();
    let broken = Warning::NoEnd { title: "a small card".to_owned(), replication: 0 };
    assert_eq!(warnings, [&Warning::Torn { line: lines }, &broken]);
}

#[test]
fn a_damaged_line_in_the_middle_is_named() {
    let text = journal();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[4] = r#"{"input":{"t":12"#;
    let damaged = lines.join("\n") + "\n";
    let error = read_runs(damaged.as_bytes()).find_map(Result::err).unwrap();
    assert!(error.to_string().starts_with("line 5 is not a record of a journal: "), "{error}");
    assert!(matches!(error, JournalError::Corrupt { line: 5, .. }));
}

#[test]
fn a_record_before_any_header_is_no_journal() {
    let text = journal();
    let headless: String = text.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let error = read_runs(headless.as_bytes()).find_map(Result::err).unwrap();
    assert_eq!(error.to_string(), "line 1: a journal begins with a header, found another record");
}

#[test]
fn another_major_version_is_refused_even_if_its_header_is_unlike_ours() {
    let foreign = r#"{"header":{"schema":{"major":2,"minor":3},"everything":"else"}}"#;
    let error = Records::new(foreign.as_bytes()).find_map(Result::err).unwrap();
    assert_eq!(error.to_string(), "line 1: the journal has schema version 2.3, this program reads 1.x");
    let ours = journal().replacen(r#""major":1"#, r#""major":2"#, 1);
    assert!(matches!(read_runs(ours.as_bytes()).next(), Some(Err(JournalError::Version { line: 1, .. }))));
}

#[test]
fn a_newer_minor_version_may_know_more() {
    let newer = journal().replacen(r#""minor":0"#, r#""minor":7,"patch":1"#, 1).replacen(
        r#"{"input":{"#,
        r#"{"input":{"confidence":0.5,"#,
        2,
    ) + r#"{"weather":{"t":3,"rain":true}}"#
        + "\n"
        + r#"{"effect":{"t":3,"effect":{"hibernate":{"device":0}}}}"#
        + "\n";
    let mut runs = read_runs(newer.as_bytes());
    assert_eq!(runs.by_ref().map(|run| run.unwrap().all().offered).sum::<u64>(), 6);
    let lines = newer.lines().count() as u64;
    let warnings: Vec<&Warning> = runs.warnings().collect();
    assert_eq!(warnings, [&Warning::Unknown { lines: 2, first: lines - 1 }]);
    let older = newer.replacen(r#""minor":7"#, r#""minor":0"#, 1);
    assert!(read_runs(older.as_bytes()).any(|run| run.is_err()), "in our own version an unknown record is damage");
}

#[test]
fn nonsense_that_parses_does_no_harm() {
    let text = journal();
    let header = text.lines().next().unwrap();
    let wild = [
        r#"{"input":{"t":18446744073709551615,"input":"timer_due"}}"#,
        r#"{"effect":{"t":3,"effect":{"finish":{"job":99,"outcome":"completed","label":4000000000,"class":"batch","model":4000000000,"arrived":18446744073709551615,"started":7,"first_token":1}}}}"#,
        r#"{"effect":{"t":9,"effect":{"grant":{"attempt":1,"instance":4294967295,"model":4294967295,"device":4294967295,"class":"batch","right":"order","weight":4294967295,"steps":[{"job":18446744073709551615,"step":4294967295,"of":0,"weight":0}]}}}}"#,
        r#"{"input":{"t":0,"input":{"grant_finished":{"attempt":1,"instance":4294967295,"measured":{}}}}}"#,
        r#"{"effect":{"t":18446744073709551615,"effect":{"load":{"attempt":1,"instance":65000,"model":4294967295,"device":7,"reservation":1}}}}"#,
        r#"{"effect":{"t":1,"effect":{"note":{"requeued":{"job":5,"cause":"crashed"}}}}}"#,
        r#"{"end":{"t":18446744073709551615,"cause":"drained","invariants_checked":18446744073709551615,"violations":[]}}"#,
    ];
    for rotation in 0..wild.len() {
        let mut lines = vec![header];
        lines.extend(wild.iter().cycle().skip(rotation).take(2 * wild.len()));
        let text = lines.join("\n") + "\n";
        for run in read_runs(text.as_bytes()).map_while(Result::ok) {
            windtunnel_reports::Report::from_runs(vec![run]);
        }
        let mut readable = windtunnel_reports::journal::Lines::new();
        let records: Vec<Record> = Records::new(text.as_bytes()).collect::<Result<_, _>>().unwrap();
        records.iter().for_each(|record| readable.record(record, &mut |line| assert!(!line.word.is_empty())));
    }
}
