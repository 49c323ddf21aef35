//! `windtunnel bench`: what models take and how fast they are.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use windtunnel_config::Daemon;
use windtunnel_live::operator::Operator;

use crate::{
    args::{BenchArgs, Format},
    bench::{Bench, OwnDaemon, Plan, Pulse, json, rows, text},
    command::status::operator,
    failure::Failure,
    inventory::Inventory,
    output::print,
    session::Session,
};

/// The longest that an answer may take.
const PATIENCE: Duration = Duration::from_secs(3600);

pub fn run(args: &BenchArgs, session: &Session) -> Result<(), Failure> {
    if let Some(url) = &args.url {
        return measure(url, args.secret.secret()?, &args.models, args, session);
    }
    let inventory = Inventory::load(args.config.as_deref(), session)?;
    let models = chosen(&args.models, &inventory.daemon)?;
    let secret = match args.secret.secret()? {
        None => key(&inventory.daemon)?,
        given => given,
    };
    let daemon = start(&inventory.path, &inventory.daemon, session)?;
    let measured = measure(daemon.url(), secret, &models, args, session);
    if let Err(Failure::NoAnswer(why)) = measured {
        return Err(Failure::NoAnswer(format!("{why}\nthe daemon said last:\n{}", daemon.last_words())));
    }
    measured
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
fn start(path: &Path, daemon: &Daemon, session: &Session) -> Result<OwnDaemon, Failure> {
    let mut sets = session.sets.clone();
    for model in &daemon.configuration.models {
        let name = toml_edit::Key::new(model.name.as_str()).display_repr().into_owned();
        let set = |what: &str| format!("models.{name}.{what}");
        sets.extend(model.preload.then(|| set("preload=false")));
        sets.extend(model.pinned.then(|| set("pinned=false")));
    }
    OwnDaemon::start(path, &sets).map_err(Failure::BadInput)
}

fn measure(
    url: &str,
    secret: Option<String>,
    models: &[String],
    args: &BenchArgs,
    session: &Session,
) -> Result<(), Failure> {
    let share = Arc::new(AtomicU64::new(0));
    let client = || -> Result<Operator, Failure> { operator(url, secret.clone(), PATIENCE) };
    let bench = Bench {
        client: &client,
        plan: Plan { prompt_tokens: args.prompt_tokens, output_tokens: args.output_tokens, rounds: args.rounds },
        control: &session.control,
        pulse: Pulse { millionths: &share, models: models.len() as u64 },
        start_limit: PATIENCE,
    };
    let mut measured = Vec::new();
    let mut ended = Ok(());
    for (place, model) in (0..).zip(models) {
        let progress = session.measuring(model, &share);
        let one = bench.model(model, place);
        drop(progress);
        match one {
            Ok(one) => measured.push(one),
            Err(why) => {
                ended = Err(why);
                break;
            }
        }
    }
    // What was measured before is worth as much.
    if !measured.is_empty() || ended.is_ok() {
        print(&match session.format {
            Format::Table => text(&measured),
            Format::Json => format!("{:#}\n", json(&measured)),
            Format::Csv => rows(&measured).csv(),
        })?;
    }
    ended
}
