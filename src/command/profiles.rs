//! `windtunnel profiles`: what was learned of models, shown or pruned.

use serde_json::{Value, json};
use windtunnel_config::DaemonFile;
use windtunnel_core::Span;
use windtunnel_live::profiles::{Pruned, Store, Stored};

use crate::{
    args::{Format, ProfilesArgs, ProfilesTask},
    failure::Failure,
    inventory,
    output::print,
    rows::Rows,
    session::Session,
};

pub fn run(args: &ProfilesArgs, session: &Session) -> Result<(), Failure> {
    let state = match &args.config {
        // The devices of this machine say nothing about where state is kept.
        Some(path) => DaemonFile::load(path)?.resolve(&session.overrides, &[inventory::no_device()])?.server.state_dir,
        None => args.state_dir.clone(),
    };
    let (mut store, remarks) = inventory::store(state.as_deref())?;
    remarks.iter().for_each(|remark| session.remark(remark));
    match args.task {
        ProfilesTask::List => deliver(&listed(&store), "no model was learned of yet\n", session),
        ProfilesTask::Prune => {
            let pruned = store.prune().map_err(|wrong| Failure::BadInput(format!("remove a profile: {wrong}")))?;
            deliver(&removed(&pruned), "nothing to remove: every profile is about files as they are\n", session)
        }
    }
}

fn deliver(rows: &Rows, nothing: &str, session: &Session) -> Result<(), Failure> {
    print(&match session.format {
        Format::Table if rows.is_empty() => nothing.to_owned(),
        Format::Table => rows.text(),
        Format::Json => format!("{}\n", json!({ "profiles": rows.json() })),
        Format::Csv => rows.csv(),
    })
}

fn listed(store: &Store) -> Rows {
    let mut rows =
        Rows::new(&["model", "device", "footprint_bytes", "load_seconds", "factor", "steps", "current", "arguments"]);
    store.all().into_iter().for_each(|one| rows.push(row(one)));
    rows
}

fn row(stored: &Stored) -> Vec<Value> {
    let Stored { subject, factor, observations, footprint, load_time, .. } = stored;
    vec![
        json!(subject.model),
        json!(device(&subject.device)),
        json!(footprint.map(|bytes| bytes.get())),
        json!(load_time.map(seconds)),
        json!(f64::from(factor.get()) / 1e6),
        json!(observations),
        json!(subject.is_current()),
        json!(subject.arguments.join(" ")),
    ]
}

/// `cpu` of `cpu cpu`: a device without a name of its own is named after what computes.
fn device(text: &str) -> &str {
    match text.split_once(' ') {
        Some((backend, name)) if backend == name => name,
        Some(_) | None => text,
    }
}

/// Rounded to milliseconds, since no load is measured any finer.
fn seconds(span: Span) -> f64 {
    span.as_nanos().saturating_add(500_000).div_euclid(1_000_000) as f64 / 1e3
}

fn removed(pruned: &[Pruned]) -> Rows {
    let mut rows = Rows::new(&["removed", "model", "device"]);
    for Pruned { file, about } in pruned {
        let (model, device) = (about.as_ref().map(|one| &one.model), about.as_ref().map(|one| &one.device));
        rows.push(vec![json!(file), json!(model), json!(device)]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_and_no_device_is_named_twice() {
        assert_eq!(json!(seconds(Span::from_nanos(29_484_082_026))).to_string(), "29.484");
        assert_eq!((device("cpu cpu"), device("cuda GPU-1"), device("cpu")), ("cpu", "cuda GPU-1", "cpu"));
    }
}
