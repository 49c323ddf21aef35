//! What a healthy server answers.

use std::{io::Read, time::Duration};

use serde_json::{Value, json};
use windtunnel_live::fake::{Kind, Settings};

use crate::client::{Answer, ask, loading, request, served};

fn chat(stream: bool) -> String {
    let messages = json!([{ "role": "user", "content": "which way does it blow" }]);
    json!({ "messages": messages, "max_tokens": 3, "stream": stream }).to_string()
}

#[test]
fn a_model_that_is_loading_is_unavailable_on_every_path() {
    let served = loading(Settings { key: Some("sesame".to_owned()), ..Settings::default() });
    for path in ["/health", "/props", "/v1/models", "/nowhere"] {
        let answer = served.get(path);
        assert_eq!(answer.status(), 503, "{path}");
        assert_eq!(answer.body, r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#);
    }
    served.server.ready();
    assert_eq!(served.get("/health").body, r#"{"status":"ok"}"#);
}

#[test]
fn a_key_is_asked_for_everywhere_but_at_health_and_models() {
    let served = served(Settings { key: Some("sesame".to_owned()), ..Settings::default() });
    let ask = |path, headers| ask(served.server.address(), &request("GET", path, headers, ""));
    assert_eq!(ask("/health", "").status(), 200);
    assert_eq!(ask("/v1/models", "").status(), 200);
    let refused = ask("/props", "Authorization: Bearer other\r\n");
    assert_eq!((refused.status(), &refused.json()["error"]["message"]), (401, &json!("Invalid API Key")));
    assert_eq!(ask("/props", "Authorization: Bearer sesame\r\n").json()["total_slots"], 4);
    assert_eq!(ask("/props", "x-api-key: sesame\r\n").status(), 200);
    assert_eq!(ask("/nowhere", "x-api-key: sesame\r\n").status(), 404);
}

#[test]
fn a_chat_ends_with_its_usage_and_timings() {
    let served = served(Settings::default());
    let answer = served.post("/v1/chat/completions", &chat(false)).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "The wind in");
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["usage"]["prompt_tokens"], 5);
    assert_eq!(answer["timings"]["predicted_n"], 3);
}

