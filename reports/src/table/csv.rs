//! Figures for spreadsheets. Times are in seconds, sizes in bytes, rates per second; what cannot be given is empty.

use csv::{Error, Writer};

use crate::{Figure, Report, report::SweepReport};

/// A report as CSV: a row for each figure, with its dotted name.
///
/// # Errors
/// None that text in memory can cause.
pub fn report_csv(report: &Report) -> Result<String, Error> {
    let mut out = Writer::from_writer(Vec::new());
    out.write_record(["figure", "mean", "low", "high", "n"])?;
    for (name, figure) in report.figures() {
        let [mean, low, high] = cells(figure);
        out.write_record([name, mean, low, high, figure.n.to_string()])?;
    }
    text(out)
}

/// A sweep as CSV: a row for each point, with columns for what was set and for the mean, low and high of each figure.
///
/// # Errors
/// None that text in memory can cause.
pub fn sweep_csv(sweep: &SweepReport) -> Result<String, Error> {
    let mut keys: Vec<&String> = sweep.points.iter().flat_map(|point| point.set.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut names: Vec<String> = Vec::new();
    for name in sweep.points.iter().flat_map(|point| point.report.figures()).map(|(name, _)| name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut out = Writer::from_writer(Vec::new());
    let heading =
        ["devices".to_owned(), "unstable".to_owned()].into_iter().chain(keys.iter().map(|key| (*key).clone()));
    let columns = names.iter().flat_map(|name| [name.clone(), format!("{name}.low"), format!("{name}.high")]);
    out.write_record(heading.chain(columns))?;
    for point in &sweep.points {
        let mut row = vec![point.devices.to_string(), point.report.unstable.to_string()];
        row.extend(keys.iter().map(|key| point.set.get(*key).map_or_else(String::new, setting)));
        let figures = point.report.figures();
        for name in &names {
            let figure = figures.iter().find(|(one, _)| one == name).map(|(_, figure)| *figure);
            row.extend(figure.map_or_else(Default::default, cells));
        }
        out.write_record(row)?;
    }
    text(out)
}

fn cells(figure: Figure) -> [String; 3] {
    let low = figure.low.map_or_else(String::new, |low| low.to_string());
    let high = figure.high.map_or_else(String::new, |high| high.to_string());
    [figure.mean.to_string(), low, high]
}

fn setting(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn text(out: Writer<Vec<u8>>) -> Result<String, Error> {
    let bytes = out.into_inner().map_err(|error| Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
