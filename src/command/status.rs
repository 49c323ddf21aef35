//! `windtunnel status`: what a daemon does now, once or again and again.

use std::{io::IsTerminal, time::Duration};

use serde_json::json;
use windtunnel_live::{
    load::Address,
    operator::{AskError, Events, Operator, Status},
};

use crate::{
    args::{Format, StatusArgs},
    failure::Failure,
    output::print,
    session::Session,
    status::{page, text, watch},
};

/// How long an answer may take; the daemon itself waits five seconds for its picture.
const PATIENCE: Duration = Duration::from_secs(10);
/// The latest events of a page that is printed.
const LATEST: usize = 20;
/// The width of a page that is printed, as of a terminal that nobody changed.
const WIDTH: usize = 100;

pub fn run(args: &StatusArgs, session: &Session) -> Result<(), Failure> {
    let operator = operator(&args.daemon.url, args.daemon.secret.secret()?, PATIENCE)?;
    let (status, events) = operator.status().and_then(|status| Ok((status, operator.events(0)?)))?;
    match (args.watch, session.format) {
        (_, Format::Csv) => {
            Err(Failure::BadInput("--format: `status` is no table; table and json are there".to_owned()))
        }
        (true, Format::Json) => Err(Failure::BadInput("--watch shows a terminal; leave --format away".to_owned())),
        (true, Format::Table) if !std::io::stdout().is_terminal() => {
            Err(Failure::BadInput("--watch needs a terminal; without it `status` prints once".to_owned()))
        }
        (true, Format::Table) => {
            watch(operator, args.daemon.url.clone(), (status, events), &session.control).map_err(Failure::from)
        }
        (false, Format::Json) => print(&format!("{}\n", json!({ "status": status, "events": events }))),
        (false, Format::Table) => print(&whole(&args.daemon.url, &status, &events)),
    }
}

/// A client of the daemon at `url`.
pub fn operator(url: &str, key: Option<String>, patience: Duration) -> Result<Operator, Failure> {
    let address = Address::parse(url).map_err(|why| Failure::BadInput(format!("--url: {url} {why}")))?;
    let started = Operator::new(address, key, patience);
    started.map_err(|wrong| Failure::BadInput(format!("wait for answers: {wrong}")))
}

fn whole(url: &str, status: &Status, events: &Events) -> String {
    let mut whole = format!("windtunnel at {url}: {}\n\n{}", status.phase, text(&page(status, WIDTH)));
    let latest = events.lines.iter().skip(events.lines.len().saturating_sub(LATEST));
    let lines: String = latest.map(|line| format!("  {line}\n")).collect();
    if !lines.is_empty() {
        whole.push_str(&format!("\nevents\n{lines}"));
    }
    whole
}

impl From<AskError> for Failure {
    fn from(wrong: AskError) -> Failure {
        Failure::NoAnswer(wrong.to_string())
    }
}
