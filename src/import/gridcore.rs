//! GridCore's configuration. It schedules by much the same ideas, so most of its keys have a counterpart.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_core::{Capability, Class};

use super::{
    Environment,
    draft::{Block, Draft},
    losses::{Losses, Place},
    names::{Names, Naming},
    section::Section,
    yaml::{Entry, Node},
};

/// Reads a file.
pub fn read(root: &Node, environment: &Environment<'_>, losses: &mut Losses) -> Draft {
    let mut draft = Draft::default();
    let mut section = Section::new("", root, losses);
    let mut server = server(&mut section, losses);
    let mut policy = Block::table("policy");
    let device = gpu(&mut section, &mut policy, losses);
    let runtimes = runtimes(&mut section, environment, losses);
    if let [only] = &runtimes[..] {
        let place = |key: &str, line| Place { line, key: format!("runtimes.{}.{key}", only.name) };
        server.from(place("binary", only.line)).set_some("llama_server", only.binary.clone());
        server.from(place("load_timeout", only.timeout_line)).set_some("start_limit", only.load_timeout.clone());
        server.from(place("default_args", only.line)).set_list("args", &only.args);
    }
    let mut names = Names::default();
    let models = models(&mut section, &runtimes, environment, &mut names, losses);
    let families = families(&mut section, &models, &mut names, losses);
    let classes = self::policy(&mut section, &mut policy, losses);
    draft.push(server);
    device.into_iter().for_each(|block| draft.push(block));
    models.into_iter().for_each(|(_, block)| draft.push(block));
    families.into_iter().chain([policy]).chain(classes).for_each(|block| draft.push(block));
    section.end(losses);
    draft
}

fn server(section: &mut Section<'_>, losses: &mut Losses) -> Block {
    let mut server = Block::table("server");
    let Some(entry) = section.entry("server") else { return server };
    let mut inner = Section::new("server", &entry.node, losses);
    if let Some(listen) = inner.text("listen", losses).filter(|listen| !listen.is_empty()) {
        server.from(inner.place("listen"));
        // Without an address Go listens on every one.
        let listen = if listen.starts_with(':') { format!("0.0.0.0{listen}") } else { listen.to_owned() };
        let here = ["127.", "localhost:", "[::1]:"].iter().any(|start| listen.starts_with(start));
        if !here {
            server.remark("Others can reach it and nobody needs a key, as before; [[keys]] change that.");
            server.set("public", true);
            losses.add(entry.line, "server.listen", "is reachable by others without a key: kept by `public = true`");
        }
        server.set("listen", listen);
    }
    inner.end(losses);
    server
}

/// The device, if one is named. What holds for memory stands in the policy, which is the same for one device.
fn gpu(section: &mut Section<'_>, policy: &mut Block, losses: &mut Losses) -> Option<Block> {
    let entry = section.entry("gpu")?;
    let mut gpu = Section::new("gpu", &entry.node, losses);
    let mebibytes = |count: u64| format!("{count}MiB");
    let limit = gpu.some("vram_limit_mb", losses).map(mebibytes);
    policy.from(gpu.place("vram_limit_mb")).set_some("limit", limit);
    let headroom = gpu.some("headroom_mb", losses).map(mebibytes);
    policy.from(gpu.place("headroom_mb")).set_some("headroom", headroom);
    let mut block = Block::element("devices");
    let device = gpu.text("device", losses).filter(|device| !device.is_empty());
    block.from(gpu.place("device")).set("name", "gpu");
    let simulated = match device {
        Some("simulation") => gpu.some("simulated_total_mb", losses),
        Some(_) | None => {
            gpu.lost("simulated_total_mb", "the device is not simulated", losses);
            None
        }
    };
    let named = match device {
        None | Some("auto") => false,
        Some("apple") => {
            block.set("backend", "metal");
            true
        }
        Some("simulation") => {
            block.set("backend", "simulated");
            block.from(gpu.place("simulated_total_mb")).set("memory", mebibytes(simulated.unwrap_or(16384)));
            true
        }
        Some(text) => match text.strip_prefix("nvidia:").and_then(|index| index.parse::<u16>().ok()) {
            Some(index) => {
                block.set("backend", "cuda");
                block.set("id", i64::from(index));
                true
            }
            None => {
                losses.add(
                    gpu.line("device"),
                    "gpu.device",
                    format!("{text:?} is no device that is known; all that are found are used"),
                );
                false
            }
        },
    };
    match (gpu.duration("poll_interval", losses).filter(|poll| poll != "0s"), named) {
        (Some(poll), true) => block.from(gpu.place("poll_interval")).set("poll", poll),
        (Some(poll), false) if poll != "500ms" => {
            losses.add(
                gpu.line("poll_interval"),
                "gpu.poll_interval",
                "stands with a device: name it in [[devices]] and set `poll`",
            );
        }
        (Some(_) | None, _) => {}
    }
    gpu.end(losses);
    named.then_some(block)
}

