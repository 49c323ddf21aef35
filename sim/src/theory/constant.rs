//! Constant service: M/D/k.

use super::chain::stationary_of_endless;
use super::poisson::{cumulated, poisson};
use super::quantile::quantile;

/// M/D/k, served in order of arrival (Crommelin, 1932). Whoever is in service now has left one service time from now, so
/// the number in the system then is what exceeds k now plus the arrivals between: a chain, whose stationary probabilities
/// are those of any moment.
#[derive(Clone, Debug)]
pub struct Mdk {
    servers: usize,
    arrival: f64,
    service_time: f64,
    states: Vec<f64>,
    /// The probability that at most so many wait.
    at_most_waiting: Vec<f64>,
}

impl Mdk {
    /// The queue with so many servers, so many arrivals per unit of time and this service time. `None` when it does not
    /// settle or is so close to that that its chain cannot be solved.
    pub fn new(servers: u32, arrival: f64, service_time: f64) -> Option<Mdk> {
        let servers = servers as usize;
        if arrival * service_time >= servers as f64 {
            return None;
        }
        let arriving = poisson(arrival * service_time);
        let states = stationary_of_endless(|n| (n.saturating_sub(servers), arriving.clone()))?;
        let at_most_waiting = cumulated(&states).split_off(servers);
        Some(Mdk { servers, arrival, service_time, states, at_most_waiting })
    }

    /// The share of arrivals that wait.
    pub fn wait_probability(&self) -> f64 {
        self.states[self.servers..].iter().sum()
    }

    /// Mean number waiting.
    pub fn mean_waiting(&self) -> f64 {
        self.states[self.servers..].iter().enumerate().map(|(n, state)| n as f64 * state).sum()
    }

    /// Mean wait.
    pub fn mean_wait(&self) -> f64 {
        self.mean_waiting() / self.arrival
    }

    /// Mean wait and service.
    pub fn mean_sojourn(&self) -> f64 {
        self.mean_wait() + self.service_time
    }

    /// Mean number in the system.
    pub fn mean_in_system(&self) -> f64 {
        self.arrival * self.mean_sojourn()
    }

    /// The quantile of the wait.
    pub fn wait_quantile(&self, p: f64) -> f64 {
        quantile(p, self.service_time, |t| self.wait_at_most(t))
    }

    /// P(wait <= t) for (n-1)D <= t < nD is a sum over j from 0 to nk-1 of P(at most nk-1-j wait) times the probability of j
    /// arrivals in nD - t (Franx, 2001, equation 2). All terms are positive, unlike in Crommelin's and Erlang's sums.
    fn wait_at_most(&self, t: f64) -> f64 {
        let periods = (t / self.service_time).floor() + 1.0;
        let most = periods as usize * self.servers - 1;
        let arriving = poisson(self.arrival * (periods * self.service_time - t));
        arriving.iter().take(most + 1).enumerate().map(|(j, weight)| weight * self.waiting_at_most(most - j)).sum()
    }

    fn waiting_at_most(&self, n: usize) -> f64 {
        self.at_most_waiting.get(n).copied().unwrap_or(1.0)
    }
}
