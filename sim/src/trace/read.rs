//! Reading a trace.

use std::{fs::File, io, path::Path};

use csv::{Reader, ReaderBuilder, StringRecord, Trim};
use windtunnel_config::Trace;

use super::{
    BadRow, Recording, Row, Summary, TraceError, Zone,
    format::{Layout, RawRow},
    stamp::Stamp,
    summary::Figures,
};

/// How many bad rows are listed.
const LISTED: usize = 10;

/// What has been seen of a file so far.
struct Seen {
    rows: u64,
    dropped: u64,
    bad: u64,
    bad_rows: Vec<BadRow>,
    moved: u64,
    zone: Zone,
    latest: i128,
    kept: Vec<(i128, u32, u32)>,
}

/// Reads the trace that a scenario names.
///
/// # Errors
/// If the file cannot be read, is of no known format, has more than one bad row in a hundred or nothing to play back.
pub fn load(trace: &Trace) -> Result<Recording, TraceError> {
    let unreadable = |source| TraceError::Unreadable { path: trace.file.clone(), source };
    let file = File::open(&trace.file).map_err(unreadable)?;
    read(trace, file)
}

/// Reads a trace from anywhere; `trace.file` only names it.
///
/// # Errors
/// As [`load`].
pub fn read(trace: &Trace, from: impl io::Read) -> Result<Recording, TraceError> {
    let mut reader = ReaderBuilder::new().flexible(true).trim(Trim::None).from_reader(from);
    let layout = recognise(trace, &mut reader)?;
    let seen = Seen::of(layout, &mut reader).map_err(|error| unreadable(&trace.file, error))?;
    if seen.bad * 100 > seen.rows {
        let (bad, rows) = (seen.bad, seen.rows);
        return Err(TraceError::TooManyBadRows { path: trace.file.clone(), bad, rows, first: seen.bad_rows });
    }
    let rows = cut(trace, &seen.kept);
    if rows.is_empty() {
        return Err(TraceError::Empty { path: trace.file.clone(), rows: seen.rows });
    }
    Ok(Recording { summary: seen.summary(layout, &rows), rows: rows.into() })
}

fn recognise(trace: &Trace, reader: &mut Reader<impl io::Read>) -> Result<Layout, TraceError> {
    let header = reader.headers().map_err(|error| unreadable(&trace.file, error))?;
    Layout::recognise(header, trace.format).ok_or_else(|| TraceError::UnknownHeader {
        path: trace.file.clone(),
        found: header.iter().collect::<Vec<_>>().join(","),
        known: Layout::known(trace.format),
    })
}

fn unreadable(path: &Path, error: csv::Error) -> TraceError {
    TraceError::Unreadable { path: path.to_owned(), source: io::Error::other(error) }
}

impl Seen {
    fn of(layout: Layout, reader: &mut Reader<impl io::Read>) -> Result<Seen, csv::Error> {
        let mut seen = Seen {
            rows: 0,
            dropped: 0,
            bad: 0,
            bad_rows: Vec::new(),
            moved: 0,
            zone: Zone::Stated,
            latest: i128::MIN,
            kept: Vec::new(),
        };
        let mut bytes = csv::ByteRecord::new();
        while reader.read_byte_record(&mut bytes)? {
            let line = bytes.position().map_or(0, csv::Position::line);
            let record = StringRecord::from_byte_record_lossy(bytes.clone());
            seen.rows += 1;
            match layout.row(&record) {
                Ok(row) => seen.take(row),
                Err(error) => {
                    seen.bad += 1;
                    if seen.bad_rows.len() < LISTED {
                        seen.bad_rows.push(BadRow { line, error });
                    }
                }
            }
        }
        seen.kept.sort_by_key(|&(at, ..)| at);
        Ok(seen)
    }

