//! What is counted of answers beside the figures of a report, and told at the end of a run.

use std::collections::BTreeMap;

use super::{
    Lag,
    exchange::{Break, Ending, Seen},
};

/// So many kinds of errors are told apart; the words of endpoints may vary without end.
const KINDS: usize = 16;

/// Counts over a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub lag: Lag,
    /// Answers that began, and how many of them told how long they had waited.
    began: u64,
    told_queue: u64,
    /// Answers that told their tokens, and how many of them had another number than was asked for.
    told_tokens: u64,
    other_tokens: u64,
    errors: BTreeMap<String, u64>,
}

impl Tally {
    /// An answer began.
    pub fn began(&mut self, queue_told: bool) {
        self.began += 1;
        self.told_queue += u64::from(queue_told);
    }

    /// An exchange ended in which so many tokens were asked for, where any were.
    pub fn ended(&mut self, seen: &Seen, asked: Option<u32>) {
        if let (Ending::Answered, Some(tokens), Some(asked)) = (&seen.ending, seen.tokens, asked) {
            self.told_tokens += 1;
            self.other_tokens += u64::from(tokens != asked);
        }
        if let Some(kind) = kind(&seen.ending) {
            let kind =
                if self.errors.len() < KINDS || self.errors.contains_key(&kind) { kind } else { "other".to_owned() };
            *self.errors.entry(kind).or_default() += 1;
        }
    }

    /// What is worth telling, by what it is about.
    pub fn remarks(&self) -> BTreeMap<String, String> {
        let mut remarks = BTreeMap::new();
        let mut remark = |about: &str, text: String| remarks.insert(about.to_owned(), text);
        if let Some(words) = self.lag.in_words() {
            remark("load generator", words);
        }
        let untold = self.began - self.told_queue;
        if untold > 0 {
            let text = format!(
                "{untold} of {} answers do not tell how long they had waited: their wait counts as 0 and is part of their \
                 service",
                self.began
            );
            remark("waits", text);
        }
        if self.other_tokens > 0 {
            let text = format!(
                "{} of {} answers have another number of tokens than was asked for",
                self.other_tokens, self.told_tokens
            );
            remark("tokens", text);
        }
        if !self.errors.is_empty() {
            let kinds = self.errors.iter().map(|(kind, count)| format!("{count} times {kind}"));
            remark("errors", kinds.collect::<Vec<_>>().join(", "));
        }
        remarks
    }
}

fn kind(ending: &Ending) -> Option<String> {
    Some(match ending {
        Ending::Answered | Ending::GaveUp => return None,
        Ending::Refused { status, reason: Some(reason), .. } => format!("{status} {}", short(reason)),
        Ending::Refused { status, reason: None, .. } => status.to_string(),
        Ending::Spoilt { reason } => format!("{} in an answer", short(reason)),
        Ending::Broken(Break::Unopened(wrong)) => format!("no connection ({})", short(wrong)),
        Ending::Broken(Break::Unanswered) => "a connection that broke before the answer".to_owned(),
        Ending::Broken(Break::Torn) => "an answer that broke off".to_owned(),
        Ending::TimedOut => "no end in time".to_owned(),
    })
}

/// At most eighty characters without line feeds.
fn short(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).take(80).collect()
}
