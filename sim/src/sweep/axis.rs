//! The values of one axis of a grid.

use serde_json::Value;
use windtunnel_config::{Scenario, Sweep, SweepUnit, SweepValues};

use crate::SimError;

/// Whether `key` sets the rate of a workload.
pub fn sets_a_rate(key: &str) -> bool {
    key.ends_with(".arrivals.rate")
}

/// The key that sets the rate of a workload.
pub fn rate_key(workload: &str) -> String {
    format!("workload.{workload}.arrivals.rate")
}

/// The values of an axis as TOML. Where they are shares of a capacity, it is that of `scenario`.
pub fn values(axis: &Sweep, scenario: &Scenario) -> Result<Vec<String>, SimError> {
    match &axis.values {
        SweepValues::List(values) => Ok(values.clone()),
        SweepValues::Steps { from, to, steps, of } => {
            let unit = match of {
                SweepUnit::One => 1.0,
                SweepUnit::Capacity => capacity(&axis.key, scenario)?,
            };
            let step = (to - from) / f64::from(steps.saturating_sub(1).max(1));
            Ok((0..*steps).map(|number| decimal((from + step * f64::from(number)) * unit)).collect())
        }
    }
}

fn capacity(key: &str, scenario: &Scenario) -> Result<f64, SimError> {
    let label = scenario.workloads.iter().position(|workload| rate_key(&workload.name) == key);
    label.and_then(|label| scenario.capacity(label)).ok_or_else(|| {
        SimError::Scenario(format!(
            "the values of the sweep of `{key}` are shares of the capacity that serves that workload, and it is not known; \
             write rates instead"
        ))
    })
}

/// A number with as many decimals as it needs, at most six: what a file may hold.
pub fn decimal(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A value of an axis as reports write it.
pub fn as_json(toml: &str) -> Value {
    let plain = toml.trim().replace('_', "");
    let number = serde_json::from_str::<Value>(&plain).ok().filter(Value::is_number);
    number.or_else(|| serde_json::from_str(toml).ok()).unwrap_or_else(|| Value::String(unquoted(toml).to_owned()))
}

/// A rate as reports write it: whole ones without decimals.
pub fn rate_as_json(rate: f64) -> Value {
    as_json(&decimal(rate))
}

fn unquoted(toml: &str) -> &str {
    let inner = toml.trim().strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    inner.unwrap_or(toml.trim())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::{Asking, poisson, scenario};

    fn steps(of: SweepUnit) -> Sweep {
        let values = SweepValues::Steps { from: 0.3, to: 1.2, steps: 4, of };
        Sweep { key: rate_key("w"), values }
    }

    #[test]
    fn steps_include_both_ends_without_stray_decimals() {
        let plain = scenario(1);
        assert_eq!(values(&steps(SweepUnit::One), &plain).unwrap(), ["0.3", "0.6", "0.9", "1.2"]);
    }

    #[test]
    fn steps_of_capacity_are_rates_of_the_cards_at_hand() {
        let two = scenario(2).asked_by(poisson("w", 1.0));
        let rates = values(&steps(SweepUnit::Capacity), &two).unwrap();
        assert_eq!(rates, ["1129.411765", "2258.823529", "3388.235294", "4517.647059"]);
        let unknown = values(&steps(SweepUnit::Capacity), &scenario(2)).unwrap_err().to_string();
        assert!(unknown.contains("`workload.w.arrivals.rate`"), "{unknown}");
    }

    #[test]
    fn values_become_json() {
        assert_eq!(as_json("1_000"), json!(1000));
        assert_eq!(as_json("0.25"), json!(0.25));
        assert_eq!(as_json("\"edf\""), json!("edf"));
        assert_eq!(as_json("'2s'"), json!("2s"));
        assert_eq!(as_json("true"), json!(true));
        assert_eq!(as_json("[1, 2]"), json!([1, 2]));
        assert_eq!(rate_as_json(1500.0), json!(1500));
    }
}
