//! `windtunnel selftest`: the simulator against exact queueing results on this machine.

use windtunnel_sim::selftest::{Check, SelftestOptions, SelftestReport, selftest};

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

/// The checks in aligned columns, queue by queue, and a line of totals. Times are in seconds.
fn table(report: &SelftestReport) -> String {
    let SelftestReport { seed, replications, jobs, .. } = report;
    let mut text = format!(
        "{replications} replications of {jobs} arrivals, seed {seed}; a failure by chance once in a thousand seeds\n"
    );
    let mut queue = "";
    for check in &report.checks {
        if check.queue != queue {
            queue = &check.queue;
            let (exact, mean, low, high) = ("exact", "measured", "low", "high");
            text.push_str(&format!("\n{queue}\n  {:<42} {exact:>14} {mean:>14} {low:>14} {high:>14}\n", ""));
        }
        text.push_str(&row(check));
    }
    let failed = report.checks.iter().filter(|check| !check.pass).count();
    text.push_str(&format!("\n{} passed, {failed} failed\n", report.checks.len() - failed));
    text
}

fn row(check: &Check) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.6}"));
    let (exact, mean) = (number(Some(check.exact)), number(check.mean));
    let (low, high) = (number(check.low), number(check.high));
    let word = if check.pass { "\u{1b}[32mok\u{1b}[0m" } else { "\u{1b}[1;31mFAILED\u{1b}[0m" };
    let figure = check.quantity.replace("workload.interactive.", "");
    format!("  {figure:<42} {exact:>14} {mean:>14} {low:>14} {high:>14} {word}\n")
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
