//! Every kind of fault, read into exact values.

use std::path::Path;

use windtunnel_config::{Fault, FaultKind, MonitorTrouble, Occurrence, ScenarioFile};
use windtunnel_core::{Bytes, DeviceId, ModelId, Ppm, PressureLevel, Span};

fn faults() -> Vec<Fault> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/everything.toml");
    let file = ScenarioFile::load(&path).unwrap_or_else(|error| panic!("{error}"));
    file.resolve(&[]).unwrap_or_else(|error| panic!("{error}")).faults
}

fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

#[test]
fn every_kind_is_read_with_its_keys() {
    let gib = |gib: u64| Bytes::from_mib(gib << 10);
    let expected = [
        FaultKind::PhantomMemory { polls: 2 },
        FaultKind::LingeringMemory { lasts: secs(3) },
        FaultKind::SlowExit { lasts: secs(4) },
        FaultKind::NeverExits,
        FaultKind::SlowLoad { factor: Ppm::new(2_500_000) },
        FaultKind::StalledLoad { lasts: secs(120) },
        FaultKind::FailedLoad,
        FaultKind::LoadOom,
        FaultKind::WrongEstimate { factor: Ppm::new(500_000) },
        FaultKind::MemoryGrowth { bytes: gib(1), over: secs(60) },
        FaultKind::ForeignMemory { curve: vec![(secs(40), gib(6)), (secs(100), Bytes::ZERO)] },
        FaultKind::SilentOvercommit,
        FaultKind::Crash,
        FaultKind::Wedge { lasts: secs(60) },
        FaultKind::SlowDevice { factor: Ppm::new(3_000_000), lasts: Some(secs(20)) },
        FaultKind::ConnectionLimit { requests: 100 },
        FaultKind::Monitor { trouble: MonitorTrouble::Stale, lasts: Some(secs(15)) },
        FaultKind::Monitor { trouble: MonitorTrouble::Jumping, lasts: None },
        FaultKind::Pressure {
            curve: vec![
                (secs(10), PressureLevel::Warn),
                (secs(20), PressureLevel::Critical),
                (secs(40), PressureLevel::Normal),
            ],
        },
        FaultKind::ClockJump { by: secs(60) },
    ];
    let kinds: Vec<FaultKind> = faults().into_iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, expected);
}

#[test]
fn a_fault_strikes_where_and_when_it_says() {
    let faults = faults();
    let first = &faults[0];
    assert_eq!((first.devices.as_deref(), first.model), (Some(&[DeviceId(0)][..]), Some(ModelId(0))));
    assert_eq!((first.from, first.to), (secs(5), Some(secs(500))));
    assert_eq!(first.when, Occurrence::At(vec![secs(10), secs(30)]));
    assert!(first.concerns(ModelId(0), DeviceId(0)) && !first.concerns(ModelId(1), DeviceId(0)));
    assert!(!first.concerns(ModelId(0), DeviceId(1)));
    assert_eq!(faults[1].devices, Some(vec![DeviceId(0), DeviceId(1)]));
    let occurrences: Vec<&Occurrence> = faults[1..5].iter().map(|fault| &fault.when).collect();
    let at = Occurrence::At(vec![secs(40)]);
    assert_eq!(occurrences, [&Occurrence::Rate(2.0), &Occurrence::Probability(0.5), &at, &Occurrence::Always]);
}
