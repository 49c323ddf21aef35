//! `windtunnel selftest`: the simulator against exact queueing results on this machine.

use windtunnel_sim::selftest::{SelftestOptions, SelftestReport, selftest};

use crate::{args::Format, failure::Failure, output::print, session::Session};

pub fn run(session: &Session) -> Result<(), Failure> {
    let progress = session.progress("checking");
    let report = selftest(SelftestOptions::default(), &session.control)?;
    drop(progress);
    session.unless_interrupted("nothing was decided")?;
    match session.format {
        Format::Table => print(&table(&report))?,
        Format::Json => {
            let text = serde_json::to_string_pretty(&report);
            print(&format!("{}\n", text.map_err(|wrong| Failure::BadInput(format!("write JSON: {wrong}")))?))?;
        }
        Format::Csv => print(&csv(&report))?,
    }
    if report.passed() { Ok(()) } else { Err(Failure::Unmet) }
}

/// The checks in aligned columns, and a line of totals.
fn table(report: &SelftestReport) -> String {
    let mut text = format!(
        "{} replications of {} arrivals, seed {}; a failure by chance once in a thousand seeds\n\n{:<34} {:<22} {:>14} {:>14} {:>14} {:>14}\n",
        report.replications, report.jobs, report.seed, "queue", "figure", "exact", "measured", "low", "high"
    );
    for check in &report.checks {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.6}"));
        let word = if check.pass { "\u{1b}[32mok\u{1b}[0m" } else { "\u{1b}[1;31mFAILED\u{1b}[0m" };
        text.push_str(&format!(
            "{:<34} {:<22} {:>14} {:>14} {:>14} {:>14} {word}\n",
            check.queue,
            check.quantity,
            number(Some(check.exact)),
            number(check.mean),
            number(check.low),
            number(check.high),
        ));
    }
    let failed = report.checks.iter().filter(|check| !check.pass).count();
    text.push_str(&format!("\n{} passed, {failed} failed\n", report.checks.len() - failed));
    text
}

fn csv(report: &SelftestReport) -> String {
    let mut text = String::from("queue,figure,exact,mean,low,high,pass\n");
    for check in &report.checks {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let (mean, low, high) = (number(check.mean), number(check.low), number(check.high));
        let (queue, quantity) = (&check.queue, &check.quantity);
        text.push_str(&format!("\"{queue}\",{quantity},{},{mean},{low},{high},{}\n", check.exact, check.pass));
    }
    text
}
