//! Traces in both formats.

use std::{fs, path::PathBuf};

use windtunnel_config::{Dejitter, Trace, TraceFormat};
use windtunnel_core::Span;
use windtunnel_sim::trace::{TraceError, read};

use crate::{dice::Dice, hunt::Hunt, text};

fn corpus() -> Vec<Vec<u8>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let files = ["scenarios/traces/office-day.csv", "scenarios/traces/azure-style.csv", "config/tests/files/sizes.csv"];
    files.iter().map(|file| fs::read(root.join(file)).expect("it can be read")).collect()
}

#[test]
fn a_changed_trace_is_read_or_refused_with_its_line() {
    let files = corpus();
    let make = move |dice: &mut Dice| {
        let mut text = dice.pick(&files).clone();
        text::change(&mut text, &dice.pick(&files).clone(), dice);
        text
    };
    Hunt { name: "trace", usual: 800, make, read: look }.run();
}

fn look(text: &[u8]) -> Result<(), String> {
    for (format, time_scale, to) in [
        (TraceFormat::Auto, 1.0, None),
        (TraceFormat::Csv, 1e-9, Some(Span::from_secs(30))),
        (TraceFormat::Azure, 1e9, Some(Span::MAX)),
    ] {
        let from = Span::from_millis(u64::from(to.is_some()));
        let trace = Trace { file: "changed.csv".into(), format, time_scale, from, to, dejitter: Dejitter::None };
        match read(&trace, text) {
            Ok(recording) => {
                let rows = &recording.rows;
                if rows.len() > text.len() || rows.windows(2).any(|pair| pair[0].at > pair[1].at) {
                    return Err("more rows than bytes, or out of order".to_owned());
                }
                drop(format!("{:?}", recording.summary));
            }
            Err(wrong @ TraceError::TooManyBadRows { .. }) if !wrong.to_string().contains("line ") => {
                return Err(format!("no line is named: {wrong}"));
            }
            Err(wrong) if !wrong.to_string().contains("changed.csv") => {
                return Err(format!("no file is named: {wrong}"));
            }
            Err(_) => {}
        }
    }
    Ok(())
}
