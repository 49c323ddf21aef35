//! What the user reads when a file or an override cannot be used.

use std::fmt;

use crate::source::{Place, Sources};

/// At most so many problems are shown; the rest are counted.
const SHOWN: usize = 12;
/// Longer lines are cut around the place in question.
const WIDTH: usize = 100;
/// Longer texts lose their middle: a name in a file may be as long as the file.
const LONGEST: usize = 800;

/// Everything that is wrong with a scenario, a configuration or an override. Its text is what a person reads: for each
/// problem the place, what was found and what would be right, and the line itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, or the override as it was written.
    pub source: String,
    /// Line and column, both from 1, where it stands in a file.
    pub position: Option<(usize, usize)>,
    /// What is wrong and what would be right.
    pub message: String,
    /// Further hints, one a line.
    pub notes: Vec<String>,
    excerpt: Option<Excerpt>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    line: String,
    before: String,
    marked: usize,
}

/// A problem whose place is still a number.
#[derive(Clone, Debug)]
pub(crate) struct Complaint {
    pub place: Place,
    pub message: String,
    pub notes: Vec<String>,
}

impl ConfigError {
    /// What is wrong, in the order of the file.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// A problem of a whole file or override.
    pub(crate) fn whole(source: impl Into<String>, message: impl Into<String>) -> ConfigError {
        let (source, message) = (shortened(source.into()), shortened(message.into()));
        ConfigError { problems: vec![Problem { source, position: None, message, notes: Vec::new(), excerpt: None }] }
    }

    pub(crate) fn of(mut complaints: Vec<Complaint>, sources: Sources<'_>) -> ConfigError {
        complaints.sort_by_key(|one| (one.place.source, one.place.start));
        complaints.dedup_by(|one, other| one.place == other.place && one.message == other.message);
        ConfigError { problems: complaints.into_iter().map(|one| Problem::of(one, sources)).collect() }
    }
}

impl Problem {
    fn of(complaint: Complaint, sources: Sources<'_>) -> Problem {
        let Complaint { place, message, notes } = complaint;
        let (message, notes) = (shortened(message), notes.into_iter().map(shortened).collect());
        if let Some(file) = sources.files.get(place.source) {
            let (position, excerpt) = locate(&file.text, place.start, place.end);
            let (position, excerpt) = (Some(position), Some(excerpt));
            return Problem { source: file.name.clone(), position, message, notes, excerpt };
        }
        let text = sources.overrides.get(place.source - sources.files.len()).map_or("", |one| one.text());
        Problem { source: shortened(format!("--set {text}")), position: None, message, notes, excerpt: None }
    }
}

/// Line and column of a byte of `text`, and the line with a mark.
fn locate(text: &str, start: usize, end: usize) -> ((usize, usize), Excerpt) {
    let start = floor_boundary(text, start);
    let before_all = &text[..start];
    let line_start = before_all.rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let line = text[line_start..line_end].trim_end_matches('\r');
    let end = floor_boundary(text, end.clamp(start, line_end.max(start)));
    let before = &text[line_start..start];
    let number = before_all.matches('\n').count() + 1;
    let position = (number, before.chars().count() + 1);
    let marked = text[start..end].trim_end_matches('\r').chars().count().max(1);
    (position, cut(line, before, marked))
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A text with its beginning and its end, where what would be right is said.
fn shortened(text: String) -> String {
    let count = text.chars().count();
    if count <= LONGEST {
        return text;
    }
    let head = text.chars().take(LONGEST / 2);
    let tail = text.chars().skip(count - LONGEST / 2);
    head.chain(" ... ".chars()).chain(tail).collect()
}

/// Keeps the stretch around the mark of a line too long to show.
fn cut(line: &str, before: &str, marked: usize) -> Excerpt {
    let column = before.chars().count();
    if line.chars().count() <= WIDTH {
        return Excerpt { line: line.to_owned(), before: before.to_owned(), marked };
    }
    let first = column.saturating_sub(WIDTH / 3);
    let shown: String = line.chars().skip(first).take(WIDTH).collect();
    let before = shown.chars().take(column - first).collect();
    let marked = marked.min(WIDTH - (column - first)).max(1);
    Excerpt { line: shown, before, marked }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().take(SHOWN).enumerate() {
            write!(f, "{}{problem}", if at == 0 { "" } else { "\n\n" })?;
        }
        match self.problems.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n\nand {more} more"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { source, position, message, notes, excerpt } = self;
        match position {
            Some((line, column)) => write!(f, "{source}:{line}:{column}: {message}")?,
            None => write!(f, "{source}: {message}")?,
        }
        let number = position.map_or(String::new(), |(line, _)| line.to_string());
        let gutter = " ".repeat(number.len());
        if let Some(Excerpt { line, before, marked }) = excerpt {
            let pad: String = before.chars().map(|one| if one == '\t' { '\t' } else { ' ' }).collect();
            write!(f, "\n{gutter} |\n{number} | {line}\n{gutter} | {pad}{}", "^".repeat(*marked))?;
        }
        notes.iter().try_for_each(|note| write!(f, "\n{gutter} = {note}"))
    }
}
