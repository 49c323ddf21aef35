//! What clients ask for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, Capability, Class, FamilyId, LabelId, ModelId, Quality, Span};

/// What a client asks for: exactly what a gateway knows, never the true output length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submission {
    /// Who sends it.
    pub label: LabelId,
    /// The model or family wanted.
    pub wanted: Wanted,
    /// Its class; `None`: [`crate::Policy::default_class`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// What is to be done.
    pub kind: JobKind,
    /// Inputs: embedding texts or documents; 1 for everything else.
    pub inputs: u32,
    /// Prompt tokens of each input.
    pub prompt_tokens: u32,
    /// The most tokens the client wants back, where it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How long after its arrival the whole job is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Span>,
    /// The longest it may wait without a step running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait: Option<Span>,
    /// Drop it while it waits once its deadline cannot be met; `None`: as its class says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_hopeless: Option<bool>,
    /// For families: the least quality accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// Capabilities required beyond those of the kind.
    #[serde(default, skip_serializing_if = "Needs::is_empty")]
    pub needs: Needs,
    /// Bytes of the request body held while it waits.
    #[serde(default, skip_serializing_if = "is_no_bytes")]
    pub body: Bytes,
    /// Which client of the label sends it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<u32>,
    /// A conversation it belongs to, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<u64>,
}

fn is_no_bytes(bytes: &Bytes) -> bool {
    *bytes == Bytes::ZERO
}

/// The model or family a client names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// One model.
    Model(ModelId),
    /// Any variant of a family that quality and capabilities leave.
    Family(FamilyId),
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// An answer to chat messages; one step.
    Chat,
    /// A continuation of a text; one step.
    Completion,
    /// Vectors for texts; a step for each [`crate::Policy::embedding_chunk`] inputs.
    Embedding,
    /// Scores for documents; one step.
    Rerank,
    /// Text for sound; one step.
    Audio,
}

impl JobKind {
    /// Its name in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            JobKind::Chat => "chat",
            JobKind::Completion => "completion",
            JobKind::Embedding => "embedding",
            JobKind::Rerank => "rerank",
            JobKind::Audio => "audio",
        }
    }

    /// What a model must be able to do for it.
    pub const fn capability(self) -> Capability {
        match self {
            JobKind::Chat => Capability::Chat,
            JobKind::Completion => Capability::Completion,
            JobKind::Embedding => Capability::Embedding,
            JobKind::Rerank => Capability::Rerank,
            JobKind::Audio => Capability::Audio,
        }
    }
}

/// A set of capabilities, one bit each by their order of declaration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Needs(u8);

impl Needs {
    /// No capability.
    pub const NONE: Needs = Needs(0);

    /// This set and `capability`.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Needs {
        Needs(self.0 | 1 << capability as u8)
    }

    /// Whether nothing is needed.
    pub const fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// Whether `capabilities` hold all that is needed.
    pub fn met_by(self, capabilities: &[Capability]) -> bool {
        let have = capabilities.iter().fold(Needs::NONE, |set, &one| set.with(one));
        self.0 & !have.0 == 0
    }
}
