//! llama-swap's configuration.
//!
//! There a group says what may be loaded beside what, and a model's settings are a command line. Here memory decides what stays,
//! so groups fall away but for what they keep for ever; and command lines are taken apart.

mod macros;
mod model;

use std::collections::BTreeMap;

use self::{
    macros::Macros,
    model::{Around, Read},
};
use super::{
    Environment,
    draft::{Block, Draft},
    losses::Losses,
    names::Names,
    section::Section,
    yaml::{Entry, Node},
};

/// Reads a file.
pub fn read(root: &Node, environment: &Environment<'_>, losses: &mut Losses) -> Draft {
    let mut draft = Draft::default();
    let mut section = Section::new("", root, losses);
    let macros = Macros::default().with(section.entry("macros").map_or(&[], |entry| entry.node.entries()));
    let mut server = server(&mut section, losses);
    let keys = keys(&mut section, &macros, environment, losses);
    let models = models(&mut section, &macros, environment, losses);
    let usual = most_common(&models);
    server.set_some("llama_server", usual.clone());
    draft.push(server);
    keys.into_iter().for_each(|key| draft.push(key));
    for Read { mut block, program } in models {
        if program.is_some() && program != usual {
            block.set_some("runtime", program);
        }
        draft.push(block);
    }
    without_counterpart(&mut section, losses);
    section.end(losses);
    draft
}

fn server(section: &mut Section<'_>, losses: &mut Losses) -> Block {
    let mut server = Block::table("server");
    if let Some(seconds) = section.count("healthCheckTimeout", losses) {
        // Less than that counts as that.
        server.set("start_limit", format!("{}s", seconds.max(15)));
    }
    if let Some(seconds) = section.count("unloadTimeout", losses).filter(|seconds| *seconds > 0) {
        server.set("stop_grace", format!("{seconds}s"));
    }
    server
}

/// Keys that stand in environment variables stay there.
fn keys(section: &mut Section<'_>, macros: &Macros, environment: &Environment<'_>, losses: &mut Losses) -> Vec<Block> {
    let Some(entry) = section.entry("apiKeys") else { return Vec::new() };
    let mut keys = Vec::new();
    for (at, node) in (1..).zip(entry.node.items()) {
        let Some(text) = node.text() else { continue };
        let mut key = Block::element("keys");
        key.set("name", format!("key{at}"));
        let variable = text.strip_prefix("${env.").and_then(|rest| rest.strip_suffix('}'));
        match (variable, macros.expand(text, environment)) {
            (Some(variable), _) => key.set("env", variable),
            (None, Ok(secret)) => key.set("key", secret),
            (None, Err(why)) => {
                losses.add(node.line, "apiKeys", why);
                continue;
            }
        }
        // There every key may do everything.
        key.set("admin", true);
        keys.push(key);
    }
    keys
}

fn models(section: &mut Section<'_>, macros: &Macros, environment: &Environment<'_>, losses: &mut Losses) -> Vec<Read> {
    let ttl = section.count("globalTTL", losses);
    let preload = preload(section, losses);
    let pinned = pinned(section, losses);
    let around = Around { ttl, preload: &preload, pinned: &pinned };
    let entries = section.entry("models").map_or(&[][..], |entry| entry.node.entries());
    let mut names = Names::default();
    let naming = names.owners("models", entries, losses);
    let mut reads = Vec::new();
    for (Entry { key, line, node }, naming) in entries.iter().zip(naming) {
        let own = node.entries().iter().find(|entry| entry.key == "macros");
        let mut macros = macros.with(own.map_or(&[], |entry| entry.node.entries()));
        macros.set("MODEL_ID", key);
        let trail = format!("models.{key}");
        let node = macros.expanded(node, environment, &mut |line, why| losses.add(line, trail.as_str(), why));
        reads.push(model::read((key, *line), &node, &around, naming, &mut names, losses));
    }
    reads
}

