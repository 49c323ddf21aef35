//! Which web pages may read answers. None, unless their origin is configured.

use http::{HeaderMap, HeaderValue, header};

/// Origins that may read answers.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Cors {
    origins: Vec<String>,
}

impl Cors {
    pub(in crate::gateway) fn of(origins: &[String]) -> Cors {
        Cors { origins: origins.iter().map(|origin| origin.to_ascii_lowercase()).collect() }
    }

    /// Whether a page of another origin sent the request, which may not read the answer.
    pub(in crate::gateway) fn is_foreign(&self, headers: &HeaderMap) -> bool {
        headers.get(header::ORIGIN).is_some_and(|origin| !self.knows(origin))
    }

    /// Whether a page sent the request that may give no orders: one of another origin that is not configured by its name. That
    /// all may read says nothing of this.
    pub(in crate::gateway) fn may_not_order(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else { return false };
        let own = headers.get(header::HOST).is_some_and(|host| {
            let origin = origin.as_bytes();
            let name = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
            name.is_some_and(|name| name.eq_ignore_ascii_case(host.as_bytes()))
        });
        let named = |known: &String| known.as_bytes().eq_ignore_ascii_case(origin.as_bytes());
        !own && !self.origins.iter().any(named)
    }

    /// Lets the page that asked read an answer, if it may.
    pub(in crate::gateway) fn open(&self, origin: Option<&HeaderValue>, answer: &mut HeaderMap) {
        if self.origins.is_empty() {
            return;
        }
        answer.append(header::VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = origin.filter(|origin| self.knows(origin)) {
            answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            answer.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
        }
    }

    /// Tells a browser that asks before it asks what it may, which it does without a key. Who may read is said by
    /// [`Cors::open`].
    pub(in crate::gateway) fn preflight(&self, asked: &HeaderMap, allow: &'static str, answer: &mut HeaderMap) {
        answer.insert(header::ALLOW, HeaderValue::from_static(allow));
        if asked.get(header::ORIGIN).is_some_and(|origin| self.knows(origin)) {
            answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(allow));
            answer.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
            if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
                answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
            }
        }
    }

    fn knows(&self, origin: &HeaderValue) -> bool {
        let origin = origin.as_bytes();
        self.origins.iter().any(|known| known == "*" || known.as_bytes().eq_ignore_ascii_case(origin))
    }
}
