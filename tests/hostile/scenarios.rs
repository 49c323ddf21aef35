//! Scenarios and settings: read, resolved and made ready to run.

use std::{fs, path::PathBuf};

use windtunnel_config::{ConfigError, Override, ScenarioFile, policy_keys};
use windtunnel_sim::Setup;

use crate::{dice::Dice, hunt::Hunt, text};

/// Where the settings begin in a case.
const SETTINGS: &[u8] = b"\n#### settings\n";

/// Every file with a scenario or a configuration in it.
fn corpus() -> Vec<Vec<u8>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folders = ["scenarios", "tests/golden", "config/tests/files"].map(|folder| root.join(folder));
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("the folder is there"));
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|kind| kind == "toml"));
    files.sort();
    assert!(files.len() > 50, "{files:?}");
    files.iter().map(|path| fs::read(path).expect("it can be read")).collect()
}

#[test]
fn a_changed_scenario_is_read_or_refused_with_its_place() {
    let files = corpus();
    let settings: Vec<String> =
        policy_keys().iter().map(|key| format!("{}.{}=1", key.section, key.name).replace("X", "interactive")).collect();
    let make = move |dice: &mut Dice| {
        let mut text = dice.pick(&files).clone();
        if !dice.one_in(8) {
            text::change(&mut text, &dice.pick(&files).clone(), dice);
        }
        text.extend_from_slice(SETTINGS);
        for _ in 0..dice.roll(3) {
            let mut setting = dice.pick(&settings).clone().into_bytes();
            text::change(&mut setting, &dice.pick(&files).clone(), dice);
            setting.retain(|&byte| byte != b'\n');
            text.extend(setting);
            text.push(b'\n');
        }
        text
    };
    Hunt { name: "scenario", usual: 600, make, read }.run();
}

fn read(case: &[u8]) -> Result<(), String> {
    let at = case.windows(SETTINGS.len()).position(|part| part == SETTINGS).unwrap_or(case.len());
    let (text, settings) = (&case[..at], case.get(at + SETTINGS.len()..).unwrap_or(&[]));
    let mut overrides = Vec::new();
    for setting in String::from_utf8_lossy(settings).lines() {
        match Override::parse(setting) {
            Ok(one) => overrides.push(one),
            Err(wrong) => placed(&wrong)?,
        }
    }
    let file = match loaded(text) {
        Ok(file) => file,
        Err(wrong) => return placed(&wrong),
    };
    let plain = file.resolve(&[]);
    if !overrides.is_empty() {
        file.resolve(&overrides).map_or_else(|wrong| placed(&wrong), |_| Ok(()))?;
    }
    match plain {
        Ok(scenario) => {
            let _ = Setup::new(scenario).map_err(|wrong| wrong.to_string());
            Ok(())
        }
        Err(wrong) => placed(&wrong),
    }
}

/// Text that is no text can only be in a file.
fn loaded(text: &[u8]) -> Result<ScenarioFile, ConfigError> {
    let origin = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenarios/changed.toml");
    match str::from_utf8(text) {
        Ok(text) => ScenarioFile::parse(text, &origin),
        Err(_) => {
            let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hostile-scenario-bytes.toml");
            fs::write(&path, text).expect("the folder for files of tests can be written to");
            ScenarioFile::load(&path)
        }
    }
}

/// Each problem of a file has its line and column, that of a setting the setting.
fn placed(wrong: &ConfigError) -> Result<(), String> {
    let lost = wrong.problems().iter().find(|one| one.position.is_none() && !one.source.starts_with("--set"));
    let shown = wrong.to_string();
    match lost {
        _ if wrong.problems().is_empty() => Err("an error without a problem".to_owned()),
        Some(lost) => Err(format!("a problem without a place: {lost:?}")),
        None if shown.len() > 20_000 => Err(format!("an error of {} bytes", shown.len())),
        None => Ok(()),
    }
}
