//! A number with what is known of its error.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeStruct};

use crate::statistics::{Confidence, spread_of_mean};

/// A number over replications. In JSON `{"mean", "low", "high", "n"}`; an infinite mean (a latency of jobs that never
/// ended) is null there, as are ends of an interval that cannot be given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The mean over replications, or the quantile of all replications together.
    pub mean: f64,
    /// The lower end of its 95% interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// How many replications it stands on.
    pub n: u32,
}

impl Figure {
    /// A number without an interval.
    pub fn bare(mean: f64, n: u32) -> Figure {
        Figure { mean, low: None, high: None, n }
    }

    /// The mean of one value a replication, with the interval where there are two or more.
    pub fn of_values(values: &[f64]) -> Option<Figure> {
        if values.is_empty() {
            return None;
        }
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        Some(Figure::bare(mean, n as u32).within(spread_of_mean(values, Confidence::P95)))
    }

    /// The same number with an interval of `half` on each side.
    #[must_use]
    pub fn within(self, half: Option<f64>) -> Figure {
        match half.filter(|_| self.mean.is_finite()) {
            Some(half) => Figure { low: Some(self.mean - half), high: Some(self.mean + half), ..self },
            None => Figure { low: None, high: None, ..self },
        }
    }

    /// The same number without its interval.
    #[must_use]
    pub fn without_interval(self) -> Figure {
        self.within(None)
    }

    /// Half the length of the interval.
    pub fn half(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Figure", 4)?;
        fields.serialize_field("mean", &finite(self.mean))?;
        fields.serialize_field("low", &self.low.and_then(finite))?;
        fields.serialize_field("high", &self.high.and_then(finite))?;
        fields.serialize_field("n", &self.n)?;
        fields.end()
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// The JSON form.
#[derive(Deserialize)]
struct Written {
    mean: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    n: u32,
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { mean, low, high, n } = Written::deserialize(deserializer)?;
        Ok(Figure { mean: mean.unwrap_or(f64::INFINITY), low, high, n })
    }
}

impl JsonSchema for Figure {
    fn schema_name() -> Cow<'static, str> {
        "Figure".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "A number over replications, with its 95% interval.",
            "properties": {
                "mean": { "type": ["number", "null"], "description": "The mean over replications, or the quantile of all together; null: infinite." },
                "low": { "type": ["number", "null"], "description": "The lower end of the interval; null: none can be given." },
                "high": { "type": ["number", "null"], "description": "The upper end of the interval; null: none can be given." },
                "n": { "type": "integer", "minimum": 0, "description": "How many replications it stands on." }
            },
            "required": ["mean", "low", "high", "n"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinity_survives_json() {
        let figure = Figure::bare(f64::INFINITY, 3);
        let text = serde_json::to_string(&figure).unwrap();
        assert_eq!(text, r#"{"mean":null,"low":null,"high":null,"n":3}"#);
        assert_eq!(serde_json::from_str::<Figure>(&text).unwrap(), figure);
    }

    #[test]
    fn one_replication_has_no_interval() {
        assert_eq!(Figure::of_values(&[2.0]), Some(Figure::bare(2.0, 1)));
        let two = Figure::of_values(&[1.0, 3.0]).unwrap();
        assert_eq!((two.mean, two.n), (2.0, 2));
        assert!((two.half().unwrap() - 12.7062).abs() < 1e-3);
        assert_eq!(Figure::of_values(&[]), None);
    }
}
