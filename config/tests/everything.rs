//! A file that uses every section, read into exact values.

use std::path::Path;

use windtunnel_config::*;
use windtunnel_core::{Admission, Bytes, Capability, Capacity, Class, ClassPolicy, DeviceId, DeviceKind, FamilyId};
use windtunnel_core::{
    ModelId, Needs, Order, Placement, Policy, Ppm, Quality, Replicas, Routing, ServiceTimes, Span, Wanted,
};

fn file(name: &str) -> ScenarioFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name);
    ScenarioFile::load(&path).unwrap_or_else(|error| panic!("{error}"))
}

fn everything() -> Scenario {
    file("everything.toml").resolve(&[]).unwrap_or_else(|error| panic!("{error}"))
}

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

#[test]
fn the_run_is_read() {
    let expected = Run {
        horizon: Some(Span::from_secs(600)),
        jobs: Some(1_000_000),
        warmup: Warmup::Share(0.05),
        seed: 7,
        replications: 3,
        drain: true,
    };
    assert_eq!(everything().run, expected);
}

#[test]
fn groups_become_numbered_cards() {
    let scenario = everything();
    let names: Vec<&str> = scenario.configuration.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["big0", "big1", "small0"]);
    assert_eq!(scenario.configuration.devices[1].memory, Some(Bytes::from_mib(24 << 10)));
    assert_eq!(scenario.configuration.devices[2].kind, DeviceKind::Unified);
    let upkeep = Upkeep {
        fixed: ms(500),
        bandwidth: Some(Bytes::from_mib(3 << 10)),
        stop: ms(200),
        release: ms(100),
        poll: ms(500),
    };
    assert_eq!(scenario.cards[1], Card { sharing: 0.5, speed: 1.25, upkeep });
    assert_eq!(scenario.cards[2], Card::default());
    // 0.5 GiB at 3 GiB/s, to the nearest nanosecond.
    assert_eq!(upkeep.load_time(Bytes::from_mib(512)), Span::from_nanos(500_000_000 + 166_666_667));
}

#[test]
fn a_service_may_differ_from_card_to_card_and_speed_is_only_in_the_prediction() {
    let scenario = everything();
    let batch = |alpha, beta, noise| Some(Service::Batch { alpha, beta, noise });
    let half = Span::from_micros(500);
    let slow = batch(ms(3), Span::from_micros(1500), Noise::Lognormal { cv: 0.3 });
    assert_eq!(scenario.services[0], [batch(ms(1), half, Noise::Exponential), None, slow]);
    let places = &scenario.configuration.models[0].placements;
    let times = |alpha, beta| ServiceTimes::Batch { alpha, beta };
    assert_eq!(
        places.as_slice(),
        [
            Placement { device: DeviceId(0), predicted: times(Span::from_micros(1600), Span::from_micros(800)) },
            Placement { device: DeviceId(2), predicted: times(ms(3), ms(2)) },
        ]
    );
    assert_eq!(scenario.residents, [vec![DeviceId(0), DeviceId(2)], (0..3).map(DeviceId).collect(), vec![DeviceId(2)]]);
}

#[test]
fn a_slots_service_prefills_512_tokens_a_slice() {
    let scenario = everything();
    let Some(Service::Slots { prefill_slice, .. }) = &scenario.services[1][0] else { panic!() };
    assert_eq!(*prefill_slice, Span::from_micros(200 * 512));
    let on = |device| scenario.configuration.models[1].predicted_on(DeviceId(device)).unwrap();
    let predicted = |fixed, token, alpha, beta, slice| ServiceTimes::Slots {
        prefill_fixed: Span::from_micros(fixed),
        prefill_per_token: Span::from_micros(token),
        decode_alpha: Span::from_micros(alpha),
        decode_beta: Span::from_micros(beta),
        prefill_slice: Span::from_micros(slice),
    };
    assert_eq!(on(0), predicted(800, 80, 7200, 800, 32_000));
    assert_eq!(on(2), predicted(5000, 200, 8000, 1500, 102_400));
}

#[test]
fn the_policy_is_read_to_its_last_key() {
    let policy = everything().configuration.policy;
    assert_eq!(policy.background_share, Ppm::new(250_000));
    assert_eq!((policy.guard_parallel, policy.reserve_interactive_slots, policy.embedding_chunk), (2, 0, 16));
    assert_eq!((policy.batch_max_starvation, policy.hot_ttl), (Span::ZERO, Span::from_secs(300)));
    assert_eq!((policy.default_class, policy.routing), (Class::Background, Routing::JoinShortest));
    let expected = ClassPolicy {
        order: Order::Edf,
        admission: Admission::Deadline,
        max_queued: Some(100),
        max_queued_bytes: Bytes::from_mib(1),
        drop_hopeless: true,
        weight: Ppm::new(2_000_000),
    };
    assert_eq!(policy.classes[0], expected);
    assert_eq!(policy.classes[1], ClassPolicy::of(Class::Background));
}

