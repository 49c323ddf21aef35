//! What a replay comes to.

use std::fmt;

use serde::Serialize;

use crate::Difference;

/// How much was replayed and found equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Runs of which something was replayed.
    pub runs: u64,
    /// Inputs that were fed.
    pub inputs: u64,
    /// Effects that were compared.
    pub effects: u64,
    /// Checkpoints that were compared.
    pub checkpoints: u64,
    /// Inputs that could not be replayed, because lines before them are missing, or were not to be.
    pub inputs_left_out: u64,
}

/// The end of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Whether everything that was compared is as recorded.
    pub equal: bool,
    /// How much was.
    #[serde(flatten)]
    pub tally: Tally,
    /// What is not; the replay ended there.
    pub difference: Option<Box<Difference>>,
    /// What the reader should know.
    pub remarks: Vec<String>,
}

impl fmt::Display for Outcome {
    /// The difference, where there is one, and how much was equal; remarks are left to the caller.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.difference {
            None => writeln!(f, "{}: equal", self.tally),
            Some(difference) => writeln!(f, "{difference}\n{} were equal before it", self.tally),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { runs, inputs, effects, checkpoints, inputs_left_out } = *self;
        write!(f, "{}, {}, {}", counted(runs, "run"), counted(inputs, "input"), counted(effects, "effect"))?;
        if checkpoints > 0 {
            write!(f, ", {}", counted(checkpoints, "checkpoint"))?;
        }
        if inputs_left_out > 0 {
            write!(f, " ({} left out)", counted(inputs_left_out, "input"))?;
        }
        Ok(())
    }
}

fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count))
}

/// With a comma between thousands.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group).into_owned());
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_in_a_line() {
        let tally = Tally { runs: 3, inputs: 120_345, effects: 210_990, ..Tally::default() };
        let outcome = Outcome { equal: true, tally, difference: None, remarks: Vec::new() };
        assert_eq!(outcome.to_string(), "3 runs, 120,345 inputs, 210,990 effects: equal\n");
        let tally = Tally { runs: 1, inputs: 1, effects: 1000, checkpoints: 2, inputs_left_out: 1 };
        assert_eq!(tally.to_string(), "1 run, 1 input, 1,000 effects, 2 checkpoints (1 input left out)");
    }
}
