//! `windtunnel bench`: what models take and how fast they are.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use windtunnel_config::Daemon;
use windtunnel_core::ModelId;
use windtunnel_live::operator::Operator;

use crate::{
    args::{BenchArgs, Format},
    bench::{Apart, Bench, OwnDaemon, Plan, Pulse, json, rows, text},
    command::status::operator,
    failure::Failure,
    inventory::{Inventory, state_folder},
    output::print,
    session::Session,
};

/// The longest that an answer may take.
const PATIENCE: Duration = Duration::from_secs(3600);
/// The longest that a process may take to end, and its memory to be free: more than any grace that somebody would give.
const STOPS: Duration = Duration::from_secs(300);

pub fn run(args: &BenchArgs, session: &Session) -> Result<(), Failure> {
    if let Some(url) = &args.url {
        return measure(url, args.secret.secret()?, &args.models, args, session).1;
    }
    let mut inventory = Inventory::load(args.config.as_deref(), session)?;
    let models = chosen(&args.models, &inventory.daemon)?;
    let secret = match args.secret.secret()? {
        None => key(&inventory.daemon)?,
        given => given,
    };
    let state = state_folder(inventory.daemon.server.state_dir.as_deref())?;
    let wrong = |wrong| Failure::file("keep what is measured apart in", &state, &wrong);
    let apart = Apart::prepare(&state, &inventory.profiles, &inventory.subjects).map_err(wrong)?;
    let daemon = start(&inventory, &apart, session)?;
    let (done, measured) = measure(daemon.url(), secret, &models, args, session);
    let measured = match measured {
        Err(Failure::NoAnswer(why)) => {
            Err(Failure::NoAnswer(format!("{why}\nthe daemon said last:\n{}", daemon.last_words())))
        }
        measured => measured,
    };
    // Its last profiles are written when it ends.
    drop(daemon);
    let names = (0..).zip(&inventory.daemon.configuration.models);
    let done = names.filter(|(_, model)| done.contains(&model.name)).map(|(at, _)| ModelId(at)).collect();
    let kept = apart.hand_over(&mut inventory.profiles, &inventory.subjects, &done).map_err(wrong);
    measured.and(kept)
}

/// The models that are meant.
fn chosen(named: &[String], daemon: &Daemon) -> Result<Vec<String>, Failure> {
    let all: Vec<String> = daemon.configuration.models.iter().map(|model| model.name.clone()).collect();
    if named.is_empty() {
        return Ok(all);
    }
    match named.iter().find(|name| !all.contains(name)) {
        Some(name) => {
            let hint = windtunnel_config::did_you_mean(name, all.iter().map(String::as_str));
            let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
            Err(Failure::BadInput(format!("the configuration has no model {name:?}{hint}")))
        }
        None => Ok(named.to_vec()),
    }
}

/// The key that is presented to a daemon of our own: that of an operator, else any.
fn key(daemon: &Daemon) -> Result<Option<String>, Failure> {
    let Some(key) = daemon.keys.iter().find(|key| key.admin).or(daemon.keys.first()) else { return Ok(None) };
    let secret = key.secret.read().map_err(|why| Failure::BadInput(format!("the key {:?} {why}", key.name)))?;
    Ok(Some(secret))
}

/// Starts a daemon in which no model is loaded unless it is asked for.
fn start(inventory: &Inventory, apart: &Apart, session: &Session) -> Result<OwnDaemon, Failure> {
    let daemon = &inventory.daemon;
    let mut sets = session.sets.clone();
    for model in &daemon.configuration.models {
        let name = toml_edit::Key::new(model.name.as_str()).display_repr().into_owned();
        let set = |what: &str| format!("models.{name}.{what}");
        sets.extend(model.preload.then(|| set("preload=false")));
        sets.extend(model.pinned.then(|| set("pinned=false")));
    }
    OwnDaemon::start(&inventory.path, &sets, apart, daemon.server.journal.as_deref()).map_err(Failure::BadInput)
}

/// Measures one model after another, and prints what came of it. The names are those of the models that were measured; one
/// that could not be is told of at the end, since the others are worth as much.
fn measure(
    url: &str,
    secret: Option<String>,
    models: &[String],
    args: &BenchArgs,
    session: &Session,
) -> (Vec<String>, Result<(), Failure>) {
    let share = Arc::new(AtomicU64::new(0));
    let client = || -> Result<Operator, Failure> { operator(url, secret.clone(), PATIENCE) };
    let bench = Bench {
        client: &client,
        plan: Plan { prompt_tokens: args.prompt_tokens, output_tokens: args.output_tokens, rounds: args.rounds },
        control: &session.control,
        pulse: Pulse { millionths: &share, models: models.len() as u64 },
        start_limit: PATIENCE,
        stop_limit: STOPS,
    };
    let mut measured = Vec::new();
    let mut failures = Vec::new();
    for (place, model) in (0..).zip(models) {
        let progress = session.measuring(model, &share);
        let one = bench.model(model, place);
        drop(progress);
        match one {
            Ok(one) => measured.push(one),
            Err(why) => failures.push(why),
        }
        if session.control.is_interrupted() {
            break;
        }
    }
    let names = measured.iter().map(|one| one.model.clone()).collect();
    let ended = told(failures);
    if measured.is_empty() && ended.is_err() {
        return (names, ended);
    }
    let printed = print(&match session.format {
        Format::Table => text(&measured),
        Format::Json => format!("{:#}\n", json(&measured)),
        Format::Csv => rows(&measured).csv(),
    });
    (names, printed.and(ended))
}

/// All that went wrong as one failure, an interruption before everything else.
fn told(mut failures: Vec<Failure>) -> Result<(), Failure> {
    if let Some(at) = failures.iter().position(|one| matches!(one, Failure::Interrupted(_))) {
        return Err(failures.swap_remove(at));
    }
    match failures.len() {
        0 => Ok(()),
        1 => failures.pop().map_or(Ok(()), Err),
        _ => {
            let mut all: Vec<String> = failures.iter().map(Failure::to_string).collect();
            all.dedup();
            Err(Failure::NoAnswer(all.join("\n")))
        }
    }
}
