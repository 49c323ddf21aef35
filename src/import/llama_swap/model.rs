//! One model of llama-swap: its command line taken apart, and its settings.

use std::collections::BTreeSet;

use super::macros::PORT;
use crate::import::{
    command_line::{self, CommandLine, Purpose},
    draft::Block,
    losses::{Losses, Place},
    names::{Names, Naming},
    section::Section,
    yaml::Node,
};

/// What other sections say of models.
pub struct Around<'a> {
    /// Seconds after which unused models go, unless they say otherwise.
    pub ttl: Option<u64>,
    pub preload: &'a BTreeSet<String>,
    pub pinned: &'a BTreeSet<String>,
}

/// A model that was read.
pub struct Read {
    pub block: Block,
    /// Its program, where it is a `llama-server`.
    pub program: Option<String>,
}

/// Variables by which processes are kept to devices, and others that the daemon sets itself.
const OURS: [&str; 6] = [
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GGML_VK_VISIBLE_DEVICES",
    "LLAMA_API_KEY",
];

/// Reads a model, whose macros were put in.
pub fn read(
    (name, line): (&str, usize),
    node: &Node,
    around: &Around<'_>,
    naming: Naming,
    names: &mut Names,
    losses: &mut Losses,
) -> Read {
    let trail = format!("models.{name}");
    let mut section = Section::new(trail.clone(), node, losses);
    let mut block = Block::named("models", name);
    let command = command(&mut section, line, &trail, losses);
    let command = match command {
        Ok(command) => Some(command),
        Err((line, why)) => {
            losses.add(line, format!("{trail}.cmd"), format!("{why}; the model is left out"));
            block.remark(format!("Left out: its command {why}."));
            None
        }
    };
    if naming == Naming::Refused || command.as_ref().is_none_or(|command| command.gguf.is_none()) {
        block.put_aside();
    }
    if let Some(command) = &command
        && command.gguf.is_none()
    {
        let why = "names no model file with -m, so its memory is not known: download it and name it as `gguf`";
        losses.add(line, format!("{trail}.cmd"), format!("{why}; the model is left out"));
        block.remark(format!("Left out: its command {why}."));
    }
    let program = command.as_ref().map(|command| command.program.clone());
    write(&mut block, &mut section, command.unwrap_or_default(), (line, name), around, names, losses);
    without_counterpart(&mut section, losses);
    section.end(losses);
    Read { program: program.filter(|_| block.is_in_force()), block }
}

fn command(
    section: &mut Section<'_>,
    line: usize,
    trail: &str,
    losses: &mut Losses,
) -> Result<CommandLine, (usize, String)> {
    let Some(entry) = section.entry("cmd") else { return Err((line, "is missing".to_owned())) };
    let at = |why: &str| (entry.line, why.to_owned());
    let text = entry.node.text().ok_or_else(|| at("is no text"))?;
    let words = command_line::words(text).ok_or_else(|| at("has a quotation mark without its partner"))?;
    let key = format!("{trail}.cmd");
    let read = command_line::read(&words, entry.line, &key, losses).map_err(|why| at(&why))?;
    let words = [Some(&read.program), read.gguf.as_ref(), read.mmproj.as_ref()].into_iter().flatten().chain(&read.args);
    let left = words.into_iter().find_map(|word| word.split_once("${")?.1.split_once('}')).map(|(name, _)| name);
    match left {
        Some(name) => Err(at(&format!("uses ${{{name}}} where the daemon cannot put it in"))),
        None => Ok(read),
    }
}

fn write(
    block: &mut Block,
    section: &mut Section<'_>,
    command: CommandLine,
    (line, name): (usize, &str),
    around: &Around<'_>,
    names: &mut Names,
    losses: &mut Losses,
) {
    block.from(section.place("cmd")).set_some("gguf", command.gguf);
    block.set_some("mmproj", command.mmproj);
    block.set_some("ctx", command.ctx.map(i64::from));
    block.set_some("slots", command.slots.map(i64::from));
    block.set_list("args", &command.args);
    block.from(section.place("env"));
    block.set_texts("env", &environment(section, command.environment, losses));
    let mut aliases: Vec<String> = command.aliases.into_iter().filter(|alias| alias != name).collect();
    aliases.extend(section.texts("aliases", losses).into_iter().map(str::to_owned));
    aliases.dedup();
    if block.is_in_force() {
        block.from(section.place("aliases"));
        block.set_list("aliases", &names.aliases(&aliases, line, &section.name("aliases"), losses));
    }
    block.from(section.place("capabilities"));
    block.set_list("capabilities", &capabilities(section, command.purpose, losses));
    block.from(Place { line, key: format!("models.{name}") });
    if around.pinned.contains(name) {
        block.set("pinned", true);
    }
    if around.preload.contains(name) {
        block.set("preload", true);
    }
    let own = section.count("ttl", losses);
    if let Some(seconds) = own.or(around.ttl).filter(|seconds| *seconds > 0) {
        block.from(section.place("ttl")).set("idle_ttl", format!("{seconds}s"));
    }
}

