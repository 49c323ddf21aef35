//! Arrival processes in words, for the header of a journal.

use windtunnel_config::{Arrivals, Distribution, Workload};
use windtunnel_core::Span;

/// How the requests of a workload come: `poisson 1500/s`.
pub fn describe(workload: &Workload) -> String {
    let scale = workload.rate_scale;
    let process = match &workload.arrivals {
        Arrivals::Poisson { rate } => format!("poisson {}/s", short(rate * scale)),
        Arrivals::Constant { rate } => format!("constant {}/s", short(rate * scale)),
        Arrivals::Gamma { rate, cv } => format!("gamma {}/s, cv {}", short(rate * scale), short(*cv)),
        Arrivals::Mmpp { rates, means } => {
            let states = rates.iter().zip(means).map(|(rate, mean)| {
                format!("{}/s for {}s", short(rate * scale), short(mean.as_nanos() as f64 / 1e9 / scale))
            });
            format!("mmpp {}", states.collect::<Vec<_>>().join(", "))
        }
        Arrivals::Clients { count: 1, think } => format!("1 client, thinking {}", seconds(think)),
        Arrivals::Clients { count, think } => format!("{count} clients, thinking {}", seconds(think)),
        Arrivals::Trace(trace) => {
            let speed = trace.time_scale * scale;
            let file = trace.file.file_name().unwrap_or(trace.file.as_os_str()).to_string_lossy();
            if speed == 1.0 {
                format!("trace {file}")
            } else {
                format!("trace {file} at {} times its speed", short(speed))
            }
        }
        Arrivals::At(requests) if requests.len() == 1 => "at 1 given time".to_owned(),
        Arrivals::At(requests) => format!("at {} given times", requests.len()),
    };
    match (workload.from, workload.to) {
        (Span::ZERO, None) => process,
        (from, None) => format!("{process}, from {from}"),
        (Span::ZERO, Some(to)) => format!("{process}, until {to}"),
        (from, Some(to)) => format!("{process}, from {from} until {to}"),
    }
}

fn seconds(distribution: &Distribution) -> String {
    match distribution {
        Distribution::Constant(value) => format!("{}s", short(*value)),
        Distribution::Uniform { low, high } => format!("uniform {}s to {}s", short(*low), short(*high)),
        Distribution::Exponential { mean } => format!("exponential {}s", short(*mean)),
        Distribution::Lognormal { median, cv } => format!("lognormal median {}s, cv {}", short(*median), short(*cv)),
        Distribution::Gamma { mean, cv } => format!("gamma {}s, cv {}", short(*mean), short(*cv)),
        Distribution::Empirical(values) => format!("one of {} recorded times", values.len()),
    }
}

/// At most six significant digits, none more than needed.
fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = (5 - libm::log10(value.abs()).floor() as i32).clamp(0, 12);
    let text = format!("{value:.*}", digits as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::workload;

    #[test]
    fn processes_are_said_in_words_with_their_scaled_rates() {
        let mut said = workload("w");
        said.arrivals = Arrivals::Poisson { rate: 1500.0 };
        assert_eq!(describe(&said), "poisson 1500/s");
        said.rate_scale = 1.0 / 3.0;
        said.arrivals = Arrivals::Gamma { rate: 1.0, cv: 3.0 };
        said.from = Span::from_millis(500);
        assert_eq!(describe(&said), "gamma 0.333333/s, cv 3, from 0.5s");
        said.rate_scale = 2.0;
        said.arrivals =
            Arrivals::Mmpp { rates: vec![5.0, 200.0], means: vec![Span::from_secs(50), Span::from_secs(5)] };
        said.to = Some(Span::from_secs(9));
        assert_eq!(describe(&said), "mmpp 10/s for 25s, 400/s for 2.5s, from 0.5s until 9s");
        said.arrivals = Arrivals::Clients { count: 6, think: Distribution::Exponential { mean: 2.0 } };
        said.from = Span::ZERO;
        assert_eq!(describe(&said), "6 clients, thinking exponential 2s, until 9s");
    }
}
