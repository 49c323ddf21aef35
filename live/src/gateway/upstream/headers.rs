//! Which headers go through.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use memchr::memchr;

/// Headers of a client that its request keeps: their lines, copied so that they keep no buffer of the connection, and in one
/// piece, since they are kept for as long as the request waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::gateway) struct Forwarded(Bytes);

impl Forwarded {
    fn of<'a>(kept: &[(&'a HeaderName, &'a HeaderValue)]) -> Forwarded {
        let mut lines =
            BytesMut::with_capacity(kept.iter().map(|(name, value)| name.as_str().len() + value.len() + 2).sum());
        for (name, value) in kept {
            lines.extend_from_slice(name.as_str().as_bytes());
            lines.extend_from_slice(b":");
            lines.extend_from_slice(value.as_bytes());
            lines.extend_from_slice(b"\n");
        }
        Forwarded(lines.freeze())
    }

    /// Them as they were. No name has a colon, and no value a line's end.
    pub(super) fn iter(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let line = self.0.get(at..).filter(|rest| !rest.is_empty())?;
            let (colon, end) = (memchr(b':', line)?, memchr(b'\n', line)?);
            let name = HeaderName::from_bytes(line.get(..colon)?).ok()?;
            let value = HeaderValue::from_maybe_shared(self.0.slice(at + colon + 1..at + end)).ok()?;
            at += end + 1;
            Some((name, value))
        })
    }
}

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
    let kept: Vec<(&HeaderName, &HeaderValue)> = headers.iter().filter(|(name, _)| stays(name)).collect();
    Forwarded::of(&kept)
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
        let forwarded = forwarded(&headers);
        let names: Vec<String> =
            forwarded.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        assert_eq!(
            names,
            ["content-type: application/json", "anthropic-version: 2023-06-01", "accept: text/event-stream"]
        );
    }

    #[test]
    fn what_is_kept_comes_out_as_it_was() {
        let mut headers = map(&[("accept", ""), ("x-time", "10:30"), ("x-stainless-lang", " python")]);
        headers.append("x-time", HeaderValue::from_bytes(b"\xff:\t:").unwrap());
        let mut kept = HeaderMap::new();
        for (name, value) in forwarded(&headers).iter() {
            kept.append(name, value);
        }
        assert_eq!(kept, headers);
        assert_eq!(forwarded(&HeaderMap::new()).iter().count(), 0);
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
