//! The load of a scenario as one number.

use windtunnel_config::Arrivals;

use super::Setup;
use crate::SimError;

impl Setup {
    /// Names and mean rates, in requests per second, of the workloads whose rates scale: open ones, recorded ones at the
    /// rate of their recordings.
    pub fn open_rates(&self) -> Vec<(String, f64)> {
        let rate = |(place, workload): (usize, &windtunnel_config::Workload)| {
            let rate = match &workload.arrivals {
                Arrivals::Trace(trace) => {
                    Some(self.recording(place)?.summary.rate? * trace.time_scale * workload.rate_scale)
                }
                Arrivals::Poisson { .. }
                | Arrivals::Constant { .. }
                | Arrivals::Gamma { .. }
                | Arrivals::Mmpp { .. }
                | Arrivals::Clients { .. }
                | Arrivals::At(_) => workload.open_rate(),
            };
            Some((workload.name.clone(), rate?))
        };
        self.scenario.workloads.iter().enumerate().filter_map(rate).collect()
    }

    /// Their sum.
    pub fn open_rate(&self) -> f64 {
        self.open_rates().iter().map(|(_, rate)| rate).sum()
    }

    /// The same scenario with all of them scaled in proportion so that their sum is `rate`. The draws stay the same; their
    /// gaps are divided.
    ///
    /// # Errors
    /// If there is no rate to scale, or `rate` is none.
    pub fn at_rate(&self, rate: f64) -> Result<Setup, SimError> {
        if !(rate.is_finite() && rate > 0.0) {
            return Err(SimError::Scenario(format!(
                "a rate of {rate} requests a second cannot be offered; it must be above 0"
            )));
        }
        let now = self.open_rate();
        if now <= 0.0 {
            let nothing = "no workload has a rate that could be set; clients and given times have none";
            return Err(SimError::Scenario(nothing.to_owned()));
        }
        self.with(|scenario| scenario.scale_rates(rate / now))
    }
}
