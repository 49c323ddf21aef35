//! `windtunnel report`: the report of journals, simulated or live.

use std::path::Path;

use windtunnel_reports::{
    Report,
    chart::report_charts,
    journal::{in_order, left_out, report_from_journals},
    table::{report_csv, report_table},
};

use crate::{
    args::{Format, ReportArgs},
    failure::Failure,
    output::{Folder, print},
    session::Session,
};

pub fn run(args: &ReportArgs, session: &Session) -> Result<(), Failure> {
    let journals = in_order(&args.journals);
    let (report, warnings) = report_from_journals(&journals)?;
    left_out(&journals).iter().for_each(|remark| session.remark(remark));
    for warning in warnings {
        session.remark(&warning);
    }
    if report.run.replications == 0 {
        return Err(Failure::BadInput("there is no run in what was given; a journal begins with a header".to_owned()));
    }
    deliver(&report, args.report.as_deref(), session)
}

/// Prints a report in the format asked for, and writes it with its charts into a folder if one is given.
pub fn deliver(report: &Report, folder: Option<&Path>, session: &Session) -> Result<(), Failure> {
    if let Some(path) = folder {
        let folder = Folder::create(path)?;
        folder.write("report.json", &report.to_json())?;
        folder.write("report.csv", &csv(report)?)?;
        folder.write("report.txt", &report_table(report))?;
        let charts = report_charts(report).map_err(|wrong| Failure::BadInput(wrong.to_string()))?;
        folder.pictures(&charts)?;
        session.remark(&format!("report and {} charts are in {}", charts.len(), folder.path().display()));
    }
    match session.format {
        Format::Table => print(&report_table(report)),
        Format::Json => print(&report.to_json()),
        Format::Csv => print(&csv(report)?),
    }
}

fn csv(report: &Report) -> Result<String, Failure> {
    report_csv(report).map_err(|wrong| Failure::BadInput(format!("write CSV: {wrong}")))
}
