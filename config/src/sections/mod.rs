//! The sections of a file: for each its form, and how its values are put together and checked against each other.

mod arrivals;
mod devices;
mod distribution;
mod expect;
mod families;
mod faults;
mod keys;
mod launch;
mod models;
mod names;
mod policy;
mod run;
mod server;
mod service;
mod serving;
mod sources;
mod sweep;
mod workload;

use windtunnel_core::{Bytes, Configuration};

use self::server::Access;
use crate::daemon::{Daemon, FoundDevice};
use crate::decode::{Context, Section};
use crate::estimate::Estimator;
use crate::form::{Form, Key, Scalar, Shape};
use crate::scenario::Scenario;
use crate::source::{Place, Table};

pub(crate) use distribution::MOST;
pub use launch::launch_keys;
pub use policy::{PolicyKey, policy_keys};

const TITLE: Key =
    Key::scalar("title", Scalar::Text, "what the scenario is about, a sentence; default: the file's name");
const BASE: Key = Key::scalar("base", Scalar::Name, "a configuration file to start from, relative to this file");
const DEVICES: Key = Key::new("devices", Shape::Tables(&devices::DEVICE), "the cards");
const MODELS: Key = Key::new("models", Shape::Named(&models::MODEL), "the models, each under its name");
const FAMILIES: Key = Key::new("families", Shape::Named(&families::FAMILY), "models that can stand in for each other");
const POLICY: Key =
    Key::new("policy", Shape::Table(&policy::POLICY), "the numbers and choices of the scheduling rules");

/// A scenario file.
pub(crate) static SCENARIO: Form = Form::new(
    "scenario",
    "A scenario: cards, models, rules, who asks for what, and what to make of it.",
    &[
        TITLE,
        BASE,
        Key::new("run", Shape::Table(&run::RUN), "how long, how often, from which seed"),
        DEVICES,
        MODELS,
        FAMILIES,
        POLICY,
        Key::new("workload", Shape::Tables(&workload::WORKLOAD), "who asks for what, and when"),
        Key::new("faults", faults::FAULTS, "what goes wrong"),
        Key::new("sweep", Shape::Tables(&sweep::SWEEP), "what a sweep varies; more than one make a grid"),
        Key::new("expect", Shape::Tables(&expect::EXPECT), "what a test checks; all must hold"),
    ],
);

/// A configuration file, also the base of a scenario.
pub(crate) static CONFIGURATION: Form = Form::new(
    "configuration",
    "A daemon's configuration: how it listens, who may ask, devices, models, rules. A scenario may start from it.",
    &[
        Key::new("server", Shape::Table(&server::SERVER), "how it listens and starts processes"),
        Key::new("keys", Shape::Tables(&keys::KEY), "who may ask for what; none: whoever reaches it"),
        DEVICES,
        MODELS,
        FAMILIES,
        POLICY,
    ],
);

/// The arguments of every model's runtime, which a scenario needs of its base to estimate footprints.
pub(crate) fn standing_arguments(table: &Table, place: Place, context: &Context<'_>) -> Vec<String> {
    server::standing_arguments(Section::root(table, place, &CONFIGURATION, context).section("server").as_ref())
}

/// What the files of models say of their memory, where nothing else in a checked or unchecked document does.
pub(crate) fn estimated(
    table: &Table,
    place: Place,
    context: &Context<'_>,
    estimator: Option<&dyn Estimator>,
    standing: &[String],
) -> Vec<(String, Bytes)> {
    let root = Section::root(table, place, &SCENARIO, context);
    models::estimated(&root, &devices::read(&root), estimator, standing)
}

