//! Whole files, and what becomes of them.

use std::path::{Path, PathBuf};

use windtunnel_config::{Daemon, DaemonFile, Secret};

use super::*;

const LLAMA_SWAP: &str = include_str!("../../tests/import/llama-swap.yaml");
const GRIDCORE: &str = include_str!("../../tests/import/gridcore.yaml");

fn environment(name: &str) -> Option<String> {
    (name == "HOME").then(|| "/home/me".to_owned())
}

fn imported(origin: Origin, text: &str) -> Imported {
    import(origin, text, "config.yaml", &environment).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// As the daemon reads it.
fn daemon(imported: &Imported) -> Daemon {
    let file = DaemonFile::parse(&imported.text, Path::new("/etc/windtunnel.toml")).unwrap();
    file.resolve(&[], &[inventory::no_device()]).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn shown(imported: &Imported) -> String {
    let losses: Vec<String> = imported.losses.iter().map(|loss| format!("{}: {loss}\n", loss.line)).collect();
    format!("{}\n=== not taken over ===\n{}", imported.text, losses.concat())
}

#[test]
fn a_configuration_of_llama_swap_becomes_one_of_ours() {
    insta::assert_snapshot!(shown(&imported(Origin::LlamaSwap, LLAMA_SWAP)));
}

#[test]
fn a_configuration_of_gridcore_becomes_one_of_ours() {
    insta::assert_snapshot!(shown(&imported(Origin::GridCore, GRIDCORE)));
}

#[test]
fn paths_and_arguments_of_llama_swap_reach_the_daemon_as_they_were() {
    let daemon = daemon(&imported(Origin::LlamaSwap, LLAMA_SWAP));
    let named = |name: &str| {
        let at = daemon.configuration.models.iter().position(|model| model.name == name).unwrap();
        (&daemon.configuration.models[at], &daemon.launches[at])
    };
    assert_eq!(daemon.server.llama_server, PathBuf::from("/opt/llama.cpp/llama-server"));
    let (model, launch) = named("coder");
    assert_eq!(launch.gguf, Some(PathBuf::from("/home/me/models/coder with spaces.gguf")));
    assert_eq!(launch.ctx, Some(16384));
    assert_eq!(
        launch.args,
        ["-ngl", "99", "--temp", "0.7", "--chat-template-kwargs", "{\"reasoning_effort\": \"high\"}"]
    );
    assert_eq!(launch.env, [("GGML_LOG".to_owned(), "1".to_owned())]);
    assert_eq!(model.aliases, ["gpt-4o-mini"]);
    let (embedder, _) = named("embedder");
    assert!(embedder.pinned && embedder.preload);
    assert_eq!(named("old").1.runtime, Some(PathBuf::from("/opt/older/llama-server")));
    assert_eq!(daemon.keys.len(), 2);
}

#[test]
fn what_cannot_be_a_configuration_is_an_error_and_not_a_file() {
    let refused = |origin, text: &str| import(origin, text, "config.yaml", &environment).unwrap_err();
    assert!(refused(Origin::LlamaSwap, "models: [").contains("is no YAML"));
    assert!(refused(Origin::GridCore, "server: { listen: nonsense }").contains("listen"));
    for origin in [Origin::GridCore, Origin::LlamaSwap] {
        for (text, found) in
            [("hello", "a single value"), ("", "nothing"), ("# only this\n", "nothing"), ("- a", "a list")]
        {
            let wrong = refused(origin, text);
            assert!(wrong.contains("mapping of settings") && wrong.contains(found), "{text:?}: {wrong}");
        }
        assert!(refused(origin, "models: {}\n---\nmodels: {}\n").contains("line 2: a second document"));
    }
}

/// The keys of what was not taken over, with their lines.
fn lost(origin: Origin, text: &str) -> Vec<String> {
    imported(origin, text).losses.iter().map(|loss| format!("{} {}", loss.line, loss.key)).collect()
}

#[test]
fn no_setting_goes_unmentioned() {
    for origin in [Origin::GridCore, Origin::LlamaSwap] {
        let text = "typo: 1\nmodels:\n  a:\n    tpyo: 2\n  b: 7\n";
        let losses: Vec<String> = imported(origin, text).losses.iter().map(|loss| loss.key.clone()).collect();
        for key in ["typo", "models.a.tpyo", "models.b"] {
            assert!(losses.iter().any(|loss| loss == key), "{key} is not among {losses:?}");
        }
    }
}

#[test]
fn a_setting_of_the_wrong_kind_is_told_of() {
    const MODEL: &str = "models:\n  m:\n    cmd: llama-server -m m.gguf\n";
    let model = |text: &str| format!("{MODEL}    {text}\n");
    for (text, loss) in [
        ("models: [a]".to_owned(), "1 models"),
        ("groups: [x]".to_owned(), "1 groups"),
        ("macros: [m]".to_owned(), "1 macros"),
        ("macros: { a: [m] }".to_owned(), "1 macros.a"),
        ("apiKeys: { a: b }".to_owned(), "1 apiKeys"),
        ("apiKeys:\n  - [a]".to_owned(), "2 apiKeys"),
        ("hooks: [x]".to_owned(), "1 hooks"),
        ("hooks: { on_start: {} }".to_owned(), "1 hooks.on_start"),
        ("hooks:\n  on_startup:\n    preload: [a]".to_owned(), "3 hooks.on_startup.preload"),
        ("groups:\n  g:\n    persistent: true\n    swap: false\n    members: [a]".to_owned(), "5 groups.g.members"),
        ("routing: { router: { settings: { groups: x } } }".to_owned(), "1 routing.router.settings.groups"),
        (model("env: [FOO]"), "4 models.m.env"),
        (model("macros: [x]"), "4 models.m.macros"),
        (model("macros: { x: [y] }"), "4 models.m.macros.x"),
        (model("capabilities: { in: [smell] }"), "4 models.m.capabilities.in"),
        (model("capabilities: { out: [image] }"), "4 models.m.capabilities.out"),
    ] {
        let losses = lost(Origin::LlamaSwap, &text);
        assert!(losses.iter().any(|one| one == loss), "{text}: {losses:?}");
    }
    let model = |text: &str| format!("models:\n  m:\n    path: m.gguf\n    {text}\n");
    for (text, loss) in [
        ("models: [a]".to_owned(), "1 models"),
        ("runtimes: a".to_owned(), "1 runtimes"),
        ("families: [a]".to_owned(), "1 families"),
        ("policy:\n  classes: [a]".to_owned(), "2 policy.classes"),
        ("gpu: { simulated_total_mb: 5 }".to_owned(), "1 gpu.simulated_total_mb"),
        ("runtimes:\n  simulation: { binary: x }".to_owned(), "2 runtimes.simulation.binary"),
        (
            "runtimes:\n  a:\n    type: llamacpp\n    load_timeout: 5m\n  b: { type: llamacpp }".to_owned(),
            "4 runtimes.a.load_timeout",
        ),
        (model("runtime: nope"), "4 models.m.runtime"),
        (model("capabilities: [chat, smell]"), "4 models.m.capabilities"),
    ] {
        let losses = lost(Origin::GridCore, &text);
        assert!(losses.iter().any(|one| one == loss), "{text}: {losses:?}");
    }
}

#[test]
fn zero_and_nothing_stand_for_what_is_usual() {
    let text = "server: { listen: '' }\ngpu: { device: '', vram_limit_mb: 0, headroom_mb: 0, poll_interval: 0s }\n\
        runtimes: { llamacpp: { type: '', load_timeout: 0s } }\n\
        models:\n  m: { runtime: llamacpp, path: m.gguf, ctx: 0, parallel: 0 }\n\
        policy: { default_class: '', eviction: '', embedding_chunk_size: 0, min_residency: 0s }\n";
    let bare = "runtimes: { llamacpp: { } }\nmodels:\n  m: { runtime: llamacpp, path: m.gguf }\n\
        policy: { min_residency: 0s }\n";
    let (given, bare) = (imported(Origin::GridCore, text), imported(Origin::GridCore, bare));
    assert_eq!((given.text, given.losses), (bare.text, bare.losses));
}

#[test]
fn what_cannot_be_taken_over_is_named_as_it_was_written() {
    let environment = |_: &str| None;
    for (origin, text, told) in [
        (Origin::GridCore, "server:\n  listen: nonsense\n", "line 2: `server.listen`"),
        (Origin::GridCore, "policy:\n  min_residency: 1s\n  eviction: lfu\n", "line 3: `policy.eviction`"),
        (Origin::GridCore, "policy:\n  background_share: 0\n", "line 2: `policy.background_share`"),
        (
            Origin::GridCore,
            "models:\n  other: {}\n  m:\n    path: m.gguf\n    ctx: 99999999999\n",
            "line 5: `models.m.ctx`",
        ),
        (
            Origin::LlamaSwap,
            "models:\n  m:\n    cmd: llama-server -m m.gguf\n    env: ['A B=1']\n    ttl: 99999999999999\n",
            "line 5: `models.m.ttl`",
        ),
    ] {
        let wrong = import(origin, text, "config.yaml", &environment).map(|imported| imported.text);
        let wrong = wrong.expect_err("it cannot be taken over");
        assert!(wrong.starts_with("line ") && wrong.contains(told), "{text}: {wrong}");
    }
}

#[test]
fn keys_of_llama_swap_are_all_kept() {
    let environment = |name: &str| matches!(name, "A" | "B").then(|| name.to_lowercase());
    let keys = |text: &str| {
        let imported = import(Origin::LlamaSwap, text, "config.yaml", &environment);
        let imported = imported.unwrap_or_else(|wrong| panic!("{wrong}"));
        daemon(&imported).keys.into_iter().map(|key| key.secret).collect::<Vec<_>>()
    };
    let written = |text: &str| Secret::Inline(text.to_owned());
    assert_eq!(keys("apiKeys: secret"), [written("secret")]);
    assert_eq!(
        keys("apiKeys: ['${env.A}', '${env.A}-${env.B}']"),
        [Secret::Environment("A".to_owned()), written("a-b")]
    );
}

#[test]
fn models_may_be_named_by_their_aliases() {
    let text = "models:\n  a:\n    cmd: llama-server -m a.gguf\n    aliases: [x]\n  b:\n    cmd: llama-server -m b.gguf\n    \
        aliases: y\nhooks: { on_startup: { preload: [x] } }\ngroups: { g: { persistent: true, swap: false, members: [y] } }\n";
    let models = daemon(&imported(Origin::LlamaSwap, text)).configuration.models;
    let told: Vec<(bool, bool)> = models.iter().map(|model| (model.preload, model.pinned)).collect();
    assert_eq!(told, [(true, false), (false, true)]);
}

#[test]
fn names_that_are_taken_are_told_of_and_the_rest_still_works() {
    let model =
        |name: &str, alias: &str| format!("  {name}:\n    cmd: llama-server -m {name}.gguf\n    aliases: [{alias}]\n");
    let text = format!("models:\n{}{}{}", model("a", "b"), model("b", "c"), model("d", "a"));
    let imported = imported(Origin::LlamaSwap, &text);
    let names: Vec<String> = daemon(&imported).configuration.models.iter().map(|model| model.name.clone()).collect();
    assert_eq!(names, ["a", "b", "d"]);
    assert!(
        imported.losses.iter().filter(|loss| loss.why.contains("belongs to")).count() == 2,
        "{:?}",
        imported.losses
    );
}
