//! `--set`: what it reaches and what it puts there.

use std::path::Path;

use windtunnel_config::{Arrivals, Distribution, Occurrence, Override, Scenario, ScenarioFile, Service};
use windtunnel_core::{Capacity, Class, Order, Ppm, Span};

const TEXT: &str = r#"
run.horizon = "10s"
[[devices]]
name = "gpu"
[models."gpt-4.1"]
service = { kind = "batch", alpha = "1ms", beta = "0.5ms" }
[[workload]]
name = "chat"
model = "gpt-4.1"
prompt_tokens = { lognormal = { median = 400, cv = 1.0 } }
arrivals = { process = "poisson", rate = 1500 }
"#;

fn with(overrides: &[&str]) -> Scenario {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).unwrap()).collect();
    let file = ScenarioFile::parse(TEXT, Path::new("s.toml")).unwrap();
    file.resolve(&overrides).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn values_are_toml_and_bare_words_are_texts() {
    let scenario =
        with(&["policy.background_share=0.25", "policy.classes.interactive.order=edf", "run.horizon = '20s'"]);
    assert_eq!(scenario.configuration.policy.background_share, Ppm::new(250_000));
    assert_eq!(scenario.configuration.policy.classes[Class::Interactive.index()].order, Order::Edf);
    assert_eq!(scenario.run.horizon, Some(Span::from_secs(20)));
    assert_eq!(with(&["title=a = b"]).title, "a = b");
    assert_eq!(with(&["title=\"5\""]).title, "5");
}

#[test]
fn elements_are_addressed_by_name_also_by_one_with_dots() {
    let scenario = with(&["devices.gpu.count=4", "workload.chat.arrivals.rate=900", "models.gpt-4.1.batch.max=8"]);
    assert_eq!(scenario.cards.len(), 4);
    assert_eq!(scenario.workloads[0].arrivals, Arrivals::Poisson { rate: 900.0 });
    assert_eq!(scenario.configuration.models[0].capacity, Capacity::Batch { max: 8, wait: Span::ZERO });
    let quoted = with(&["models.\"gpt-4.1\".service.alpha=3ms"]);
    let Some(Service::Batch { alpha, .. }) = quoted.services[0][0] else { panic!() };
    assert_eq!(alpha, Span::from_millis(3));
}

#[test]
fn one_of_several_keys_replaces_the_others() {
    assert_eq!(with(&["workload.chat.prompt_tokens=7"]).workloads[0].prompt_tokens, Distribution::Constant(7.0));
    let exponential = with(&["workload.chat.prompt_tokens.exponential=7"]);
    assert_eq!(exponential.workloads[0].prompt_tokens, Distribution::Exponential { mean: 7.0 });
    let cv = with(&["workload.chat.prompt_tokens.lognormal.cv=2"]);
    assert_eq!(cv.workloads[0].prompt_tokens, Distribution::Lognormal { median: 400.0, cv: 2.0 });
    let added = with(&["workload.chat.output_tokens=1", "workload.chat.output_tokens.exponential=7"]);
    assert_eq!(added.workloads[0].output_tokens, Distribution::Exponential { mean: 7.0 });
}

#[test]
fn tables_are_set_as_a_whole_or_made_on_the_way() {
    let scenario = with(&[
        "workload.chat.arrivals={process='constant', rate=3}",
        "models.gpt-4.1.on.gpu.service={kind='batch', beta='7ms'}",
    ]);
    assert_eq!(scenario.workloads[0].arrivals, Arrivals::Constant { rate: 3.0 });
    let Some(Service::Batch { alpha, beta, .. }) = scenario.services[0][0] else { panic!() };
    assert_eq!((alpha, beta), (Span::ZERO, Span::from_millis(7)));
}

#[test]
fn faults_are_addressed_by_name_or_by_kind() {
    let faults = "faults=[{kind='crash', at='1s'}, {kind='crash', name='often', rate=1}]";
    let scenario = with(&[faults, "faults.crash.at=['2s', '3s']", "faults.often.rate=60"]);
    let moments = vec![Span::from_secs(2), Span::from_secs(3)];
    assert_eq!(scenario.faults[0].when, Occurrence::At(moments));
    assert_eq!(scenario.faults[1].when, Occurrence::Rate(60.0));
}

#[test]
fn later_overrides_win_and_the_file_stays_as_it_was() {
    let file = ScenarioFile::parse(TEXT, Path::new("s.toml")).unwrap();
    let rate = |overrides: &[Override]| match file.resolve(overrides).unwrap().workloads[0].arrivals {
        Arrivals::Poisson { rate } => rate,
        _ => f64::NAN,
    };
    let set = |value: &str| Override::new("workload.chat.arrivals.rate", value).unwrap();
    assert_eq!(rate(&[set("1"), set("2")]), 2.0);
    assert_eq!(rate(&[]), 1500.0);
    assert_eq!(set("2").text(), "workload.chat.arrivals.rate=2");
}
