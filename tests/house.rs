//! What ARCHITECTURE.md promises of the house: who depends on whom, under which licences, and that files stay small.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// What the workspace is built of on this machine, as cargo tells it.
fn metadata() -> Value {
    let version = run("rustc", &["-vV"]);
    let host =
        version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc should name its host").to_owned();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let arguments = ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", &host];
    serde_json::from_str(&run(&cargo, &arguments)).expect("cargo metadata should be JSON")
}

fn run(program: &str, arguments: &[&str]) -> String {
    let out = Command::new(program).args(arguments).current_dir(root()).output();
    let out = out.unwrap_or_else(|wrong| panic!("{program}: {wrong}"));
    assert!(out.status.success(), "{program}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The direct dependencies of each package of the workspace, those for tests left out.
fn dependencies(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let members: BTreeSet<&str> =
        metadata["workspace_members"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|package| package["id"].as_str().is_some_and(|id| members.contains(id)))
        .map(|package| {
            let normal = package["dependencies"].as_array().into_iter().flatten().filter(|one| one["kind"].is_null());
            let names = normal.filter_map(|one| one["name"].as_str()).map(str::to_owned).collect();
            (package["name"].as_str().unwrap_or_default().to_owned(), names)
        })
        .collect()
}

fn own(dependencies: &BTreeSet<String>) -> Vec<&str> {
    dependencies.iter().map(String::as_str).filter(|name| name.starts_with("windtunnel")).collect()
}

#[test]
fn arrows_point_one_way() {
    let all = dependencies(&metadata());
    let rooms: Vec<&str> = all.keys().map(String::as_str).collect();
    let expected =
        ["", "-config", "-core", "-live", "-replay", "-reports", "-sim"].map(|room| format!("windtunnel{room}"));
    assert_eq!(rooms, expected);
    assert_eq!(own(&all["windtunnel-core"]), [""; 0]);
    assert_eq!(own(&all["windtunnel-config"]), ["windtunnel-core"]);
    assert_eq!(own(&all["windtunnel-live"]), ["windtunnel-config", "windtunnel-core", "windtunnel-reports"]);
    assert_eq!(own(&all["windtunnel-reports"]), ["windtunnel-core"]);
    assert_eq!(own(&all["windtunnel-replay"]), ["windtunnel-core", "windtunnel-reports"]);
    assert_eq!(own(&all["windtunnel-sim"]), ["windtunnel-config", "windtunnel-core", "windtunnel-reports"]);
}

#[test]
fn the_core_depends_on_serde_schemas_and_an_error_derive_only() {
    let all = dependencies(&metadata());
    let core: Vec<&str> = all["windtunnel-core"].iter().map(String::as_str).collect();
    assert_eq!(core, ["schemars", "serde", "thiserror"]);
    let head = fs::read_to_string(root().join("core/src/lib.rs")).expect("core has a lib.rs");
    assert!(head.contains("#![no_std]") && head.contains("#![deny(clippy::float_arithmetic)]"));
}

#[test]
fn every_dependency_has_a_licence_we_may_use() {
    const FINE: [&str; 9] = [
        "MIT",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "MPL-2.0",
        "Zlib",
        "Unicode-3.0",
    ];
    let metadata = metadata();
    let unfit: Vec<String> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|package| {
            let licence = package["license"].as_str().unwrap_or("none stated").replace('/', " OR ");
            // Every part that is joined by AND must be fine; of those joined by OR one is enough.
            let fine = licence.split(" AND ").all(|part| {
                let part = part.trim_matches(['(', ')']);
                part.split(" OR ").any(|one| FINE.contains(&one.trim_matches(['(', ')', ' '])))
            });
            (!fine).then(|| format!("{} is under {licence}", package["name"]))
        })
        .collect();
    assert_eq!(unfit, [""; 0]);
}

#[test]
fn no_file_outgrows_its_idea() {
    let mut long = Vec::new();
    for room in ["core", "config", "reports", "replay", "sim", "live", "src"] {
        sources(&root().join(room), &mut |path, text| {
            let lines = text.lines().count();
            if lines > 500 {
                long.push(format!("{} has {lines} lines", path.display()));
            }
        });
    }
    assert_eq!(long, [""; 0]);
}

#[test]
fn core_and_reports_ask_no_clock() {
    let mut asking = Vec::new();
    for room in ["core/src", "reports/src", "config/src", "replay/src", "sim/src"] {
        sources(&root().join(room), &mut |path, text| {
            let test = path.ends_with("tests.rs");
            if !test && ["Instant::now", "SystemTime", "std::process"].iter().any(|word| text.contains(word)) {
                asking.push(path.display().to_string());
            }
        });
    }
    assert_eq!(asking, [""; 0]);
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path, each: &mut impl FnMut(&Path, &str)) {
    let entries = fs::read_dir(folder).unwrap_or_else(|wrong| panic!("{}: {wrong}", folder.display()));
    for entry in entries.map(|entry| entry.expect("a folder's entries can be read").path()) {
        if entry.is_dir() {
            sources(&entry, each);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&entry).unwrap_or_else(|wrong| panic!("{}: {wrong}", entry.display()));
            each(&entry, &text);
        }
    }
}
