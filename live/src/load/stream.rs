//! Answers that come piece by piece: server-sent events, read as they arrive.

use memchr::{memchr, memmem};
use serde_json::Value;

/// A line longer than this is no event of a language model.
const LONGEST: usize = 16 << 20;

/// What was found in the events so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Events {
    /// The beginning of a line whose end has not come.
    torn: Vec<u8>,
    /// Whether a frame had content.
    pub content: bool,
    /// Whether the last event came.
    pub done: bool,
    /// The code or the message of an error.
    pub error: Option<String>,
    /// Output tokens, as the usage says.
    pub tokens: Option<u32>,
}

impl Events {
    /// Reads what comes next.
    pub fn take(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            if self.torn.is_empty() {
                self.line(line);
            } else {
                let mut whole = std::mem::take(&mut self.torn);
                whole.extend_from_slice(line);
                self.line(&whole);
                whole.clear();
                self.torn = whole;
            }
            bytes = rest;
        }
        if self.torn.len() + bytes.len() > LONGEST {
            self.error = Some("a line without end".to_owned());
        } else {
            self.torn.extend_from_slice(bytes);
        }
    }

    fn line(&mut self, line: &[u8]) {
        let Some(data) = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii) else { return };
        if data == b"[DONE]" {
            self.done = true;
            return;
        }
        // Most frames are tokens after the first, of which nothing needs to be known.
        let telling =
            !self.content || [&b"\"usage\""[..], b"\"error\""].iter().any(|key| memmem::find(data, key).is_some());
        if telling && let Ok(frame) = serde_json::from_slice::<Value>(data) {
            self.frame(&frame);
        }
    }

    fn frame(&mut self, frame: &Value) {
        if let Some(error) = frame.get("error").filter(|error| !error.is_null()) {
            self.error = Some(error_word(error));
        }
        if let Some(tokens) = frame["usage"]["completion_tokens"].as_u64() {
            self.tokens = Some(u32::try_from(tokens).unwrap_or(u32::MAX));
        }
        self.content |= has_content(frame);
    }
}

/// Whether a frame has a part of an answer: text, thoughts or a call of a tool.
fn has_content(frame: &Value) -> bool {
    let filled = |value: &Value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    let choice = &frame["choices"][0];
    let delta = &choice["delta"];
    let places = [&choice["text"], &delta["content"], &delta["reasoning_content"], &delta["tool_calls"]];
    places.into_iter().any(filled) || filled(&frame["content"])
}

/// The word for an error: its code where that is one, else its message.
pub(super) fn error_word(error: &Value) -> String {
    let places = [&error["code"], &error["message"], error];
    let word = places.into_iter().find_map(|place| place.as_str().filter(|text| !text.is_empty()));
    word.map_or_else(|| error.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = ": keepalive\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\r\n\n\
        data: {\"choices\":[{\"delta\":{\"content\":\"\\\"error\\\" \u{e4}\"}}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"completion_tokens\":7}}\n\ndata: [DONE]\n\n";

    #[test]
    fn answers_are_read_wherever_they_are_cut() {
        for cut in 0..ANSWER.len() {
            let mut events = Events::default();
            events.take(&ANSWER.as_bytes()[..cut]);
            events.take(&ANSWER.as_bytes()[cut..]);
            let found = (events.content, events.done, events.tokens, events.error);
            assert_eq!(found, (true, true, Some(7), None), "cut at {cut}");
        }
    }

    #[test]
    fn comments_and_roles_are_no_content() {
        let mut events = Events::default();
        let content = ANSWER.find("data: {\"choices\":[{\"delta\":{\"content\"").unwrap();
        events.take(&ANSWER.as_bytes()[..content]);
        assert!(!events.content);
        for frame in [
            r#"{"choices":[{"text":"a"}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}"#,
            r#"{"content":"a","stop":false}"#,
        ] {
            let mut events = Events::default();
            events.take(format!("data:{frame}\n").as_bytes());
            assert!(events.content, "{frame}");
        }
    }

    #[test]
    fn an_error_in_a_stream_is_named() {
        for (error, word) in [
            (r#"{"error":{"message":"it died","code":"runtime_crashed"}}"#, "runtime_crashed"),
            (r#"{"error":{"message":"it died","code":500}}"#, "it died"),
            (r#"{"error":"no"}"#, "no"),
        ] {
            let mut events = Events { content: true, ..Events::default() };
            events.take(format!("data: {error}\n\n").as_bytes());
            assert_eq!(events.error.as_deref(), Some(word));
        }
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        (0..40).for_each(|_| events.take(&piece));
        assert!(events.error.is_some() && events.torn.len() <= LONGEST);
    }
}
