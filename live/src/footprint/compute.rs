//! Room for computations.
//!
//! The runtime plans its largest batch once and reserves what lives at one time. Of a batch of T tokens with embeddings
//! of E elements (four bytes each) these are:
//!
//! * *throughout*: the masks of attention (a number for each cell and token), the input of the layer and its normalised
//!   copy (2 E), the queries, which the planner seldom manages to reuse, and twice the embeddings of all layers where
//!   layers have their own;
//! * *at a time, the largest of*: the feed-forward network (gate, up and their product: 3 F, without a gate 2 F); with
//!   experts the results of all that are at work and the same weighted (2 x used x E), or their insides; attention
//!   (its queries and results, without `-fa` also a number for each head, cell and token); a recurrent layer (twice its
//!   output, three times what goes through its convolution, and the states); the logits of all outputs;
//! * *copies of weights*: with `-ngl` or `--cpu-moe` the device computes long batches of host blocks too, and takes
//!   copies of their weights. Whether the planner puts a copy into the hole of an earlier one depends on the order of
//!   sizes; the experts of a block are counted side by side, which is more than b10068 needs for
//!   the usual order.
//!
//! On the host lie the inputs: masks, embeddings of tokens (2 E), embeddings of layers.

use std::collections::BTreeMap;

use crate::gguf::{Model, Tensor};

use super::{
    arguments::{Arguments, Flash, Outputs},
    breakdown::{Footprint, Part, Side},
    cache::Cells,
    layers::{Attention, Layer, Reach, Recurrence, Shape},
    placement::{Placement, is_embedding},
    product,
};

/// Everything that computing depends on.
pub(super) struct Scene<'a> {
    pub model: &'a Model,
    pub shape: &'a Shape,
    pub cells: &'a Cells,
    pub arguments: &'a Arguments,
    pub placement: &'a Placement<'a>,
}

/// The largest of what lives at a time, and what it is.
struct Peak {
    bytes: u64,
    what: &'static str,
}

/// Counts the buffers for computing and for outputs.
pub(super) fn count(footprint: &mut Footprint, scene: &Scene<'_>) {
    let Scene { shape, placement, .. } = *scene;
    let throughout = scene.throughout();
    let peak = scene.peak();
    let inputs = scene.inputs();
    let (tokens, width) = (scene.cells.tokens, shape.width);
    let masks = mebibytes(scene.masks());
    let formula = format!(
        "{tokens} tokens of {width}: {} with masks of {masks}, {} of {}",
        mebibytes(throughout),
        mebibytes(peak.bytes),
        peak.what
    );
    let sum = throughout.saturating_add(peak.bytes);
    if placement.has_device() {
        footprint.add(Part::Compute, Side::Device, sum, formula);
        let (copies, what) = scene.copies();
        footprint.add(Part::Compute, Side::Device, copies, what);
        let host = inputs.saturating_add(scene.host_attention());
        footprint.add(Part::Compute, Side::Host, host, format!("inputs of {tokens} tokens with masks of {masks}"));
    } else {
        let own = scene.floats(2, width);
        footprint.add(
            Part::Compute,
            Side::Host,
            sum.saturating_add(own),
            format!("{formula}, {} of inputs", mebibytes(own)),
        );
    }
    let (rows, row) = scene.outputs();
    footprint.add(Part::Outputs, Side::Host, product([4, rows, row]), format!("{rows} rows of {row} f32"));
}

