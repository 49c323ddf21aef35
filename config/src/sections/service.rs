//! Service times: what a model really takes, and what is predicted of it.

use windtunnel_core::{Ppm, ServiceTimes, Span};

use crate::decode::Section;
use crate::form::{Form, Interval, Key, Scalar, Shape, Tagged};
use crate::scenario::{Noise, Service};

pub(crate) static SERVICE: Tagged =
    Tagged { tag: "kind", variants: &[("batch", &BATCH_SERVICE), ("slots", &SLOTS_SERVICE)] };

const ALPHA: Key = Key::scalar("alpha", Scalar::Span, "time per batch");
const BETA: Key = Key::scalar("beta", Scalar::Span, "time per input of a batch");
const PREFILL_FIXED: Key = Key::scalar("prefill_fixed", Scalar::Span, "prefill time per prompt");
const PREFILL_PER_TOKEN: Key = Key::scalar("prefill_per_token", Scalar::Span, "prefill time per prompt token");
const DECODE_ALPHA: Key = Key::scalar("decode_alpha", Scalar::Span, "time per decoding iteration");
const DECODE_BETA: Key = Key::scalar("decode_beta", Scalar::Span, "time per decoding slot and iteration");
const PREFILL_SLICE: Key = Key::scalar(
    "prefill_slice",
    Scalar::Span,
    "prefill done in one iteration beside decoding slots; default: 512 times prefill_per_token",
);

static BATCH_SERVICE: Form = Form::new(
    "batch_service",
    "Steps granted together start and end together after T(B) = alpha + beta*B, B their inputs.",
    &[
        ALPHA.or("\"0s\""),
        BETA.or("\"0s\""),
        Key::new(
            "noise",
            Shape::Either(&[Shape::Scalar(Scalar::Word(&["none", "exponential"])), Shape::Table(&NOISE)]),
            "how the time of a batch varies around T(B), its mean",
        )
        .or("\"none\""),
    ],
);

static NOISE: Form = Form::new(
    "noise",
    "Lognormal noise.",
    &[Key::scalar("lognormal_cv", Scalar::Number(Interval::Closed(0.0, 100.0)), "the coefficient of variation")
        .required()],
);

static SLOTS_SERVICE: Form = Form::new(
    "slots_service",
    "Continuous batching: prompts prefill one at a time, decoding slots advance together.",
    &[
        PREFILL_FIXED.or("\"0s\""),
        PREFILL_PER_TOKEN.or("\"0s\""),
        DECODE_ALPHA.or("\"0s\""),
        DECODE_BETA.or("\"0s\""),
        PREFILL_SLICE,
    ],
);

pub(crate) static PREDICTED: Form = Form::new(
    "predicted",
    "What the predictor believes of a card of speed 1; what is left out is the true service's.",
    &[ALPHA, BETA, PREFILL_FIXED, PREFILL_PER_TOKEN, DECODE_ALPHA, DECODE_BETA, PREFILL_SLICE],
);

/// Reads `service` of a model or of one of its devices.
pub(crate) fn read(section: &Section<'_>) -> Option<Service> {
    let (kind, service) = section.tagged("service")?;
    let span = |key| service.span(key).unwrap_or(Span::ZERO);
    if kind == "batch" {
        let (alpha, beta) = (span("alpha"), span("beta"));
        if alpha.plus(beta).is_zero() {
            service.complain("takes no time at all; alpha or beta must be above zero");
        }
        return Some(Service::Batch { alpha, beta, noise: noise(&service) });
    }
    let prefill_per_token = span("prefill_per_token");
    let slots = Service::Slots {
        prefill_fixed: span("prefill_fixed"),
        prefill_per_token,
        decode_alpha: span("decode_alpha"),
        decode_beta: span("decode_beta"),
        prefill_slice: service.span("prefill_slice").unwrap_or(prefill_per_token.times(512)),
    };
    check_slots(&service, times(&slots));
    Some(slots)
}

