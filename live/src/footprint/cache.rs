//! Keys, values and states that are kept between steps.

use std::collections::BTreeMap;

use super::{
    arguments::{Arguments, Flash, Pool},
    breakdown::{Footprint, Part, Side},
    layers::{Attention, Owner, Reach, Shape},
    placement::Placement,
    product,
};

/// Caches have whole pages of so many cells.
const PAGE: u64 = 256;

/// How many tokens the caches hold, as llama.cpp rounds them (`llama_context` and `llama_kv_cache_iswa`, b10068).
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    /// Caches that are apart from one another: one per slot, or one for all.
    pub streams: u64,
    /// Cells of a stream in layers that look at everything.
    pub full: u64,
    /// Cells of a stream in layers with a window.
    pub window: u64,
    /// Tokens that are computed at once.
    pub tokens: u64,
    /// Slots.
    pub slots: u64,
}

impl Cells {
    pub(super) fn new(shape: &Shape, arguments: &Arguments) -> Cells {
        let slots = arguments.slots.max(1);
        let context = if arguments.context == 0 { shape.trained_context } else { arguments.context };
        let context = paged(context.max(1));
        let (streams, full, sharers) = match arguments.pool {
            Pool::Shared => (1, context, slots),
            Pool::Divided => (slots, paged(context / slots), 1),
        };
        let tokens = arguments.tokens(context);
        let window = paged(full.min(product([shape.window, sharers]).saturating_add(tokens)));
        let window = if arguments.swa_full { full } else { window };
        Cells { streams, full, window, tokens, slots }
    }

    /// Cells of a stream for layers of this reach.
    pub(super) fn of(self, reach: Reach) -> u64 {
        match reach {
            Reach::Full | Reach::Latent => self.full,
            Reach::Window => self.window,
        }
    }
}

fn paged(tokens: u64) -> u64 {
    tokens.div_ceil(PAGE).max(1).saturating_mul(PAGE)
}

/// Layers that keep the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    reach: Reach,
    side: Side,
    keys: u64,
    values: u64,
}

/// Counts the caches of all layers.
pub(super) fn count(
    footprint: &mut Footprint,
    shape: &Shape,
    cells: &Cells,
    arguments: &Arguments,
    placement: &Placement<'_>,
) {
    if shape.encoder {
        footprint.notes.push("an encoder keeps no keys and values".to_owned());
        return;
    }
    let side = |at| if arguments.kv_offload { placement.block(at) } else { Side::Host };
    let widest = widest_values(shape, arguments);
    let mut groups: BTreeMap<Alike, u64> = BTreeMap::new();
    let hybrid = shape.layers.iter().any(|layer| layer.recurrence.is_some());
    let ahead = shape.ahead.iter().filter(|_| !hybrid);
    for (layer, at) in shape.layers.iter().chain(ahead).zip(0..) {
        let own = layer.attention.as_ref().filter(|attention| attention.owner == Owner::Itself);
        if let Some(Attention { reach, keys, values, .. }) = own {
            let values = if *values > 0 { widest.unwrap_or(*values) } else { 0 };
            *groups.entry(Alike { reach: *reach, side: side(at), keys: *keys, values }).or_default() += 1;
        }
    }
    groups.iter().for_each(|(alike, layers)| attention(footprint, *alike, *layers, cells, arguments));
    states(footprint, shape, cells, side);
}

/// Values that are stored transposed have rows as long as those of the widest layer.
fn widest_values(shape: &Shape, arguments: &Arguments) -> Option<u64> {
    match arguments.flash {
        Flash::On => None,
        Flash::Off => shape.layers.iter().filter_map(|layer| Some(layer.attention.as_ref()?.values)).max(),
    }
}

fn attention(footprint: &mut Footprint, alike: Alike, layers: u64, cells: &Cells, arguments: &Arguments) {
    let Alike { reach, side, keys, values } = alike;
    let Cells { streams, .. } = *cells;
    let row = arguments.keys.bytes_of(keys).saturating_add(arguments.values.bytes_of(values));
    let per_stream = cells.of(reach);
    let bytes = product([layers, streams, per_stream, row]);
    let part = match reach {
        Reach::Full => Part::FullCache,
        Reach::Window => Part::WindowCache,
        Reach::Latent => Part::LatentCache,
    };
    let (key_type, value_type) = (arguments.keys, arguments.values);
    let kept =
        if values == 0 { format!("{keys} {key_type}") } else { format!("({keys} {key_type} + {values} {value_type})") };
    footprint.add(part, side, bytes, format!("{layers} layers x {streams} x {per_stream} cells x {kept}"));
}

/// States have four bytes an element and one row a slot.
fn states(footprint: &mut Footprint, shape: &Shape, cells: &Cells, side: impl Fn(u64) -> Side) {
    let mut groups: BTreeMap<(Side, u64, u64), u64> = BTreeMap::new();
    for (layer, at) in shape.layers.iter().zip(0..) {
        if let Some(kept) = &layer.recurrence {
            *groups.entry((side(at), kept.shift, kept.state)).or_default() += 1;
        }
    }
    for ((side, shift, state), layers) in groups {
        let bytes = product([layers, cells.slots, shift.saturating_add(state), 4]);
        let slots = cells.slots;
        footprint.add(Part::States, side, bytes, format!("{layers} layers x {slots} slots x ({shift} + {state}) f32"));
    }
}
