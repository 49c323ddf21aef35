//! Whatever the text, the answer is a scenario or an error that can be printed.

use std::path::Path;

use proptest::prelude::*;
use windtunnel_config::{Override, ScenarioFile};

const TEXT: &str = include_str!("files/everything.toml");

fn read(text: &str, overrides: &[Override]) -> bool {
    let scenario = ScenarioFile::parse(text, Path::new("any.toml")).and_then(|file| file.resolve(overrides));
    scenario.inspect_err(|error| assert!(!error.to_string().is_empty())).is_ok()
}

/// Pieces that are likely to be misread where they do not belong.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[0-9eE._+-]{1,12}",
        "\"[0-9.]{0,22}(ns|us|ms|s|m|h|%|GiB|)\"",
        "(nan|inf|-inf|true|\\[\\]|\\{\\}|\"\"|0x7fffffffffffffff|-1|1e308|9223372036854775807|2024-01-01)",
        "(\n\\[[a-z]{1,9}\\]\n|\n\\[\\[[a-z]{1,9}\\]\\]\n|[a-z_]{1,9} = )",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        read(&text, &[]);
    }

    #[test]
    fn a_file_with_a_piece_replaced_never_panics(from in 0..TEXT.len(), length in 0usize..40, piece in piece()) {
        let to = (from + length).min(TEXT.len());
        if let (Some(before), Some(after)) = (TEXT.get(..from), TEXT.get(to..)) {
            read(&format!("{before}{piece}{after}"), &[]);
        }
    }

    #[test]
    fn a_file_with_a_value_replaced_never_panics(line in 0..TEXT.lines().count(), piece in piece()) {
        let changed = TEXT.lines().enumerate().map(|(at, text)| match text.split_once(" = ") {
            Some((key, _)) if at == line => format!("{key} = {piece}\n"),
            _ => format!("{text}\n"),
        });
        read(&changed.collect::<String>(), &[]);
    }

    #[test]
    fn overrides_never_panic(key in "(policy|run|devices|models|workload|sweep|expect|title|[a-z]{1,5})(\\.[a-z_0-9]{0,8}|\\.\"[^\"]{0,4}\"){0,4}", value in piece()) {
        if let Ok(one) = Override::new(&key, &value) {
            read(TEXT, &[one]);
        }
    }

    #[test]
    fn every_whole_number_of_nanoseconds_is_read_exactly(nanos in 1u64..1 << 62) {
        let text = format!(
            "[run]\nhorizon = '{}'\n[[devices]]\nname = 'd'\n[models.m]\nservice = {{ kind = 'batch', beta = '{nanos}ns' }}\n[[workload]]\nname = 'w'\nmodel = 'm'\narrivals = {{ process = 'poisson', rate = 1 }}\n",
            windtunnel_core::Span::from_nanos(nanos),
        );
        let scenario = ScenarioFile::parse(&text, Path::new("any.toml")).unwrap().resolve(&[]).unwrap();
        prop_assert_eq!(scenario.run.horizon.unwrap().as_nanos(), nanos);
        let windtunnel_core::ServiceTimes::Batch { beta, .. } = scenario.configuration.models[0].placements[0].predicted else { panic!() };
        prop_assert_eq!(beta.as_nanos(), nanos);
    }
}

#[test]
fn the_file_that_is_spoilt_is_right() {
    let origin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/everything.toml");
    assert!(ScenarioFile::parse(TEXT, &origin).unwrap().resolve(&[]).is_ok());
}
