//! What a request asks for: how long its prompt is, how long its answer may be, and how it wants to have it.

use serde_json::Value;

use super::settings::{Counting, Settings};

/// A request for text.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Tokens of the answer.
    pub output: u32,
    /// Why the answer ends there.
    pub ends: Ends,
    /// How the answer comes.
    pub delivery: Delivery,
    /// Whether the client said that it wants the usage of a stream.
    pub usage: Usage,
}

/// Why an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Everything was said.
    Stop,
    /// No more was allowed.
    Length,
}

/// How an answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// All at once.
    Whole,
    /// Token by token.
    Stream,
}

/// Whether a stream of chunks of OpenAI's kind ends with its usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// It was asked for.
    Told,
    /// It was not.
    Untold,
}

/// The prompt does not fit into a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Tokens of a slot.
    pub context: u32,
}

impl Question {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// If the prompt does not fit.
    pub fn read(body: &Value, settings: &Settings) -> Result<Question, TooLong> {
        let (prompt, context) = (prompt_tokens(body, settings.counting), settings.context_a_slot());
        if prompt >= context {
            return Err(TooLong { prompt, context });
        }
        let room = context - prompt;
        let (output, ends) = match limit(body) {
            Some(limit) => (limit.min(room), Ends::Length),
            None if settings.answer_tokens > room => (room, Ends::Length),
            None => (settings.answer_tokens, Ends::Stop),
        };
        let told = body.pointer("/stream_options/include_usage").and_then(Value::as_bool) == Some(true);
        let stream = body.get("stream").and_then(Value::as_bool) == Some(true);
        Ok(Question {
            prompt,
            output,
            ends,
            delivery: if stream { Delivery::Stream } else { Delivery::Whole },
            usage: if told { Usage::Told } else { Usage::Untold },
        })
    }
}

/// Tokens of everything in a body that a model reads.
pub fn prompt_tokens(body: &Value, counting: Counting) -> u32 {
    const READ: [&str; 8] =
        ["messages", "prompt", "input", "content", "system", "instructions", "input_prefix", "input_suffix"];
    READ.iter().filter_map(|key| body.get(key)).fold(0, |sum, part| sum.saturating_add(text_tokens(part, counting)))
}

/// Tokens of a text, of a list of them, or of messages and their parts. A token that is given as a number is one.
pub fn text_tokens(part: &Value, counting: Counting) -> u32 {
    match part {
        Value::String(text) => counting.tokens(text),
        Value::Array(parts) => parts.iter().fold(0, |sum, part| sum.saturating_add(text_tokens(part, counting))),
        Value::Object(object) => ["content", "text"]
            .iter()
            .filter_map(|key| object.get(*key))
            .fold(0, |sum, part| sum.saturating_add(text_tokens(part, counting))),
        Value::Number(_) => 1,
        Value::Null | Value::Bool(_) => 0,
    }
}

/// The tokens that an answer may have, by whichever name; -1 is no limit.
fn limit(body: &Value) -> Option<u32> {
    const NAMES: [&str; 4] = ["max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict"];
    let limit = NAMES.iter().find_map(|name| body.get(name))?.as_u64()?;
    Some(u32::try_from(limit).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<Question, TooLong> {
        Question::read(&body, &Settings { slots: 2, context: 40, ..Settings::default() })
    }

    #[test]
    fn words_are_counted_wherever_a_model_reads_them() {
        let parts = json!({ "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": [{ "type": "text", "text": "what is this" }, { "type": "image_url" }] },
        ], "max_tokens": 5 });
        assert_eq!(read(parts).map(|question| (question.prompt, question.output)), Ok((5, 5)));
        assert_eq!(prompt_tokens(&json!({ "input": ["a b", "c"] }), Counting::Words), 3);
        assert_eq!(prompt_tokens(&json!({ "prompt": "abcde" }), Counting::FourBytes), 2);
        assert_eq!(prompt_tokens(&json!({ "prompt": [1, 2, 3] }), Counting::Words), 3);
    }

    #[test]
    fn an_answer_ends_where_it_is_told_to_or_where_its_slot_is_full() {
        let asked = |max: i64| read(json!({ "prompt": "a b c d", "max_tokens": max })).unwrap();
        assert_eq!((asked(7).output, asked(7).ends), (7, Ends::Length));
        assert_eq!(asked(700).output, 16);
        assert_eq!((asked(-1).output, asked(-1).ends), (16, Ends::Length));
        let long = "w ".repeat(20);
        assert_eq!(read(json!({ "prompt": long })), Err(TooLong { prompt: 20, context: 20 }));
    }
}
