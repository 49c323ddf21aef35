//! Jobs that tests bring.

use windtunnel_core::{Bytes, JobKind, LabelId, ModelId, Needs, Submission, Wanted};

/// A small chat with a model, of the default class.
pub fn chat(model: u32) -> Submission {
    Submission {
        label: LabelId(0),
        wanted: Wanted::Model(ModelId(model)),
        class: None,
        kind: JobKind::Chat,
        inputs: 1,
        prompt_tokens: 10,
        max_tokens: None,
        deadline: None,
        max_wait: None,
        drop_hopeless: None,
        quality: None,
        needs: Needs::NONE,
        body: Bytes::ZERO,
        client: None,
        affinity: None,
    }
}
