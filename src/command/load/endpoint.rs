//! How an endpoint is spoken to, as the command line says.

use std::{
    env,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use windtunnel_config::parse_span;
use windtunnel_live::load::{Address, Fields, Prompts, Settings};

use crate::{
    args::{Cache, EndpointArgs},
    failure::Failure,
};

/// The settings for the endpoint at `url`.
pub fn settings(url: &str, args: &EndpointArgs) -> Result<Settings, Failure> {
    Ok(Settings {
        address: Address::parse(url).map_err(|wrong| Failure::BadInput(format!("the URL {url} {wrong}")))?,
        key: key(args)?,
        prompts: match args.cache {
            Cache::Off => Prompts::Distinct,
            Cache::On => Prompts::Alike,
        },
        fields: if args.plain { Fields::Plain } else { Fields::Extended },
        timeout: span("--timeout", &args.timeout)?,
        cool_down: Duration::ZERO,
        seed: moment(),
    })
}

/// Words differ from run to run, whatever the seed of the sizes is: an endpoint may know those of the last.
fn moment() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

fn key(args: &EndpointArgs) -> Result<Option<String>, Failure> {
    let Some(name) = &args.key_env else { return Ok(args.key.clone()) };
    match env::var(name) {
        Ok(key) => Ok(Some(key)),
        Err(wrong) => Err(Failure::BadInput(format!("--key-env {name}: {wrong}"))),
    }
}

/// A span of the command line.
pub fn span(option: &str, text: &str) -> Result<Duration, Failure> {
    let span = parse_span(text).map_err(|wrong| Failure::BadInput(format!("{option} {text}: {wrong}")))?;
    Ok(Duration::from_nanos(span.as_nanos()))
}