/// Reads a checked daemon's configuration on a machine that has the devices `found`. What is wrong is complained of in the
/// context.
pub(crate) fn daemon(table: &Table, place: Place, context: &Context<'_>, found: &[FoundDevice]) -> Daemon {
    let root = Section::root(table, place, &CONFIGURATION, context);
    let keys = keys::read(&root);
    let access = if root.sections("keys").is_empty() { Access::Open } else { Access::ByKey };
    let section = root.section("server");
    let server = server::read(section.as_ref(), access);
    let devices = devices::read_real(&root, found);
    let models = models::read_real(&root, &devices, &server::standing_arguments(section.as_ref()));
    let mut names = names::Names::default();
    models::register(&root, &mut names);
    let families = families::read(&root, &models, &mut names);
    let labels = std::iter::once(keys::ANONYMOUS).chain(keys.iter().map(|key| key.name.as_str()));
    let configuration = Configuration {
        policy: policy::read(root.section("policy").as_ref()),
        labels: labels.map(str::to_owned).collect(),
        devices: devices.told,
        models: models.told,
        families,
        seed: 1,
    };
    Daemon {
        configuration,
        server,
        keys,
        launches: models.launches,
        sources: devices.sources,
        footprints: models.footprints,
        cards: devices.cards,
        services: models.services,
    }
}

