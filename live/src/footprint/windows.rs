//! Which layers look at a sliding window only.

use crate::gguf::{Header, Value};

/// How windows follow one another in a model whose header does not say so.
#[derive(Clone, Copy)]
enum Pattern {
    /// Of each so many layers the last one sees everything.
    LastFull(u64),
    /// Of each so many layers the first one sees everything.
    FirstFull(u64),
    /// Every layer sees everything.
    Full,
}

/// The window of llama 4, whose header leaves it out (llama.cpp has the number in its code).
const LLAMA4_WINDOW: u64 = 8192;

/// The size of the window in tokens, and for each of `layers` layers whether it has one.
pub(super) fn windows(header: &Header, layers: u64) -> (u64, Vec<bool>) {
    let stated = header.of_architecture("attention.sliding_window").and_then(Value::as_u64);
    let usual = if header.architecture() == "llama4" { LLAMA4_WINDOW } else { 0 };
    let window = stated.unwrap_or(usual);
    if window == 0 {
        return (0, vec![false; usize::try_from(layers).unwrap_or(0)]);
    }
    let has = |at| has_window(header, layers, at);
    (window, (0..layers).map(has).collect())
}

fn has_window(header: &Header, layers: u64, at: u64) -> bool {
    match header.of_architecture("attention.sliding_window_pattern") {
        Some(Value::List(list)) if !list.items.is_empty() => {
            let index = usize::try_from(at).unwrap_or(0) % list.items.len();
            list.items[index].as_flag().unwrap_or(false)
        }
        Some(value) => value.as_u64().is_some_and(|period| usual(header, layers).of_period(period).has(at)),
        None => usual(header, layers).has(at),
    }
}

/// The patterns in llama.cpp's code, by architecture. One that is not here ignores its `sliding_window`.
fn usual(header: &Header, layers: u64) -> Pattern {
    match header.architecture() {
        "gemma2" | "gpt-oss" => Pattern::LastFull(2),
        "cohere2" | "cohere2moe" | "olmo2" | "afmoe" | "llama4" | "exaone-moe" => Pattern::LastFull(4),
        "exaone4" if layers == 64 => Pattern::LastFull(4),
        "gemma3n" => Pattern::LastFull(5),
        "gemma3" | "gemma-embedding" => Pattern::LastFull(6),
        "plamo3" => Pattern::LastFull(8),
        "smallthinker" => Pattern::FirstFull(4),
        _ => Pattern::Full,
    }
}

impl Pattern {
    /// The same with another period, as a header that states one wants it.
    fn of_period(self, period: u64) -> Pattern {
        match self {
            Pattern::FirstFull(_) => Pattern::FirstFull(period),
            Pattern::LastFull(_) | Pattern::Full => Pattern::LastFull(period),
        }
    }

    fn has(self, at: u64) -> bool {
        match self {
            Pattern::LastFull(0) | Pattern::FirstFull(0) => true,
            Pattern::LastFull(period) => at % period < period - 1,
            Pattern::FirstFull(period) => !at.is_multiple_of(period),
            Pattern::Full => false,
        }
    }
}
