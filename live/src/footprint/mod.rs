//! How much memory a `llama-server` will take, told from the header of its model and its arguments.
//!
//! The runtime's memory has five parts, and each is computed as the runtime does it (llama.cpp b10068):
//!
//! * **Weights**, tensor by tensor in bytes, each where `placement` says: embeddings of tokens stay on the host, a
//!   tied copy of them is the output on the device, `-ngl` counts blocks from the last one, `-ot` and its kin move
//!   single tensors.
//! * **Caches**, layer by layer (`layers`, `cache`): cells times the sizes of keys and values. The context is the
//!   pool of all slots. Sliding windows need few cells, recurrent layers a state per slot, layers that share another's
//!   keys nothing.
//! * **Compute buffers** (`compute`): the largest set of intermediate results that live at one time.
//! * **Outputs**: a row of logits for each slot.
//! * **The projector** of models that see or hear (`projector`), with room for its own computations.
//!
//! What a backend takes for itself comes on top, measured once for each backend ([`Platform`]).
//!
//! The estimate does not know: fragmentation, what a driver rounds up to, memory that grows while the model serves
//! (prompt caches and checkpoints on the host), several devices in one instance.

mod arguments;
mod breakdown;
mod cache;
mod compute;
mod layers;
mod overrides;
mod placement;
mod platform;
mod projector;
mod windows;

pub use arguments::{ArgumentError, Arguments, Flash, GpuLayers, Outputs, Pool};
pub use breakdown::{Footprint, Part, Row, Side};
pub use layers::UnknownShape;
pub use overrides::Override;
pub use platform::{Backend, Memory, Platform};

use crate::gguf::{Header, Model};

use layers::Shape;
use placement::Placement;

/// Estimates what `model` takes with `arguments` on `platform`; `projector` is the header of the file that
/// `--mmproj` names.
///
/// # Errors
///
/// If the header does not say how many layers the model has or how large they are.
pub fn estimate(
    model: &Model,
    projector: Option<&Header>,
    arguments: &Arguments,
    platform: Platform,
) -> Result<Footprint, UnknownShape> {
    let shape = Shape::of(model)?;
    let mut footprint = Footprint::new(platform.memory);
    let placement = Placement::new(model, &shape, arguments, platform);
    placement.count(&mut footprint);
    let cells = cache::Cells::new(&shape, arguments);
    cache::count(&mut footprint, &shape, &cells, arguments, &placement);
    compute::count(
        &mut footprint,
        &compute::Scene { model, shape: &shape, cells: &cells, arguments, placement: &placement },
    );
    if let Some(header) = projector {
        projector::count(&mut footprint, header, arguments, &placement);
    }
    if placement.has_device() {
        footprint.add(Part::Overhead, Side::Device, platform.context(), "context and kernels of the backend");
    }
    footprint.add(Part::Overhead, Side::Host, process(&shape), "the process: code, tokenizer, buffers of the server");
    Ok(footprint)
}

/// The product, at most [`u64::MAX`]: the factors come from files.
fn product<const N: usize>(factors: [u64; N]) -> u64 {
    factors.into_iter().fold(1, u64::saturating_mul)
}

/// What the process takes beside the model: code, libraries and buffers, and the tables of its tokenizer. Measured
/// with b10068 on Linux after a long prompt: 85 to 92 MiB with 49,152 tokens, 97 to 115 MiB with 262,144.
fn process(shape: &Shape) -> u64 {
    (84_u64 << 20).saturating_add(product([100, shape.vocabulary]))
}
