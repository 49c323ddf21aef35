//! The ways to say one thing: chat chunks, completions, the native form, responses, messages. Each is written as the real
//! server of build b10068 writes it, field by field.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    generation::{Outcome, text, word},
    question::{Ends, Question, Usage},
};

/// The build that is imitated.
const FINGERPRINT: &str = "b10068-fake";

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completion,
    /// `/completion` and `/infill`.
    Native,
    /// `/v1/responses`.
    Responses,
    /// `/v1/messages`.
    Messages,
}

/// What an answer is known by.
#[derive(Clone, Debug)]
pub struct Names {
    /// The model.
    pub model: String,
    /// The number of the answer.
    pub number: u64,
    /// Seconds since 1970.
    pub created: u64,
}

impl Names {
    fn id(&self, prefix: &str) -> String {
        format!("{prefix}{:032}", self.number)
    }

    /// A chunk of OpenAI's kind.
    fn chunk(&self, choices: Value, object: &str, rest: Value) -> Value {
        let mut chunk = json!({
            "choices": choices, "created": self.created, "id": self.id("chatcmpl-"), "model": self.model,
            "system_fingerprint": FINGERPRINT, "object": object,
        });
        extend(&mut chunk, rest);
        chunk
    }
}

impl Dialect {
    /// The whole answer.
    pub fn whole(self, names: &Names, outcome: &Outcome) -> Value {
        let (output, timings) = (outcome.question.output, timings(outcome));
        let text = text(output);
        match self {
            Dialect::Chat => {
                let message = json!({ "role": "assistant", "content": text });
                let choice = json!({ "finish_reason": finish(outcome), "index": 0, "message": message });
                let rest = json!({ "usage": usage(outcome), "timings": timings });
                names.chunk(json!([choice]), "chat.completion", rest)
            }
            Dialect::Completion => {
                let rest = json!({ "usage": usage(outcome), "timings": timings });
                names.chunk(json!([piece(&text, Some(finish(outcome)))]), "text_completion", rest)
            }
            Dialect::Native => native_end(names, outcome, &text),
            Dialect::Responses => response(names, outcome),
            Dialect::Messages => json!({
                "id": names.id("chatcmpl-"), "type": "message", "role": "assistant",
                "content": [{ "type": "text", "text": text }], "model": names.model,
                "stop_reason": stop_reason(outcome), "stop_sequence": null,
                "usage": {
                    "cache_read_input_tokens": 0, "input_tokens": outcome.question.prompt, "output_tokens": output,
                },
            }),
        }
    }

    /// Frames before the first token.
    pub fn opening(self, names: &Names, question: &Question) -> Vec<Bytes> {
        match self {
            Dialect::Chat => {
                let delta = json!([{ "finish_reason": null, "index": 0,
                    "delta": { "role": "assistant", "content": null } }]);
                vec![data(&names.chunk(delta, "chat.completion.chunk", json!({})))]
            }
            Dialect::Completion | Dialect::Native => Vec::new(),
            Dialect::Responses => {
                let response = json!({ "id": names.id("resp_"), "object": "response", "status": "in_progress" });
                let item = json!({ "content": [], "id": names.id("msg_"), "role": "assistant",
                    "status": "in_progress", "type": "message" });
                vec![
                    event("response.created", json!({ "response": response })),
                    event("response.in_progress", json!({ "response": response })),
                    event("response.output_item.added", json!({ "item": item })),
                    event(
                        "response.content_part.added",
                        json!({ "item_id": names.id("msg_"), "part": { "type": "output_text", "text": "" } }),
                    ),
                ]
            }
            Dialect::Messages => {
                let message = json!({
                    "id": names.id("chatcmpl-"), "type": "message", "role": "assistant", "content": [],
                    "model": names.model, "stop_reason": null, "stop_sequence": null,
                    "usage": { "cache_read_input_tokens": 0, "input_tokens": question.prompt, "output_tokens": 0 },
                });
                let block = json!({ "index": 0, "content_block": { "type": "text", "text": "" } });
                vec![event("message_start", json!({ "message": message })), event("content_block_start", block)]
            }
        }
    }

    /// The frame of a token.
    pub fn token(self, names: &Names, question: &Question, place: u32) -> Bytes {
        let text = word(place);
        match self {
            Dialect::Chat => {
                let delta = json!([{ "finish_reason": null, "index": 0, "delta": { "content": text } }]);
                data(&names.chunk(delta, "chat.completion.chunk", json!({})))
            }
            Dialect::Completion => data(&names.chunk(json!([piece(text, None)]), "text_completion", json!({}))),
            Dialect::Native => data(&json!({
                "index": 0, "content": text, "tokens": [place], "stop": false, "id_slot": -1,
                "tokens_predicted": place.saturating_add(1), "tokens_evaluated": question.prompt,
            })),
            Dialect::Responses => {
                event("response.output_text.delta", json!({ "item_id": names.id("msg_"), "delta": text }))
            }
            Dialect::Messages => {
                event("content_block_delta", json!({ "index": 0, "delta": { "type": "text_delta", "text": text } }))
            }
        }
    }

    /// Frames after the last token.
    pub fn closing(self, names: &Names, outcome: &Outcome) -> Vec<Bytes> {
        match self {
            Dialect::Chat => chat_end(names, outcome),
            Dialect::Completion => {
                let rest = json!({ "usage": usage(outcome), "timings": timings(outcome) });
                let end = names.chunk(json!([piece("", Some(finish(outcome)))]), "text_completion", rest);
                vec![data(&end), done()]
            }
            Dialect::Native => vec![data(&native_end(names, outcome, ""))],
            Dialect::Responses => responses_end(names, outcome),
            Dialect::Messages => vec![
                event("content_block_stop", json!({ "index": 0 })),
                event(
                    "message_delta",
                    json!({ "delta": { "stop_reason": stop_reason(outcome), "stop_sequence": null },
                        "usage": { "output_tokens": outcome.question.output } }),
                ),
                event("message_stop", json!({})),
            ],
        }
    }
}