/// What a daemon takes the service of a model to be before it has seen any: a model of some ten billion parameters on a
/// common card. Only the proportions of its parts matter for long, as the factor over all of it is learned.
pub(crate) fn guessed(section: &Section<'_>) -> Service {
    if section.has("batch") {
        return Service::Batch { alpha: Span::from_millis(5), beta: Span::from_millis(5), noise: Noise::None };
    }
    let prefill_per_token = Span::from_micros(500);
    Service::Slots {
        prefill_fixed: Span::from_millis(10),
        prefill_per_token,
        decode_alpha: Span::from_millis(20),
        decode_beta: Span::from_millis(1),
        prefill_slice: prefill_per_token.times(512),
    }
}

fn noise(service: &Section<'_>) -> Noise {
    if service.text("noise") == Some("exponential") {
        return Noise::Exponential;
    }
    match service.section("noise").and_then(|noise| noise.number("lognormal_cv")) {
        Some(cv) if cv > 0.0 => Noise::Lognormal { cv },
        Some(_) | None => Noise::None,
    }
}

fn check_slots(section: &Section<'_>, times: ServiceTimes) {
    let ServiceTimes::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice } = times
    else {
        return;
    };
    if decode_alpha.plus(decode_beta).is_zero() {
        section.complain("makes tokens in no time; decode_alpha or decode_beta must be above zero");
    }
    if prefill_slice.is_zero() && !prefill_fixed.plus(prefill_per_token).is_zero() {
        section.complain("never prefills beside decoding slots; prefill_slice must be above zero, such as \"50ms\"");
    }
}

/// Reads `predicted` of a model or of one of its devices, over what truly holds there.
pub(crate) fn predicted(section: &Section<'_>, truth: &Service) -> Option<ServiceTimes> {
    let predicted = section.section("predicted")?;
    let (batch, slots) =
        (["alpha", "beta"], ["prefill_fixed", "prefill_per_token", "decode_alpha", "decode_beta", "prefill_slice"]);
    let foreign = match truth {
        Service::Batch { .. } => predicted.given(&slots),
        Service::Slots { .. } => predicted.given(&batch),
    };
    for key in foreign {
        predicted.wrong(key, "does not go with the kind of the model's service");
    }
    let or = |key: &str, other: Span| predicted.span(key).unwrap_or(other);
    let believed = match times(truth) {
        ServiceTimes::Batch { alpha, beta } => {
            ServiceTimes::Batch { alpha: or("alpha", alpha), beta: or("beta", beta) }
        }
        ServiceTimes::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice } => {
            let slice = predicted.span("prefill_per_token").map_or(prefill_slice, |token| token.times(512));
            ServiceTimes::Slots {
                prefill_fixed: or("prefill_fixed", prefill_fixed),
                prefill_per_token: or("prefill_per_token", prefill_per_token),
                decode_alpha: or("decode_alpha", decode_alpha),
                decode_beta: or("decode_beta", decode_beta),
                prefill_slice: or("prefill_slice", slice),
            }
        }
    };
    check_slots(&predicted, believed);
    Some(believed)
}

/// The times of a service, without its noise.
pub(crate) fn times(service: &Service) -> ServiceTimes {
    match *service {
        Service::Batch { alpha, beta, noise: _ } => ServiceTimes::Batch { alpha, beta },
        Service::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice } => {
            ServiceTimes::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice }
        }
    }
}

/// The same service on a card of that speed: every time divided by it and rounded up.
pub(crate) fn at_speed(times: ServiceTimes, speed: Ppm) -> ServiceTimes {
    match times {
        ServiceTimes::Batch { alpha, beta } => {
            ServiceTimes::Batch { alpha: alpha.divided_up(speed), beta: beta.divided_up(speed) }
        }
        ServiceTimes::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice } => {
            ServiceTimes::Slots {
                prefill_fixed: prefill_fixed.divided_up(speed),
                prefill_per_token: prefill_per_token.divided_up(speed),
                decode_alpha: decode_alpha.divided_up(speed),
                decode_beta: decode_beta.divided_up(speed),
                prefill_slice: prefill_slice.divided_up(speed),
            }
        }
    }
}