/// Reads a checked document. `None` where complaints were made.
pub(crate) fn scenario(table: &Table, place: Place, context: &Context<'_>, title: &str) -> Option<Scenario> {
    let root = Section::root(table, place, &SCENARIO, context);
    let devices = devices::read(&root);
    let models = models::read(&root, &devices);
    let mut names = names::Names::default();
    models::register(&root, &mut names);
    let families = families::read(&root, &models, &mut names);
    let policy = policy::read(root.section("policy").as_ref());
    let workloads = workload::read(&root, &names);
    let run = run::read(root.section("run").as_ref(), &workloads, place, context);
    let (sweeps, target) = sweep::read(&root, &workloads);
    let expectations = expect::read(&root);
    let faults = faults::read(&root, &names, &devices);
    models::check_memory(&root, &models, &devices);
    let run = run?;
    let configuration = Configuration {
        policy,
        devices: devices.told,
        models: models.told,
        families,
        labels: workloads.iter().map(|workload| workload.name.clone()).collect(),
        seed: run.seed,
    };
    Some(Scenario {
        title: root.text("title").unwrap_or(title).to_owned(),
        run,
        configuration,
        cards: devices.cards,
        services: models.services,
        residents: models.residents,
        workloads,
        sweeps,
        target,
        expectations,
        footprints: models.footprints,
        faults,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::form::Rule;
    use crate::source::{DaemonFile, Override, ScenarioFile};

    const TEXT: &str = "run.horizon = '1s'\n[[devices]]\nname = 'd'\n[models.m]\nservice = { kind = 'slots', decode_alpha = '1ms' }\n[models.b]\nbatch.max = 1\nservice = { kind = 'batch', alpha = '1ms', beta = '1ms' }\n[[workload]]\nname = 'w'\nmodel = 'm'\narrivals = { process = 'clients', count = 1 }\n[[workload]]\nname = 't'\nmodel = 'm'\narrivals = { process = 'trace', file = 'f' }\n";

    fn forms_of(shape: &Shape, met: &mut Vec<&'static Form>) {
        match shape {
            Shape::Scalar(_) | Shape::Texts => {}
            Shape::List(inner) | Shape::Any(inner) | Shape::Pair(inner) => forms_of(inner, met),
            Shape::Couple(first, second) => [first, second].into_iter().for_each(|shape| forms_of(shape, met)),
            Shape::Table(form) | Shape::Tables(form) | Shape::Named(form) => forms_below(form, met),
            Shape::Tagged(tagged) => tagged.variants.iter().for_each(|(_, form)| forms_below(form, met)),
            Shape::Either(shapes) => shapes.iter().for_each(|shape| forms_of(shape, met)),
        }
    }

    fn forms_below(form: &'static Form, met: &mut Vec<&'static Form>) {
        if !met.iter().any(|other| std::ptr::eq(*other, form)) {
            met.push(form);
            form.keys.iter().for_each(|key| forms_of(&key.shape, met));
        }
    }

    #[test]
    fn no_two_forms_have_the_same_name_and_no_form_the_same_key_twice() {
        let mut met = Vec::new();
        forms_below(&SCENARIO, &mut met);
        let names: BTreeSet<&str> = met.iter().map(|form| form.name).collect();
        assert_eq!(names.len(), met.len());
        for form in met {
            let keys: BTreeSet<&str> = form.keys.iter().map(|key| key.name).collect();
            assert_eq!(keys.len(), form.keys.len(), "{}", form.name);
            assert!(form.rule == Rule::Any || form.keys.iter().all(|key| key.default.is_none()), "{}", form.name);
        }
    }

    #[test]
    fn every_key_that_acts_is_read() {
        let origin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/everything.toml");
        let read = ScenarioFile::load(&origin).unwrap().keys_read();
        let mut met = Vec::new();
        forms_below(&SCENARIO, &mut met);
        for form in met {
            for key in form.keys.iter().filter(|key| key.name != "base") {
                assert!(
                    read.contains(&(form.name, key.name.to_owned())),
                    "{} of {} is never read",
                    key.name,
                    form.name
                );
            }
        }
    }

    #[test]
    fn a_default_that_is_written_out_changes_nothing() {
        let file = ScenarioFile::parse(TEXT, Path::new("s.toml")).unwrap();
        let plain = file.resolve(&[]).unwrap_or_else(|error| panic!("{error}"));
        let places: [(&str, &Form); 14] = [
            ("run", &run::RUN),
            ("devices.d", &devices::DEVICE),
            ("models.m", &models::MODEL),
            ("models.m.service", service::SERVICE.variant("slots").unwrap()),
            ("models.b.service", service::SERVICE.variant("batch").unwrap()),
            ("models.b.batch", batch_form()),
            ("policy", &policy::POLICY),
            ("policy.classes.interactive", class_form(0)),
            ("policy.classes.background", class_form(1)),
            ("policy.classes.batch", class_form(2)),
            ("workload.w", &workload::WORKLOAD),
            ("workload.w.arrivals", arrivals::ARRIVALS.variant("clients").unwrap()),
            ("workload.t.arrivals", arrivals::ARRIVALS.variant("trace").unwrap()),
            ("workload.t", &workload::WORKLOAD),
        ];
        for (at, form) in places {
            for (key, default) in form.keys.iter().filter_map(|key| Some((key, key.default?))) {
                if matches!(key.name, "alpha" | "beta" | "decode_alpha") {
                    continue; // Those the file gives.
                }
                let one = Override::new(&format!("{at}.{}", key.name), default).unwrap();
                let scenario = file.resolve(&[one]).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(scenario, plain, "{at}.{} = {default}", key.name);
            }
        }
    }

    #[test]
    fn a_default_of_a_daemon_that_is_written_out_changes_nothing() {
        let text = "[models.m]\ngguf = 'm.gguf'\n[[devices]]\nname = 'd'\n[[keys]]\nname = 'k'\nkey = 's'\n";
        let file = DaemonFile::parse(text, Path::new("d.toml")).unwrap();
        let plain = file.resolve(&[], &[]).unwrap_or_else(|error| panic!("{error}"));
        let all = [("server", &server::SERVER), ("keys.k", &keys::KEY), ("devices.d", &devices::DEVICE)];
        for (at, key, default) in
            all.iter().flat_map(|(at, form)| form.keys.iter().filter_map(move |key| Some((at, key, key.default?))))
        {
            let one = Override::new(&format!("{at}.{}", key.name), default).unwrap();
            let daemon = file.resolve(&[one], &[]).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(daemon, plain, "{at}.{} = {default}", key.name);
        }
    }

    fn table_form(form: &Form, key: &str) -> &'static Form {
        match form.key(key).map(|key| key.shape) {
            Some(Shape::Table(form)) => form,
            other => panic!("{key} is {other:?}"),
        }
    }

    fn batch_form() -> &'static Form {
        table_form(&models::MODEL, "batch")
    }

    fn class_form(at: usize) -> &'static Form {
        table_form(table_form(&policy::POLICY, "classes"), windtunnel_core::Class::ALL[at].name())
    }
}
