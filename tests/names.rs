//! Files that the documentation and the help texts name are there.

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
