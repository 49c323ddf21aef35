//! The words for refusals.

use http::StatusCode;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident, $word:literal, $status:ident;)*) => {
        /// Why a request is not served.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(in crate::gateway) enum Reason {
            $($(#[$doc])* $name,)*
        }

        #[cfg(test)]
        const ALL: &[Reason] = &[$(Reason::$name,)*];

        impl Reason {
            /// The word in the reason header and in metrics.
            pub(in crate::gateway) const fn word(self) -> &'static str {
                match self { $(Reason::$name => $word,)* }
            }

            /// The status that goes with it.
            pub(in crate::gateway) const fn status(self) -> StatusCode {
                match self { $(Reason::$name => StatusCode::$status,)* }
            }
        }
    };
}

reasons! {
    /// The path leads nowhere.
    NoSuchPath, "no_such_path", NOT_FOUND;
    /// The path does not know the method.
    WrongMethod, "method_not_allowed", METHOD_NOT_ALLOWED;
    /// The body is no JSON object.
    BadJson, "bad_json", BAD_REQUEST;
    /// The body cannot be read.
    BadBody, "bad_body", BAD_REQUEST;
    /// A value makes no sense.
    BadValue, "bad_value", BAD_REQUEST;
    /// The body is too large.
    BodyTooLarge, "body_too_large", PAYLOAD_TOO_LARGE;
    /// Nothing came of the body for too long.
    BodyTooSlow, "body_too_slow", REQUEST_TIMEOUT;
    /// The body is packed in an unknown way.
    UnknownEncoding, "unknown_encoding", UNSUPPORTED_MEDIA_TYPE;
    /// No key was presented.
    NoKey, "no_api_key", UNAUTHORIZED;
    /// Nobody has that key.
    WrongKey, "invalid_api_key", UNAUTHORIZED;
    /// The key is no operator's.
    NotAdmin, "not_an_operator", FORBIDDEN;
    /// We were called by a foreign name.
    ForeignHost, "host_not_allowed", FORBIDDEN;
    /// The key has as many requests under way as it may.
    KeyLimit, "key_limit", TOO_MANY_REQUESTS;
    /// Every connection for work has some.
    TooManyConnections, "too_many_connections", SERVICE_UNAVAILABLE;
    /// Nothing is called that.
    UnknownModel, "model_not_found", NOT_FOUND;
    /// The model was taken out of the configuration.
    ModelRemoved, "model_removed", NOT_FOUND;
    /// The model, or every one of the family, lacks a capability.
    NotCapable, "not_capable", BAD_REQUEST;
    /// No variant is good enough or can do it.
    NoSuchVariant, "no_such_variant", BAD_REQUEST;
    /// It has more inputs than can be taken at once.
    TooManyInputs, "too_many_inputs", BAD_REQUEST;
    /// It has no inputs.
    NoInputs, "no_inputs", BAD_REQUEST;
    /// Too many wait.
    QueueFull, "queue_full", TOO_MANY_REQUESTS;
    /// Too many bytes wait.
    QueueBytesFull, "queue_bytes_full", TOO_MANY_REQUESTS;
    /// It would be late.
    DeadlineUnreachable, "deadline_unreachable", TOO_MANY_REQUESTS;
    /// It is too late already.
    DeadlineHopeless, "deadline_hopeless", TOO_MANY_REQUESTS;
    /// It waited longer than it wanted to.
    QueueExpired, "queue_expired", SERVICE_UNAVAILABLE;
    /// The model fails again and again.
    ModelBroken, "model_broken", SERVICE_UNAVAILABLE;
    /// The model fits on no device.
    CannotFit, "cannot_fit", SERVICE_UNAVAILABLE;
    /// The model is not loaded, and the question loads none.
    NotLoaded, "not_loaded", SERVICE_UNAVAILABLE;
    /// The runtime died.
    RuntimeCrashed, "runtime_crashed", SERVICE_UNAVAILABLE;
    /// The runtime made no progress.
    RuntimeWedged, "runtime_wedged", SERVICE_UNAVAILABLE;
    /// The device ran out of memory.
    OutOfMemory, "out_of_memory", SERVICE_UNAVAILABLE;
    /// The connection to the runtime broke.
    RuntimeDisconnected, "runtime_disconnected", SERVICE_UNAVAILABLE;
    /// The runtime answered with an error of its own.
    RuntimeRejected, "runtime_error", BAD_GATEWAY;
    /// It was broken off.
    Aborted, "aborted", SERVICE_UNAVAILABLE;
    /// Not everything is there yet.
    Starting, "starting", SERVICE_UNAVAILABLE;
    /// The daemon is ending.
    Draining, "draining", SERVICE_UNAVAILABLE;
    /// The scheduler is gone.
    Stopped, "stopped", SERVICE_UNAVAILABLE;
    /// Reading the configuration again came to nothing.
    ReloadFailed, "reload_failed", BAD_REQUEST;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_in_the_table_of_the_manual_with_its_status() {
        let manual = include_str!("../../../../docs/LIVE.md");
        let missing = |reason: &&Reason| {
            let (status, word) = (format!("| {} |", reason.status().as_u16()), format!("`{}`", reason.word()));
            !manual.lines().any(|line| line.starts_with(&status) && line.contains(&word))
        };
        let missing: Vec<(&str, u16)> =
            ALL.iter().filter(missing).map(|reason| (reason.word(), reason.status().as_u16())).collect();
        assert_eq!(missing, []);
    }
}