fn environment(section: &mut Section<'_>, own: Vec<(String, String)>, losses: &mut Losses) -> Vec<(String, String)> {
    let mut all = own;
    for (text, line) in section.placed_texts("env", losses) {
        match text.split_once('=') {
            Some((name, value)) => all.push((name.to_owned(), value.to_owned())),
            None => losses.add(line, section.name("env"), format!("has to be NAME=value, found {text:?}")),
        }
    }
    // Of several with one name the last holds.
    let mut names = BTreeSet::new();
    all.reverse();
    all.retain(|(name, _)| names.insert(name.clone()));
    all.reverse();
    let line = section.entry("env").or_else(|| section.entry("cmd")).map_or(1, |entry| entry.line);
    let key = section.name("env");
    all.retain(|(name, _)| {
        let ours = OURS.contains(&name.as_str());
        if ours {
            losses.add(
                line,
                key.as_str(),
                format!("{name} is set by the daemon; [[devices]] and `devices` say where a model runs"),
            );
        }
        !ours
    });
    all
}

/// What it can do. Words that clients are told and words that decide are one thing here: what is not listed is refused.
fn capabilities(section: &mut Section<'_>, purpose: Option<Purpose>, losses: &mut Losses) -> Vec<&'static str> {
    let mut can = match purpose {
        Some(Purpose::Embedding) => vec!["embedding"],
        Some(Purpose::Rerank) => vec!["rerank"],
        None => Vec::new(),
    };
    let Some(entry) = section.entry("capabilities") else { return can };
    let mut inner = Section::new(section.name("capabilities"), &entry.node, losses);
    let takes = words(&mut inner, "in", &["text", "image", "audio"], losses);
    let gives = words(&mut inner, "out", &["text"], losses);
    if inner.flag("reranker", losses) == Some(true) && !can.contains(&"rerank") {
        can.push("rerank");
    }
    let tools = inner.flag("tools", losses) == Some(true);
    let also = [("image", "vision"), ("audio", "audio")].into_iter().filter(|(word, _)| takes.contains(word));
    let also: Vec<&str> = also.map(|(_, name)| name).chain(tools.then_some("tools")).collect();
    // An empty list is no check at all, so one that speaks of images only has to speak of chats too.
    if purpose.is_none() && (gives.contains(&"text") || !also.is_empty()) {
        can.extend(["chat", "completion"]);
    }
    can.extend(also);
    inner.lost("context", "is told to clients there only; here `ctx` says it", losses);
    inner.end(losses);
    can
}

/// Those words of a list that mean something here.
fn words<'n>(section: &mut Section<'n>, key: &'static str, known: &[&str], losses: &mut Losses) -> Vec<&'n str> {
    let mut words = section.placed_texts(key, losses);
    words.retain(|(word, line)| {
        let is_known = known.contains(word);
        if !is_known {
            let why = format!("{word:?} has no counterpart; {} has one", known.join(", "));
            losses.add(*line, section.name(key), why);
        }
        is_known
    });
    words.into_iter().map(|(word, _)| word).collect()
}

fn without_counterpart(section: &mut Section<'_>, losses: &mut Losses) {
    let proxy = section.entry("proxy");
    if let Some(entry) = proxy.filter(|entry| !entry.node.text().is_some_and(|text| text.contains(PORT))) {
        let why = "processes are reached on a port that they are given when they start";
        losses.add(entry.line, section.name("proxy"), why);
    }
    let health = section.entry("checkEndpoint");
    if let Some(entry) = health.filter(|entry| entry.node.text() != Some("/health")) {
        let why = "a process is ready when /health says so and it has shown that the port is its own";
        losses.add(entry.line, section.name("checkEndpoint"), why);
    }
    // Read with the global ones.
    section.mapping("macros", losses);
    for (key, why) in [
        ("cmdStop", "processes are ended by TERM, and by KILL after `server.stop_grace`"),
        ("unloadTimeout", "`server.stop_grace` holds for all models"),
        ("name", "only names and aliases are listed"),
        ("description", "only names and aliases are listed"),
        ("metadata", "only names and aliases are listed"),
        ("useModelName", "a llama-server is asked by the name of its model"),
        ("filters", "request bodies go through as clients write them"),
        (
            "concurrencyLimit",
            "requests wait in a queue: `slots` is how many run, `policy.classes.X.max_queued` how many wait",
        ),
        ("sendLoadingState", "a stream that waits gets comments that keep it open, and no text of ours"),
        ("timeouts", "progress is what counts: see `server.start_stall` and `server.wedged_after`"),
        ("compat", "there are no websockets"),
        ("unlisted", "/v1/models lists every model"),
    ] {
        section.lost(key, why, losses);
    }
}
