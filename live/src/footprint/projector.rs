//! The projector of a model that sees or hears.

use crate::gguf::{Header, Value};

use super::{
    arguments::Arguments,
    breakdown::{Footprint, Part, Side},
    placement::Placement,
    product,
};

/// Patches that an image has at most, where the header does not tell: 1024 tokens of 2 x 2 patches.
const PATCHES: u64 = 4096;
/// The patches of an image in Gemma 4: 280 tokens of 3 x 3.
const GEMMA4_PATCHES: u64 = 280 * 9;

/// Counts the weights of the projector and the room for its computations.
///
/// The room is what one block of the encoder keeps at a time for all patches of an image: its input, the normalised
/// input and four results as wide as the feed-forward network.
pub(super) fn count(footprint: &mut Footprint, header: &Header, arguments: &Arguments, placement: &Placement<'_>) {
    let side = if arguments.projector_offload { placement.best() } else { Side::Host };
    let weights = header.tensors.iter().fold(0_u64, |sum, tensor| sum.saturating_add(tensor.bytes));
    let count = header.tensors.len();
    footprint.add(Part::Projector, side, weights, format!("{count} tensors of the projector"));
    let number = |key| header.metadata.get(key).and_then(Value::as_u64).unwrap_or(0);
    let width = number("clip.vision.embedding_length").max(number("clip.audio.embedding_length"));
    let hidden = number("clip.vision.feed_forward_length").max(number("clip.audio.feed_forward_length"));
    let patches = patches(header);
    let bytes = product([4, patches, product([2, width]).saturating_add(product([4, hidden]))]);
    let why = format!("4 bytes x {patches} patches x (2 x {width} + 4 x {hidden})");
    footprint.add(Part::ProjectorCompute, side, bytes, why);
}

fn patches(header: &Header) -> u64 {
    let text = |key| header.metadata.get(key).and_then(Value::as_text);
    let kind = text("clip.vision.projector_type").or_else(|| text("clip.projector_type")).unwrap_or_default();
    if kind.starts_with("gemma4") {
        return GEMMA4_PATCHES;
    }
    let number = |key| header.metadata.get(key).and_then(Value::as_u64);
    let size = number("clip.vision.image_size").zip(number("clip.vision.patch_size").filter(|patch| *patch > 0));
    size.map_or(PATCHES, |(image, patch)| product([image / patch, image / patch]).clamp(1, PATCHES))
}
