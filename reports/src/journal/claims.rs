//! Expectations on the readable lines of a run, checked while it goes on.

use std::io;

use windtunnel_core::{Effect, Effects, Input, Time};

use super::{
    lines::{EventLine, Lines, WORDS},
    record::{End, Header},
};
use crate::Recorder;

/// Whether the words of `expectation` occur in `line` in this order.
pub fn matches(expectation: &str, line: &str) -> bool {
    let mut words = line.split_whitespace();
    expectation.split_whitespace().all(|wanted| words.any(|word| word == wanted))
}

/// A recorder that looks for lines that must occur in an order, and for lines that must not occur. Every run it is given has
/// to hold all of it.
#[derive(Clone, Debug)]
pub struct EventCheck {
    lines: Lines,
    replication: u32,
    sequences: Vec<Sequence>,
    nevers: Vec<Never>,
}

/// What became of the expectations, in the order in which they were given; `None`: held in every run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventOutcome {
    /// Of each sequence: what was missing, and in which replication.
    pub sequences: Vec<Option<String>>,
    /// Of each line that must not occur: where it did.
    pub nevers: Vec<Option<String>>,
}

#[derive(Clone, Debug)]
struct Sequence {
    wanted: Vec<String>,
    met: usize,
    missed: Option<String>,
}

#[derive(Clone, Debug)]
struct Never {
    unwanted: String,
    met: Option<String>,
}

impl EventCheck {
    /// Expects each of `sequences` to occur in order, anywhere, and none of `nevers` at all.
    pub fn new(sequences: Vec<Vec<String>>, nevers: Vec<String>) -> EventCheck {
        let expected = sequences.iter().flatten().chain(&nevers).map(String::as_str);
        EventCheck {
            lines: first_words(expected).map_or_else(Lines::new, Lines::only),
            replication: 0,
            sequences: sequences.into_iter().map(|wanted| Sequence { wanted, met: 0, missed: None }).collect(),
            nevers: nevers.into_iter().map(|unwanted| Never { unwanted, met: None }).collect(),
        }
    }

    /// Whether nothing is expected.
    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty() && self.nevers.is_empty()
    }

    /// What became of the expectations, over all runs that have ended.
    pub fn outcome(&self) -> EventOutcome {
        EventOutcome {
            sequences: self.sequences.iter().map(|one| one.missed.clone()).collect(),
            nevers: self.nevers.iter().map(|one| one.met.clone()).collect(),
        }
    }

    fn look(&mut self, lines: &[EventLine]) {
        for line in lines {
            let text = self.lines.print(line);
            self.sequences.iter_mut().for_each(|sequence| sequence.look(&text));
            self.nevers.iter_mut().for_each(|never| never.look(&text, self.replication));
        }
    }

    fn with(&mut self, read: impl FnOnce(&mut Lines, &mut dyn FnMut(EventLine))) {
        let mut found = Vec::new();
        read(&mut self.lines, &mut |line| found.push(line));
        self.look(&found);
    }
}

/// The words that lines must begin with to meet any of these; `None` where that cannot be told.
fn first_words<'a>(mut expected: impl Iterator<Item = &'a str>) -> Option<Vec<&'static str>> {
    expected.try_fold(Vec::new(), |mut words, one| {
        let first = one.split_whitespace().next()?;
        words.push(*WORDS.iter().find(|word| **word == first)?);
        Some(words)
    })
}

impl Sequence {
    fn look(&mut self, text: &str) {
        if self.wanted.get(self.met).is_some_and(|wanted| matches(wanted, text)) {
            self.met += 1;
        }
    }

    fn close(&mut self, replication: u32) {
        if let (Some(wanted), None) = (self.wanted.get(self.met), &self.missed) {
            let after =
                self.met.checked_sub(1).map_or_else(String::new, |last| format!(" after \"{}\"", self.wanted[last]));
            self.missed = Some(format!("\"{wanted}\" did not occur{after} in replication {replication}"));
        }
    }
}

impl Never {
    fn look(&mut self, text: &str, replication: u32) {
        if self.met.is_none() && matches(&self.unwanted, text) {
            self.met = Some(format!("\"{}\" occurred in replication {replication}: {}", self.unwanted, text.trim()));
        }
    }
}

impl EventOutcome {
    /// Takes in what became of the same expectations in other runs.
    pub fn merge(&mut self, other: EventOutcome) {
        let fill = |mine: &mut Vec<Option<String>>, theirs: Vec<Option<String>>| {
            mine.resize(mine.len().max(theirs.len()), None);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = mine.take().or(theirs));
        };
        fill(&mut self.sequences, other.sequences);
        fill(&mut self.nevers, other.nevers);
    }

    /// Whether everything held.
    pub fn held(&self) -> bool {
        self.sequences.iter().chain(&self.nevers).all(Option::is_none)
    }
}

impl Recorder for EventCheck {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        self.replication = header.replication;
        self.sequences.iter_mut().for_each(|sequence| sequence.met = 0);
        self.with(|lines, out| lines.begin(header, out));
        Ok(())
    }

    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.with(|lines, out| lines.input(t, input, out));
        for effect in effects {
            let steps = if let Effect::Grant(grant) = effect { effects.steps(grant.steps) } else { &[] };
            self.with(|lines, out| lines.effect(t, effect, steps, out));
        }
        Ok(())
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        self.with(|lines, out| lines.end(end, out));
        let replication = self.replication;
        self.sequences.iter_mut().for_each(|sequence| sequence.close(replication));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_in_their_order_and_as_a_whole() {
        let line = "   0.300000s dispatch  interactive step 1/1 -> gemma4-12b on gpu0 batch=1 job=7";
        assert!(matches("dispatch gemma4-12b", line));
        assert!(matches("interactive -> gemma4-12b", line));
        assert!(!matches("gemma4-12b dispatch", line));
        assert!(!matches("dispatch gemma4", line));
        assert!(!matches("dispatch dispatch", line));
    }

    #[test]
    fn only_lines_that_can_meet_an_expectation_are_made() {
        assert_eq!(first_words(["load big", "evict small"].into_iter()), Some(vec!["load", "evict"]));
        assert_eq!(
            first_words(["load big", "gpu0 interactive"].into_iter()),
            None,
            "a line of any word may hold these"
        );
        assert_eq!(first_words([""].into_iter()), None);
    }
}
