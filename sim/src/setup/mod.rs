//! A scenario made ready: everything that all its replications share is worked out once.

mod beliefs;
mod facts;
mod rates;

use std::sync::Arc;

use windtunnel_config::{Arrivals, Dejitter, Distribution, Scenario, Service, Workload};
use windtunnel_core::{Capacity, DeviceId, ModelId, Resident, Span, Submission};

use crate::{
    SimError,
    arrivals::NoiseKinds,
    cards::ServiceModel,
    recorded::{LoadTimes, Requests},
    run::Rigour,
    trace::{self, Recording},
};

/// A scenario, its traces read and its service times tabulated. Cloning it shares the traces.
#[derive(Clone, Debug)]
pub struct Setup {
    scenario: Scenario,
    recordings: Vec<Option<Arc<Recording>>>,
    services: Arc<Vec<Vec<Option<ServiceModel>>>>,
    checkpoints: Option<Span>,
    rigour: Rigour,
    requests: Option<Arc<Requests>>,
    loads: Arc<LoadTimes>,
}

impl Setup {
    /// Makes `scenario` ready.
    ///
    /// # Errors
    /// If a trace cannot be used, or the scenario asks for something that cannot be simulated.
    pub fn new(scenario: Scenario) -> Result<Setup, SimError> {
        check(&scenario)?;
        let recordings = scenario.workloads.iter().map(recording).collect::<Result<_, _>>()?;
        let services = Arc::new(services(&scenario));
        let (checkpoints, rigour, requests) = (None, Rigour::default(), None);
        let loads = Arc::default();
        Ok(Setup { scenario, recordings, services, checkpoints, rigour, requests, loads })
    }

    /// The same, with the scheduler's whole state recorded whenever so much virtual time has passed.
    #[must_use]
    pub fn with_checkpoints(mut self, every: Span) -> Setup {
        self.checkpoints = Some(every);
        self
    }

    /// The same with every invariant checked after every step; a run stops where one does not hold.
    #[must_use]
    pub(crate) fn with_rigour(mut self) -> Setup {
        self.rigour = Rigour::EveryStep;
        self
    }

    pub(crate) fn rigour(&self) -> Rigour {
        self.rigour
    }

    /// The same with patience and service of each request as recorded.
    #[must_use]
    pub(crate) fn with_requests(mut self, requests: Arc<Requests>) -> Setup {
        self.requests = Some(requests);
        let recorded = |service: &Option<ServiceModel>| service.clone().map(ServiceModel::recorded);
        let services = self.services.iter().map(|on| on.iter().map(recorded).collect());
        self.services = Arc::new(services.collect());
        self
    }

    /// The same with loads that take as long as was recorded.
    #[must_use]
    pub(crate) fn with_load_times(mut self, loads: LoadTimes) -> Setup {
        self.loads = Arc::new(loads);
        self
    }

    /// How long a load was recorded to take; `None`: as the device has it.
    pub(crate) fn recorded_load(&self, model: ModelId, device: DeviceId) -> Option<Span> {
        self.loads.of(model, device)
    }

    #[inline]
    pub(crate) fn requests(&self) -> Option<&Requests> {
        self.requests.as_deref()
    }

    pub(crate) fn checkpoints(&self) -> Option<Span> {
        self.checkpoints.filter(|every| !every.is_zero())
    }

    /// The same with another scenario that differs in what is neither read from files nor tabulated: rates, seeds, lengths.
    ///
    /// # Errors
    /// If that scenario asks for something that cannot be simulated.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Scenario)) -> Result<Setup, SimError> {
        let mut other = self.clone();
        change(&mut other.scenario);
        check(&other.scenario)?;
        Ok(other)
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The trace of the workload at `place`, where it has one.
    pub fn recording(&self, place: usize) -> Option<&Recording> {
        self.recordings.get(place)?.as_deref()
    }

    pub(crate) fn service(&self, model: ModelId, device: DeviceId) -> Option<&ServiceModel> {
        self.services.get(model.index())?.get(device.index())?.as_ref()
    }

    /// What is loaded at the start, by instance id: by model, within a model in the order of the scenario.
    pub(crate) fn residents(&self) -> Vec<Resident> {
        let models = (0..).map(ModelId).zip(&self.scenario.residents);
        models.flat_map(|(model, devices)| devices.iter().map(move |&device| Resident { model, device })).collect()
    }

    /// What the requests of each workload have in common.
    pub(crate) fn submissions(&self) -> Vec<Submission> {
        let labels = (0..).map(windtunnel_core::LabelId);
        labels.zip(&self.scenario.workloads).map(|(label, workload)| submission(label, workload)).collect()
    }

