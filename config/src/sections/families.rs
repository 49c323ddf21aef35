//! `[families.X]`: models that can stand in for each other.

use windtunnel_core::{Capability, Family, FamilyId, Quality, Variant, Wanted};

use super::models::Models;
use super::names::Names;
use crate::decode::Section;
use crate::form::{Form, Key, Scalar, Shape, did_you_mean, listed};

pub(crate) const QUALITY_WORDS: &[&str] = &["preferred", "balanced", "compact"];
pub(crate) const QUALITIES: [Quality; 3] = [Quality::Preferred, Quality::Balanced, Quality::Compact];

pub(crate) static FAMILY: Form = Form::new(
    "family",
    "A family: variants that can stand in for each other.",
    &[
        Key::new("variants", Shape::List(&Shape::Table(&VARIANT)), "its models, the preferred one first").required(),
        Key::new("aliases", Shape::Any(&Shape::Scalar(Scalar::Name)), "other names for it"),
    ],
);

static VARIANT: Form = Form::new(
    "variant",
    "One model of a family.",
    &[
        Key::scalar("model", Scalar::Name, "the model").required(),
        Key::scalar("quality", Scalar::Word(QUALITY_WORDS), "how good its answers are").required(),
    ],
);

/// Reads all families and enters their names.
pub(crate) fn read(root: &Section<'_>, models: &Models, names: &mut Names) -> Vec<Family> {
    let mut families = Vec::new();
    for ((name, place, section), id) in root.named("families").into_iter().zip(0..) {
        let aliases = section.texts("aliases").unwrap_or_default();
        families.push(Family {
            name: name.to_owned(),
            aliases: aliases.into_iter().map(|(alias, _)| alias.to_owned()).collect(),
            variants: variants(&section, models, names),
        });
        names.register(&section, name, place, Wanted::Family(FamilyId(id)));
    }
    families
}

fn variants(section: &Section<'_>, models: &Models, names: &Names) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    for one in section.tables("variants") {
        let (Some(name), Some(quality)) = (one.text("model"), one.choice("quality", QUALITIES)) else { continue };
        let Some(model) = names.model(name) else {
            let hint = did_you_mean(name, names.models()).map_or(String::new(), |hint| format!("; {hint}"));
            let notes = vec![format!("models: {}", listed(names.models()))];
            one.context.complain(one.place_of("model"), format!("there is no model {name:?}{hint}"), notes);
            continue;
        };
        if variants.iter().any(|variant| variant.model == model) {
            one.wrong("model", "is a variant of this family already");
        }
        let told = models.told.get(model.index());
        if told.is_some_and(|model| model.capabilities.contains(&Capability::Embedding)) {
            let why = "makes embeddings, and vectors of different models cannot be compared: ask for the model itself";
            one.wrong("model", why);
        }
        variants.push(Variant { model, quality });
    }
    variants
}
