//! Whether a model can do what is asked of it, as its `capabilities` say: told before anything is loaded for it.
//!
//! What a model lists none of is not checked: then its server has the word.

use windtunnel_core::{Capability, JobKind, ModelId, Needs, Wanted};

use super::wish::Wish;
use crate::gateway::{
    catalogue::Catalogue,
    refuse::{Reason, Refusal},
    shared::Rules,
};

/// Everything a request needs: what its path asks for, and what its body holds.
pub(super) fn needs(kind: JobKind, body: Needs) -> Needs {
    body.with(kind.capability())
}

/// Refuses a request that no model it may use can do.
///
/// # Errors
/// Says what is missing and what there is.
pub(super) fn able(rules: &Rules, wish: &Wish) -> Result<(), Refusal> {
    let (catalogue, needs) = (&rules.catalogue, needs(wish.errand.kind, wish.body.needs));
    let models: &[ModelId] = match &wish.named.wanted {
        Wanted::Model(model) => std::slice::from_ref(model),
        Wanted::Family(family) => catalogue.variants(*family),
    };
    let can = |model: &ModelId| {
        let listed = catalogue.capabilities(*model);
        listed.is_empty() || needs.met_by(listed)
    };
    if models.iter().any(can) {
        return Ok(());
    }
    let message = match wish.named.wanted {
        Wanted::Model(model) => {
            let missing = lacking(needs, catalogue.capabilities(model));
            format!(
                "the model {:?} has not the capability {missing}; it has {}",
                catalogue.model(model),
                have(catalogue, models)
            )
        }
        Wanted::Family(family) => format!(
            "no model of the family {:?} has all of {}; they have {}",
            catalogue.family(family),
            lacking(needs, &[]),
            have(catalogue, models)
        ),
    };
    Err(Refusal::new(Reason::NotCapable, message).about("model"))
}

fn lacking(needs: Needs, listed: &[Capability]) -> String {
    words(Capability::ALL.into_iter().filter(|one| needs.with(*one) == needs && !listed.contains(one)))
}

/// What at least one of these can do.
fn have(catalogue: &Catalogue, models: &[ModelId]) -> String {
    let listed = |one: &Capability| models.iter().any(|model| catalogue.capabilities(*model).contains(one));
    words(Capability::ALL.into_iter().filter(listed))
}

fn words(capabilities: impl Iterator<Item = Capability>) -> String {
    capabilities.map(|one| format!("\"{}\"", one.name())).collect::<Vec<_>>().join(", ")
}