    /// Whether one replication can differ from another.
    fn draws_anything(&self) -> bool {
        let drawn = |distribution: &Distribution| !matches!(distribution, Distribution::Constant(_));
        let arrivals = |arrivals: &Arrivals| match arrivals {
            Arrivals::At(_) => false,
            Arrivals::Trace(trace) => trace.dejitter != Dejitter::None,
            Arrivals::Clients { count: _, think } => drawn(think),
            Arrivals::Poisson { .. } | Arrivals::Constant { .. } | Arrivals::Gamma { .. } | Arrivals::Mmpp { .. } => {
                true
            }
        };
        self.scenario.workloads.iter().any(|workload| {
            let sizes = [&workload.inputs, &workload.prompt_tokens, &workload.output_tokens];
            sizes.into_iter().chain(&workload.patience).any(drawn)
                || arrivals(&workload.arrivals)
                || NoiseKinds::of(&self.scenario, workload) != NoiseKinds::default()
        })
    }

    /// Whether any request has output tokens.
    pub(crate) fn has_output(&self) -> bool {
        let none = Distribution::Constant(0.0);
        self.scenario.workloads.iter().any(|workload| {
            workload.output_tokens != none || matches!(workload.arrivals, Arrivals::Trace(_) | Arrivals::At(_))
        })
    }
}

fn submission(label: windtunnel_core::LabelId, workload: &Workload) -> Submission {
    Submission {
        label,
        wanted: workload.wanted,
        class: workload.class,
        kind: workload.kind,
        inputs: 1,
        prompt_tokens: 0,
        max_tokens: workload.max_tokens,
        deadline: workload.deadline,
        max_wait: workload.max_wait,
        drop_hopeless: workload.drop_hopeless,
        quality: workload.quality,
        needs: workload.needs,
        body: windtunnel_core::Bytes::ZERO,
        client: None,
        affinity: None,
    }
}

fn recording(workload: &Workload) -> Result<Option<Arc<Recording>>, SimError> {
    match &workload.arrivals {
        Arrivals::Trace(trace) => Ok(Some(Arc::new(trace::load(trace)?))),
        Arrivals::Poisson { .. }
        | Arrivals::Constant { .. }
        | Arrivals::Gamma { .. }
        | Arrivals::Mmpp { .. }
        | Arrivals::Clients { .. }
        | Arrivals::At(_) => Ok(None),
    }
}

fn services(scenario: &Scenario) -> Vec<Vec<Option<ServiceModel>>> {
    let chunk = scenario.configuration.policy.embedding_chunk;
    let of_model = |(model, services): (&windtunnel_core::Model, &Vec<Option<Service>>)| {
        let largest = match model.capacity {
            Capacity::Batch { max, wait: _ } => max,
            Capacity::Slots { slots: _ } => chunk,
        };
        services.iter().map(|service| service.as_ref().map(|service| ServiceModel::new(service, largest))).collect()
    };
    scenario.configuration.models.iter().zip(&scenario.services).map(of_model).collect()
}

fn check(scenario: &Scenario) -> Result<(), SimError> {
    let endless = |workload: &Workload| match workload.arrivals {
        Arrivals::Trace(_) | Arrivals::At(_) => false,
        Arrivals::Poisson { .. }
        | Arrivals::Constant { .. }
        | Arrivals::Gamma { .. }
        | Arrivals::Mmpp { .. }
        | Arrivals::Clients { .. } => workload.to.is_none(),
    };
    if scenario.run.horizon.is_none() && scenario.run.jobs.is_none() && scenario.workloads.iter().any(endless) {
        return Err(SimError::Scenario(
            "the run has neither a `horizon` nor a number of `jobs` and would never end".into(),
        ));
    }
    for (place, model) in scenario.configuration.models.iter().enumerate() {
        let services = scenario.services.get(place).map_or(&[][..], Vec::as_slice);
        let fluid = services.iter().flatten().any(|service| matches!(service, Service::Slots { .. }));
        if fluid && matches!(model.capacity, Capacity::Batch { .. }) {
            let name = &model.name;
            return Err(SimError::Scenario(format!(
                "model {name} has a service of kind `slots`, which starts every request on its own, and `batch`; give it `slots`"
            )));
        }
        for device in scenario.residents.get(place).into_iter().flatten() {
            if services.get(device.index()).is_none_or(Option::is_none) {
                let name = &model.name;
                return Err(SimError::Scenario(format!(
                    "model {name} is resident on {device}, where it has no service"
                )));
            }
        }
    }
    Ok(())
}