/// The usage has a chunk of its own, after the one that says why the answer ends; timings stand in the last.
fn chat_end(names: &Names, outcome: &Outcome) -> Vec<Bytes> {
    let object = "chat.completion.chunk";
    let last = json!([{ "finish_reason": finish(outcome), "index": 0, "delta": {} }]);
    match outcome.question.usage {
        Usage::Told => {
            let rest = json!({ "usage": usage(outcome), "timings": timings(outcome) });
            let end = names.chunk(last, object, json!({}));
            vec![data(&end), data(&names.chunk(json!([]), object, rest)), done()]
        }
        Usage::Untold => vec![data(&names.chunk(last, object, json!({ "timings": timings(outcome) }))), done()],
    }
}

fn responses_end(names: &Names, outcome: &Outcome) -> Vec<Bytes> {
    let (id, text) = (names.id("msg_"), text(outcome.question.output));
    let part = json!({ "type": "output_text", "annotations": [], "logprobs": [], "text": text });
    let item = json!({ "type": "message", "status": "completed", "id": id, "content": [part], "role": "assistant" });
    let whole = json!({ "response": response(names, outcome), "timings": timings(outcome) });
    vec![
        event("response.output_text.done", json!({ "item_id": id, "text": text })),
        event("response.content_part.done", json!({ "item_id": id, "part": part })),
        event("response.output_item.done", json!({ "item": item })),
        event("response.completed", whole),
    ]
}

fn response(names: &Names, outcome: &Outcome) -> Value {
    let part =
        json!({ "type": "output_text", "annotations": [], "logprobs": [], "text": text(outcome.question.output) });
    let Question { prompt, output, .. } = outcome.question;
    json!({
        "completed_at": names.created, "created_at": names.created, "id": names.id("resp_"), "model": names.model,
        "object": "response",
        "output": [{ "content": [part], "id": names.id("msg_"), "role": "assistant", "status": "completed",
            "type": "message" }],
        "status": "completed",
        "usage": { "input_tokens": prompt, "output_tokens": output, "total_tokens": prompt.saturating_add(output),
            "input_tokens_details": { "cached_tokens": 0 } },
    })
}

fn native_end(names: &Names, outcome: &Outcome, content: &str) -> Value {
    let Question { prompt, output, ends, .. } = outcome.question;
    let stop_type = match ends {
        Ends::Stop => "eos",
        Ends::Length => "limit",
    };
    json!({
        "index": 0, "content": content, "tokens": [], "id_slot": outcome.slot, "stop": true, "model": names.model,
        "tokens_predicted": output, "tokens_evaluated": prompt, "generation_settings": {}, "prompt": "",
        "has_new_line": false, "truncated": false, "stop_type": stop_type, "stopping_word": "",
        "tokens_cached": prompt.saturating_add(output), "timings": timings(outcome),
    })
}

fn piece(text: &str, finish: Option<&str>) -> Value {
    json!({ "text": text, "index": 0, "logprobs": null, "finish_reason": finish })
}

fn finish(outcome: &Outcome) -> &'static str {
    match outcome.question.ends {
        Ends::Stop => "stop",
        Ends::Length => "length",
    }
}

fn stop_reason(outcome: &Outcome) -> &'static str {
    match outcome.question.ends {
        Ends::Stop => "end_turn",
        Ends::Length => "max_tokens",
    }
}

fn usage(outcome: &Outcome) -> Value {
    let Question { prompt, output, .. } = outcome.question;
    json!({
        "completion_tokens": output, "prompt_tokens": prompt, "total_tokens": prompt.saturating_add(output),
        "prompt_tokens_details": { "cached_tokens": 0 },
    })
}

fn timings(outcome: &Outcome) -> Value {
    let &Outcome { prompt_ms, predicted_ms, .. } = outcome;
    let (prompt, output) = (outcome.question.prompt, outcome.question.output);
    let (prompt_each, prompt_rate) = rates(prompt, prompt_ms);
    let (each, rate) = rates(output, predicted_ms);
    json!({
        "cache_n": 0, "prompt_n": prompt, "prompt_ms": prompt_ms, "prompt_per_token_ms": prompt_each,
        "prompt_per_second": prompt_rate, "predicted_n": output, "predicted_ms": predicted_ms,
        "predicted_per_token_ms": each, "predicted_per_second": rate,
    })
}

/// Milliseconds a token and tokens a second; what cannot be said is `null`, as with the real one.
fn rates(tokens: u32, millis: f64) -> (f64, f64) {
    let tokens = f64::from(tokens);
    (millis / tokens, tokens / millis * 1e3)
}

fn extend(object: &mut Value, with: Value) {
    if let (Value::Object(object), Value::Object(with)) = (object, with) {
        object.extend(with);
    }
}

fn data(value: &Value) -> Bytes {
    format!("data: {value}\n\n").into()
}

fn event(kind: &str, rest: Value) -> Bytes {
    let mut value = json!({ "type": kind });
    extend(&mut value, rest);
    format!("event: {kind}\ndata: {value}\n\n").into()
}

fn done() -> Bytes {
    Bytes::from_static(b"data: [DONE]\n\n")
}
