//! `[[workload]]`: who asks for what, and when.

use windtunnel_core::{Capability, Class, JobKind, Needs, Span, Wanted};

use super::arrivals::{self, ARRIVALS};
use super::distribution::{self, SIZES, TIMES};
use super::families::{QUALITIES, QUALITY_WORDS};
use super::models::CAPABILITY_WORDS;
use super::names::Names;
use super::policy::CLASS_KEY;
use crate::decode::Section;
use crate::form::{Form, Key, Scalar, Shape, did_you_mean, listed};
use crate::scenario::{Arrivals, Distribution, Workload};

pub(crate) static WORKLOAD: Form = Form::new(
    "workload",
    "Who asks for what, and when.",
    &[
        Key::scalar("name", Scalar::Name, "its name, unique").required(),
        Key::scalar("class", CLASS_KEY, "its class; default: `default_class` of the policy"),
        Key::scalar("model", Scalar::Name, "the model it asks for"),
        Key::scalar("family", Scalar::Name, "the family it asks for, instead of a model"),
        Key::scalar("kind", Scalar::Word(&["chat", "completion", "embedding", "rerank", "audio"]), "what it asks for")
            .or("\"chat\""),
        Key::scalar("quality", Scalar::Word(QUALITY_WORDS), "for families: the least quality accepted"),
        Key::new(
            "needs",
            Shape::Any(&Shape::Scalar(Scalar::Word(CAPABILITY_WORDS))),
            "capabilities required beyond those of the kind",
        ),
        Key::new("patience", TIMES, "the client gives up after this"),
        Key::scalar(
            "drop_hopeless",
            Scalar::Flag,
            "drop a waiting job that can no longer meet its deadline; default: as the class says",
        ),
        Key::scalar("deadline", Scalar::SpanAboveZero, "due so long after arrival"),
        Key::scalar("max_wait", Scalar::SpanAboveZero, "the longest wait without a step running"),
        Key::new("inputs", SIZES, "inputs of a request, at least 1; for embedding and rerank").or("1"),
        Key::new("prompt_tokens", SIZES, "prompt tokens of an input").or("0"),
        Key::new("output_tokens", SIZES, "output tokens of a request").or("0"),
        Key::scalar("max_tokens", Scalar::Count(1, u32::MAX as u64), "the most output tokens the client asks for"),
        Key::new("arrivals", Shape::Tagged(&ARRIVALS), "when requests come").required(),
        Key::scalar("from", Scalar::Span, "active from then").or("\"0s\""),
        Key::scalar("to", Scalar::Span, "active until then; default: to the end"),
    ],
);

const KINDS: [JobKind; 5] = [JobKind::Chat, JobKind::Completion, JobKind::Embedding, JobKind::Rerank, JobKind::Audio];

/// Reads all workloads.
pub(crate) fn read(root: &Section<'_>, names: &Names) -> Vec<Workload> {
    let sections = root.sections("workload");
    if sections.is_empty() {
        root.wrong("workload", "is missing or empty; a scenario needs at least one [[workload]]");
    }
    let mut workloads: Vec<Workload> = Vec::new();
    for section in &sections {
        if let Some(workload) = workload(section, names) {
            if workloads.iter().any(|other| other.name == workload.name) {
                section.wrong("name", "is the name of another workload already");
            }
            workloads.push(workload);
        }
    }
    workloads
}

