//! Golden journals: what the policy did when they were written it does today. `tests/golden/README.md` says how they are
//! renewed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use windtunnel_config::ScenarioFile;
use windtunnel_replay::{Rules, replay};
use windtunnel_reports::journal::JournalWriter;
use windtunnel_sim::{Control, Setup};

/// The most bytes of a journal.
const LARGEST: u64 = 60_000;

const RENEW: &str = "if the change is meant, renew with WINDTUNNEL_RENEW_GOLDEN=1 cargo test --test golden";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn files(extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).expect("the folder of golden journals is there");
    let paths = entries.map(|entry| entry.expect("its entries can be read").path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|one| one == extension)).collect();
    files.sort();
    files
}

fn renew(scenario: &Path) {
    let file = ScenarioFile::load(scenario).unwrap_or_else(|wrong| panic!("{wrong}"));
    let setup = Setup::new(file.resolve(&[]).unwrap_or_else(|wrong| panic!("{wrong}")));
    let setup = setup.unwrap_or_else(|wrong| panic!("{}: {wrong}", scenario.display()));
    let mut journal = JournalWriter::new(Vec::new());
    for number in 0..setup.scenario().run.replications {
        setup.run(number, &mut journal, &Control::new()).expect("it runs");
    }
    fs::write(scenario.with_extension("jsonl"), journal.into_inner().expect("it is written")).expect("it is kept");
}

#[test]
fn golden_journals_replay() {
    if std::env::var_os("WINDTUNNEL_RENEW_GOLDEN").is_some() {
        files("toml").iter().for_each(|scenario| renew(scenario));
    }
    let journals = files("jsonl");
    let scenarios: Vec<PathBuf> = files("toml").iter().map(|scenario| scenario.with_extension("jsonl")).collect();
    assert_eq!(journals, scenarios, "every golden journal has its scenario; {RENEW}");
    for path in journals {
        let name = path.display();
        let journal = fs::read(&path).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        let outcome =
            replay([&journal[..]], Rules::default()).unwrap_or_else(|wrong| panic!("{name}: {wrong}; {RENEW}"));
        assert!(outcome.equal, "{name}: {outcome}\n{RENEW}");
        assert!(outcome.tally.inputs_left_out == 0 && outcome.remarks.is_empty(), "{name}: {outcome:?}");
        assert!(outcome.tally.effects > 50, "{name} holds little: {}", outcome.tally);
        assert!(journal.len() as u64 <= LARGEST, "{name} has {} bytes, at most {LARGEST} may be", journal.len());
    }
}
