//! What a scenario can carry, by formulas: means of distributions, capacity, offered rates.

use windtunnel_core::{Capacity, Model, ModelId, Variant, Wanted};

use crate::scenario::{Arrivals, Distribution, Scenario, Service, Workload};

impl Distribution {
    /// Its mean; infinity or not a number where the parameters leave none.
    pub fn mean(&self) -> f64 {
        match self {
            Distribution::Constant(value) => *value,
            Distribution::Uniform { low, high } => (low + high) / 2.0,
            Distribution::Exponential { mean } | Distribution::Gamma { mean, .. } => *mean,
            Distribution::Lognormal { median, cv } => median * (1.0 + cv * cv).sqrt(),
            Distribution::Empirical(values) => values.iter().sum::<f64>() / values.len() as f64,
        }
    }
}

/// Mean sizes of a workload's requests.
struct Sizes {
    inputs: f64,
    prompt: f64,
    output: f64,
}

impl Scenario {
    /// The rate in requests per second that the residents of a workload's model, or of those variants of its family that it
    /// may use, can carry when they serve nobody else: for batches the sum over the cards of speed*max/(alpha + beta*max)
    /// over the mean inputs of a request, for slots that of speed/(prefill + (output - 1)*(alpha/n + beta)) at mean sizes.
    /// `None` for a workload that does not exist, whose sizes come from a trace, or that nothing resident serves.
    pub fn capacity(&self, label: usize) -> Option<f64> {
        let workload = self.workloads.get(label)?;
        let sizes = Sizes::of(workload)?;
        let models = self.models_of(workload);
        let total: f64 = models.into_iter().map(|model| self.capacity_of(model, &sizes)).sum();
        (total.is_finite() && total > 0.0).then_some(total)
    }

    /// The total mean rate of the open workloads, in requests per second; traces and fixed moments, whose rate the scenario
    /// does not tell, count nothing. Windows (`from`, `to`) are not looked at.
    pub fn open_rate(&self) -> f64 {
        self.workloads.iter().filter_map(Workload::open_rate).sum()
    }

    /// Multiplies the rate of every open workload, recorded traces included, by `factor`; closed clients and fixed moments
    /// stay as they are.
    pub fn scale_rates(&mut self, factor: f64) {
        for workload in self.workloads.iter_mut().filter(|workload| workload.is_scalable()) {
            workload.rate_scale *= factor;
        }
    }

    fn models_of(&self, workload: &Workload) -> Vec<ModelId> {
        let needs = workload.needs.with(workload.kind.capability());
        let allowed = |variant: &&Variant| {
            let model = self.configuration.model(variant.model);
            workload.quality.is_none_or(|least| variant.quality <= least) && model.is_some_and(|model| model.can(needs))
        };
        match workload.wanted {
            Wanted::Model(model) => vec![model],
            Wanted::Family(family) => {
                let family = self.configuration.families.get(family.index());
                family
                    .map(|family| family.variants.iter().filter(allowed).map(|one| one.model).collect())
                    .unwrap_or_default()
            }
        }
    }

    fn capacity_of(&self, id: ModelId, sizes: &Sizes) -> f64 {
        let (Some(model), Some(residents)) = (self.configuration.model(id), self.residents.get(id.index())) else {
            return 0.0;
        };
        let on = |device: usize| {
            let service = self.services.get(id.index())?.get(device)?.as_ref()?;
            Some(self.cards.get(device)?.speed * rate_of_one(model, service, sizes))
        };
        residents.iter().filter_map(|device| on(device.index())).sum()
    }
}

impl Workload {
    /// The mean rate of an open workload in requests per second, scaled by [`Workload::rate_scale`]; `None` where the
    /// scenario does not tell it. A modulated one is in each state for a share of the time in proportion to its mean stay.
    pub fn open_rate(&self) -> Option<f64> {
        let rate = match &self.arrivals {
            Arrivals::Poisson { rate } | Arrivals::Constant { rate } | Arrivals::Gamma { rate, .. } => *rate,
            Arrivals::Mmpp { rates, means } => {
                let seconds = || means.iter().map(|mean| mean.as_nanos() as f64);
                rates.iter().zip(seconds()).map(|(rate, stay)| rate * stay).sum::<f64>() / seconds().sum::<f64>()
            }
            Arrivals::Clients { .. } | Arrivals::Trace(_) | Arrivals::At(_) => return None,
        };
        Some(rate * self.rate_scale)
    }

    fn is_scalable(&self) -> bool {
        match self.arrivals {
            Arrivals::Poisson { .. }
            | Arrivals::Constant { .. }
            | Arrivals::Gamma { .. }
            | Arrivals::Mmpp { .. }
            | Arrivals::Trace(_) => true,
            Arrivals::Clients { .. } | Arrivals::At(_) => false,
        }
    }
}

impl Sizes {
    fn of(workload: &Workload) -> Option<Sizes> {
        let drawn = Sizes {
            inputs: workload.inputs.mean().max(1.0),
            prompt: workload.prompt_tokens.mean(),
            output: workload.output_tokens.mean(),
        };
        match &workload.arrivals {
            Arrivals::Trace(_) => None,
            Arrivals::At(requests) if requests.is_empty() => None,
            Arrivals::At(requests) => {
                let mean = |own: &dyn Fn(&crate::scenario::Request) -> Option<u32>, drawn: f64| {
                    requests.iter().map(|one| own(one).map_or(drawn, f64::from)).sum::<f64>() / requests.len() as f64
                };
                Some(Sizes {
                    inputs: mean(&|one| one.inputs, drawn.inputs),
                    prompt: mean(&|one| one.prompt_tokens, drawn.prompt),
                    output: mean(&|one| one.output_tokens, drawn.output),
                })
            }
            Arrivals::Poisson { .. }
            | Arrivals::Constant { .. }
            | Arrivals::Gamma { .. }
            | Arrivals::Mmpp { .. }
            | Arrivals::Clients { .. } => Some(drawn),
        }
    }
}

/// Requests per second of one instance alone on a card of speed 1.
fn rate_of_one(model: &Model, service: &Service, sizes: &Sizes) -> f64 {
    let seconds = |span: &windtunnel_core::Span| span.as_nanos() as f64 / 1e9;
    match (service, model.capacity) {
        (Service::Batch { alpha, beta, noise: _ }, Capacity::Batch { max, wait: _ }) => {
            let max = f64::from(max);
            max / (seconds(alpha) + seconds(beta) * max) / sizes.inputs
        }
        (
            Service::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice: _ },
            Capacity::Slots { slots },
        ) => {
            let prefill = seconds(prefill_fixed) + seconds(prefill_per_token) * sizes.prompt * sizes.inputs;
            let token = seconds(decode_alpha) / f64::from(slots) + seconds(decode_beta);
            1.0 / (prefill + (sizes.output - 1.0).max(0.0) * token)
        }
        (Service::Batch { alpha, beta, noise: _ }, Capacity::Slots { slots }) => {
            f64::from(slots) / (seconds(alpha) + seconds(beta) * sizes.inputs)
        }
        (Service::Slots { .. }, Capacity::Batch { .. }) => 0.0,
    }
}