    fn take(&mut self, row: RawRow) {
        let at = match row.at {
            Stamp::Zoned(at) => at,
            Stamp::Naive(at) => {
                self.zone = Zone::AssumedUtc;
                at
            }
        };
        if row.output_tokens == 0 {
            self.dropped += 1;
            return;
        }
        self.moved += u64::from(at < self.latest);
        self.latest = self.latest.max(at);
        self.kept.push((at, row.prompt_tokens, row.output_tokens));
    }

    fn summary(self, layout: Layout, rows: &[Row]) -> Summary {
        let figures = Figures::of(rows);
        Summary {
            format: layout.name(),
            rows: self.rows,
            kept: rows.len() as u64,
            dropped: self.dropped,
            bad: self.bad,
            bad_rows: self.bad_rows,
            moved: self.moved,
            equal_stamps: figures.equal_stamps,
            zone: self.zone,
            span: figures.span,
            rate: figures.rate,
            cv: figures.cv,
            mean_prompt_tokens: figures.mean_prompt_tokens,
            mean_output_tokens: figures.mean_output_tokens,
        }
    }
}

/// The rows from `trace.from` after the first arrival until `trace.to` after it, on a clock that starts at `trace.from`.
fn cut(trace: &Trace, kept: &[(i128, u32, u32)]) -> Vec<Row> {
    let first = kept.first().map_or(0, |&(at, ..)| at);
    let from = i128::from(trace.from.as_nanos());
    let until = trace.to.map_or(i128::MAX, |to| i128::from(to.as_nanos()));
    let inside = kept.iter().filter(|&&(at, ..)| (from..until).contains(&(at - first)));
    let row = |&(at, prompt_tokens, output_tokens): &(i128, u32, u32)| {
        let at = u64::try_from(at - first - from).unwrap_or(u64::MAX);
        Row { at, prompt_tokens, output_tokens }
    };
    inside.map(row).collect()
}

#[cfg(test)]
mod tests {
    use windtunnel_config::{Dejitter, TraceFormat};
    use windtunnel_core::Span;

    use super::*;

    fn trace() -> Trace {
        Trace {
            file: "t.csv".into(),
            format: TraceFormat::Auto,
            time_scale: 1.0,
            from: Span::ZERO,
            to: None,
            dejitter: Dejitter::None,
        }
    }

    fn rows(text: &str) -> Recording {
        read(&trace(), text.as_bytes()).unwrap()
    }

    fn said(text: &str) -> String {
        read(&trace(), text.as_bytes()).unwrap_err().to_string()
    }

    const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
        2023-11-16 18:17:03.9799600,4808,10\r\n\
        2023-11-16 18:17:04,3180,8\r\n\
        2023-11-16 18:17:04.0319600,110,27";

    #[test]
    fn the_azure_format_is_recognised_by_its_header() {
        let recording = rows(AZURE);
        let expected = [(0, 4808, 10), (20_040_000, 3180, 8), (52_000_000, 110, 27)];
        let expected = expected.map(|(at, prompt_tokens, output_tokens)| Row { at, prompt_tokens, output_tokens });
        assert_eq!(recording.rows[..], expected);
        let summary = recording.summary;
        assert_eq!((summary.format, summary.rows, summary.kept), ("azure", 3, 3));
        assert_eq!((summary.zone, summary.span), (Zone::AssumedUtc, Span::from_millis(52)));
        assert_eq!(summary.mean_output_tokens, 15.0);
        // Gaps of 20.04 ms and 31.96 ms: mean 26 ms, standard deviation 5.96 ms.
        assert!((summary.rate.unwrap() - 1000.0 / 26.0).abs() < 1e-9);
        assert!((summary.cv.unwrap() - 5.96 / 26.0).abs() < 1e-9);
    }

    #[test]
    fn a_byte_order_mark_quotes_another_case_and_more_columns_do_no_harm() {
        let text = "\u{feff}Output_Tokens,id,ARRIVAL,prompt_tokens\n7,x,\"1.5\", 3\n8,y,2.25,4.0\n";
        let expected = [(0, 3, 7), (750_000_000, 4, 8)];
        let expected = expected.map(|(at, prompt_tokens, output_tokens)| Row { at, prompt_tokens, output_tokens });
        assert_eq!(rows(text).rows[..], expected);
    }