#[test]
fn a_stream_says_why_it_ends_then_its_usage_where_that_was_asked_then_that_it_is_done() {
    let served = served(Settings::default());
    let told = chat(true).replace("\"stream\"", "\"stream_options\":{\"include_usage\":true},\"stream\"");
    let answer = served.post("/v1/chat/completions", &told);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let data = answer.data();
    let parsed = |place: usize| -> Value { serde_json::from_str(data[place]).unwrap() };
    assert_eq!((data.len(), data[6]), (7, "[DONE]"));
    assert_eq!(parsed(0)["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(parsed(3)["choices"][0]["delta"]["content"], " in");
    assert_eq!(parsed(4)["choices"][0]["finish_reason"], "length");
    assert_eq!(parsed(5)["choices"], json!([]));
    assert_eq!((&parsed(5)["usage"]["completion_tokens"], &parsed(5)["timings"]["prompt_n"]), (&json!(3), &json!(5)));
    let untold = served.post("/v1/chat/completions", &chat(true));
    let last: Value = serde_json::from_str(untold.data()[4]).unwrap();
    assert_eq!((&last["usage"], &last["timings"]["predicted_n"]), (&Value::Null, &json!(3)));
}

#[test]
fn every_dialect_tells_the_same_story() {
    let served = served(Settings::default());
    let whole = |path: &str, body: Value| served.post(path, &body.to_string()).json();
    let completion = whole("/v1/completions", json!({ "prompt": "a b", "max_tokens": 2 }));
    assert_eq!(
        (&completion["choices"][0]["text"], &completion["usage"]["total_tokens"]),
        (&json!("The wind"), &json!(4))
    );
    let native = whole("/completion", json!({ "prompt": "a b", "n_predict": 2 }));
    assert_eq!((&native["content"], &native["stop_type"]), (&json!("The wind"), &json!("limit")));
    let response = whole("/v1/responses", json!({ "input": "a b", "max_output_tokens": 2 }));
    assert_eq!(response["output"][0]["content"][0]["text"], "The wind");
    let message = whole("/v1/messages", json!({ "messages": [{ "role": "user", "content": "a" }], "max_tokens": 2 }));
    assert_eq!((&message["content"][0]["text"], &message["stop_reason"]), (&json!("The wind"), &json!("max_tokens")));
    let counted = whole("/v1/messages/count_tokens", json!({ "messages": [{ "role": "user", "content": "a b" }] }));
    assert_eq!(counted, json!({ "input_tokens": 2 }));
}

#[test]
fn every_dialect_streams_in_its_own_events() {
    let served = served(Settings::default());
    let body = json!({ "messages": [{ "role": "user", "content": "a" }], "prompt": "a", "input": "a", "max_tokens": 1, "stream": true });
    let last = |path: &str| {
        let answer = served.post(path, &body.to_string());
        let events = answer.body.matches("event: ").count();
        let last = answer.data().last().map(|data| (*data).to_owned()).unwrap();
        (events, last)
    };
    assert_eq!(last("/v1/completions"), (0, "[DONE]".to_owned()));
    let (events, end) = last("/completion");
    assert!(events == 0 && end.contains(r#""stop":true"#), "{end}");
    assert_eq!(last("/v1/messages"), (6, r#"{"type":"message_stop"}"#.to_owned()));
    let (events, end) = last("/v1/responses");
    assert!(events == 9 && end.contains(r#""type":"response.completed""#), "{end}");
}

#[test]
fn what_does_not_fit_a_slot_is_refused_with_both_numbers() {
    let served = served(Settings { slots: 2, context: 16, ..Settings::default() });
    let body = json!({ "messages": [{ "role": "user", "content": "w ".repeat(9) }] }).to_string();
    let refused = served.post("/v1/chat/completions", &body);
    assert_eq!((refused.status(), refused.header("connection")), (400, Some("close")));
    let error = &refused.json()["error"];
    assert_eq!(error["type"], "exceed_context_size_error");
    assert_eq!((&error["n_prompt_tokens"], &error["n_ctx"]), (&json!(9), &json!(8)));
}

#[test]
fn bad_bodies_get_what_the_real_one_says() {
    let served = served(Settings::default());
    assert_eq!(served.post("/v1/chat/completions", "{\"mess").status(), 500);
    let missing = served.post("/v1/chat/completions", "{}");
    assert_eq!((missing.status(), &missing.json()["error"]["message"]), (400, &json!("'messages' is required")));
    assert_eq!(served.post("/v1/embeddings", r#"{"input":"a"}"#).status(), 501);
}

#[test]
fn vectors_come_in_the_order_of_their_inputs() {
    let served = served(Settings { kind: Kind::Embedding, dimensions: 3, ..Settings::default() });
    let answer = served.post("/v1/embeddings", r#"{"input":["a","b c"]}"#).json();
    assert_eq!(answer["usage"]["prompt_tokens"], 3);
    assert_eq!((&answer["data"][1]["index"], answer["data"][1]["embedding"].as_array().unwrap().len()), (&json!(1), 3));
    assert_eq!(served.post("/embedding", r#"{"content":"a"}"#).json()[0]["index"], 0);
    assert_eq!(served.post("/v1/embeddings", r#"{"input":[]}"#).status(), 400);
    assert_eq!(served.post("/v1/chat/completions", &chat(false)).status(), 501);
}

#[test]
fn a_form_with_a_file_is_written_down() {
    let served = served(Settings::default());
    let form = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--x--\r\n";
    let ask = |headers| ask(served.server.address(), &request("POST", "/v1/audio/transcriptions", headers, form));
    assert_eq!(ask("Content-Type: multipart/form-data; boundary=x\r\n").json(), json!({ "text": "The" }));
    assert_eq!(ask("Content-Type: application/json\r\n").status(), 400);
}

#[test]
fn scores_come_with_the_best_first() {
    let served = served(Settings { kind: Kind::Rerank, ..Settings::default() });
    let answer = served.post("/v1/rerank", r#"{"query":"q","documents":["a","b","c"],"top_n":2}"#).json();
    let score = |place: usize| answer["results"][place]["relevance_score"].as_f64().unwrap();
    assert_eq!(answer["results"].as_array().unwrap().len(), 2);
    assert!(score(0) >= score(1));
}

#[test]
fn a_connection_carries_so_many_requests_and_says_how_many() {
    let served = served(Settings { requests_a_connection: 2, idle: Duration::from_secs(3), ..Settings::default() });
    let twice = request("GET", "/health", "", "").repeat(2);
    let mut bytes = Vec::new();
    served.send(&twice).read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200").count(), 2);
    let first = Answer::parse(text.as_bytes());
    assert_eq!(first.header("keep-alive"), Some("timeout=3, max=2"));
    assert!(text[first.head.len()..].contains("connection: close"), "{text}");
}

#[test]
fn an_idle_connection_is_closed() {
    let served = served(Settings { idle: Duration::from_millis(50), ..Settings::default() });
    let mut bytes = Vec::new();
    served.send(&request("GET", "/health", "", "")).read_to_end(&mut bytes).unwrap();
    assert_eq!(Answer::parse(&bytes).status(), 200);
}
