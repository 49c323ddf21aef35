//! Exponential service: Erlang's formulas (1917) and what follows from them.

use statrs::function::gamma::gamma_lr;

use super::quantile::quantile;

/// Erlang's loss formula B: the share of arrivals lost by `servers` servers without waiting room under `load` erlangs
/// (arrival rate times mean service). Recursion B(k) = aB(k-1)/(k + aB(k-1)).
pub fn erlang_b(servers: u32, load: f64) -> f64 {
    (1..=servers).fold(1.0, |lost, k| load * lost / (f64::from(k) + load * lost))
}

/// Erlang's delay formula C: the share of arrivals that wait for one of `servers` servers under `load` erlangs, below
/// `servers`. C = kB/(k - a(1 - B)).
pub fn erlang_c(servers: u32, load: f64) -> f64 {
    let (k, lost) = (f64::from(servers), erlang_b(servers, load));
    k * lost / (k - load * (1.0 - lost))
}

/// M/M/k: any number wait, served in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mmk {
    servers: u32,
    arrival: f64,
    service: f64,
    waits: f64,
}

impl Mmk {
    /// The queue with so many servers, so many arrivals and, at each server, so many services per unit of time. `None` when
    /// it does not settle.
    pub fn new(servers: u32, arrival: f64, service: f64) -> Option<Mmk> {
        let load = arrival / service;
        (load < f64::from(servers)).then(|| Mmk { servers, arrival, service, waits: erlang_c(servers, load) })
    }

    /// The share of arrivals that wait.
    pub fn wait_probability(&self) -> f64 {
        self.waits
    }

    /// Mean wait, over all arrivals.
    pub fn mean_wait(&self) -> f64 {
        self.waits / self.spare()
    }

    /// Mean wait and service.
    pub fn mean_sojourn(&self) -> f64 {
        self.mean_wait() + 1.0 / self.service
    }

    /// Mean number waiting (Little, 1961).
    pub fn mean_waiting(&self) -> f64 {
        self.arrival * self.mean_wait()
    }

    /// Mean number in the system.
    pub fn mean_in_system(&self) -> f64 {
        self.arrival * self.mean_sojourn()
    }

    /// The share of the servers that is busy.
    pub fn utilisation(&self) -> f64 {
        self.arrival / self.service / f64::from(self.servers)
    }

    /// The variance of the wait.
    pub fn wait_variance(&self) -> f64 {
        self.waits * (2.0 - self.waits) / self.spare().powi(2)
    }

    /// The quantile of the wait: P(wait > t) = C exp(-(k mu - lambda) t).
    pub fn wait_quantile(&self, p: f64) -> f64 {
        ((self.waits / (1.0 - p)).ln() / self.spare()).max(0.0)
    }

    /// The quantile of wait and service together.
    pub fn sojourn_quantile(&self, p: f64) -> f64 {
        quantile(p, self.mean_sojourn(), |t| 1.0 - self.sojourn_beyond(t))
    }

    /// P(wait + service > t): the wait's exponential tail folded with the exponential service. Written so that it stays
    /// right when both have nearly the same rate.
    fn sojourn_beyond(&self, t: f64) -> f64 {
        let gap = (self.service - self.spare()) * t;
        let folded = if gap == 0.0 { 1.0 } else { -(-gap).exp_m1() / gap };
        (-self.service * t).exp() + self.waits * self.service * t * (-self.spare() * t).exp() * folded
    }

    /// Services per unit of time that all servers together have to spare.
    fn spare(&self) -> f64 {
        f64::from(self.servers) * self.service - self.arrival
    }
}

/// M/M/k/K: at most K in the system, those in service included; who comes when it is full is lost.
#[derive(Clone, Debug, PartialEq)]
pub struct MmkK {
    servers: u32,
    arrival: f64,
    service: f64,
    /// The probability of each number in the system.
    states: Vec<f64>,
}

impl MmkK {
    /// The queue with so many servers, room for so many (at least as many) and these rates.
    pub fn new(servers: u32, room: u32, arrival: f64, service: f64) -> MmkK {
        let load = arrival / service;
        let mut states = vec![1.0];
        for n in 1..=room {
            let before = states[n as usize - 1];
            states.push(before * load / f64::from(n.min(servers)));
        }
        let sum: f64 = states.iter().sum();
        states.iter_mut().for_each(|state| *state /= sum);
        MmkK { servers, arrival, service, states }
    }

    /// The share of arrivals that is lost.
    pub fn blocking(&self) -> f64 {
        self.states[self.states.len() - 1]
    }

    /// Served per unit of time.
    pub fn throughput(&self) -> f64 {
        self.arrival * (1.0 - self.blocking())
    }

    /// Mean number in the system.
    pub fn mean_in_system(&self) -> f64 {
        self.states.iter().enumerate().map(|(n, state)| n as f64 * state).sum()
    }

    /// Mean number waiting.
    pub fn mean_waiting(&self) -> f64 {
        self.mean_in_system() - self.throughput() / self.service
    }

    /// Mean wait of those not lost.
    pub fn mean_wait(&self) -> f64 {
        self.mean_waiting() / self.throughput()
    }

    /// Mean wait and service of those not lost.
    pub fn mean_sojourn(&self) -> f64 {
        self.mean_in_system() / self.throughput()
    }

    /// The share of the servers that is busy.
    pub fn utilisation(&self) -> f64 {
        self.throughput() / self.service / f64::from(self.servers)
    }

    /// The share of those not lost that wait.
    pub fn wait_probability(&self) -> f64 {
        self.found(self.servers).map(|(_, share)| share).sum()
    }

    /// The quantile of the wait of those not lost: who finds n >= k waits for n - k + 1 services of all servers together.
    pub fn wait_quantile(&self, p: f64) -> f64 {
        let speed = f64::from(self.servers) * self.service;
        quantile(p, 1.0 / speed, |t| {
            let beyond =
                |n: u32| if t > 0.0 { 1.0 - gamma_lr(f64::from(n - self.servers + 1), speed * t) } else { 1.0 };
            1.0 - self.found(self.servers).map(|(n, share)| share * beyond(n)).sum::<f64>()
        })
    }

    /// How many those not lost find in the system, from `least` on, and how likely.
    fn found(&self, least: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        let kept = 1.0 - self.blocking();
        let room = self.states.len() as u32 - 1;
        (least..room).map(move |n| (n, self.states[n as usize] / kept))
    }
}
