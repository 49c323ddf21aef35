//! What a scheduler was told, back in the words of files: so that settings can be put over it as over a scenario.

use std::fmt::Write;

use windtunnel_core::{
    Admission, Capacity, Class, ClassPolicy, Configuration, Device, DeviceKind, Eviction, Model, Order, Policy, Ppm,
    Prediction, Quality, Replicas, Resident, Routing, ServiceTimes, Span,
};

/// Every key of `[policy]` that says what `policy` says, with its value as TOML.
pub fn policy_settings(policy: &Policy) -> Vec<(String, String)> {
    let Policy {
        interactive_idle,
        background_max_starvation,
        background_share,
        guard_parallel,
        batch_max_starvation,
        batch_turn,
        hot_ttl,
        reserve_interactive_slots,
        default_class,
        embedding_chunk,
        routing,
        min_residency,
        interactive_turn,
        interactive_gap,
        eviction,
        release_timeout,
        monitor_stale,
        classes,
    } = policy;
    let own = [
        ("interactive_idle", span(*interactive_idle)),
        ("background_max_starvation", span(*background_max_starvation)),
        ("background_share", ratio(*background_share)),
        ("guard_parallel", guard_parallel.to_string()),
        ("batch_max_starvation", span(*batch_max_starvation)),
        ("batch_turn", span(*batch_turn)),
        ("hot_ttl", span(*hot_ttl)),
        ("reserve_interactive_slots", reserve_interactive_slots.to_string()),
        ("default_class", text(default_class.name())),
        ("embedding_chunk", embedding_chunk.to_string()),
        ("routing", text(routing_word(*routing))),
        ("min_residency", span(*min_residency)),
        ("interactive_turn", span(*interactive_turn)),
        ("interactive_gap", span(*interactive_gap)),
        ("eviction", text(if *eviction == Eviction::Cost { "cost" } else { "lru" })),
        ("release_timeout", span(*release_timeout)),
        ("monitor_stale", span(*monitor_stale)),
    ];
    let own = own.into_iter().map(|(key, value)| (format!("policy.{key}"), value));
    let of_class = |class: Class| class_settings(class, &classes[class.index()]);
    own.chain(Class::ALL.into_iter().flat_map(of_class)).collect()
}

fn class_settings(class: Class, policy: &ClassPolicy) -> Vec<(String, String)> {
    let ClassPolicy { order, admission, max_queued, max_queued_bytes, drop_hopeless, weight } = policy;
    let settings = [
        ("order", text(if *order == Order::Fifo { "fifo" } else { "edf" })),
        ("admission", text(admission_word(*admission))),
        ("max_queued", max_queued.map_or_else(|| text("unlimited"), |most| most.to_string())),
        ("max_queued_bytes", format!("\"{}B\"", max_queued_bytes.get())),
        ("drop_hopeless", drop_hopeless.to_string()),
        ("weight", ratio(*weight)),
    ];
    settings.into_iter().map(|(key, value)| (format!("policy.classes.{}.{key}", class.name()), value)).collect()
}

/// A scenario of the devices, models and families of `configuration`, in which every model serves as it is predicted to, on
/// cards of speed 1, and is loaded at the start if it is among `residents`. It knows nothing of memory, has one workload
/// that stands for those that were recorded, and leaves the policy to [`policy_settings`].
pub fn scenario_of(configuration: &Configuration, residents: &[Resident]) -> String {
    let mut toml = String::from("[run]\nhorizon = \"1s\"\nreplications = 1\n");
    devices(&mut toml, &configuration.devices);
    for (place, model) in configuration.models.iter().enumerate() {
        let resident = residents.iter().any(|one| one.model.index() == place);
        describe_model(&mut toml, model, resident, &configuration.devices);
    }
    for family in &configuration.families {
        let variants = family.variants.iter().filter_map(|variant| {
            let model = configuration.model(variant.model)?;
            Some(format!("{{ model = {}, quality = \"{}\" }}", text(&model.name), quality_word(variant.quality)))
        });
        let variants = variants.collect::<Vec<_>>().join(", ");
        push(&mut toml, format_args!("[families.{}]\nvariants = [{variants}]\n", text(&family.name)));
    }
    if let Some(model) = configuration.models.iter().find(|model| !model.placements.is_empty()) {
        let arrivals = "arrivals = { process = \"at\", times = [\"0s\"] }";
        push(&mut toml, format_args!("[[workload]]\nname = \"recorded\"\nmodel = {}\n{arrivals}\n", text(&model.name)));
    }
    toml
}