/// How processes are started.
struct Runtime {
    name: String,
    /// Where it stands.
    line: usize,
    binary: Option<String>,
    args: Vec<String>,
    load_timeout: Option<String>,
    /// Where that stands.
    timeout_line: usize,
    /// What a request takes where nothing is computed.
    delay: Option<String>,
}

fn runtimes(section: &mut Section<'_>, environment: &Environment<'_>, losses: &mut Losses) -> Vec<Runtime> {
    let mut runtimes = Vec::new();
    for Entry { key, line, node } in section.mapping("runtimes", losses) {
        let mut inner = Section::new(format!("runtimes.{key}"), node, losses);
        let kind = inner.text("type", losses).filter(|kind| !kind.is_empty()).unwrap_or(key);
        let mut runtime = Runtime {
            name: key.clone(),
            line: *line,
            binary: None,
            args: Vec::new(),
            load_timeout: None,
            timeout_line: inner.line("load_timeout"),
            delay: None,
        };
        inner.lost("port_range", "processes get any free port", losses);
        match kind {
            "llamacpp" => {
                runtime.binary = inner.text("binary", losses).map(|path| home(path, environment));
                runtime.args = inner.texts("default_args", losses).into_iter().map(str::to_owned).collect();
                runtime.load_timeout = inner.duration("load_timeout", losses).filter(|limit| limit != "0s");
                inner.lost("simulated_request_delay", "its requests are not simulated", losses);
                runtimes.push(runtime);
            }
            "simulation" => {
                let delay = inner.duration("simulated_request_delay", losses).filter(|delay| delay != "0s");
                runtime.delay = Some(delay.unwrap_or_else(|| "50ms".to_owned()));
                for key in ["binary", "default_args", "load_timeout"] {
                    inner.lost(key, "no process is started where everything is simulated", losses);
                }
                runtimes.push(runtime);
            }
            _ => {
                losses.add(*line, format!("runtimes.{key}"), format!("{kind:?} is no kind of runtime that is known"));
                continue;
            }
        }
        inner.end(losses);
    }
    if runtimes.len() > 1 {
        for runtime in runtimes.iter().filter(|runtime| runtime.load_timeout.is_some()) {
            let key = format!("runtimes.{}.load_timeout", runtime.name);
            losses.add(runtime.timeout_line, key, "one limit holds for all models: `server.start_limit`");
        }
    }
    runtimes
}

type Models = Vec<(String, Block)>;
type Runtimes<'a> = BTreeMap<&'a str, &'a Runtime>;

fn models(
    section: &mut Section<'_>,
    runtimes: &[Runtime],
    environment: &Environment<'_>,
    names: &mut Names,
    losses: &mut Losses,
) -> Models {
    let entries = section.mapping("models", losses);
    let naming = names.owners("models", entries, losses);
    let runtimes: Runtimes<'_> = runtimes.iter().map(|runtime| (runtime.name.as_str(), runtime)).collect();
    let mut models = Vec::new();
    for (Entry { key, line, node }, naming) in entries.iter().zip(naming) {
        let trail = format!("models.{key}");
        let mut inner = Section::new(trail.clone(), node, losses);
        let mut block = Block::named("models", key);
        if naming == Naming::Refused {
            block.put_aside();
        }
        model(&mut block, &mut inner, (*line, &runtimes), environment, names, losses);
        inner.end(losses);
        models.push((key.clone(), block));
    }
    models
}

