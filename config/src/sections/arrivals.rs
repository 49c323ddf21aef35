//! `arrivals` of a workload: when its requests come.

use windtunnel_core::Span;

use super::distribution::{self, TIMES, check_cv};
use crate::decode::Section;
use crate::form::{Form, Interval, Key, Scalar, Shape, Tagged};
use crate::scenario::{Arrivals, Dejitter, Distribution, Request, Trace, TraceFormat};

const RATE: Key = Key::scalar("rate", Scalar::Number(Interval::Above(0.0, 1e9)), "requests per second").required();
const TOKENS: Scalar = Scalar::Count(0, 1_000_000_000);

pub(crate) static ARRIVALS: Tagged = Tagged {
    tag: "process",
    variants: &[
        ("poisson", &POISSON),
        ("constant", &CONSTANT),
        ("gamma", &GAMMA),
        ("mmpp", &MMPP),
        ("clients", &CLIENTS),
        ("trace", &TRACE),
        ("at", &AT),
    ],
};

static POISSON: Form = Form::new("poisson_arrivals", "Exponential gaps.", &[RATE]);
static CONSTANT: Form = Form::new("constant_arrivals", "Equal gaps.", &[RATE]);
static GAMMA: Form = Form::new(
    "gamma_arrivals",
    "Gamma gaps.",
    &[
        RATE,
        Key::scalar(
            "cv",
            Scalar::Number(Interval::Closed(0.0, 100.0)),
            "standard deviation of the gaps over their mean",
        )
        .required(),
    ],
);
static MMPP: Form = Form::new(
    "mmpp_arrivals",
    "Poisson with a rate that jumps from each state to the next.",
    &[
        Key::new(
            "rates",
            Shape::List(&Shape::Scalar(Scalar::Number(Interval::Closed(0.0, 1e9)))),
            "requests per second in each state",
        )
        .required(),
        Key::new("means", Shape::List(&Shape::Scalar(Scalar::SpanAboveZero)), "the mean stay in each state").required(),
    ],
);
static CLIENTS: Form = Form::new(
    "client_arrivals",
    "Clients that wait for their answer and think before they ask again.",
    &[
        Key::scalar("count", Scalar::Count(1, 1_000_000), "how many clients").required(),
        Key::new("think", TIMES, "from the end of a request to the next").or("\"0s\""),
    ],
);
static TRACE: Form = Form::new(
    "trace_arrivals",
    "As recorded in a file.",
    &[
        Key::scalar("file", Scalar::Name, "the trace, relative to the scenario's file").required(),
        Key::scalar("format", Scalar::Word(&["auto", "csv", "azure"]), "how to read it").or("\"auto\""),
        Key::scalar("time_scale", Scalar::Number(Interval::Above(0.0, 1e6)), "2 is twice as fast").or("1.0"),
        Key::scalar("from", Scalar::Span, "rows from so long after the first").or("\"0s\""),
        Key::scalar("to", Scalar::Span, "rows up to so long after the first; default: all"),
        Key::scalar(
            "dejitter",
            Scalar::Word(&["none", "uniform"]),
            "how equal stamps are spread over the gap to the next",
        )
        .or("\"none\""),
    ],
);
static AT: Form = Form::new(
    "fixed_arrivals",
    "At given moments.",
    &[
        Key::new("times", Shape::List(&Shape::Scalar(Scalar::Span)), "when, from the start of the run"),
        Key::new("requests", Shape::List(&Shape::Table(&REQUEST)), "when and how large"),
    ],
);
static REQUEST: Form = Form::new(
    "request",
    "One request; a size left out is drawn as the workload says.",
    &[
        Key::scalar("at", Scalar::Span, "when, from the start of the run").required(),
        Key::scalar("inputs", Scalar::Count(1, 1_000_000_000), "its inputs"),
        Key::scalar("prompt_tokens", TOKENS, "prompt tokens of each input"),
        Key::scalar("output_tokens", TOKENS, "its output tokens"),
    ],
);

/// Reads `arrivals` of a workload.
pub(crate) fn read(workload: &Section<'_>) -> Option<Arrivals> {
    let (process, section) = workload.tagged("arrivals")?;
    match process {
        "poisson" => Some(Arrivals::Poisson { rate: section.number("rate")? }),
        "constant" => Some(Arrivals::Constant { rate: section.number("rate")? }),
        "gamma" => gamma(&section),
        "mmpp" => mmpp(&section),
        "clients" => Some(Arrivals::Clients {
            count: section.count32("count")?,
            think: distribution::times(&section, "think").unwrap_or(Distribution::Constant(0.0)),
        }),
        "trace" => trace(&section),
        "at" => at(&section),
        _ => None,
    }
}

/// Without variation the gaps are equal.
fn gamma(section: &Section<'_>) -> Option<Arrivals> {
    let (rate, cv) = (section.number("rate")?, section.number("cv")?);
    check_cv(section, cv);
    Some(if cv == 0.0 { Arrivals::Constant { rate } } else { Arrivals::Gamma { rate, cv } })
}

/// States that change faster than this are not told apart by any queue, and would take longer to draw than the requests.
const SHORTEST_STAY: Span = Span::from_micros(10);

fn mmpp(section: &Section<'_>) -> Option<Arrivals> {
    let (rates, means) = (section.numbers("rates")?, section.spans("means")?);
    if rates.len() != means.len() {
        section.wrong("means", &format!("must be as many as the rates: {} for {} rates", means.len(), rates.len()));
    }
    if rates.iter().all(|rate| *rate == 0.0) {
        section.wrong("rates", "must not all be 0");
    }
    if let Some(short) = means.iter().find(|mean| **mean < SHORTEST_STAY) {
        section.wrong("means", &format!("must be at least {SHORTEST_STAY}, found {short}"));
    }
    Some(Arrivals::Mmpp { rates, means })
}

fn trace(section: &Section<'_>) -> Option<Arrivals> {
    let file = section.path("file")?;
    let (from, to) = (section.span("from").unwrap_or(Span::ZERO), section.span("to"));
    check_window(section, from, to);
    let formats = [TraceFormat::Auto, TraceFormat::Csv, TraceFormat::Azure];
    Some(Arrivals::Trace(Trace {
        file,
        format: section.choice("format", formats).unwrap_or(TraceFormat::Auto),
        time_scale: section.number("time_scale").unwrap_or(1.0),
        from,
        to,
        dejitter: section.choice("dejitter", [Dejitter::None, Dejitter::Uniform]).unwrap_or(Dejitter::None),
    }))
}

fn at(section: &Section<'_>) -> Option<Arrivals> {
    if section.given(&["times", "requests"]).len() != 1 {
        section.complain("must have one of `times` and `requests`");
        return None;
    }
    let plain = |at| Request { at, inputs: None, prompt_tokens: None, output_tokens: None };
    let mut requests: Vec<Request> = match section.spans("times") {
        Some(times) => times.into_iter().map(plain).collect(),
        None => section.tables("requests").iter().filter_map(request).collect(),
    };
    requests.sort_by_key(|request| request.at);
    Some(Arrivals::At(requests))
}

fn request(section: &Section<'_>) -> Option<Request> {
    Some(Request {
        at: section.span("at")?,
        inputs: section.count32("inputs"),
        prompt_tokens: section.count32("prompt_tokens"),
        output_tokens: section.count32("output_tokens"),
    })
}

/// Complains about a window that ends before it begins.
pub(crate) fn check_window(section: &Section<'_>, from: Span, to: Option<Span>) {
    if let Some(to) = to.filter(|to| *to <= from) {
        section.wrong("to", &format!("must be later than `from`: {to} is not after {from}"));
    }
}
