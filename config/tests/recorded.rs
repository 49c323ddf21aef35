//! A configuration in the words of files is read back as it was.

use std::path::Path;

use windtunnel_config::{Override, Scenario, ScenarioFile, policy_settings, scenario_of};
use windtunnel_core::{DeviceId, ModelId, Resident};

const SCENARIO: &str = r#"
[run]
horizon = "1s"
[policy]
background_share = 0.123456
routing = "join_shortest"
eviction = "lru"
batch_turn = "1234567ns"
[policy.classes.interactive]
order = "edf"
admission = "deadline"
max_queued = 17
weight = 2.5
[policy.classes.batch]
drop_hopeless = true
max_queued_bytes = "3MiB"
[[devices]]
name = "gpu"
count = 2
[[devices]]
name = "old card"
speed = 0.5
[models."a b"]
batch = { max = 16, wait = "3ms" }
prediction = "learned"
service = { kind = "batch", alpha = "2ms", beta = "1ms" }
[models.chat]
slots = 3
devices = ["old card0", "gpu1"]
service = { kind = "slots", prefill_fixed = "5ms", prefill_per_token = "0.1ms", decode_alpha = "8ms", decode_beta = "1ms" }
idle_ttl = "7s"
capabilities = ["chat", "vision"]
[[workload]]
name = "w"
model = "chat"
arrivals = { process = "poisson", rate = 1 }
[families.f]
variants = [{ model = "chat", quality = "preferred" }, { model = "a b", quality = "compact" }]
"#;

fn resolved(text: &str, overrides: &[Override]) -> Scenario {
    let file = ScenarioFile::parse(text, Path::new("x.toml")).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    file.resolve(overrides).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"))
}

#[test]
fn a_configuration_survives_its_own_words() {
    let first = resolved(SCENARIO, &[]).configuration;
    let residents =
        [Resident { model: ModelId(0), device: DeviceId(0) }, Resident { model: ModelId(1), device: DeviceId(1) }];
    let settings = policy_settings(&first.policy).into_iter();
    let settings: Vec<Override> = settings.map(|(key, value)| Override::new(&key, &value).unwrap()).collect();
    let again = resolved(&scenario_of(&first, &residents), &settings);
    assert_eq!(again.configuration.policy, first.policy);
    assert_eq!(again.configuration.models, first.models);
    assert_eq!(again.configuration.families, first.families);
    assert_eq!(again.configuration.devices, first.devices);
    assert!(again.services[0].iter().all(Option::is_some) && again.services[1][0].is_none());
}