#[test]
fn an_empty_policy_is_the_default_one() {
    let text = "[policy]\n[[devices]]\nname = 'd'\n[models.m]\nservice = { kind = 'batch', beta = '1ms' }\n[[workload]]\nname = 'w'\nmodel = 'm'\narrivals = { process = 'at', times = ['0s'] }\n";
    let scenario = ScenarioFile::parse(text, Path::new("s.toml")).unwrap().resolve(&[]).unwrap();
    assert_eq!(scenario.configuration.policy, Policy::default());
    assert_eq!(scenario.title, "s");
    assert_eq!((scenario.run.horizon, scenario.run.replications, scenario.run.warmup), (None, 10, Warmup::Auto));
    assert_eq!(scenario.configuration.models[0].capacity, Capacity::Batch { max: 1, wait: Span::ZERO });
    assert!(scenario.faults.is_empty());
    assert_eq!(scenario.footprints, [Footprint::default()]);
}

#[test]
fn workloads_know_models_by_any_of_their_names() {
    let scenario = everything();
    let wanted: Vec<Wanted> = scenario.workloads.iter().map(|workload| workload.wanted).collect();
    let model = |id| Wanted::Model(ModelId(id));
    assert_eq!(wanted[..3], [Wanted::Family(FamilyId(0)), model(0), model(2)]);
    let chat = &scenario.workloads[0];
    assert_eq!(
        (chat.class, chat.quality, chat.max_tokens),
        (Some(Class::Interactive), Some(Quality::Balanced), Some(512))
    );
    assert_eq!(chat.needs, Needs::NONE.with(Capability::Vision));
    assert_eq!((chat.deadline, chat.max_wait), (Some(ms(100)), Some(Span::from_secs(30))));
    assert_eq!(
        (chat.from, chat.to, chat.drop_hopeless),
        (Span::from_secs(10), Some(Span::from_secs(500)), Some(false))
    );
    assert_eq!(chat.patience, Some(Distribution::Exponential { mean: 60.0 }));
    assert_eq!(scenario.workloads[2].class, None);
    assert_eq!(scenario.configuration.labels[1], "index");
}

#[test]
fn sizes_come_in_every_distribution() {
    let workloads = everything().workloads;
    assert_eq!(workloads[0].prompt_tokens, Distribution::Lognormal { median: 400.0, cv: 1.0 });
    assert_eq!(workloads[0].output_tokens, Distribution::Constant(120.0));
    assert_eq!(workloads[1].inputs, Distribution::Uniform { low: 1.0, high: 64.0 });
    assert_eq!(workloads[1].prompt_tokens, Distribution::Empirical(vec![12.0, 30.5, 3.0]));
    assert_eq!(workloads[2].prompt_tokens, Distribution::Gamma { mean: 90.0, cv: 2.0 });
    assert_eq!(workloads[3].patience, Some(Distribution::Uniform { low: 10.0, high: 20.0 }));
    let Arrivals::Clients { count: 6, think } = &workloads[3].arrivals else { panic!() };
    assert!((think.mean() - 2.0).abs() < 1e-12);
}

#[test]
fn arrivals_come_in_every_process() {
    let workloads = everything().workloads;
    assert_eq!(workloads[0].arrivals, Arrivals::Poisson { rate: 1.5 });
    assert_eq!(workloads[1].arrivals, Arrivals::Gamma { rate: 20.0, cv: 3.0 });
    let means = vec![Span::from_secs(50), Span::from_secs(5)];
    assert_eq!(workloads[2].arrivals, Arrivals::Mmpp { rates: vec![5.0, 200.0], means });
    assert_eq!(workloads[4].arrivals, Arrivals::Constant { rate: 0.25 });
    let Arrivals::Trace(trace) = &workloads[5].arrivals else { panic!() };
    assert!(trace.file.ends_with("tests/files/trace.csv"));
    assert_eq!((trace.format, trace.dejitter, trace.time_scale), (TraceFormat::Csv, Dejitter::Uniform, 2.0));
    let plain = |at| Request { at, inputs: None, prompt_tokens: None, output_tokens: None };
    assert_eq!(workloads[6].arrivals, Arrivals::At(vec![plain(Span::ZERO), plain(ms(1500))]));
    let sized = Request { at: Span::ZERO, inputs: Some(2), prompt_tokens: Some(9), output_tokens: Some(3) };
    assert_eq!(workloads[7].arrivals, Arrivals::At(vec![sized]));
}