/// Models that are loaded at the start.
fn preload(section: &mut Section<'_>, losses: &mut Losses) -> Vec<String> {
    let Some(entry) = section.entry("hooks") else { return Vec::new() };
    let mut hooks = Section::new("hooks", &entry.node, losses);
    let Some(entry) = hooks.entry("on_startup") else { return Vec::new() };
    let mut startup = Section::new("hooks.on_startup", &entry.node, losses);
    let preload = startup.texts("preload", losses).into_iter().map(str::to_owned).collect();
    startup.lost("profile", "there are no profiles; names and aliases are fixed", losses);
    startup.end(losses);
    hooks.end(losses);
    preload
}

/// Models that nothing may unload: members of persistent groups that do not swap among themselves.
fn pinned(section: &mut Section<'_>, losses: &mut Losses) -> Vec<String> {
    let mut pinned = Vec::new();
    let mut of = |entry: &Entry, trail: &str, losses: &mut Losses| {
        for Entry { key, line, node } in entry.node.entries() {
            group(&format!("{trail}.{key}"), *line, node, &mut pinned, losses);
        }
    };
    if let Some(entry) = section.entry("groups") {
        of(entry, "groups", losses);
    }
    let Some(entry) = section.entry("routing") else { return pinned };
    let mut routing = Section::new("routing", &entry.node, losses);
    routing.lost(
        "scheduler",
        "the class of a request orders the queue, not its model: see [policy] and [[keys]]",
        losses,
    );
    if let Some(entry) = routing.entry("router") {
        let mut router = Section::new("routing.router", &entry.node, losses);
        router.entry("use");
        if let Some(entry) = router.entry("settings") {
            let mut settings = Section::new("routing.router.settings", &entry.node, losses);
            if let Some(entry) = settings.entry("groups") {
                of(entry, "routing.router.settings.groups", losses);
            }
            settings.lost("matrix", MEMORY_DECIDES, losses);
            settings.end(losses);
        }
        router.end(losses);
    }
    routing.end(losses);
    pinned
}

const MEMORY_DECIDES: &str = "memory decides what is loaded beside what, and `policy.eviction` what leaves";

fn group(trail: &str, line: usize, node: &Node, pinned: &mut Vec<String>, losses: &mut Losses) {
    let mut group = Section::new(trail, node, losses);
    let (swap, exclusive) = (group.flag("swap", losses), group.flag("exclusive", losses));
    let persistent = group.flag("persistent", losses).unwrap_or(false);
    let members: Vec<String> = group.texts("members", losses).into_iter().map(str::to_owned).collect();
    if persistent && swap == Some(false) {
        pinned.extend(members);
        if exclusive != Some(false) {
            losses.add(line, trail, "its members are `pinned`, and unload nobody");
        }
    } else {
        losses.add(line, trail, MEMORY_DECIDES);
    }
    group.end(losses);
}

/// The program that most models are started with, the first of several.
fn most_common(models: &[Read]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let programs = || models.iter().filter_map(|model| model.program.as_deref());
    programs().for_each(|program| *counts.entry(program).or_default() += 1);
    let most = counts.values().copied().max()?;
    programs().find(|program| counts.get(program) == Some(&most)).map(str::to_owned)
}

fn without_counterpart(section: &mut Section<'_>, losses: &mut Losses) {
    const FIGURES: &str = "see /metrics, /admin/status and the journal";
    const OUTPUT: &str = "decisions are in the journal; what processes print goes to stderr";
    const FAMILIES: &str = "names and aliases are fixed; a family ([families.X]) comes closest";
    for (key, why) in [
        ("logLevel", OUTPUT),
        ("logTimeFormat", OUTPUT),
        ("logToStdout", OUTPUT),
        ("metricsMaxInMemory", FIGURES),
        ("captureBuffer", "requests and answers are never kept"),
        ("store", FIGURES),
        ("ui", FIGURES),
        ("performance", FIGURES),
        ("startPort", "processes get any free port"),
        ("sendLoadingState", "a stream that waits gets comments that keep it open, and no text of ours"),
        ("includeAliasesInList", "/v1/models lists aliases always"),
        ("tailcat", "it listens on one address: `server.listen`"),
        ("upstream", "there is no way around the scheduler"),
        ("profiles", FAMILIES),
        ("selectors", FAMILIES),
        ("peers", "other machines are not asked"),
        ("matrix", MEMORY_DECIDES),
    ] {
        section.lost(key, why, losses);
    }
}
