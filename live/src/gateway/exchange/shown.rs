//! What the headers of an answer say.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use windtunnel_core::{JobId, ModelId, Wanted};

use super::wish::Wish;
use crate::gateway::{routes::Dialect, shared::Rules};

/// What the headers of an answer say of its request.
pub(super) struct Shown {
    /// Its job, once there is one.
    pub(super) job: Option<JobId>,
    /// Who took it up and how long it waited for that, where it was refused afterwards.
    pub(super) by: Option<(ModelId, Duration)>,
    pub(super) dialect: Dialect,
    pub(super) request_id: HeaderValue,
    class: &'static str,
    wanted: Wanted,
}

impl Shown {
    pub(super) fn of(wish: &Wish) -> Shown {
        Shown {
            job: None,
            by: None,
            class: wish.class.name(),
            wanted: wish.named.wanted,
            dialect: wish.errand.dialect,
            request_id: wish.request_id.clone(),
        }
    }

    /// Says what is known: with the model that answers, how long it was waited for.
    pub(super) fn put(&self, rules: &Rules, model: Option<(ModelId, Duration)>, headers: &mut HeaderMap) {
        if let Some(job) = self.job {
            headers.insert("x-windtunnel-job-id", HeaderValue::from(job.0));
        }
        headers.insert("x-windtunnel-class", HeaderValue::from_static(self.class));
        headers.insert("x-request-id", self.request_id.clone());
        if let Wanted::Family(family) = self.wanted {
            name(headers, "x-windtunnel-family", rules.catalogue.family(family));
        }
        let model = match (model.or(self.by), self.wanted) {
            (Some((model, queued)), _) => {
                let millis = u64::try_from(queued.as_millis()).unwrap_or(u64::MAX);
                headers.insert("x-windtunnel-queue-ms", HeaderValue::from(millis));
                Some(model)
            }
            (None, Wanted::Model(model)) => Some(model),
            (None, Wanted::Family(_)) => None,
        };
        if let Some(model) = model {
            name(headers, "x-windtunnel-model", rules.catalogue.model(model));
        }
    }
}

/// A name may hold what no header may; then it is left out.
pub(super) fn name(headers: &mut HeaderMap, header: &'static str, name: &str) {
    if let Ok(value) = HeaderValue::from_str(name) {
        headers.insert(header, value);
    }
}

/// Neither caches nor proxies may keep frames back.
pub(super) fn streaming(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}
