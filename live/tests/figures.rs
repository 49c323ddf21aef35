//! Estimates against figures that were measured on real hardware.
//!
//! The figures are those published for GridCore (a scheduler for the same purpose), in MiB for each process: an RTX
//! 4060 Ti with llama.cpp b11060 and flash attention, and an Apple M4 Pro with b11146. The layouts are in
//! `fixtures/catalogue.rs`, with what is assumed about them.

mod fixtures;

use fixtures::{Fixture, Folder, catalogue};
use windtunnel_live::{
    footprint::{Arguments, Backend, Footprint, Part, Platform, Side, estimate},
    gguf::{Header, HeaderCache, Model},
};

struct Figure {
    name: &'static str,
    arguments: &'static str,
    projector: Option<Fixture>,
    platform: Platform,
    measured: u64,
}

impl Figure {
    fn of(name: &'static str, arguments: &'static str, platform: Platform, measured: u64) -> Figure {
        Figure { name, arguments, projector: None, platform, measured }
    }

    fn seeing(self, projector: Fixture) -> Figure {
        Figure { projector: Some(projector), ..self }
    }

    fn footprint(&self, layout: &Fixture) -> Footprint {
        let folder = Folder::new(&format!("figure-{}-{}", self.name, self.measured));
        let model = layout.write(&folder.join("model.gguf"));
        let model = Model::open(&model, &HeaderCache::new()).expect("the layout is a model");
        let projector = self.projector.as_ref().map(|projector| projector.write(&folder.join("projector.gguf")));
        let projector = projector.map(|path| Header::open(&path).expect("the projector is a file"));
        let words: Vec<&str> = self.arguments.split_whitespace().collect();
        let arguments = Arguments::parse(&words).expect("the arguments are fine");
        estimate(&model, projector.as_ref(), &arguments, self.platform).expect("the layout has a shape")
    }

    /// The estimate must be within -1 to +10 % of the figure.
    fn check(&self, layout: &Fixture) {
        let footprint = self.footprint(layout);
        let mib = footprint.charged().get() as f64 / f64::from(1 << 20);
        let error = (mib / self.measured as f64 - 1.0) * 100.0;
        println!("{} {}: {mib:.0} MiB for {} ({error:+.1} %)\n{footprint}", self.name, self.arguments, self.measured);
        assert!(
            (-1.0..=10.0).contains(&error),
            "{}: {mib:.0} MiB for {} ({error:+.1} %)\n{footprint}",
            self.name,
            self.measured
        );
    }
}

const CARD: Platform = Platform::card(Backend::Cuda);
const APPLE: Platform = Platform::unified(Backend::Metal);

/// Gemma 4 E2B sees with an encoder of 990 MiB.
fn e2b_projector() -> Fixture {
    catalogue::projector(990, 16, 768, 16, 224)
}

/// Gemma 4 12B sees without an encoder; its projector is about 160 MiB.
fn unified_projector() -> Fixture {
    catalogue::projector(160, 0, 768, 16, 224)
}

#[test]
fn qwen3_14b_with_two_slots_takes_a_card_9732_mib() {
    Figure::of("qwen3-14b", "-c 8192 -np 2 -fa on", CARD, 9732).check(&catalogue::qwen3_14b());
}

#[test]
fn gemma4_e2b_that_sees_takes_a_card_2924_mib() {
    let figure = Figure::of("gemma4-e2b", "-c 16384 -np 4 -fa on", CARD, 2924);
    figure.seeing(e2b_projector()).check(&catalogue::gemma4_e2b());
}

#[test]
fn gemma4_12b_that_sees_takes_a_card_8486_mib() {
    let figure = Figure::of("gemma4-12b", "-c 16384 -np 2 -fa on", CARD, 8486);
    figure.seeing(unified_projector()).check(&catalogue::gemma4_12b());
}

#[test]
fn gemma4_e2b_that_sees_takes_a_mac_4815_mib() {
    let figure = Figure::of("gemma4-e2b", "-c 16384 -np 4 -fa on --no-mmap", APPLE, 4815);
    figure.seeing(e2b_projector()).check(&catalogue::gemma4_e2b());
}

#[test]
fn gemma4_12b_that_sees_takes_a_mac_9212_mib() {
    let figure = Figure::of("gemma4-12b", "-c 16384 -np 2 -fa on --no-mmap", APPLE, 9212);
    figure.seeing(unified_projector()).check(&catalogue::gemma4_12b());
}

#[test]
fn a_mixture_of_35b_with_its_experts_on_the_host_takes_a_card_2244_mib() {
    let figure = Figure::of("qwen3.5-35b-a3b", "-c 8192 -np 1 -fa on --cpu-moe", CARD, 2244);
    figure.check(&catalogue::qwen35_35b_a3b(0));
}

#[test]
fn blocks_that_predict_further_tokens_are_left_out() {
    let layouts = [catalogue::qwen35_35b_a3b(0), catalogue::qwen35_35b_a3b(1)];
    let figure = Figure::of("qwen3.5-35b-a3b", "-c 8192 -np 1", CARD, 0);
    let [without, with] = layouts.map(|layout| figure.footprint(&layout));
    let weights = |footprint: &Footprint| footprint.of(Part::Weights, Side::Device);
    assert_eq!(weights(&without), weights(&with));
    assert_eq!(without.of(Part::FullCache, Side::Device), with.of(Part::FullCache, Side::Device));
    assert!(without.notes.is_empty() && with.notes[0].contains("predict"), "{:?}", with.notes);
    let figure = Figure::of("qwen3.5-35b-a3b", "-c 8192 -np 1 --spec-type draft-mtp", CARD, 1);
    assert!(weights(&figure.footprint(&catalogue::qwen35_35b_a3b(1))) > weights(&with));
}
