//! Figures by dotted names.

use super::{Figure, FlowReport, Report};
use crate::RunFigures;

impl RunFigures {
    /// The value that this run alone has under a dotted name, as [`Report::figure`] takes it.
    pub fn figure(&self, name: &str) -> Option<f64> {
        Some(Report::from_runs(vec![self.clone()]).figure(name)?.mean)
    }
}

/// Receives a name and its figure; `None` where there is nothing to report.
type Visit<'a> = &'a mut dyn FnMut(&str, Option<Figure>);

impl Report {
    /// The figure of that dotted name, such as `class.interactive.latency.p99`. A latency may be left out (`.p99`, `.mean`),
    /// and the last dot may be an underscore (`.wait_p99`). `None` when there is no such name or nothing to report under it;
    /// [`Report::knows`] tells which.
    pub fn figure(&self, name: &str) -> Option<Figure> {
        self.found(name).flatten()
    }

    /// Whether there is a figure of that name, be it an empty one.
    pub fn knows(&self, name: &str) -> bool {
        self.found(name).is_some()
    }

    /// All names, in the order of the report.
    pub fn figure_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.each(&mut |name, _| names.push(name.to_owned()));
        names
    }

    /// All figures by name, in the order of the report, without empty ones.
    pub fn figures(&self) -> Vec<(String, Figure)> {
        let mut figures = Vec::new();
        self.each(&mut |name, figure| figures.extend(figure.map(|figure| (name.to_owned(), figure))));
        figures
    }

    fn found(&self, name: &str) -> Option<Option<Figure>> {
        let forms = forms(name);
        let mut found: [Option<Option<Figure>>; 3] = [None; 3];
        self.each(&mut |one, figure| {
            if let Some(at) = forms.iter().position(|form| form.as_deref() == Some(one)) {
                found[at] = found[at].or(Some(figure));
            }
        });
        found.into_iter().flatten().next()
    }

    fn each(&self, visit: Visit<'_>) {
        for (name, workload) in self.workload.iter() {
            let prefix = format!("workload.{name}");
            flow(&workload.flow, &prefix, visit);
            visit(&format!("{prefix}.arrivals.rate"), workload.arrivals.rate);
            visit(&format!("{prefix}.arrivals.cv"), workload.arrivals.cv);
        }
        for (name, class) in self.class.iter() {
            let prefix = format!("class.{name}");
            flow(&class.flow, &prefix, visit);
            visit(&format!("{prefix}.starvation"), class.starvation);
        }
        for (name, model) in self.model.iter() {
            let prefix = format!("model.{name}");
            flow(&model.flow, &prefix, visit);
            list(&model.figures(), &prefix, visit);
        }
        for (name, device) in self.device.iter() {
            list(&device.figures(), &format!("device.{name}"), visit);
        }
        list(&self.run.figures(), "run", visit);
        self.plain(visit);
    }

    /// Numbers that are no figures in the report itself.
    fn plain(&self, visit: Visit<'_>) {
        let n = self.run.replications;
        let mut number = |name: &str, value: f64| visit(name, Some(Figure::bare(value, n)));
        number("run.replications", f64::from(n));
        number("run.unstable", f64::from(u8::from(self.unstable)));
        number("run.warmup.too_short", f64::from(self.run.warmup.too_short));
        number("invariants.checked", self.invariants.checked as f64);
        number("invariants.violated", self.invariants.violated as f64);
    }
}

/// The full names that `name` can stand for, the most literal first.
fn forms(name: &str) -> [Option<String>; 3] {
    let short = name.rsplit_once('.').filter(|(_, last)| is_statistic(last));
    let joined = name.rsplit_once('_').filter(|(_, last)| is_statistic(last));
    [
        Some(name.to_owned()),
        short.map(|(group, last)| format!("{group}.latency.{last}")),
        joined.map(|(group, last)| format!("{group}.{last}")),
    ]
}

fn is_statistic(word: &str) -> bool {
    matches!(word, "mean" | "p50" | "p90" | "p95" | "p99" | "p999" | "max")
}

fn flow(flow: &FlowReport, prefix: &str, visit: Visit<'_>) {
    list(&flow.figures(), prefix, visit);
    for (name, figure) in flow.reasons.iter() {
        visit(&format!("{prefix}.reasons.{name}"), Some(*figure));
    }
    for (name, times) in flow.times() {
        match times {
            Some(times) => times.figures().iter().for_each(|(one, figure)| {
                visit(&format!("{prefix}.{name}.{one}"), Some(*figure));
            }),
            None => ["mean", "p50", "p90", "p95", "p99", "p999", "max"].iter().for_each(|one| {
                visit(&format!("{prefix}.{name}.{one}"), None);
            }),
        }
    }
}

fn list(figures: &[(&str, Option<Figure>)], prefix: &str, visit: Visit<'_>) {
    for (name, figure) in figures {
        visit(&format!("{prefix}.{name}"), *figure);
    }
}
