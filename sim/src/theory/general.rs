//! General service at one server: Pollaczek and Khinchine, and Cobham's priorities.

/// The first two moments of a service time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServiceMoments {
    /// The mean.
    pub mean: f64,
    /// The mean of the square.
    pub square: f64,
}

impl ServiceMoments {
    /// A service with this mean and this coefficient of variation (not its square).
    pub fn with_cv(mean: f64, cv: f64) -> ServiceMoments {
        ServiceMoments { mean, square: mean * mean * (1.0 + cv * cv) }
    }
}

/// The mean wait in M/G/1 in order of arrival: lambda E\[S^2\] / (2 (1 - rho)) (Pollaczek, 1930; Khinchine, 1932). `None` when
/// the queue does not settle.
pub fn mg1_mean_wait(arrival: f64, service: ServiceMoments) -> Option<f64> {
    let load = arrival * service.mean;
    (load < 1.0).then(|| arrival * service.square / (2.0 * (1.0 - load)))
}

/// One class of a priority queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriorityClass {
    /// Arrivals per unit of time.
    pub arrival: f64,
    /// Its service.
    pub service: ServiceMoments,
}

/// The mean wait of each class, highest first, in M/G/1 with priorities that do not interrupt: W_c = W_0 / ((1 - s_(c-1))
/// (1 - s_c)), with W_0 = sum of lambda E\[S^2\] / 2 and s_c the load of class c and those above (Cobham, 1954, equation 3).
/// `None` for a class that does not settle.
pub fn priority_mean_waits(classes: &[PriorityClass]) -> Vec<Option<f64>> {
    let residual: f64 = classes.iter().map(|class| class.arrival * class.service.square / 2.0).sum();
    let mut above = 0.0;
    let mut waits = Vec::with_capacity(classes.len());
    for class in classes {
        let with = above + class.arrival * class.service.mean;
        waits.push((with < 1.0).then(|| residual / ((1.0 - above) * (1.0 - with))));
        above = with;
    }
    waits
}