    #[test]
    fn rows_are_sorted_and_those_that_moved_are_counted() {
        let recording = rows("arrival,prompt_tokens,output_tokens\n5,1,1\n3,2,1\n5,3,1\n4,4,1\n6,5,1\n");
        assert_eq!(recording.rows.iter().map(|row| row.prompt_tokens).collect::<Vec<_>>(), [2, 4, 1, 3, 5]);
        assert_eq!((recording.summary.moved, recording.summary.equal_stamps), (2, 1));
    }

    #[test]
    fn rows_without_output_are_dropped_and_counted() {
        let recording = rows("arrival,prompt_tokens,output_tokens\n1,9,0\n2,9,4\n3,9,0\n");
        assert_eq!((recording.rows.len(), recording.rows[0].at, recording.summary.dropped), (1, 0, 2));
        assert_eq!((recording.summary.rate, recording.summary.cv), (None, None));
    }

    #[test]
    fn bad_rows_are_listed_with_their_lines() {
        let good = (0..300).map(|at| format!("{at},1,1\n")).collect::<String>();
        let recording = rows(&format!("arrival,prompt_tokens,output_tokens\nsoon,1,1\n{good}7,x,1\n7\n"));
        let listed: Vec<_> =
            recording.summary.bad_rows.iter().map(|row| format!("{}: {}", row.line, row.error)).collect();
        assert_eq!(recording.summary.bad, 3);
        assert_eq!(
            listed,
            [
                "2: \"soon\" is not a time such as 12.25 (seconds)",
                "303: \"x\" in `prompt_tokens` is not a whole number of tokens",
                "304: has no column `prompt_tokens`"
            ]
        );
    }

    #[test]
    fn more_than_one_bad_row_in_a_hundred_is_an_error() {
        let good = (0..99).map(|at| format!("{at},1,1\n")).collect::<String>();
        let header = "arrival,prompt_tokens,output_tokens\n";
        assert_eq!(rows(&format!("{header}{good}?,1,1\n")).summary.bad, 1);
        assert_eq!(
            said(&format!("{header}{good}?,1,1\n1,1,-1\n")),
            "read the trace t.csv: 2 of 101 rows make no sense, more than one in a hundred; first line 101: \"?\" is not \
             a time such as 12.25 (seconds); line 102: \"-1\" in `output_tokens` is not a whole number of tokens"
        );
    }

    #[test]
    fn an_unknown_header_is_shown_beside_the_known_ones() {
        assert_eq!(
            said("when,in,out\n1,2,3\n"),
            "recognise the trace t.csv: its header is \"when,in,out\"; known are \
             arrival,prompt_tokens,output_tokens and TIMESTAMP,ContextTokens,GeneratedTokens"
        );
        let mut only_azure = trace();
        only_azure.format = TraceFormat::Azure;
        assert!(read(&only_azure, "arrival,prompt_tokens,output_tokens\n1,2,3\n".as_bytes()).is_err());
    }

    #[test]
    fn a_cut_is_measured_from_the_first_arrival_and_starts_the_clock() {
        let mut cut = trace();
        cut.from = Span::from_secs(10);
        cut.to = Some(Span::from_secs(20));
        let text = "arrival,prompt_tokens,output_tokens\n100,1,1\n109.9,2,1\n112,3,1\n119.5,4,1\n120,5,1\n";
        let recording = read(&cut, text.as_bytes()).unwrap();
        let kept: Vec<_> = recording.rows.iter().map(|row| (row.at, row.prompt_tokens)).collect();
        assert_eq!(kept, [(2_000_000_000, 3), (9_500_000_000, 4)]);
        cut.from = Span::from_secs(60);
        assert_eq!(
            read(&cut, text.as_bytes()).unwrap_err().to_string(),
            "play the trace t.csv: of its 5 rows none is left inside `from` and `to` with output tokens"
        );
    }
}
