//! The stationary probabilities of a Markov chain on 0, 1, 2, .. by state reduction without subtractions (Grassmann,
//! Taksar and Heyman, 1985): every digit of even the rarest state is right.

/// A chain with a finite number of states and bounded steps, row by row.
#[derive(Clone, Debug)]
pub struct Chain {
    down: usize,
    up: usize,
    /// `rows[i][j + down - i]` is the probability to go from i to j.
    rows: Vec<Vec<f64>>,
}

impl Chain {
    /// The first `states` states of the chain in which state i goes to `from(i).0 + n` with probability `from(i).1[n]`.
    /// What would leave them goes to the last one.
    pub fn new(states: usize, from: impl Fn(usize) -> (usize, Vec<f64>)) -> Chain {
        let last = states - 1;
        let moves: Vec<(usize, Vec<f64>)> = (0..states).map(from).collect();
        let down = moves.iter().enumerate().map(|(i, (base, _))| i.saturating_sub(*base)).max().unwrap_or(0);
        let reach =
            |(i, (base, weights)): (usize, &(usize, Vec<f64>))| (base + weights.len()).min(last).saturating_sub(i);
        let up = moves.iter().enumerate().map(reach).max().unwrap_or(0);
        let rows = moves.iter().enumerate().map(|(i, (base, weights))| {
            let mut row = vec![0.0; down + up + 1];
            for (n, weight) in weights.iter().enumerate() {
                row[(base + n).min(last) + down - i] += weight;
            }
            row
        });
        Chain { down, up, rows: rows.collect() }
    }

    /// The probabilities of the states, summing to 1. Every state must be reachable from every other.
    pub fn stationary(mut self) -> Vec<f64> {
        for state in (1..self.rows.len()).rev() {
            self.take_out(state);
        }
        let mut weights = vec![1.0];
        for state in 1..self.rows.len() {
            let first = state.saturating_sub(self.up);
            let inflow = (first..state).map(|i| weights[i] * self.rows[i][state + self.down - i]).sum();
            weights.push(inflow);
        }
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    /// Sends everything that enters `state` on to where it goes when it leaves to lower states. Leaves the expected
    /// visits to it per visit to each lower state in its column.
    fn take_out(&mut self, state: usize) {
        let first = state.saturating_sub(self.down);
        let (lower, upper) = self.rows.split_at_mut(state);
        let leaving = &upper[0][first + self.down - state..self.down];
        let out: f64 = leaving.iter().sum();
        for (i, row) in lower.iter_mut().enumerate().skip(state.saturating_sub(self.up)) {
            let visits = row[state + self.down - i] / out;
            row[state + self.down - i] = visits;
            let to = first + self.down - i;
            for (target, weight) in row[to..to + leaving.len()].iter_mut().zip(leaving) {
                *target += visits * weight;
            }
        }
    }
}

/// States beyond which a solution is given up.
const MOST_STATES: usize = 1 << 14;

/// Probabilities of the last states below which a truncated chain counts as whole.
const TAIL: f64 = 1e-15;

/// The stationary probabilities of a chain without end, truncated where it no longer matters; `None` where that is too far
/// out, as it is for one that is about to lose its balance.
pub fn stationary_of_endless(from: impl Fn(usize) -> (usize, Vec<f64>)) -> Option<Vec<f64>> {
    let mut states = 128;
    while states <= MOST_STATES {
        let weights = Chain::new(states, &from).stationary();
        // the last state holds all that was cut off, so look at the last sixteenth without it
        let tail: f64 = weights[states - states / 16..states - 1].iter().sum();
        if tail < TAIL {
            return Some(weights);
        }
        states *= 2;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_birth_death_chain_has_its_product_form() {
        let from = |i: usize| match i {
            0 => (0, vec![0.7, 0.3]),
            1..4 => (i - 1, vec![0.5, 0.2, 0.3]),
            _ => (i - 1, vec![0.5, 0.5]),
        };
        let weights = Chain::new(5, from).stationary();
        for pair in weights.windows(2) {
            assert!((pair[1] / pair[0] - 0.6).abs() < 1e-15, "{weights:?}");
        }
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn an_endless_chain_keeps_its_digits_far_out() {
        let from = |i: usize| if i == 0 { (0, vec![0.9, 0.1]) } else { (i - 1, vec![0.6, 0.3, 0.1]) };
        let weights = stationary_of_endless(from).expect("it drifts down");
        let far = weights[60] / weights[0] * 6.0_f64.powi(60);
        assert!((far - 1.0).abs() < 1e-12, "{far}");
    }

    #[test]
    fn a_chain_that_drifts_upwards_has_none() {
        let from = |i: usize| if i == 0 { (0, vec![0.5, 0.5]) } else { (i - 1, vec![0.1, 0.2, 0.7]) };
        assert_eq!(stationary_of_endless(from), None);
    }
}
