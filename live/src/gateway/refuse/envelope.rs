//! The JSON around errors: OpenAI's everywhere, Anthropic's where its paths are.

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use serde_json::json;

use super::{Reason, Refusal};
use crate::gateway::routes::Dialect;

/// The body of an error.
pub(super) fn error(refusal: &Refusal, dialect: Dialect, request_id: &HeaderValue) -> Bytes {
    let status = refusal.reason.status();
    let body = match dialect {
        Dialect::OpenAi => json!({"error": {
            "message": refusal.message,
            "type": openai(status),
            "param": refusal.param,
            "code": refusal.reason.word(),
        }}),
        Dialect::Anthropic => json!({
            "type": "error",
            "error": {"type": anthropic(status), "message": refusal.message},
            "request_id": request_id.to_str().unwrap_or_default(),
        }),
    };
    body.to_string().into()
}

fn openai(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}

fn anthropic(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        status if status.is_server_error() => "api_error",
        _ => "invalid_request_error",
    }
}

/// An error for a client whose answer is open already.
pub(in crate::gateway) fn in_stream(refusal: &Refusal, dialect: Dialect, request_id: &HeaderValue) -> Bytes {
    event(&error(refusal, dialect, request_id), dialect)
}

/// The same for what a child answered, in its words.
pub(in crate::gateway) fn passed_on(answer: &[u8], dialect: Dialect, request_id: &HeaderValue) -> Bytes {
    let is_error = serde_json::from_slice::<serde_json::Value>(answer).is_ok_and(|value| value.get("error").is_some());
    if is_error {
        return event(answer, dialect);
    }
    let text = String::from_utf8_lossy(answer);
    in_stream(&Refusal::new(Reason::RuntimeRejected, text), dialect, request_id)
}

fn event(data: &[u8], dialect: Dialect) -> Bytes {
    let mut event = match dialect {
        Dialect::OpenAi => Vec::new(),
        Dialect::Anthropic => b"event: error\n".to_vec(),
    };
    for line in data.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty()) {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.push(b'\n');
    }
    event.push(b'\n');
    event.into()
}
