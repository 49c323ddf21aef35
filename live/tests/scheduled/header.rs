//! The first line of the journals that tests write.

use windtunnel_reports::journal::{Header, SCHEMA, Source, WarmupRule};

/// Of a daemon that names nothing.
pub fn header(title: &str) -> Header {
    Header {
        schema: SCHEMA,
        program: "tests".to_owned(),
        source: Source::Live,
        title: title.to_owned(),
        seed: 0,
        replication: 0,
        horizon: None,
        jobs: None,
        warmup: WarmupRule::Auto,
        wall_clock: Some(0.0),
        devices: Vec::new(),
        models: Vec::new(),
        workloads: Vec::new(),
        remarks: Default::default(),
    }
}
