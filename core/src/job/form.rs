//! How a job is serialised: field by field, as one would write it down.

use alloc::{boxed::Box, vec::Vec};

use serde::{Deserialize, Serialize};

use super::{Ask, Hopeless, Job, NONE, Rare, Requeued};
use crate::{Bytes, Class, LabelId, ModelId, Overdue, Span, Time, queue::LineId};

#[derive(Serialize, Deserialize)]
#[serde(rename = "Job")]
pub struct Form {
    label: LabelId,
    class: Class,
    ask: Ask,
    target: u32,
    line: Option<LineId>,
    arrived: Time,
    deadline: Option<Time>,
    max_wait: Option<Span>,
    hopeless: Hopeless,
    body: Bytes,
    prompt_tokens: u32,
    max_tokens: Option<u32>,
    inputs: u32,
    chunk: u32,
    steps: u32,
    granted: u32,
    running: u32,
    done: u32,
    again: Vec<u32>,
    requeued: Requeued,
    progress: Time,
    expires: Option<(Time, Overdue)>,
    started: Option<Time>,
    first_token: Option<Time>,
    model: Option<ModelId>,
}

impl From<Job> for Form {
    fn from(job: Job) -> Form {
        Form {
            label: job.label,
            class: job.class,
            ask: job.ask(),
            target: job.target,
            line: job.line(),
            arrived: job.arrived,
            deadline: job.deadline(),
            max_wait: job.max_wait(),
            hopeless: job.hopeless,
            body: job.body,
            prompt_tokens: job.prompt_tokens,
            max_tokens: job.max_tokens(),
            inputs: job.inputs,
            chunk: job.chunk,
            steps: job.steps,
            granted: job.granted,
            running: job.running,
            done: job.done,
            again: job.again().to_vec(),
            requeued: job.requeued,
            progress: job.progress,
            expires: job.expires(),
            started: job.started(),
            first_token: job.has_first_token.then_some(job.first_token),
            model: job.model(),
        }
    }
}

impl From<Form> for Job {
    fn from(form: Form) -> Job {
        let usual = form.ask == Ask::usual(form.target);
        let rare = Rare { ask: (!usual).then_some(form.ask), max_wait: form.max_wait, again: form.again };
        let has_rare = !usual || rare.max_wait.is_some() || !rare.again.is_empty();
        Job {
            label: form.label,
            target: form.target,
            line: form.line.map_or(NONE, |line| line.0),
            model: form.model.map_or(NONE, |model| model.0),
            arrived: form.arrived,
            deadline: form.deadline.unwrap_or_default(),
            body: form.body,
            inputs: form.inputs,
            chunk: form.chunk,
            steps: form.steps,
            granted: form.granted,
            running: form.running,
            done: form.done,
            progress: form.progress,
            started: form.started.unwrap_or_default(),
            first_token: form.first_token.unwrap_or_default(),
            expires: form.expires.map_or(Time::ZERO, |expires| expires.0),
            prompt_tokens: form.prompt_tokens,
            max_tokens: form.max_tokens.unwrap_or_default(),
            class: form.class,
            hopeless: form.hopeless,
            requeued: form.requeued,
            overdue: form.expires.map(|expires| expires.1),
            has_deadline: form.deadline.is_some(),
            has_started: form.started.is_some(),
            has_first_token: form.first_token.is_some(),
            has_max_tokens: form.max_tokens.is_some(),
            rare: has_rare.then(|| Box::new(rare)),
        }
    }
}
