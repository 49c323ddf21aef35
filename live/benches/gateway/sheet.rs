//! The sheet that results are written on, and medians.

/// What a result should be.
#[derive(Clone, Copy)]
pub enum Goal {
    /// Whatever it is.
    None,
    /// Not more.
    AtMost(f64),
    /// Not less.
    AtLeast(f64),
}

/// Where results are printed as they come.
pub struct Sheet {
    json: bool,
}

impl Sheet {
    /// A table, or an object a line.
    pub fn new(json: bool) -> Sheet {
        Sheet { json }
    }

    /// Prints a result.
    pub fn line(&mut self, name: &str, value: f64, unit: &str, goal: Goal) {
        let (text, json) = match goal {
            Goal::None => (String::new(), "null".to_owned()),
            Goal::AtMost(most) => (told("at most", most, value <= most), format!("{{\"at_most\":{most}}}")),
            Goal::AtLeast(least) => (told("at least", least, value >= least), format!("{{\"at_least\":{least}}}")),
        };
        if self.json {
            println!("{{\"name\":\"{name}\",\"unit\":\"{unit}\",\"value\":{value:.4},\"goal\":{json}}}");
        } else {
            println!("{name:<58} {value:>10.2} {unit:<8} {text}");
        }
    }
}

fn told(what: &str, goal: f64, met: bool) -> String {
    format!("{what} {goal} {}", if met { "(met)" } else { "(MISSED)" })
}

/// The middle of some values; 0 of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
