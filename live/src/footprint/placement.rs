//! Where each tensor of a model lies.

use crate::gguf::{Model, Tensor, TensorType};

use super::{
    arguments::{Arguments, GpuLayers},
    breakdown::{Footprint, Part, Side},
    layers::Shape,
    platform::{Backend, Platform},
};

/// Which blocks and tensors are on the device.
pub(super) struct Placement<'a> {
    model: &'a Model,
    arguments: &'a Arguments,
    platform: Platform,
    /// The first block on the device; one past the last if only the output is there.
    first: u64,
    /// The first block that is not loaded.
    unloaded: u64,
    output: Side,
    encoder: bool,
}

/// Sums of bytes by side.
#[derive(Default)]
struct Sums {
    device: u64,
    host: u64,
}

impl<'a> Placement<'a> {
    pub(super) fn new(model: &'a Model, shape: &Shape, arguments: &'a Arguments, platform: Platform) -> Placement<'a> {
        let none = platform.backend == Backend::Cpu || arguments.no_device;
        // llama.cpp counts the output as one more layer behind the blocks.
        let wanted = match arguments.gpu_layers {
            _ if none => 0,
            GpuLayers::All => u64::MAX,
            GpuLayers::Count(count) => count,
        };
        let first = (shape.blocks + 1).saturating_sub(wanted).min(shape.blocks);
        let output = if wanted > 0 { Side::Device } else { Side::Host };
        let first = if wanted > 0 { first } else { shape.blocks };
        let unloaded = if arguments.prediction_blocks { shape.blocks } else { shape.layers.len() as u64 };
        Placement { model, arguments, platform, first, unloaded, output, encoder: shape.encoder }
    }

    /// Whether anything is computed on a device. With `-ngl 0` it still is: long batches are.
    pub(super) fn has_device(&self) -> bool {
        self.platform.backend != Backend::Cpu && !self.arguments.no_device
    }

    /// The device if there is one.
    pub(super) fn best(&self) -> Side {
        if self.has_device() { Side::Device } else { Side::Host }
    }

    /// Where the block is computed, and its cache lies unless `--no-kv-offload` is given.
    pub(super) fn block(&self, at: u64) -> Side {
        if self.output == Side::Device && at >= self.first { Side::Device } else { Side::Host }
    }

    /// Whether the device can use a tensor of so many bytes.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.platform.largest_tensor.is_none_or(|largest| bytes <= largest.get())
    }

    /// Where a tensor lies that is computed with; nothing if it is not loaded.
    pub(super) fn weight(&self, tensor: &Tensor) -> Option<Side> {
        let usual = match tensor.block() {
            Some(block) if block >= self.unloaded => return None,
            Some(block) => self.block(block),
            None => self.output,
        };
        let rule = self.arguments.overrides.iter().find_map(|rule| rule.side(&tensor.name));
        let wanted = rule.unwrap_or(usual);
        Some(if self.fits(tensor.bytes) && self.has_device() { wanted } else { Side::Host })
    }

    /// Whether the device takes copies of a tensor that lies on the host.
    pub(super) fn copied(&self, tensor: &Tensor) -> bool {
        self.has_device() && self.fits(tensor.bytes) && self.weight(tensor) == Some(Side::Host)
    }

    /// The embedding that serves as output too, if the model has no output of its own and needs one.
    fn tied(&self) -> Option<&'a Tensor> {
        let needless = self.encoder || self.model.tensor("output.weight").is_some();
        if needless { None } else { self.model.tensor("token_embd.weight") }
    }

    /// Counts every tensor.
    pub(super) fn count(&self, footprint: &mut Footprint) {
        let (mut weights, mut embeddings, mut left_out) = (Sums::default(), Sums::default(), 0_u64);
        for tensor in self.model.tensors() {
            match self.weight(tensor) {
                None => left_out = left_out.saturating_add(tensor.bytes),
                Some(_) if is_embedding(&tensor.name) => embeddings.add(Side::Host, tensor.bytes),
                Some(side) => weights.add(side, tensor.bytes),
            }
        }
        if let Some((tensor, side)) = self.tied().and_then(|tensor| Some((tensor, self.weight(tensor)?))) {
            match side {
                Side::Device => {
                    footprint.add(Part::Weights, side, tensor.bytes, "token_embd once more: it is the output too");
                }
                Side::Host if is_rearranged(tensor.kind) => {
                    let why = "token_embd once more, rearranged for the processor: it is the output too";
                    footprint.add(Part::Weights, side, tensor.bytes, why);
                }
                Side::Host => {}
            }
        }
        let why = |side: Side| format!("tensors that are computed with and lie on the {}", side.name());
        footprint.add(Part::Weights, Side::Device, weights.device, why(Side::Device));
        footprint.add(Part::Weights, Side::Host, weights.host, why(Side::Host));
        footprint.add(Part::Embeddings, Side::Host, embeddings.host, "tensors that are only looked up");
        if left_out > 0 {
            let mib = left_out >> 20;
            footprint.notes.push(format!("{mib} MiB of blocks that predict further tokens are left out"));
        }
    }
}

impl Sums {
    fn add(&mut self, side: Side, bytes: u64) {
        let sum = match side {
            Side::Device => &mut self.device,
            Side::Host => &mut self.host,
        };
        *sum = sum.saturating_add(bytes);
    }
}

/// Whether weights of this type that the host computes with are kept in an order of their own (`CPU_REPACK`).
fn is_rearranged(kind: TensorType) -> bool {
    use TensorType::{Iq4Nl, Mxfp4, Q2K, Q4_0, Q4K, Q5K, Q6K};
    [Q4_0, Q2K, Q4K, Q5K, Q6K, Iq4Nl, Mxfp4].contains(&kind)
}

/// Whether a tensor is looked up by token and not computed with; llama.cpp keeps those on the host.
pub(super) fn is_embedding(name: &str) -> bool {
    const NAMES: [&str; 5] = [
        "token_embd.weight",
        "per_layer_token_embd.weight",
        "token_types.weight",
        "position_embd.weight",
        "token_embd_norm.weight",
    ];
    NAMES.contains(&name) || name == "token_embd_norm.bias"
}