#[test]
fn sweeps_targets_and_expectations_are_in_the_units_of_reports() {
    let scenario = everything();
    let steps = SweepValues::Steps { from: 0.3, to: 1.2, steps: 10, of: SweepUnit::Capacity };
    assert_eq!(scenario.sweeps[0], Sweep { key: "workload.chat.arrivals.rate".to_owned(), values: steps });
    assert_eq!(scenario.sweeps[1].values, SweepValues::List(["0.25", "0.5", "1"].map(str::to_owned).to_vec()));
    assert_eq!(scenario.target, Some(Target { metric: "workload.chat.p99".to_owned(), at_most: 0.05 }));
    let ranges: Vec<&Claim> = scenario.expectations.iter().map(|one| &one.claim).collect();
    let metric = |name: &str, range| Claim::Metric { name: name.to_owned(), range };
    assert_eq!(*ranges[0], metric("class.interactive.p99", Range::AtMost(3.0)));
    assert_eq!(*ranges[3], metric("device.big0.busy", Range::Between(0.05, 0.9)));
    assert_eq!(*ranges[4], metric("workload.chat.throughput", Range::Within { share: 0.05, of: 1880.0 }));
    assert_eq!(*ranges[5], Claim::Events(["enqueue interactive", "dispatch interactive"].map(str::to_owned).to_vec()));
    assert_eq!(*ranges[6], Claim::Never("evict embedder".to_owned()));
    let text = include_str!("files/everything.toml");
    let lines: Vec<usize> = text.lines().zip(1..).filter(|(line, _)| *line == "[[expect]]").map(|(_, at)| at).collect();
    assert_eq!(scenario.expectations.iter().map(|one| one.line).collect::<Vec<_>>(), lines);
}

#[test]
fn a_model_with_a_footprint_is_loaded_when_it_is_wanted() {
    let scenario = everything();
    let footprint =
        Footprint { truth: Some(Bytes::from_mib(512)), estimate: Some(Bytes::from_mib(600)), measured: true };
    assert_eq!(scenario.footprints, [footprint, Footprint::default(), Footprint::default()]);
    let with = |set: &[&str]| {
        let sets: Vec<Override> = set.iter().map(|one| Override::parse(one).unwrap()).collect();
        let scenario = file("everything.toml").resolve(&sets).unwrap_or_else(|error| panic!("{error}"));
        (scenario.residents[1].len(), scenario.configuration.models[1].replicas)
    };
    assert_eq!(with(&[]), (3, Replicas::All));
    assert_eq!(with(&["models.large.footprint=1GiB"]), (0, Replicas::Count(1)));
    assert_eq!(with(&["models.large.footprint=1GiB", "models.large.replicas=all"]), (0, Replicas::All));
    assert_eq!(with(&["models.large.footprint=1GiB", "models.large.resident=true"]), (3, Replicas::All));
    assert_eq!(with(&["models.large.resident=false"]), (0, Replicas::Count(1)));
}

#[test]
fn capacity_is_the_formula_of_the_service() {
    let scenario = everything();
    // Inputs are 32.5 in the mean; card big0 runs at 1.25, card small0 has a service of its own.
    let embedder = 1.25 * 32.0 / (0.001 + 0.0005 * 32.0) + 32.0 / (0.003 + 0.0015 * 32.0);
    let close =
        |got: Option<f64>, want: f64| assert!((got.unwrap() / want - 1.0).abs() < 1e-12, "{got:?} is not {want}");
    close(scenario.capacity(1), embedder / 32.5);
    // A chat that needs vision may use only the large model, four slots on each of three cards.
    let large = 1.0 / (0.005 + 0.0002 * 400.0 * 2f64.sqrt() + 119.0 * (0.008 / 4.0 + 0.0015));
    close(scenario.capacity(0), (1.25 + 1.25 + 1.0) * large);
    assert_eq!(scenario.capacity(5), None);
    assert_eq!(scenario.capacity(99), None);
}

#[test]
fn rates_of_open_workloads_are_scaled_together() {
    let mut scenario = everything();
    let before = 1.5 + 20.0 + (5.0 * 50.0 + 200.0 * 5.0) / 55.0 + 0.25;
    assert!((scenario.open_rate() - before).abs() < 1e-9);
    scenario.scale_rates(2.0);
    assert!((scenario.open_rate() - 2.0 * before).abs() < 1e-9);
    let scales: Vec<f64> = scenario.workloads.iter().map(|workload| workload.rate_scale).collect();
    assert_eq!(scales, [2.0, 2.0, 2.0, 1.0, 2.0, 2.0, 1.0, 1.0]);
}

#[test]
fn a_scenario_lies_over_its_base() {
    let text = "base = 'house.toml'\n[run]\nhorizon = '1s'\n[[devices]]\nname = 'gpu'\ncount = 3\n[models.writer]\nbatch = { max = 4 }\n[policy.classes.background]\norder = 'edf'\n[[workload]]\nname = 'w'\nmodel = 'writer'\narrivals = { process = 'poisson', rate = 1 }\n";
    let origin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/over.toml");
    let scenario = ScenarioFile::parse(text, &origin).unwrap().resolve(&[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.configuration.devices.len(), 3);
    assert_eq!(scenario.configuration.devices[2].memory, Some(Bytes::from_mib(24 << 10)));
    assert_eq!(scenario.configuration.models[0].capacity, Capacity::Batch { max: 4, wait: ms(2) });
    let policy = &scenario.configuration.policy;
    assert_eq!(policy.interactive_idle, Span::from_secs(1));
    assert_eq!((policy.classes[1].order, policy.classes[1].max_queued), (Order::Edf, Some(10_000)));
}
