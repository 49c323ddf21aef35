//! What was found in a trace.

use windtunnel_core::Span;

use super::{BadRow, Row};

/// What was found in a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The name of its format.
    pub format: &'static str,
    /// Rows in the file, those left out included.
    pub rows: u64,
    /// Rows that are played back.
    pub kept: u64,
    /// Rows left out because they have no output tokens.
    pub dropped: u64,
    /// Rows left out because they make no sense.
    pub bad: u64,
    /// The first ten of these.
    pub bad_rows: Vec<BadRow>,
    /// Rows that stood after a later one.
    pub moved: u64,
    /// Kept rows with the stamp of the row before.
    pub equal_stamps: u64,
    /// How its stamps were understood.
    pub zone: Zone,
    /// From the first kept row to the last.
    pub span: Span,
    /// Kept rows per second over that span; `None` for fewer than two rows or no span.
    pub rate: Option<f64>,
    /// Coefficient of variation of the gaps between kept rows; `None` where there is no rate.
    pub cv: Option<f64>,
    /// Mean prompt tokens of the kept rows.
    pub mean_prompt_tokens: f64,
    /// Mean output tokens of the kept rows.
    pub mean_output_tokens: f64,
}

/// How the stamps of a trace were understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// They state their zone, or are plain seconds.
    Stated,
    /// Some do not; they were taken as UTC.
    AssumedUtc,
}

/// Figures of the rows that are played back.
pub struct Figures {
    /// From the first row to the last.
    pub span: Span,
    /// Rows per second.
    pub rate: Option<f64>,
    /// Coefficient of variation of the gaps.
    pub cv: Option<f64>,
    /// Rows with the stamp of the row before.
    pub equal_stamps: u64,
    /// Mean prompt tokens.
    pub mean_prompt_tokens: f64,
    /// Mean output tokens.
    pub mean_output_tokens: f64,
}

impl Figures {
    /// Of `rows`, sorted by arrival and not empty.
    pub fn of(rows: &[Row]) -> Figures {
        let count = rows.len() as f64;
        let gaps = || rows.windows(2).map(|pair| (pair[1].at - pair[0].at) as f64 / 1e9);
        let span = rows.last().map_or(0, |last| last.at) - rows.first().map_or(0, |first| first.at);
        let mean = span as f64 / 1e9 / (count - 1.0);
        let variance = gaps().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / (count - 1.0);
        let known = span > 0;
        Figures {
            span: Span::from_nanos(span),
            rate: known.then_some(1.0 / mean),
            cv: known.then_some(variance.sqrt() / mean),
            equal_stamps: rows.windows(2).filter(|pair| pair[0].at == pair[1].at).count() as u64,
            mean_prompt_tokens: rows.iter().map(|row| f64::from(row.prompt_tokens)).sum::<f64>() / count,
            mean_output_tokens: rows.iter().map(|row| f64::from(row.output_tokens)).sum::<f64>() / count,
        }
    }
}
