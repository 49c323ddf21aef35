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
