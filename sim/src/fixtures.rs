//! Scenarios for tests, written out where a file would only get in the way.

use windtunnel_config::{Arrivals, Card, Distribution, Noise, Run, Scenario, Service, Warmup, Workload};
use windtunnel_core::{
    Capacity, Class, Configuration, Device, DeviceId, DeviceKind, Effects, Input, JobKind, Model, ModelId, Needs,
    Placement, Policy, Prediction, Replicas, ServiceTimes, Span, Time, Wanted,
};
use windtunnel_reports::{
    Recorder,
    journal::{End, Header},
};

/// So many equal cards with model `m` resident on each: batches of up to 32 in 1 ms + 0.5 ms for each input. No workload;
/// a horizon of ten seconds.
pub fn scenario(cards: u32) -> Scenario {
    let devices: Vec<DeviceId> = (0..cards).map(DeviceId).collect();
    let predicted = ServiceTimes::Batch { alpha: Span::from_millis(1), beta: Span::from_micros(500) };
    let device = |id: &DeviceId| Device::new(format!("gpu{}", id.0), DeviceKind::Discrete, None);
    let service = Service::Batch { alpha: Span::from_millis(1), beta: Span::from_micros(500), noise: Noise::None };
    Scenario {
        title: "a test".to_owned(),
        run: Run {
            horizon: Some(Span::from_secs(10)),
            jobs: None,
            warmup: Warmup::Fixed(Span::ZERO),
            seed: 1,
            replications: 1,
            drain: false,
        },
        configuration: Configuration {
            policy: Policy::default(),
            devices: devices.iter().map(device).collect(),
            models: vec![Model {
                name: "m".to_owned(),
                aliases: Vec::new(),
                capabilities: Vec::new(),
                capacity: Capacity::Batch { max: 32, wait: Span::ZERO },
                replicas: Replicas::All,
                placements: devices.iter().map(|&device| Placement { device, predicted }).collect(),
                prediction: Prediction::Configured,
                pinned: false,
                preload: false,
                idle_ttl: None,
            }],
            families: Vec::new(),
            labels: Vec::new(),
            seed: 1,
        },
        cards: devices.iter().map(|_| Card::default()).collect(),
        services: vec![devices.iter().map(|_| Some(service.clone())).collect()],
        residents: vec![devices],
        workloads: Vec::new(),
        sweeps: Vec::new(),
        target: None,
        expectations: Vec::new(),
        footprints: Vec::new(),
        faults: Vec::new(),
    }
}

impl Asking for Scenario {
    fn asked_by(mut self, workload: Workload) -> Scenario {
        self.configuration.labels.push(workload.name.clone());
        self.workloads.push(workload);
        self
    }
}

/// Adding workloads to a scenario.
pub trait Asking {
    /// The scenario with one workload more.
    #[must_use]
    fn asked_by(self, workload: Workload) -> Scenario;
}

/// A poisson workload for model 0.
pub fn poisson(name: &str, rate: f64) -> Workload {
    Workload { arrivals: Arrivals::Poisson { rate }, ..workload(name) }
}

/// Writes everything down, each step as a line of what happened and what was wanted.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    pub header: Option<Header>,
    pub steps: Vec<(Time, Input, Vec<String>)>,
    pub end: Option<End>,
}

impl Recorder for Transcript {
    fn begin(&mut self, header: &Header) -> std::io::Result<()> {
        self.header = Some(header.clone());
        Ok(())
    }

    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> std::io::Result<()> {
        let wanted =
            effects.iter().map(|&effect| format!("{:?}", effect.map_steps(|steps| effects.steps(steps).to_vec())));
        self.steps.push((t, input.clone(), wanted.collect()));
        Ok(())
    }

    fn end(&mut self, end: &End) -> std::io::Result<()> {
        self.end = Some(end.clone());
        Ok(())
    }
}

/// One request a second for model 0, of one prompt and one output token.
pub fn workload(name: &str) -> Workload {
    Workload {
        name: name.to_owned(),
        class: Some(Class::Interactive),
        wanted: Wanted::Model(ModelId(0)),
        kind: JobKind::Chat,
        quality: None,
        needs: Needs::NONE,
        needs_listed: Vec::new(),
        patience: None,
        drop_hopeless: None,
        deadline: None,
        max_wait: None,
        inputs: Distribution::Constant(1.0),
        prompt_tokens: Distribution::Constant(1.0),
        output_tokens: Distribution::Constant(1.0),
        max_tokens: None,
        arrivals: Arrivals::Constant { rate: 1.0 },
        rate_scale: 1.0,
        from: Span::ZERO,
        to: None,
    }
}
