//! Whole files, and what becomes of them.

use std::path::{Path, PathBuf};

use windtunnel_config::{Daemon, DaemonFile};

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
