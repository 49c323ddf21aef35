//! Taking turns, medians, and the sheet they are written on.

use std::time::Instant;

/// Times of several things, run in turns: `rounds[round][thing]` in seconds.
pub struct Turns {
    rounds: Vec<Vec<f64>>,
}

/// Runs all things once to warm up and then in turns for so many rounds.
pub fn in_turns(rounds: usize, things: &mut [&mut dyn FnMut()]) -> Turns {
    things.iter_mut().for_each(|thing| thing());
    let round = |_| things.iter_mut().map(|thing| once(thing)).collect();
    Turns { rounds: (0..rounds).map(round).collect() }
}

fn once(thing: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    thing();
    start.elapsed().as_secs_f64()
}

impl Turns {
    /// The median time of a thing in seconds.
    pub fn median(&self, thing: usize) -> f64 {
        median(self.rounds.iter().map(|round| round[thing]).collect())
    }

    /// The median over rounds of one thing's time by another's.
    pub fn median_ratio(&self, above: usize, below: usize) -> f64 {
        median(self.rounds.iter().map(|round| round[above] / round[below]).collect())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// One result.
pub struct Line {
    name: String,
    unit: &'static str,
    value: f64,
    goal: Goal,
}

/// What a result should be.
#[derive(Clone, Copy)]
enum Goal {
    None,
    AtMost(f64),
    AtLeast(f64),
}

impl Line {
    /// A result without a goal.
    pub fn plain(name: &str, unit: &'static str, value: f64) -> Line {
        Line { name: name.to_owned(), unit, value, goal: Goal::None }
    }

    /// One that should not be above this.
    pub fn at_most(name: &str, unit: &'static str, value: f64, most: f64) -> Line {
        Line { goal: Goal::AtMost(most), ..Line::plain(name, unit, value) }
    }

    /// One that should not be below this.
    pub fn at_least(name: &str, unit: &'static str, value: f64, least: f64) -> Line {
        Line { goal: Goal::AtLeast(least), ..Line::plain(name, unit, value) }
    }
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
    pub fn line(&mut self, line: Line) {
        let Line { name, unit, value, goal } = line;
        let (goal_text, goal_json) = match goal {
            Goal::None => (String::new(), "null".to_owned()),
            Goal::AtMost(most) => {
                (format!("at most {most} {}", mark(value <= most)), format!("{{\"at_most\":{most}}}"))
            }
            Goal::AtLeast(least) => {
                (format!("at least {least} {}", mark(value >= least)), format!("{{\"at_least\":{least}}}"))
            }
        };
        if self.json {
            println!("{{\"name\":\"{name}\",\"unit\":\"{unit}\",\"value\":{value:.4},\"goal\":{goal_json}}}");
        } else {
            println!("{name:<58} {value:>10.2} {unit:<8} {goal_text}");
        }
    }

    /// Nanoseconds an event of each thing, and how the last compares with the second.
    pub fn compare(&mut self, name: &str, events: u64, things: &[&str], runs: &Turns, most: f64) {
        for (place, thing) in things.iter().enumerate() {
            self.line(Line::plain(&format!("{name}: {thing}"), "ns/event", nanos(runs.median(place), events)));
        }
        let last = things.len() - 1;
        let ratio = runs.median_ratio(last, 1);
        self.line(Line::at_most(&format!("{name}: {} by {}", things[last], things[1]), "x", ratio, most));
    }

    /// How the second of two things with as many events compares with the first.
    pub fn ratio(&mut self, name: &str, events: u64, runs: &Turns, most: f64) {
        self.ratio_of(name, [events, events], runs, most);
    }

    /// The same with different numbers of events.
    pub fn ratio_of(&mut self, name: &str, events: [u64; 2], runs: &Turns, most: f64) {
        for (place, which) in ["first", "second"].iter().enumerate() {
            self.line(Line::plain(&format!("{name}: {which}"), "ns/event", nanos(runs.median(place), events[place])));
        }
        let ratio = runs.median_ratio(1, 0) * events[0] as f64 / events[1] as f64;
        self.line(Line::at_most(&format!("{name}: ratio an event"), "x", ratio, most));
    }
}

fn mark(met: bool) -> &'static str {
    if met { "(met)" } else { "(MISSED)" }
}

fn nanos(seconds: f64, events: u64) -> f64 {
    seconds * 1e9 / events as f64
}
