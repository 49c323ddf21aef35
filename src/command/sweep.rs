//! `windtunnel sweep`: a grid of settings, and the knees of the systems on it, simulated or against an endpoint.

mod live;

use windtunnel_config::ScenarioFile;
use windtunnel_reports::{
    chart::sweep_charts,
    report::SweepReport,
    table::{sweep_csv, sweep_table},
};
use windtunnel_sim::sweep::{Effort, SweepOptions, SweepOutcome, sweep};

use crate::{
    args::{Format, SweepArgs},
    failure::Failure,
    output::{Folder, print},
    session::Session,
};

/// The highest rate that a scenario may have, in requests per second.
const MOST: f64 = 1e9;

pub fn run(args: &SweepArgs, session: &Session) -> Result<(), Failure> {
    if let Some(rate) = args.rates.iter().find(|rate| !(**rate > 0.0 && **rate <= MOST)) {
        let message = format!("--rates: a rate must be more than 0 and at most {MOST} per second, found {rate}");
        return Err(Failure::BadInput(message));
    }
    let file = match (&args.live, &args.scenario) {
        (Some(_), Some(path)) => ScenarioFile::load(path)?.served_elsewhere(),
        (Some(_), None) | (None, _) => session.file(args.scenario.as_deref())?,
    };
    file.resolve(&session.overrides)?;
    let options = SweepOptions {
        overrides: session.overrides.clone(),
        devices: args.devices.clone(),
        rates: args.rates.clone(),
        effort: Effort::default(),
    };
    let outcome = match &args.live {
        Some(url) => live::sweep(&file, options, url, args, session)?,
        None => simulated(&file, &options, args, session)?,
    };
    if !outcome.report.points.is_empty() {
        deliver(&outcome.report, args, session)?;
    }
    session.unless_interrupted(&format!("{} of {} points were finished", outcome.report.points.len(), outcome.asked))
}

fn simulated(
    file: &ScenarioFile,
    options: &SweepOptions,
    args: &SweepArgs,
    session: &Session,
) -> Result<SweepOutcome, Failure> {
    if args.endpoint.is_given() {
        return Err(Failure::BadInput(
            "--key, --key-env, --cache and --plain are for an endpoint: give its --live URL as well".to_owned(),
        ));
    }
    let _progress = session.progress("sweeping");
    Ok(sweep(file, options, &session.control)?)
}

fn deliver(report: &SweepReport, args: &SweepArgs, session: &Session) -> Result<(), Failure> {
    if let Some(path) = &args.report {
        let folder = Folder::create(path)?;
        folder.write("sweep.json", &report.to_json())?;
        folder.write("sweep.csv", &csv(report)?)?;
        folder.write("sweep.txt", &sweep_table(report))?;
        let charts = sweep_charts(report).map_err(|wrong| Failure::BadInput(wrong.to_string()))?;
        folder.pictures(&charts)?;
        session.remark(&format!("report and {} charts are in {}", charts.len(), folder.path().display()));
    }
    match session.format {
        Format::Table => print(&sweep_table(report)),
        Format::Json => print(&report.to_json()),
        Format::Csv => print(&csv(report)?),
    }
}

fn csv(report: &SweepReport) -> Result<String, Failure> {
    sweep_csv(report).map_err(|wrong| Failure::BadInput(format!("write CSV: {wrong}")))
}
