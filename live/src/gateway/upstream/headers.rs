//! Which headers go through.

use bytes::BytesMut;
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Headers of a client that its request keeps, copied so that they keep no buffer of the connection.
pub(in crate::gateway) type Forwarded = Vec<(HeaderName, HeaderValue)>;

/// What concerns one connection only (RFC 9110, section 7.6.1), and what we decide ourselves.
fn is_of_the_connection(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::CONNECTION
            | header::TE
            | header::TRAILER
            | header::TRANSFER_ENCODING
            | header::UPGRADE
            | header::CONTENT_LENGTH
            | header::PROXY_AUTHENTICATE
            | header::PROXY_AUTHORIZATION
            | header::HOST
            | header::EXPECT
    ) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// Keys, traces of who asks, and what only concerns us. The child must not pack its answer: bytes go through as they are.
fn is_private(name: &HeaderName) -> bool {
    if matches!(
        *name,
        header::AUTHORIZATION
            | header::COOKIE
            | header::ORIGIN
            | header::REFERER
            | header::FORWARDED
            | header::CONTENT_ENCODING
            | header::ACCEPT_ENCODING
    ) {
        return true;
    }
    let name = name.as_str();
    let spoken = ["x-windtunnel-", "x-gridcore-", "x-forwarded-", "sec-", "cf-"];
    let about_talk = ["session", "conversation", "thread-id", "thread_id", "user-id", "user_id"];
    matches!(name, "x-api-key" | "api-key" | "x-real-ip" | "openai-organization" | "openai-project")
        || spoken.iter().any(|prefix| name.starts_with(prefix))
        || about_talk.iter().any(|part| name.contains(part))
}

/// What of a client's headers its child may see.
pub(in crate::gateway) fn forwarded(headers: &HeaderMap) -> Forwarded {
    let named = named_by_connection(headers);
    let stays = |name: &HeaderName| {
        !is_of_the_connection(name) && !is_private(name) && !named.iter().any(|other| name.as_str() == other)
    };
    let kept = || headers.iter().filter(|(name, _)| stays(name));
    let mut buffer = BytesMut::with_capacity(kept().map(|(_, value)| value.len()).sum());
    kept().for_each(|(_, value)| buffer.extend_from_slice(value.as_bytes()));
    let mut buffer = buffer.freeze();
    let copied = |(name, value): (&HeaderName, &HeaderValue)| {
        let value = HeaderValue::from_maybe_shared(buffer.split_to(value.len())).ok()?;
        Some((name.clone(), value))
    };
    kept().filter_map(copied).collect()
}

/// Headers that `Connection` says are for one connection only.
fn named_by_connection(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|text| text.split(',')).map(|name| name.trim().to_ascii_lowercase());
    names.filter(|name| !matches!(name.as_str(), "" | "close" | "keep-alive")).collect()
}

/// Copies what a client may see of a child's headers.
pub(in crate::gateway) fn copy_answer(from: HeaderMap, to: &mut HeaderMap) {
    let named = named_by_connection(&from);
    let mut last = None;
    for (name, value) in from {
        // The map gives the name of several values once.
        last = name.or(last);
        let Some(name) = &last else { continue };
        let ours = matches!(*name, header::SERVER | header::DATE) || name.as_str().starts_with("access-control-");
        if !ours && !is_of_the_connection(name) && !named.iter().any(|other| name.as_str() == other) {
            to.append(name.clone(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn keys_and_traces_stay_here_and_the_rest_goes_on() {
        let headers = map(&[
            ("authorization", "Bearer sk"),
            ("x-api-key", "sk"),
            ("cookie", "a=b"),
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("accept-encoding", "gzip"),
            ("x-windtunnel-class", "batch"),
            ("x-session-id", "7"),
            ("conversation_id", "8"),
            ("content-type", "application/json"),
            ("anthropic-version", "2023-06-01"),
            ("accept", "text/event-stream"),
        ]);
        let names: Vec<String> =
            forwarded(&headers).iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        assert_eq!(
            names,
            ["content-type: application/json", "anthropic-version: 2023-06-01", "accept: text/event-stream"]
        );
    }

    #[test]
    fn an_answer_loses_what_is_not_the_clients() {
        let answer = map(&[
            ("server", "llama.cpp"),
            ("access-control-allow-origin", "*"),
            ("keep-alive", "timeout=5"),
            ("content-length", "3"),
            ("content-type", "application/json"),
            ("x-runtime", "1"),
        ]);
        let mut kept = HeaderMap::new();
        copy_answer(answer, &mut kept);
        assert_eq!(kept, map(&[("content-type", "application/json"), ("x-runtime", "1")]));
    }
}