fn model(
    block: &mut Block,
    inner: &mut Section<'_>,
    (line, runtimes): (usize, &Runtimes<'_>),
    environment: &Environment<'_>,
    names: &mut Names,
    losses: &mut Losses,
) {
    block.from(Place { line, key: inner.name("path") });
    let named = inner.text("runtime", losses).filter(|name| !name.is_empty());
    let runtime = named.and_then(|name| runtimes.get(name).copied());
    if let (Some(name), None) = (named, runtime) {
        let why = format!("there is no runtime {name:?} that can be used; `server.llama_server` starts it");
        losses.add(inner.line("runtime"), inner.name("runtime"), why);
    }
    let path = inner.text("path", losses).map(|path| home(path, environment));
    let footprint = inner.count("simulated_vram_mb", losses);
    let simulated = runtime.and_then(|runtime| runtime.delay.as_ref());
    if simulated.is_none() && path.is_none() {
        losses.add(line, inner.name("path"), "is missing; the model is left out");
        block.put_aside();
    }
    if path.is_some() {
        block.from(inner.place("path")).set_some("gguf", path.filter(|_| simulated.is_none()));
    }
    let mmproj = inner.text("mmproj", losses).map(|path| home(path, environment));
    block.from(inner.place("mmproj")).set_some("mmproj", mmproj);
    // What GridCore takes where nothing is said.
    let count = |count: Option<u64>, standard| i64::try_from(count.unwrap_or(standard)).unwrap_or(i64::MAX);
    let (ctx, slots) = (inner.some("ctx", losses), inner.some("parallel", losses));
    block.from(inner.place("ctx")).set("ctx", count(ctx, 4096));
    block.from(inner.place("parallel")).set("slots", count(slots, 1));
    let several = runtimes.len() > 1;
    let standing = runtime.filter(|_| several).map_or(&[][..], |runtime| &runtime.args);
    let own = inner.texts("args", losses);
    let args: Vec<&str> = standing.iter().map(String::as_str).chain(own).collect();
    block.from(inner.place("args")).set_list("args", &args);
    let binary = runtime.filter(|_| several).and_then(|runtime| runtime.binary.clone());
    block.from(inner.place("runtime")).set_some("runtime", binary);
    block.from(inner.place("capabilities")).set_list("capabilities", &capabilities(inner, losses));
    let aliases: Vec<String> = inner.texts("aliases", losses).into_iter().map(str::to_owned).collect();
    if block.is_in_force() {
        block.from(inner.place("aliases"));
        block.set_list("aliases", &names.aliases(&aliases, line, &inner.name("aliases"), losses));
    }
    let (pinned, preload) = (inner.flag("pinned", losses) == Some(true), inner.flag("preload", losses) == Some(true));
    block.from(inner.place(if pinned { "pinned" } else { "preload" }));
    if pinned {
        block.set("pinned", true);
    }
    // What is pinned there is loaded at the start, too.
    if pinned || preload {
        block.set("preload", true);
    }
    if let Some(delay) = simulated {
        let service = [("kind", "slots"), ("prefill_fixed", delay), ("decode_alpha", "1ns"), ("prefill_slice", delay)];
        block.from(inner.place("simulated_vram_mb"));
        block.set("footprint", format!("{}MiB", footprint.unwrap_or(0).max(1)));
        block.set("service", service.into_iter().collect::<toml_edit::InlineTable>());
        inner.lost("simulated_load_time", "the time of a load stands with the device: `devices.load`", losses);
    } else {
        inner.lost("simulated_load_time", "the model is not simulated", losses);
    }
}

fn capabilities<'n>(inner: &mut Section<'n>, losses: &mut Losses) -> Vec<&'n str> {
    let mut words = inner.placed_texts("capabilities", losses);
    words.retain(|(word, line)| {
        let is_known = Capability::ALL.iter().any(|one| one.name() == *word);
        if !is_known {
            let known: Vec<&str> = Capability::ALL.iter().map(|one| one.name()).collect();
            let why = format!("{word:?} is none of {}", known.join(", "));
            losses.add(*line, inner.name("capabilities"), why);
        }
        is_known
    });
    words.into_iter().map(|(word, _)| word).collect()
}

