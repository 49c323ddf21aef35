//! What each room is told, from the configuration.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use windtunnel_config::Daemon;
use windtunnel_core::{Capacity, DeviceId, Estimate, Model, ModelId, Profile, Span, Started};
use windtunnel_reports::journal::{DeviceFacts, Header, ModelFacts, SCHEMA, Source, WarmupRule, WorkloadFacts};

use crate::{
    Clock, descriptors,
    gateway::{Key, Secret, Settings, WithoutKeys},
    places,
};

/// The first line of the journal.
pub(super) fn header(daemon: &Daemon, clock: Clock) -> Header {
    let configuration = &daemon.configuration;
    let used = |device: DeviceId| {
        configuration.models.iter().any(|model| model.placements.iter().any(|place| place.device == device))
    };
    let devices = (0..).map(DeviceId).zip(&configuration.devices);
    let devices = devices.map(|(id, device)| DeviceFacts {
        name: device.name.clone(),
        used: used(id),
        // How much a device gains by side-by-side work is not known before it was measured.
        side_by_side: 1.0,
    });
    let model = |model: &Model| ModelFacts {
        name: model.name.clone(),
        capacity: vec![None; configuration.devices.len()],
        at_once: match model.capacity {
            Capacity::Slots { slots } => slots,
            Capacity::Batch { max, wait: _ } => max,
        },
    };
    let workload = |name: &String| WorkloadFacts {
        name: name.clone(),
        arrivals: "as clients ask".to_owned(),
        closed_loop: false,
        class: configuration.policy.default_class,
        capacity: None,
    };
    Header {
        schema: SCHEMA,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        source: Source::Live,
        title: "a daemon".to_owned(),
        seed: configuration.seed,
        replication: 0,
        horizon: None,
        jobs: None,
        warmup: WarmupRule::Fixed(Span::ZERO),
        wall_clock: Some(clock.wall_clock()),
        devices: devices.collect(),
        models: configuration.models.iter().map(model).collect(),
        workloads: configuration.labels.iter().map(workload).collect(),
        remarks: BTreeMap::new(),
    }
}

/// The first input of the scheduler.
pub(super) fn started(daemon: &Daemon, profiles: Vec<Profile>, estimates: Vec<Estimate>) -> Started {
    Started { configuration: daemon.configuration.clone(), profiles, estimates, residents: Vec::new() }
}

/// How the gateway of a process that may have so many file descriptors behaves; the keys at places in `retired` are only there
/// for their places.
///
/// # Errors
/// If the text of a key cannot be had; says which.
pub(super) fn gateway(daemon: &Daemon, retired: BTreeSet<usize>, descriptors: usize) -> Result<Settings, String> {
    let server = &daemon.server;
    let mut keys = Vec::new();
    let mut admin_keys = Vec::new();
    for key in &daemon.keys {
        let text = key.secret.read().map_err(|wrong| format!("the key {:?} {wrong}", key.name))?;
        let secret = Secret::new(text);
        if key.admin {
            admin_keys.push(secret.clone());
        }
        keys.push(Key {
            name: key.name.clone(),
            secret,
            classes: key.classes.clone(),
            default_class: key.class,
            most: key.max_in_flight,
        });
    }
    Ok(Settings {
        keys,
        retired,
        admin_keys,
        without_keys: if server.public { WithoutKeys::Anywhere } else { WithoutKeys::LoopbackOnly },
        hosts: server.hosts.clone(),
        origins: server.cors.clone(),
        class: daemon.configuration.policy.default_class,
        body_limit: usize::try_from(server.body_limit.get()).unwrap_or(usize::MAX),
        body_time: lasting(server.body_time),
        hold_after: lasting(server.keepalive_after),
        keepalive: lasting(server.keepalive_every),
        drain: lasting(server.drain),
        connections: descriptors::for_clients(descriptors),
        ..Settings::default()
    })
}

/// A span as the operating system counts time.
pub(super) fn lasting(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

/// The program that a model is started with, where it is found.
pub(super) fn program(daemon: &Daemon, model: ModelId) -> Option<PathBuf> {
    let own = daemon.launches.get(model.index()).and_then(|launch| launch.runtime.clone());
    places::program(&own.unwrap_or_else(|| daemon.server.llama_server.clone()))
}

#[cfg(test)]
mod tests {
    use std::{net::SocketAddr, path::Path};

    use windtunnel_config::DaemonFile;

    use super::*;
    use crate::{daemon::continued, gateway::may_listen};

    fn daemon(keys: &str) -> Daemon {
        let text = format!(
            "devices = [{{ name = \"a\", backend = \"simulated\" }}]\nkeys = [{keys}]\n\
             models.chat = {{ footprint = \"1GiB\", service = {{ kind = \"slots\", decode_alpha = \"10ms\" }} }}\n"
        );
        let file = DaemonFile::parse(&text, Path::new("windtunnel.toml")).unwrap_or_else(|wrong| panic!("{wrong}"));
        file.resolve(&[], &[]).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    const KEYS: &str = r#"{ name = "app", key = "one" }, { name = "me", key = "two", admin = true },
        { name = "you", key = "three", admin = true }"#;

    #[test]
    fn everybody_who_is_called_an_operator_is_one() {
        let settings = gateway(&daemon(KEYS), BTreeSet::new(), 1024).unwrap();
        assert_eq!(settings.connections, 768, "some are kept from clients");
        assert_eq!(settings.admin_keys, ["two", "three"].map(|key| Secret::new(key.to_owned())));
    }

    #[test]
    fn bodies_may_take_as_long_as_is_configured() {
        let mut daemon = daemon("");
        daemon.server.body_time = Span::from_secs(7);
        assert_eq!(gateway(&daemon, BTreeSet::new(), 1024).unwrap().body_time, Duration::from_secs(7));
    }

    #[test]
    fn without_the_last_key_only_this_machine_is_served() {
        let [here, anywhere] = ["127.0.0.1:8080", "0.0.0.0:8080"].map(|one| one.parse::<SocketAddr>().unwrap());
        let fewer = continued(&daemon(KEYS), daemon(r#"{ name = "app", key = "one" }"#));
        let settings = gateway(&fewer.daemon, fewer.retired, 1024).unwrap();
        assert!(settings.admin_keys.is_empty());
        assert_eq!(may_listen(&settings, anywhere), Ok(()));
        let none = continued(&fewer.daemon, daemon(""));
        let settings = gateway(&none.daemon, none.retired, 1024).unwrap();
        assert_eq!((settings.keys.len(), settings.retired.len()), (3, 3), "labels keep their places");
        assert_eq!(may_listen(&settings, here), Ok(()));
        assert!(may_listen(&settings, anywhere).unwrap_err().contains("without keys"));
    }
}
