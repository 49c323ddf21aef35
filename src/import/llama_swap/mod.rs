//! llama-swap's configuration.
//!
//! There a group says what may be loaded beside what, and a model's settings are a command line. Here memory decides what stays,
//! so groups fall away but for what they keep for ever; and command lines are taken apart.

mod macros;
mod model;

use std::collections::{BTreeMap, BTreeSet};

use self::{
    macros::Macros,
    model::{Around, Read},
};
use super::{
    Environment,
    draft::{Block, Draft},
    losses::{Losses, Place},
    names::Names,
    section::Section,
    yaml::{Entry, LONGEST, Node},
};

/// Reads a file.
pub fn read(root: &Node, environment: &Environment<'_>, losses: &mut Losses) -> Draft {
    let mut draft = Draft::default();
    let mut section = Section::new("", root, losses);
    let nothing = Macros::default();
    let macros = nothing.with(section.mapping("macros", losses), "macros", losses);
    let mut server = server(&mut section, losses);
    let keys = keys(&mut section, &macros, environment, losses);
    let models = models(&mut section, &macros, environment, losses);
    let usual = most_common(&models);
    server.from(section.place("models")).set_some("llama_server", usual.clone());
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
        server.from(section.place("healthCheckTimeout")).set("start_limit", format!("{}s", seconds.max(15)));
    }
    if let Some(seconds) = section.some("unloadTimeout", losses) {
        server.from(section.place("unloadTimeout")).set("stop_grace", format!("{seconds}s"));
    }
    server
}

/// Keys that stand in environment variables stay there.
fn keys(
    section: &mut Section<'_>,
    macros: &Macros<'_>,
    environment: &Environment<'_>,
    losses: &mut Losses,
) -> Vec<Block> {
    let mut keys = Vec::new();
    for (at, (text, line)) in (1..).zip(section.placed_texts("apiKeys", losses)) {
        let mut key = Block::element("keys");
        key.from(Place { line, key: "apiKeys".to_owned() }).set("name", format!("key{at}"));
        let variable = text.strip_prefix("${env.").and_then(|rest| rest.strip_suffix('}'));
        // More than one variable is a text made of them, and none that the environment has.
        let variable = variable.filter(|name| !name.contains(['$', '}']));
        match (variable, macros.expand(text, environment)) {
            (Some(variable), _) => key.set("env", variable),
            (None, Ok(secret)) => key.set("key", secret),
            (None, Err(why)) => {
                losses.add(line, "apiKeys", why);
                continue;
            }
        }
        // There every key may do everything.
        key.set("admin", true);
        keys.push(key);
    }
    keys
}

fn models(
    section: &mut Section<'_>,
    macros: &Macros<'_>,
    environment: &Environment<'_>,
    losses: &mut Losses,
) -> Vec<Read> {
    let ttl = section.count("globalTTL", losses);
    let preload = preload(section, losses);
    let pinned = pinned(section, losses);
    let entries = section.mapping("models", losses);
    let mut room = LONGEST;
    let mut expanded = |entry| expanded(entry, macros, environment, &mut room, losses);
    let expanded: Vec<Node> = entries.iter().map(&mut expanded).collect();
    let known: Vec<(&str, &Node)> = entries.iter().map(|entry| entry.key.as_str()).zip(&expanded).collect();
    let preload = meant(&preload, &known, losses);
    let pinned = meant(&pinned, &known, losses);
    let around = Around { ttl, preload: &preload, pinned: &pinned };
    let mut names = Names::default();
    let naming = names.owners("models", entries, losses);
    let mut reads = Vec::new();
    for ((Entry { key, line, .. }, node), naming) in entries.iter().zip(&expanded).zip(naming) {
        reads.push(model::read((key, *line), node, &around, naming, &mut names, losses));
    }
    reads
}

/// A model with its macros put in.
fn expanded(
    entry: &Entry,
    macros: &Macros<'_>,
    environment: &Environment<'_>,
    room: &mut usize,
    losses: &mut Losses,
) -> Node {
    let Entry { key, node, .. } = entry;
    let trail = format!("models.{key}");
    let own = node.entries().iter().find(|entry| entry.key == "macros");
    let own = own.map_or(&[][..], |entry| entry.node.entries());
    let mut macros = macros.with(own, &format!("{trail}.macros"), losses);
    macros.set("MODEL_ID", key);
    macros.expanded(node, environment, room, &mut |line, why| losses.add(line, trail.as_str(), why))
}

/// A model that another section names.
struct Named {
    name: String,
    line: usize,
    key: String,
}

/// The models that are named, by their own names; nobody's name is a loss.
fn meant(named: &[Named], models: &[(&str, &Node)], losses: &mut Losses) -> BTreeSet<String> {
    let mut owners: BTreeMap<&str, &str> = models.iter().map(|(model, _)| (*model, *model)).collect();
    for (model, node) in models {
        let aliases = node.entries().iter().find(|entry| entry.key == "aliases").map(|entry| &entry.node);
        let aliases =
            aliases.into_iter().flat_map(|one| one.text().into_iter().chain(one.items().iter().filter_map(Node::text)));
        for alias in aliases {
            owners.entry(alias).or_insert(model);
        }
    }
    let mut meant = BTreeSet::new();
    for Named { name, line, key } in named {
        match owners.get(name.as_str()) {
            Some(model) => drop(meant.insert((*model).to_owned())),
            None => losses.add(*line, key.as_str(), format!("there is no model {name:?}")),
        }
    }
    meant
}

/// Models that are loaded at the start.
fn preload(section: &mut Section<'_>, losses: &mut Losses) -> Vec<Named> {
    let Some(entry) = section.entry("hooks") else { return Vec::new() };
    let mut hooks = Section::new("hooks", &entry.node, losses);
    let mut preload = Vec::new();
    if let Some(entry) = hooks.entry("on_startup") {
        let mut startup = Section::new("hooks.on_startup", &entry.node, losses);
        preload = named(&mut startup, "preload", losses);
        startup.lost("profile", "there are no profiles; names and aliases are fixed", losses);
        startup.end(losses);
    }
    hooks.end(losses);
    preload
}

fn named(section: &mut Section<'_>, key: &'static str, losses: &mut Losses) -> Vec<Named> {
    let texts = section.placed_texts(key, losses).into_iter();
    texts.map(|(text, line)| Named { name: text.to_owned(), line, key: section.name(key) }).collect()
}

/// Models that nothing may unload: members of persistent groups that do not swap among themselves.
fn pinned(section: &mut Section<'_>, losses: &mut Losses) -> Vec<Named> {
    let mut pinned = Vec::new();
    let mut of = |section: &mut Section<'_>, losses: &mut Losses| {
        for Entry { key, line, node } in section.mapping("groups", losses) {
            group(&format!("{}.{key}", section.name("groups")), *line, node, &mut pinned, losses);
        }
    };
    of(section, losses);
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
            of(&mut settings, losses);
            settings.lost("matrix", MEMORY_DECIDES, losses);
            settings.end(losses);
        }
        router.end(losses);
    }
    routing.end(losses);
    pinned
}

const MEMORY_DECIDES: &str = "memory decides what is loaded beside what, and `policy.eviction` what leaves";

fn group(trail: &str, line: usize, node: &Node, pinned: &mut Vec<Named>, losses: &mut Losses) {
    let mut group = Section::new(trail, node, losses);
    let (swap, exclusive) = (group.flag("swap", losses), group.flag("exclusive", losses));
    let persistent = group.flag("persistent", losses).unwrap_or(false);
    let members = named(&mut group, "members", losses);
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