fn workload(section: &Section<'_>, names: &Names) -> Option<Workload> {
    let kind = section.choice("kind", KINDS).unwrap_or(JobKind::Chat);
    let wanted = wanted(section, names);
    let arrivals = arrivals::read(section);
    let inputs = inputs(section, kind, arrivals.as_ref());
    let needs_listed = section.choices("needs", Capability::ALL).unwrap_or_default();
    let (from, to) = (section.span("from").unwrap_or(Span::ZERO), section.span("to"));
    arrivals::check_window(section, from, to);
    let workload = Workload {
        name: section.text("name")?.to_owned(),
        class: section.choice("class", Class::ALL),
        wanted: wanted?,
        kind,
        quality: section.choice("quality", QUALITIES),
        needs: needs_listed.iter().fold(Needs::NONE, |needs, one| needs.with(*one)),
        needs_listed,
        patience: distribution::times(section, "patience"),
        drop_hopeless: section.flag("drop_hopeless"),
        deadline: section.span("deadline"),
        max_wait: section.span("max_wait"),
        inputs,
        prompt_tokens: distribution::sizes(section, "prompt_tokens").unwrap_or(Distribution::Constant(0.0)),
        output_tokens: distribution::sizes(section, "output_tokens").unwrap_or(Distribution::Constant(0.0)),
        max_tokens: section.count32("max_tokens"),
        arrivals: arrivals?,
        rate_scale: 1.0,
        from,
        to,
    };
    check_family(section, &workload);
    Some(workload)
}

fn wanted(section: &Section<'_>, names: &Names) -> Option<Wanted> {
    let (key, name) = match (section.text("model"), section.text("family")) {
        (Some(model), None) => ("model", model),
        (None, Some(family)) => ("family", family),
        (Some(_), Some(_)) => {
            section.wrong("family", "cannot be asked for beside a `model`; leave one of them out");
            return None;
        }
        (None, None) => {
            section.complain("asks for nothing: it needs a `model` or a `family`");
            return None;
        }
    };
    match (key, names.get(name)) {
        ("model", Some(wanted @ Wanted::Model(_))) | ("family", Some(wanted @ Wanted::Family(_))) => {
            return Some(wanted);
        }
        (_, Some(Wanted::Model(_))) => {
            section.wrong(key, &format!("is {name:?}, which is a model: write model = {name:?}"))
        }
        (_, Some(Wanted::Family(_))) => {
            section.wrong(key, &format!("is {name:?}, which is a family: write family = {name:?}"))
        }
        (_, None) => unknown(section, key, name, names),
    }
    None
}

fn unknown(section: &Section<'_>, key: &str, name: &str, names: &Names) {
    let known: Vec<&str> = if key == "model" { names.models().collect() } else { names.families().collect() };
    let hint = did_you_mean(name, known.iter().copied()).map_or(String::new(), |hint| format!("; {hint}"));
    let message = format!("there is no {key} {name:?}{hint}");
    let notes = vec![format!("known: {}", listed(known))];
    section.context.complain(section.place_of(key), message, notes);
}

/// Only embeddings and rankings have several inputs.
fn inputs(section: &Section<'_>, kind: JobKind, arrivals: Option<&Arrivals>) -> Distribution {
    let inputs = distribution::sizes(section, "inputs").unwrap_or(Distribution::Constant(1.0));
    let single = match kind {
        JobKind::Embedding | JobKind::Rerank => return inputs,
        JobKind::Chat | JobKind::Completion | JobKind::Audio => kind.name(),
    };
    let several = |request: &crate::scenario::Request| request.inputs.is_some_and(|inputs| inputs != 1);
    let listed = matches!(arrivals, Some(Arrivals::At(requests)) if requests.iter().any(several));
    if inputs != Distribution::Constant(1.0) || listed {
        let key = if listed { "arrivals" } else { "inputs" };
        section.wrong(
            key,
            &format!(
                "has several inputs, and a {single} request has one; kind = \"embedding\" and \"rerank\" may have more"
            ),
        );
    }
    inputs
}

fn check_family(section: &Section<'_>, workload: &Workload) {
    match workload.wanted {
        Wanted::Model(_) if workload.quality.is_some() => {
            section.wrong("quality", "chooses among the variants of a `family`, and this workload asks for a `model`");
        }
        Wanted::Family(_) if workload.kind == JobKind::Embedding => {
            section.wrong(
                "family",
                "cannot serve embeddings: vectors of different models cannot be compared; ask for a `model`",
            );
        }
        Wanted::Model(_) | Wanted::Family(_) => {}
    }
}
