//! A generation under way: the slot it holds, its tokens, and what it came to.

use std::task::{Context, Poll};

use tokio::time::Instant;

use super::{card::Work, question::Question, server::Held};

/// What the fake says, a token each; some of them are longer than a byte.
const WORDS: [&str; 12] = ["The", " wind", " in", " the", " tunnel", " blows", " für", " 5", " €", " –", " 風", " 🌬️"];

/// The text of the `place`th token.
pub fn word(place: u32) -> &'static str {
    let place = usize::try_from(place).unwrap_or(0) % WORDS.len();
    WORDS.get(place).copied().unwrap_or("")
}

/// The text of `count` tokens.
pub fn text(count: u32) -> String {
    (0..count).map(word).collect()
}

/// A generation under way. Dropping it breaks it off and frees its slot.
pub struct Generation {
    /// What was asked.
    pub question: Question,
    pace: Paced,
    began: Instant,
    first: Option<Instant>,
    last: Instant,
    /// Tokens that are out.
    out: u32,
    slot: Held,
}

enum Paced {
    Instant,
    Card(Work),
}

/// What came of a generation.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What was asked.
    pub question: Question,
    /// Where it ran.
    pub slot: usize,
    /// Milliseconds up to the first token.
    pub prompt_ms: f64,
    /// Milliseconds from there to the last.
    pub predicted_ms: f64,
}

impl Generation {
    /// In `slot` since `began`, at the pace of `work`, or without taking time.
    pub fn new(question: Question, began: Instant, work: Option<Work>, slot: Held) -> Generation {
        let pace = work.map_or(Paced::Instant, Paced::Card);
        Generation { question, pace, began, first: None, last: began, out: 0, slot }
    }

    /// The place of the next token; `None`: that was all.
    pub fn poll_token(&mut self, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        let at = match &mut self.pace {
            Paced::Instant => (self.out < self.question.output).then_some(self.began),
            Paced::Card(work) => match work.tokens().poll_recv(cx) {
                Poll::Ready(at) => at,
                Poll::Pending => return Poll::Pending,
            },
        };
        let Some(at) = at else { return Poll::Ready(None) };
        self.first.get_or_insert(at);
        self.last = at;
        self.out += 1;
        Poll::Ready(Some(self.out - 1))
    }

    /// Waits for all of it.
    pub async fn finish(mut self) -> Outcome {
        while std::future::poll_fn(|cx| self.poll_token(cx)).await.is_some() {}
        self.outcome()
    }

    /// What came of it so far.
    pub fn outcome(&self) -> Outcome {
        let first = self.first.unwrap_or(self.last);
        Outcome {
            question: self.question.clone(),
            slot: self.slot.number,
            prompt_ms: millis(self.began, first),
            predicted_ms: millis(first, self.last),
        }
    }
}

fn millis(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1e3
}