/// Consecutive devices called NAME0, NAME1, .. are one group.
fn devices(toml: &mut String, devices: &[Device]) {
    let mut rest = devices;
    while let Some(first) = rest.first() {
        let name = first.name.strip_suffix('0').unwrap_or(&first.name);
        let alike = |(at, device): &(usize, &Device)| device.name == format!("{name}{at}") && device.kind == first.kind;
        let count = rest.iter().enumerate().take_while(alike).count().max(1);
        let kind = if first.kind == DeviceKind::Discrete { "discrete" } else { "unified" };
        push(toml, format_args!("[[devices]]\nname = {}\ncount = {count}\nkind = \"{kind}\"\n", text(name)));
        rest = &rest[count..];
    }
}

fn describe_model(toml: &mut String, model: &Model, resident: bool, devices: &[Device]) {
    let name = text(&model.name);
    let Some(first) = model.placements.first() else { return };
    push(toml, format_args!("[models.{name}]\nservice = {}\nresident = {resident}\n", service(first.predicted)));
    let called = |device: windtunnel_core::DeviceId| devices.get(device.index()).map(|device| text(&device.name));
    let places: Vec<String> = model.placements.iter().filter_map(|place| called(place.device)).collect();
    // On all of them in their order is what holds if nothing is said, for devices that are added too.
    if !model.placements.iter().map(|place| place.device.index()).eq(0..devices.len()) {
        push(toml, format_args!("devices = [{}]\n", places.join(", ")));
    }
    match model.capacity {
        Capacity::Slots { slots } => push(toml, format_args!("slots = {slots}\n")),
        Capacity::Batch { max, wait } => push(toml, format_args!("batch = {{ max = {max}, wait = {} }}\n", span(wait))),
    }
    let replicas = match model.replicas {
        Replicas::Count(count) => count.to_string(),
        Replicas::All => text("all"),
    };
    let prediction = if model.prediction == Prediction::Learned { "learned" } else { "configured" };
    push(toml, format_args!("replicas = {replicas}\nprediction = \"{prediction}\"\npinned = {}\n", model.pinned));
    if model.preload {
        push(toml, format_args!("preload = true\n"));
    }
    if let Some(unused) = model.idle_ttl {
        push(toml, format_args!("idle_ttl = {}\n", span(unused)));
    }
    if !model.capabilities.is_empty() {
        let words: Vec<String> = model.capabilities.iter().map(|&one| text(one.name())).collect();
        push(toml, format_args!("capabilities = [{}]\n", words.join(", ")));
    }
    for place in model.placements.iter().filter(|place| place.predicted != first.predicted) {
        if let Some(device) = called(place.device) {
            push(toml, format_args!("[models.{name}.on.{device}]\nservice = {}\n", service(place.predicted)));
        }
    }
}

fn service(times: ServiceTimes) -> String {
    match times {
        ServiceTimes::Batch { alpha, beta } => {
            format!("{{ kind = \"batch\", alpha = {}, beta = {} }}", span(alpha), span(beta))
        }
        ServiceTimes::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice } => {
            let prefill =
                format!("prefill_fixed = {}, prefill_per_token = {}", span(prefill_fixed), span(prefill_per_token));
            let decode = format!("decode_alpha = {}, decode_beta = {}", span(decode_alpha), span(decode_beta));
            format!("{{ kind = \"slots\", {prefill}, {decode}, prefill_slice = {} }}", span(prefill_slice))
        }
    }
}

fn span(span: Span) -> String {
    format!("\"{}ns\"", span.as_nanos())
}

fn ratio(ratio: Ppm) -> String {
    format!("{}.{:06}", ratio.get() / 1_000_000, ratio.get() % 1_000_000)
}

fn text(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

const fn routing_word(routing: Routing) -> &'static str {
    match routing {
        Routing::Shared => "shared",
        Routing::RoundRobin => "round_robin",
        Routing::JoinShortest => "join_shortest",
        Routing::PowerOfTwo => "power_of_two",
    }
}

const fn admission_word(admission: Admission) -> &'static str {
    match admission {
        Admission::None => "none",
        Admission::Deadline => "deadline",
        Admission::Adaptive => "adaptive",
    }
}

const fn quality_word(quality: Quality) -> &'static str {
    match quality {
        Quality::Preferred => "preferred",
        Quality::Balanced => "balanced",
        Quality::Compact => "compact",
    }
}

/// Writing to a string cannot fail.
fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(more);
}