impl Scene<'_> {
    /// The bytes of `count` results of `elements` for each token.
    fn floats(&self, count: u64, elements: u64) -> u64 {
        product([4, self.cells.tokens, count, elements])
    }

    /// The masks of attention: a half for each cell of a stream and each token, without `-fa` a float.
    fn masks(&self) -> u64 {
        let element = match self.arguments.flash {
            Flash::On => 2,
            Flash::Off => 4,
        };
        let mask = |reach| product([element, self.span(reach), self.cells.tokens]);
        let seen = |reach| self.attentions().any(|attention| attention.reach == reach);
        [Reach::Full, Reach::Window, Reach::Latent]
            .into_iter()
            .filter(|reach| seen(*reach))
            .map(mask)
            .fold(0, u64::saturating_add)
    }

    /// What a token may look at: the cells of a stream; in an encoder the other tokens.
    fn span(&self, reach: Reach) -> u64 {
        if self.shape.encoder { self.cells.tokens } else { self.cells.of(reach) }
    }

    fn attentions(&self) -> impl Iterator<Item = &Attention> {
        self.shape.layers.iter().filter_map(|layer| layer.attention.as_ref())
    }

    fn layer_embeddings(&self) -> u64 {
        self.floats(self.shape.layers.len() as u64, self.shape.per_layer)
    }

    fn inputs(&self) -> u64 {
        let tokens = self.floats(2, self.shape.width);
        self.masks().saturating_add(tokens).saturating_add(self.layer_embeddings())
    }

    fn throughout(&self) -> u64 {
        let queries = self.attentions().map(|attention| attention.queries).max().unwrap_or(0);
        let residual = self.floats(2, self.shape.width).saturating_add(self.floats(1, queries));
        self.masks().saturating_add(residual).saturating_add(product([2, self.layer_embeddings()]))
    }

    fn peak(&self) -> Peak {
        let mut peak = Peak { bytes: self.logits(), what: "logits" };
        let mut offer = |bytes, what| {
            if bytes > peak.bytes {
                peak = Peak { bytes, what };
            }
        };
        offer(self.feed_forward(), "a feed-forward network");
        offer(self.experts(), "experts");
        if !self.products_too_large() || !self.placement.has_device() {
            offer(self.products(), "attention");
        }
        offer(self.recurrence(), "a recurrent layer");
        peak
    }

    fn logits(&self) -> u64 {
        if self.shape.encoder {
            return 0;
        }
        let rows = match self.arguments.outputs {
            Outputs::Text => self.cells.slots,
            Outputs::Embeddings => self.cells.tokens,
        };
        product([4, rows, self.shape.vocabulary])
    }

    /// The widest dense network: gate, up and product; where gate and up are one tensor, that and the product.
    fn feed_forward(&self) -> u64 {
        let up = self.widest(".ffn_up.weight");
        let count = if self.widest(".ffn_gate.weight") > 0 { 3 } else { 2 };
        self.floats(count, up)
    }

    /// The most rows that a tensor whose name ends so has.
    fn widest(&self, ending: &str) -> u64 {
        let ends = |tensor: &&Tensor| tensor.name.ends_with(ending);
        self.model.tensors().filter(ends).map(|tensor| tensor.dims[1]).max().unwrap_or(0)
    }

    fn experts(&self) -> u64 {
        let hidden = self
            .widest("_exps.weight")
            .min(self.widest(".ffn_up_exps.weight").max(self.widest(".ffn_gate_up_exps.weight") / 2));
        let inside = product([3, self.floats(self.shape.experts_used, hidden)]);
        let results = product([2, self.floats(self.shape.experts_used, self.shape.width)]);
        if hidden == 0 { 0 } else { inside.max(results) }
    }

    /// Queries and results of attention; unless it is computed in one pass, the products of queries and keys as well.
    fn products(&self) -> u64 {
        let products = |attention: &Attention| match self.arguments.flash {
            Flash::On => 0,
            Flash::Off => self.product_of_one(attention),
        };
        let one = |attention: &Attention| products(attention).saturating_add(self.floats(2, attention.queries));
        self.attentions().map(one).max().unwrap_or(0)
    }

    fn product_of_one(&self, attention: &Attention) -> u64 {
        self.floats(attention.heads, self.span(attention.reach))
    }

    /// Whether the device cannot take the products as one tensor, so that the host computes attention.
    fn products_too_large(&self) -> bool {
        let largest = self.attentions().map(|attention| self.product_of_one(attention)).max().unwrap_or(0);
        self.arguments.flash == Flash::Off && !self.placement.fits(largest)
    }

    /// What goes through the convolution, before, in between and after, a gate, the output, and the states of all slots.
    fn recurrence(&self) -> u64 {
        let one = |kept: &Recurrence| {
            let widths = product([2, kept.inner]).saturating_add(product([3, kept.channels]));
            self.floats(1, widths).saturating_add(product([4, self.cells.slots, kept.state]))
        };
        self.shape.layers.iter().filter_map(|layer| layer.recurrence.as_ref()).map(one).max().unwrap_or(0)
    }

    /// Copies of weights that lie on the host and are computed with on the device.
    fn copies(&self) -> (u64, String) {
        // llama.cpp leaves batches of fewer tokens where their weights are.
        const LONG: u64 = 32;
        if !self.arguments.op_offload || self.cells.tokens < LONG {
            return (0, String::new());
        }
        let single = self.host_weights().filter(|tensor| tensor.dims[2] == 1).map(|tensor| tensor.bytes).max();
        let experts = self.host_weights().filter(|tensor| tensor.dims[2] > 1);
        let mut blocks = BTreeMap::<Option<u64>, u64>::new();
        for tensor in experts {
            let sum = blocks.entry(tensor.block()).or_default();
            *sum = sum.saturating_add(tensor.bytes);
        }
        match blocks.values().max() {
            Some(bytes) => (*bytes, "copies of a block's experts that lie on the host".to_owned()),
            None => {
                let around = self.floats(2, self.shape.width).saturating_add(self.host_keys());
                let sum = single.map_or(0, |bytes| bytes.saturating_add(around));
                (sum, "a copy of a tensor that lies on the host, and of a layer's keys".to_owned())
            }
        }
    }

    /// The keys of a layer that lie on the host.
    fn host_keys(&self) -> u64 {
        let host = |(_, at): &(_, u64)| self.placement.block(*at) == Side::Host && self.arguments.kv_offload;
        let keys = |(layer, _): (&Layer, u64)| {
            let attention = layer.attention.as_ref()?;
            let cells = product([self.cells.streams, self.cells.of(attention.reach)]);
            Some(product([cells, self.arguments.keys.bytes_of(attention.keys)]))
        };
        self.shape.layers.iter().zip(0..).filter(host).filter_map(keys).max().unwrap_or(0)
    }

    /// Matrices on the host that the device could take.
    fn host_weights(&self) -> impl Iterator<Item = &Tensor> {
        let matrix = |tensor: &&Tensor| tensor.dims[1] > 1 && !is_embedding(&tensor.name);
        self.model.tensors().filter(matrix).filter(|tensor| self.placement.copied(tensor))
    }

    /// What attention of host blocks needs there.
    fn host_attention(&self) -> u64 {
        let mut largest = 0;
        for (layer, at) in self.shape.layers.iter().zip(0..) {
            let here =
                self.placement.block(at) == Side::Host || !self.arguments.kv_offload || self.products_too_large();
            if let Some(attention) = layer.attention.as_ref().filter(|_| here) {
                largest = largest.max(self.host_products(attention));
            }
        }
        largest
    }

    fn host_products(&self, attention: &Attention) -> u64 {
        let products = match self.arguments.flash {
            Flash::On => 0,
            Flash::Off => self.product_of_one(attention).saturating_add(self.floats(2, attention.queries)),
        };
        products.saturating_add(self.floats(1, attention.queries))
    }

    /// How many rows leave the model, and their length.
    fn outputs(&self) -> (u64, u64) {
        match self.arguments.outputs {
            _ if self.shape.encoder => (self.cells.slots, self.shape.width),
            Outputs::Text | Outputs::Embeddings => (self.cells.slots, self.shape.vocabulary),
        }
    }
}

/// A size for formulas, in whole MiB.
fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", (bytes >> 20) + u64::from(bytes & ((1 << 20) - 1) >= 1 << 19))
}
