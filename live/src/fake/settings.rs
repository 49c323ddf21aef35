//! What a fake server is like: its slots, its pace, and what it does wrong.

use std::time::Duration;

use windtunnel_core::ServiceTimes;

/// A fake server.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The model's name, as it is listed and answered.
    pub model: String,
    /// What it is started for.
    pub kind: Kind,
    /// Requests it works on at a time; others wait inside.
    pub slots: u32,
    /// Tokens of the pool that the slots share evenly.
    pub context: u32,
    /// The key it wants to see; `None`: anybody may ask.
    pub key: Option<String>,
    /// How long answers take.
    pub pace: Pace,
    /// How tokens of a text are counted.
    pub counting: Counting,
    /// Tokens of an answer where the request sets no limit.
    pub answer_tokens: u32,
    /// Numbers in an embedding.
    pub dimensions: usize,
    /// Requests that one connection may carry.
    pub requests_a_connection: u32,
    /// A connection that has been idle for so long is closed.
    pub idle: Duration,
    /// What it does wrong.
    pub faults: Faults,
}

/// What a server is started for; it refuses the rest, as the real one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Chat,
    /// Vectors: `--embedding`.
    Embedding,
    /// Scores: `--rerank`.
    Rerank,
}

/// How long answers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// No time at all.
    Instant,
    /// As a simulated card would take. Generations of a `batch` service take its time for one input.
    Service(ServiceTimes),
}

/// How tokens of a text are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// A token a word, so that whoever asks can ask for an exact number.
    Words,
    /// A token for every four bytes begun.
    FourBytes,
}

/// What goes wrong while a server serves. Faults of the process itself belong to [`super::process`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// What becomes of requests that have work done.
    pub answers: Option<AnswerFault>,
    /// So many of these requests are answered as they should be first.
    pub spared: u64,
    /// So many are treated badly then; `None`: all.
    pub times: Option<u64>,
    /// `/slots` and `/metrics`.
    pub watching: Watching,
    /// Where frames of a stream are cut.
    pub frames: Frames,
}

/// What becomes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFault {
    /// Nothing is ever heard of it, though `/health` is well.
    Mute,
    /// It comes after so long, in which a processor is kept busy.
    Busy {
        /// How long.
        time: Duration,
    },
    /// The connection is closed before the status line.
    Closed,
    /// What comes is not HTTP.
    Garbage,
    /// The device ran out of memory: a 500 that says so.
    OutOfMemory,
    /// The connection breaks after so many tokens.
    Broken {
        /// Tokens that get out before.
        after: u32,
    },
    /// The server dies after so many tokens.
    Dies {
        /// Tokens that get out before.
        after: u32,
        /// How.
        death: Death,
    },
}

/// How a process ends without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Whether those who watch a server get answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watching {
    /// They do.
    #[default]
    Answered,
    /// `/slots` and `/metrics` never answer.
    Blocked,
}

/// Where frames of a stream are cut on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frames {
    /// At their ends.
    #[default]
    Whole,
    /// Inside of characters and between the two bytes that end a frame.
    Split,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            model: "fake".to_owned(),
            kind: Kind::Chat,
            slots: 4,
            context: 16_384,
            key: None,
            pace: Pace::Instant,
            counting: Counting::Words,
            answer_tokens: 32,
            dimensions: 8,
            requests_a_connection: 100,
            idle: Duration::from_secs(5),
            faults: Faults::default(),
        }
    }
}

impl Settings {
    /// Tokens that one slot holds.
    pub(super) fn context_a_slot(&self) -> u32 {
        self.context / self.slots.max(1)
    }
}

impl Counting {
    /// Tokens of a text.
    pub(super) fn tokens(self, text: &str) -> u32 {
        let count = match self {
            Counting::Words => text.split_ascii_whitespace().count(),
            Counting::FourBytes => text.len().div_ceil(4),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}
