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
    let shown = shown(args, session.format)?;
    let operator = operator(&args.daemon.url, args.daemon.secret.secret()?, PATIENCE)?;
    let (status, events) = operator.status().and_then(|status| Ok((status, operator.events(0)?)))?;
    match shown {
        Shown::Terminal => {
            watch(operator, args.daemon.url.clone(), (status, events), &session.control).map_err(Failure::from)
        }
        Shown::Json => print(&format!("{}\n", json!({ "status": status, "events": events }))),
        Shown::Page => print(&whole(&args.daemon.url, &status, &events)),
    }
}

/// How it is shown.
enum Shown {
    Terminal,
    Json,
    Page,
}

/// What is asked for, if it can be had: no daemon is asked for what cannot be shown.
fn shown(args: &StatusArgs, format: Format) -> Result<Shown, Failure> {
    let wrong = |why: &str| Err(Failure::BadInput(why.to_owned()));
    match (args.watch, format) {
        (_, Format::Csv) => wrong("--format: `status` is no table; table and json are there"),
        (true, Format::Json) => wrong("--watch shows a terminal; leave --format away"),
        (true, Format::Table) if !std::io::stdout().is_terminal() => {
            wrong("--watch needs a terminal; without it `status` prints once")
        }
        (true, Format::Table) => Ok(Shown::Terminal),
        (false, Format::Json) => Ok(Shown::Json),
        (false, Format::Table) => Ok(Shown::Page),
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
