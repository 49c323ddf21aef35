//! Formats of traces: which columns they have and how their rows are read.

use csv::StringRecord;
use windtunnel_config::TraceFormat;

use super::{
    RowError,
    stamp::{Stamp, seconds, stamp, tokens},
};

/// A format and where its columns stand in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    format: Known,
    time: usize,
    prompt: usize,
    output: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Csv,
    Azure,
}

/// A row as it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRow {
    /// When, from an origin that is the same for all rows.
    pub at: Stamp,
    /// Prompt tokens.
    pub prompt_tokens: u32,
    /// Output tokens, 0 for a failed request.
    pub output_tokens: u32,
}

impl Known {
    const ALL: [Known; 2] = [Known::Csv, Known::Azure];

    /// Names of the columns: time, prompt tokens, output tokens.
    const fn columns(self) -> [&'static str; 3] {
        match self {
            Known::Csv => ["arrival", "prompt_tokens", "output_tokens"],
            Known::Azure => ["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
        }
    }

    const fn wanted_by(self, format: TraceFormat) -> bool {
        match (format, self) {
            (TraceFormat::Auto, _) | (TraceFormat::Csv, Known::Csv) | (TraceFormat::Azure, Known::Azure) => true,
            (TraceFormat::Csv, Known::Azure) | (TraceFormat::Azure, Known::Csv) => false,
        }
    }
}

impl Layout {
    /// The format whose columns all stand in `header`, whatever their case and order.
    pub fn recognise(header: &StringRecord, wanted: TraceFormat) -> Option<Layout> {
        Known::ALL.into_iter().filter(|known| known.wanted_by(wanted)).find_map(|format| {
            let column = |name: &str| header.iter().position(|cell| cell.trim().eq_ignore_ascii_case(name));
            let [time, prompt, output] = format.columns().map(column);
            Some(Layout { format, time: time?, prompt: prompt?, output: output? })
        })
    }

    /// The headers that would be recognised.
    pub fn known(wanted: TraceFormat) -> String {
        let headers =
            Known::ALL.into_iter().filter(|known| known.wanted_by(wanted)).map(|known| known.columns().join(","));
        headers.collect::<Vec<_>>().join(" and ")
    }

    /// The name of the format in scenario files.
    pub const fn name(self) -> &'static str {
        match self.format {
            Known::Csv => "csv",
            Known::Azure => "azure",
        }
    }

    /// The row in `record`.
    pub fn row(self, record: &StringRecord) -> Result<RawRow, RowError> {
        let [time, prompt, output] = self.format.columns();
        Ok(RawRow {
            at: self.time(cell(record, self.time, time)?)?,
            prompt_tokens: count(cell(record, self.prompt, prompt)?, prompt)?,
            output_tokens: count(cell(record, self.output, output)?, output)?,
        })
    }

    fn time(self, text: &str) -> Result<Stamp, RowError> {
        let (read, example) = match self.format {
            Known::Csv => (seconds(text).map(Stamp::Zoned), "12.25 (seconds)"),
            Known::Azure => (stamp(text), "2023-11-16 18:17:03.9799600"),
        };
        read.ok_or_else(|| RowError::Time { found: text.to_owned(), example })
    }
}

fn cell<'a>(record: &'a StringRecord, place: usize, column: &'static str) -> Result<&'a str, RowError> {
    record.get(place).map(str::trim).ok_or(RowError::Missing { column })
}

fn count(text: &str, column: &'static str) -> Result<u32, RowError> {
    tokens(text).ok_or_else(|| RowError::Tokens { column, found: text.to_owned() })
}
