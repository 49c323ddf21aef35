//! Scenarios for textbook queues, built without a file.

use windtunnel_config::{Arrivals, Card, Distribution, Noise, Run, Scenario, Service, Warmup, Workload};
use windtunnel_core::{
    Admission, Capacity, Class, Configuration, Device, DeviceId, DeviceKind, JobKind, Model, ModelId, Needs, Order,
    Placement, Policy, Prediction, Replicas, ServiceTimes, Span, Wanted,
};

/// Equal cards with one model, and who asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// How many cards.
    pub cards: u32,
    /// Time per batch.
    pub alpha: Span,
    /// Time per request of a batch.
    pub beta: Span,
    /// The most requests in a batch.
    pub max: u32,
    /// How batch times vary.
    pub noise: Noise,
    /// Who asks.
    pub flows: Vec<Flow>,
    /// Who is refused.
    pub admission: Admission,
    /// Which waiting request is next.
    pub order: Order,
    /// How long the beginning is that is left out.
    pub warmup: Warmup,
}

/// A stream of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The name of the workload.
    pub name: String,
    /// The class of its requests.
    pub class: Class,
    /// How its requests come.
    pub arrivals: Arrivals,
    /// Due so long after arrival.
    pub deadline: Option<Span>,
}

impl Flow {
    /// A Poisson stream named after its class.
    pub fn poisson(class: Class, rate: f64) -> Flow {
        Flow { name: class.name().to_owned(), class, arrivals: Arrivals::Poisson { rate }, deadline: None }
    }
}

impl System {
    /// One card that serves requests one at a time in `service`, on average, asked by one interactive flow.
    pub fn single(service: Span, noise: Noise, rate: f64) -> System {
        System {
            cards: 1,
            alpha: service,
            beta: Span::ZERO,
            max: 1,
            noise,
            flows: vec![Flow::poisson(Class::Interactive, rate)],
            admission: Admission::None,
            order: Order::Fifo,
            warmup: Warmup::Share(0.1),
        }
    }

    /// One card that serves batches of up to `max` in alpha + beta B.
    pub fn batching(alpha: Span, beta: Span, max: u32, rate: f64) -> System {
        System { beta, max, ..System::single(alpha, Noise::None, rate) }
    }

    /// The scenario: so many arrivals, one replication after another from `seed`. Classes are strict: no window, no guard.
    pub fn scenario(&self, title: &str, jobs: u64, seed: u64) -> Scenario {
        let devices: Vec<DeviceId> = (0..self.cards).map(DeviceId).collect();
        let service = Service::Batch { alpha: self.alpha, beta: self.beta, noise: self.noise };
        Scenario {
            title: title.to_owned(),
            run: Run { horizon: None, jobs: Some(jobs), warmup: self.warmup, seed, replications: 1, drain: false },
            configuration: self.configuration(&devices, seed),
            cards: devices.iter().map(|_| Card::default()).collect(),
            services: vec![devices.iter().map(|_| Some(service.clone())).collect()],
            residents: vec![devices],
            workloads: self.flows.iter().map(|flow| self.workload(flow)).collect(),
            sweeps: Vec::new(),
            target: None,
            expectations: Vec::new(),
            footprints: Vec::new(),
            faults: Vec::new(),
        }
    }

    fn configuration(&self, devices: &[DeviceId], seed: u64) -> Configuration {
        let predicted = ServiceTimes::Batch { alpha: self.alpha, beta: self.beta };
        let device = |id: &DeviceId| Device::new(format!("gpu{}", id.0), DeviceKind::Discrete, None);
        Configuration {
            policy: self.policy(),
            devices: devices.iter().map(device).collect(),
            models: vec![Model {
                name: "m".to_owned(),
                aliases: Vec::new(),
                capabilities: Vec::new(),
                capacity: Capacity::Batch { max: self.max, wait: Span::ZERO },
                replicas: Replicas::All,
                placements: devices.iter().map(|device| Placement { device: *device, predicted }).collect(),
                prediction: Prediction::Configured,
                pinned: false,
                preload: false,
                idle_ttl: None,
            }],
            families: Vec::new(),
            labels: self.flows.iter().map(|flow| flow.name.clone()).collect(),
            seed,
        }
    }

    fn policy(&self) -> Policy {
        let mut policy = Policy {
            interactive_idle: Span::ZERO,
            background_max_starvation: Span::ZERO,
            batch_max_starvation: Span::ZERO,
            ..Policy::default()
        };
        for class in &mut policy.classes {
            class.order = self.order;
            class.admission = self.admission;
        }
        policy
    }

    fn workload(&self, flow: &Flow) -> Workload {
        Workload {
            name: flow.name.clone(),
            class: Some(flow.class),
            wanted: Wanted::Model(ModelId(0)),
            kind: JobKind::Chat,
            quality: None,
            needs: Needs::NONE,
            needs_listed: Vec::new(),
            patience: None,
            drop_hopeless: None,
            deadline: flow.deadline,
            max_wait: None,
            inputs: Distribution::Constant(1.0),
            prompt_tokens: Distribution::Constant(0.0),
            output_tokens: Distribution::Constant(0.0),
            max_tokens: None,
            arrivals: flow.arrivals.clone(),
            rate_scale: 1.0,
            from: Span::ZERO,
            to: None,
        }
    }
}
