//! What can be read off an answer while it passes: how many tokens came out, and how long the prompt took.
//!
//! Nothing is parsed. A key in quotes followed by a colon cannot stand inside a JSON string, where its quotes would be
//! escaped; so it is enough to look for such keys, and the last one counts.

use std::{sync::LazyLock, time::Duration};

use memchr::memmem::Finder;

/// Enough for the longest key and the longest number.
const STRADDLE: usize = 64;

static TOKENS: LazyLock<[Finder<'static>; 3]> = LazyLock::new(|| {
    [b"\"predicted_n\":".as_slice(), b"\"completion_tokens\":", b"\"output_tokens\":"].map(Finder::new)
});
static PROMPT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"prompt_ms\":"));

/// Looks at an answer as it passes.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Meter {
    /// The last bytes that passed.
    tail: Vec<u8>,
    /// By what each key said.
    tokens: [Option<u32>; 3],
    prompt: Option<Duration>,
}

impl Meter {
    /// Looks at the next bytes.
    pub(in crate::gateway) fn pass(&mut self, bytes: &[u8]) {
        if !self.tail.is_empty() {
            let mut seam = std::mem::take(&mut self.tail);
            let kept = seam.len();
            seam.extend_from_slice(bytes.get(..STRADDLE.min(bytes.len())).unwrap_or_default());
            self.look(&seam);
            seam.truncate(kept);
            self.tail = seam;
        }
        self.look(bytes);
        self.keep(bytes);
    }

    fn look(&mut self, bytes: &[u8]) {
        for (finder, tokens) in TOKENS.iter().zip(&mut self.tokens) {
            *tokens = number(bytes, finder).and_then(|digits| digits.parse().ok()).or(*tokens);
        }
        if let Some(millis) = number(bytes, &PROMPT).and_then(|digits| digits.parse::<f64>().ok()) {
            self.prompt = Duration::try_from_secs_f64(millis / 1000.0).ok();
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let new = bytes.get(bytes.len().saturating_sub(STRADDLE)..).unwrap_or_default();
        let old = self.tail.len().saturating_sub(STRADDLE - new.len());
        self.tail.drain(..old);
        self.tail.extend_from_slice(new);
    }

    /// The tokens that came out, where the answer said so.
    pub(in crate::gateway) fn tokens(&self) -> Option<u32> {
        self.tokens.iter().flatten().next().copied()
    }

    /// How long the prompt took, where the answer said so.
    pub(in crate::gateway) fn prompt(&self) -> Option<Duration> {
        self.prompt
    }

    /// Whether what passed ends where an event ends, or nothing passed.
    pub(in crate::gateway) fn is_between_events(&self) -> bool {
        self.tail.is_empty() || self.tail.ends_with(b"\n\n") || self.tail.ends_with(b"\r\n\r\n")
    }
}

/// The number behind the last key that `finder` finds.
fn number<'a>(bytes: &'a [u8], finder: &Finder<'_>) -> Option<&'a str> {
    // Forward, which goes many bytes at a time; a search from the end does not.
    let at = finder.find_iter(bytes).last()?;
    let behind = bytes.get(at + finder.needle().len()..)?.trim_ascii_start();
    let end = behind.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'-' | b'+'));
    std::str::from_utf8(behind.get(..end.unwrap_or(behind.len()))?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = concat!(
        r#"data: {"choices":[{"delta":{"content":"\"completion_tokens\": 9"}}]}"#,
        "\n\n",
        r#"data: {"choices":[],"usage":{"completion_tokens":123,"prompt_tokens":7},"timings":{"prompt_ms":41.5,"predicted_n":1234}}"#,
        "\n\ndata: [DONE]\n\n"
    );

    #[test]
    fn tokens_are_read_however_the_answer_is_cut() {
        for cut in 1..ANSWER.len() {
            let mut meter = Meter::default();
            ANSWER.as_bytes().chunks(cut).for_each(|piece| meter.pass(piece));
            assert_eq!(meter.tokens(), Some(1234), "in pieces of {cut}");
            assert_eq!(meter.prompt(), Some(Duration::from_micros(41_500)), "in pieces of {cut}");
            assert!(meter.is_between_events());
        }
    }

    #[test]
    fn what_the_model_says_counts_nothing() {
        let mut meter = Meter::default();
        meter.pass(&ANSWER.as_bytes()[..ANSWER.find("data: {\"choices\":[],").unwrap()]);
        assert_eq!((meter.tokens(), meter.prompt()), (None, None));
        meter.pass(b"data: {\"cho");
        assert!(!meter.is_between_events());
    }
}
