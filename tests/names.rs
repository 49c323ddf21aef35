//! Files that the documentation and the help texts name are there, and patches fit what they change.

use std::{fs, path::Path};

#[test]
fn every_scenario_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for place in ["README.md", "CONTRIBUTING.md", "src/args.rs"] {
        let text = fs::read_to_string(root.join(place)).unwrap_or_else(|wrong| panic!("{place}: {wrong}"));
        let named: Vec<&str> = text
            .split(|one: char| one.is_whitespace() || "`()'\"".contains(one))
            .filter(|word| word.starts_with("scenarios/") && word.ends_with(".toml"))
            .collect();
        assert!(named.iter().all(|name| root.join(name).exists()), "{place} names one that is not there: {named:?}");
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()))
}

/// The words between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// A story that no rule names is one that nobody finds.
#[test]
fn every_scenario_is_named_by_the_policy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let policy = read(&root.join("docs/POLICY.md"));
    let files = fs::read_dir(root.join("scenarios")).expect("the folder of scenarios is there");
    let names = files.filter_map(|entry| {
        let path = entry.expect("its entries can be read").path();
        (path.extension()? == "toml").then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))?
    });
    let unnamed: Vec<String> = names.filter(|name| !quoted(&policy).any(|word| word == name)).collect();
    assert_eq!(unnamed, [""; 0]);
}

/// A fault is shown by a scenario that has it.
#[test]
fn every_fault_is_in_the_scenarios_that_are_said_to_show_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = read(&root.join("docs/FAULTS.md"));
    let faults: Vec<&str> = text.split("\n**").skip(1).collect();
    assert_eq!(faults.len(), 19, "{faults:?}");
    for fault in faults {
        let (kind, about) = fault.split_once(".**").unwrap_or_else(|| panic!("no name: {fault}"));
        assert!(about.contains(&format!("= \"{kind}\"")), "{kind} has no example");
        let shown = about.split_once("Shown").unwrap_or_else(|| panic!("{kind} is shown nowhere")).1;
        let shown = shown.split("```").next().unwrap_or_default();
        let scenarios: Vec<&str> = quoted(shown).filter(|word| word.contains('-') || !word.contains('_')).collect();
        assert!(!scenarios.is_empty(), "{kind} is shown nowhere");
        for name in scenarios {
            let scenario = read(&root.join(format!("scenarios/{name}.toml")));
            assert!(scenario.contains(&format!("kind = \"{kind}\"")), "{name} has no {kind}");
        }
    }
}

/// A mutation that no longer fits its source would be taken for one that nobody finds.
#[test]
fn every_mutation_still_applies() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(root.join("tests/mutations")).expect("the folder of mutations is there");
    let mut patches = 0;
    for entry in entries {
        let path = entry.expect("its entries can be read").path();
        let tried = std::process::Command::new("git")
            .args(["apply", "--unidiff-zero", "--check"])
            .arg(&path)
            .current_dir(root)
            .output()
            .expect("git is there");
        assert!(tried.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&tried.stderr));
        patches += 1;
    }
    assert!(patches > 10, "{patches} mutations");
}