fn families(section: &mut Section<'_>, models: &Models, names: &mut Names, losses: &mut Losses) -> Vec<Block> {
    let entries = section.mapping("families", losses);
    let naming = names.owners("families", entries, losses);
    let served: BTreeSet<&str> =
        models.iter().filter(|(_, block)| block.is_in_force()).map(|(name, _)| name.as_str()).collect();
    let mut families = Vec::new();
    for (Entry { key, line, node }, naming) in entries.iter().zip(naming) {
        let trail = format!("families.{key}");
        let mut inner = Section::new(trail.clone(), node, losses);
        let mut block = Block::named("families", key);
        let mut variants = toml_edit::Array::new();
        for quality in ["preferred", "balanced", "compact"] {
            let Some(model) = inner.text(quality, losses) else { continue };
            if served.contains(model) {
                variants.push(toml_edit::InlineTable::from_iter([("model", model), ("quality", quality)]));
            } else {
                losses.add(
                    inner.line(quality),
                    inner.name(quality),
                    format!("there is no model {model:?}; the variant is left out"),
                );
            }
        }
        if variants.is_empty() {
            losses.add(*line, trail.as_str(), "has no variant that is left");
        }
        if variants.is_empty() || naming == Naming::Refused {
            block.put_aside();
        }
        block.from(Place { line: *line, key: trail.clone() }).set("variants", variants);
        let aliases: Vec<String> = inner.texts("aliases", losses).into_iter().map(str::to_owned).collect();
        if block.is_in_force() {
            block.set_list("aliases", &names.aliases(&aliases, *line, &inner.name("aliases"), losses));
        }
        inner.end(losses);
        families.push(block);
    }
    families
}

/// The rules, and the tables of classes that say something.
fn policy(section: &mut Section<'_>, policy: &mut Block, losses: &mut Losses) -> Vec<Block> {
    let Some(entry) = section.entry("policy") else { return Vec::new() };
    let mut inner = Section::new("policy", &entry.node, losses);
    let default = inner.text("default_class", losses).filter(|class| !class.is_empty());
    policy.from(inner.place("default_class")).set_some("default_class", default);
    let classes = classes(&mut inner, policy, losses);
    // There zero stands for the default of these.
    let idle = inner.duration("interactive_idle_before_background", losses).filter(|idle| idle != "0s");
    policy.from(inner.place("interactive_idle_before_background")).set_some("interactive_idle", idle);
    for key in ["background_max_starvation", "batch_max_starvation", "min_residency"] {
        let span = inner.duration(key, losses);
        policy.from(inner.place(key)).set_some(key, span);
    }
    let share = inner.number("background_share", losses);
    policy.from(inner.place("background_share")).set_some("background_share", share);
    let eviction = inner.text("eviction", losses).filter(|eviction| !eviction.is_empty());
    policy.from(inner.place("eviction")).set_some("eviction", eviction);
    let chunk = inner.some("embedding_chunk_size", losses).and_then(|chunk| i64::try_from(chunk).ok());
    policy.from(inner.place("embedding_chunk_size")).set_some("embedding_chunk", chunk);
    inner.end(losses);
    classes
}

fn classes(inner: &mut Section<'_>, policy: &mut Block, losses: &mut Losses) -> Vec<Block> {
    let mut blocks = Vec::new();
    for Entry { key, line, node } in inner.mapping("classes", losses) {
        if !Class::ALL.iter().any(|class| class.name() == key) {
            losses.add(*line, format!("policy.classes.{key}"), "is none of interactive, background and batch");
            continue;
        }
        let mut class = Section::new(format!("policy.classes.{key}"), node, losses);
        let mut block = Block::table(&format!("policy.classes.{key}"));
        // The weights of both only count in proportion: 100, 30 and 10 there are 1, 0.3 and 0.1 here.
        let priority = class.number("priority", losses).filter(|priority| *priority > 0.0);
        block.from(class.place("priority")).set_some("weight", priority.map(|priority| priority / 100.0));
        match key.as_str() {
            "interactive" => {
                let hot = class.duration("hot_ttl", losses).filter(|ttl| ttl != "0s");
                policy.from(class.place("hot_ttl")).set_some("hot_ttl", hot);
            }
            _ => class.lost("hot_ttl", "only interactive work makes models hot", losses),
        }
        class.end(losses);
        blocks.push(block);
    }
    blocks
}

/// A path with `~` put in.
fn home(path: &str, environment: &Environment<'_>) -> String {
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            environment("HOME").map_or_else(|| path.to_owned(), |home| format!("{home}{rest}"))
        }
        Some(_) | None => path.to_owned(),
    }
}
