//! How jobs end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, Class, GrantFailure, JobId, LabelId, ModelId, Span, Time};

/// The end of a job, with everything reports need to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finish {
    /// The job.
    pub job: JobId,
    /// How it ended.
    pub outcome: Outcome,
    /// Who sent it.
    pub label: LabelId,
    /// Its class.
    pub class: Class,
    /// The model that ran its first step; `None`: none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelId>,
    /// When it arrived.
    pub arrived: Time,
    /// When its first step started; `None`: none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When its first token was out, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<Time>,
    /// When it was due, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every step ran.
    Completed,
    /// It was not admitted.
    Refused(Refusal),
    /// It waited too long.
    TimedOut(Overdue),
    /// A step of it failed, or its model went away.
    Failed(Failure),
    /// Its client went away.
    Cancelled,
}

impl Outcome {
    /// Whether every step ran.
    #[inline]
    pub fn is_completed(self) -> bool {
        matches!(self, Outcome::Completed)
    }
}

/// Why a job was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// As many jobs of its class wait as may.
    QueueFull {
        /// How many may.
        limit: u32,
    },
    /// As many bytes of its class wait as may.
    QueueBytesFull {
        /// How many may.
        limit: Bytes,
    },
    /// It would be late.
    DeadlineUnreachable {
        /// When it would have finished.
        predicted: Time,
        /// After how long it is worth asking again.
        retry_after: Span,
    },
    /// No model or family of that id is configured.
    UnknownModel,
    /// No variant has the quality and capabilities asked for.
    NoSuchVariant,
    /// It cannot be cut, and has more inputs than a batch of its model takes.
    TooLarge {
        /// How many one takes.
        limit: u32,
    },
    /// It has no inputs, or the scheduler has not been started.
    Malformed,
    /// Every model that could serve it fails again and again.
    Broken {
        /// After how long it is worth asking again.
        retry_after: Span,
    },
    /// No model that could serve it can ever be loaded: too large for what may be used beside pinned models.
    CannotFit {
        /// The least that one of them needs.
        needs: Bytes,
        /// The most that there could be.
        room: Bytes,
    },
}

/// What a job waited too long for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overdue {
    /// Its longest wait without a running step passed.
    MaxWait,
    /// Even an immediate start would have missed its deadline.
    Hopeless,
}

/// Why a job failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// A step of it came to nothing, after bytes were sent or for the second time.
    Step(GrantFailure),
    /// No model that could run it is configured any more.
    ModelRemoved,
    /// Every model that could run it fails again and again.
    Broken,
    /// The daemon ended before it ran.
    Draining,
    /// No model that could run it can ever be loaded: it proved too large, or what is pinned grew.
    CannotFit {
        /// The least that one of them needs.
        needs: Bytes,
        /// The most that there could be.
        room: Bytes,
    },
}
