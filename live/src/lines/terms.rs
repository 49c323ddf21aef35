//! What a server says of how long it keeps a connection.

use std::time::Duration;

use http::HeaderMap;

/// Where a server does not say how many requests a connection may carry: fewer than any build was seen to allow.
const UNSTATED: u32 = 4;

/// How long a connection may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// For how many requests in all.
    pub requests: u32,
    /// Idle for how long, [`Duration::MAX`] where nothing is said.
    pub idle: Duration,
}

impl Terms {
    /// Of an answer that says `Keep-Alive: timeout=5, max=100`; `known` is what the server said of requests before.
    pub(crate) fn of(headers: &HeaderMap, known: Option<u32>) -> Terms {
        let said = headers.get("keep-alive").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let number = |name: &str| {
            let mut parts = said.split([',', ' ']);
            parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse::<u32>().ok())
        };
        let seconds = number("timeout").map(u64::from);
        Terms {
            requests: number("max").or(known).unwrap_or(UNSTATED),
            idle: seconds.map_or(Duration::MAX, Duration::from_secs),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn terms(said: Option<&'static str>, known: Option<u32>) -> (u32, Duration) {
        let mut headers = HeaderMap::new();
        if let Some(said) = said {
            headers.insert("keep-alive", HeaderValue::from_static(said));
        }
        let terms = Terms::of(&headers, known);
        (terms.requests, terms.idle)
    }

    #[test]
    fn an_answer_goes_before_what_was_known_and_four_is_the_last_resort() {
        assert_eq!(terms(Some("timeout=5, max=100"), Some(7)), (100, Duration::from_secs(5)));
        assert_eq!(terms(Some("max=3,timeout=1"), None), (3, Duration::from_secs(1)));
        assert_eq!(terms(Some("timeout=soon"), Some(7)), (7, Duration::MAX));
        assert_eq!(terms(None, Some(7)), (7, Duration::MAX));
        assert_eq!(terms(None, None), (4, Duration::MAX));
    }
}
