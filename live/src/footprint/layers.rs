//! What each layer of a model keeps, told from the keys of its header.

use std::path::PathBuf;

use crate::gguf::{Header, Model, Value};

use super::{product, windows::windows};

/// More layers than llama.cpp accepts (512) are no model.
const LAYERS: u64 = 512;

/// A model's sizes as far as memory depends on them.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// The layers that are computed, without blocks for predicting further tokens.
    pub layers: Vec<Layer>,
    /// Blocks for predicting further tokens, which are not computed. A model without recurrent layers keeps room for
    /// their keys and values all the same.
    pub ahead: Vec<Layer>,
    /// All blocks of the file.
    pub blocks: u64,
    /// Elements of a token's embedding.
    pub width: u64,
    /// Tokens that the model knows.
    pub vocabulary: u64,
    /// Tokens that the model was trained with.
    pub trained_context: u64,
    /// Tokens of the sliding window; 0 without one.
    pub window: u64,
    /// Elements of the embedding that each layer gets of its own (Gemma 3n and 4); 0 without.
    pub per_layer: u64,
    /// Experts that compute for each token; 0 without experts.
    pub experts_used: u64,
    /// It reads a whole text at once, keeps nothing and writes nothing.
    pub encoder: bool,
}

/// What one layer keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub attention: Option<Attention>,
    pub recurrence: Option<Recurrence>,
}

/// Attention of a layer. Sizes are elements for one token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attention {
    /// Of all query heads.
    pub queries: u64,
    /// The number of query heads.
    pub heads: u64,
    /// Of all key heads, as they are kept.
    pub keys: u64,
    /// Of all value heads, as they are kept; 0 where values are made from keys.
    pub values: u64,
    /// What it looks at.
    pub reach: Reach,
    /// Whether it has keys and values of its own or looks at those of an earlier layer.
    pub owner: Owner,
}

/// What attention looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// The whole context.
    Full,
    /// A sliding window.
    Window,
    /// The whole context, through compressed keys (MLA).
    Latent,
}

/// Whose keys and values a layer looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Itself,
    Earlier,
}

/// The state that a recurrent layer keeps for each slot, in elements of four bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recurrence {
    /// The last inputs of its convolution, or of its token shift.
    pub shift: u64,
    /// The state itself.
    pub state: u64,
    /// Elements that go through the convolution for each token.
    pub channels: u64,
    /// Elements of its output for each token.
    pub inner: u64,
}

/// A header that does not say what an estimate needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: `{key}` is {found}, and should be {right}: give the model a `footprint` instead", path.display())]
pub struct UnknownShape {
    /// The file.
    pub path: PathBuf,
    /// The key.
    pub key: String,
    /// What it says.
    pub found: String,
    /// What it should say.
    pub right: String,
}

impl Shape {
    pub(super) fn of(model: &Model) -> Result<Shape, UnknownShape> {
        let keys = Keys { header: model.header() };
        let blocks = keys.needed("block_count", LAYERS)?;
        let width = keys.needed("embedding_length", 1 << 24)?;
        let layers = blocks.saturating_sub(keys.number("nextn_predict_layers").unwrap_or(0));
        let (window, windows) = windows(keys.header, layers);
        let ahead = (layers..blocks).map(|at| keys.layer(at, blocks, width, false)).collect();
        let layers = windows.iter().zip(0..).map(|(window, at)| keys.layer(at, layers, width, *window)).collect();
        Ok(Shape {
            layers,
            ahead,
            blocks,
            width,
            vocabulary: vocabulary(model, &keys),
            trained_context: keys.number("context_length").unwrap_or(4096),
            window,
            per_layer: keys.number("embedding_length_per_layer_input").unwrap_or(0),
            experts_used: keys.number("expert_used_count").unwrap_or(0),
            encoder: keys.encoder(),
        })
    }
}

fn vocabulary(model: &Model, keys: &Keys<'_>) -> u64 {
    let embedded = model.tensor("token_embd.weight").map(|tensor| tensor.dims[1]);
    let listed = keys.header.metadata.get("tokenizer.ggml.tokens").and_then(Value::as_list).map(|list| list.len);
    embedded.or(listed).or_else(|| keys.number("vocab_size")).unwrap_or(0)
}

/// The keys of an architecture.
struct Keys<'a> {
    header: &'a Header,
}

impl Keys<'_> {
    /// A number that an estimate cannot do without.
    fn needed(&self, key: &str, limit: u64) -> Result<u64, UnknownShape> {
        let value = self.header.of_architecture(key);
        let number = value.and_then(Value::as_u64).filter(|number| (1..=limit).contains(number));
        number.ok_or_else(|| UnknownShape {
            path: self.header.path.clone(),
            key: format!("{}.{key}", self.header.architecture()),
            found: value.map_or_else(|| "missing".to_owned(), Value::to_string),
            right: format!("a number from 1 to {limit}"),
        })
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.header.of_architecture(key)?.as_u64()
    }

    /// The number that the key has for layer `at`: the same for all, or one of an array.
    fn number_at(&self, key: &str, at: u64) -> Option<u64> {
        match self.header.of_architecture(key)? {
            Value::List(list) => list.items.get(usize::try_from(at).ok()?)?.as_u64(),
            value => value.as_u64(),
        }
    }

    fn encoder(&self) -> bool {
        const OTHERS: [&str; 6] = ["t5encoder", "dream", "llada", "llada-moe", "rnd1", "llama-embed"];
        let name = self.header.architecture();
        let causal = self.header.of_architecture("attention.causal").and_then(Value::as_flag);
        causal == Some(false) || name.contains("bert") || OTHERS.contains(&name)
    }

    fn layer(&self, at: u64, layers: u64, width: u64, window: bool) -> Layer {
        let recurrent = self.recurrent(at);
        let both = self.header.architecture() == "falcon-h1";
        let recurrence = (recurrent || both).then(|| self.recurrence(width));
        let attention = (!recurrent || both).then(|| self.attention(at, layers, width, window)).flatten();
        Layer { attention, recurrence }
    }

    fn kv_heads(&self, at: u64) -> u64 {
        self.number_at("attention.head_count_kv", at)
            .or_else(|| self.number_at("attention.head_count", at))
            .unwrap_or(0)
    }

    /// Whether the layer keeps a state instead of keys and values.
    fn recurrent(&self, at: u64) -> bool {
        let name = self.header.architecture();
        if self.number("wkv.head_size").is_some() || name == "mamba" || name == "mamba2" {
            return true;
        }
        if let Some(Value::List(list)) = self.header.of_architecture("attention.recurrent_layers") {
            let flag = usize::try_from(at).ok().and_then(|at| list.items.get(at)).and_then(Value::as_flag);
            return flag.unwrap_or(false);
        }
        let usual = matches!(name, "qwen3next" | "qwen35" | "qwen35moe").then_some(4);
        if let Some(interval) = self.number("full_attention_interval").or(usual).filter(|interval| *interval > 0) {
            return !(at + 1).is_multiple_of(interval);
        }
        let stateful = ["ssm.conv_kernel", "shortconv.l_cache", "kda.head_dim"];
        // Hybrids of Nemotron's kind also have layers that are a feed-forward network alone.
        let alone = name.starts_with("nemotron_h") && self.number_at("feed_forward_length", at).unwrap_or(0) > 0;
        stateful.iter().any(|key| self.number(key).is_some()) && self.kv_heads(at) == 0 && !alone
    }

    /// The sizes of a state, after `llama_hparams::n_embd_r` and `n_embd_s` of llama.cpp.
    fn recurrence(&self, width: u64) -> Recurrence {
        let number = |key| self.number(key).unwrap_or(0);
        if let Some(head) = self.number("wkv.head_size") {
            let shifts = self.number("token_shift_count").unwrap_or(2);
            let (shift, state) = (product([shifts, width]), product([width, head]));
            return Recurrence { shift, state, channels: product([3, width]), inner: width };
        }
        if let Some(kept) = self.number("shortconv.l_cache") {
            let shift = product([width, kept.saturating_sub(1)]);
            return Recurrence { shift, state: 0, channels: width, inner: product([3, width]) };
        }
        let kernel = number("ssm.conv_kernel").saturating_sub(1);
        if let Some(head) = self.number("kda.head_dim") {
            let heads = self.number_at("attention.head_count", 0).unwrap_or(0);
            let inner = product([head, heads]);
            let shift = product([3, kernel, inner]);
            return Recurrence { shift, state: product([head, inner]), channels: product([3, inner]), inner };
        }
        let (inner, state) = (number("ssm.inner_size"), number("ssm.state_size"));
        let channels = inner.saturating_add(product([2, number("ssm.group_count"), state]));
        Recurrence { shift: product([kernel, channels]), state: product([state, inner]), channels, inner }
    }

    fn attention(&self, at: u64, layers: u64, width: u64, window: bool) -> Option<Attention> {
        let heads = self.number_at("attention.head_count", at).unwrap_or(0);
        let kv_heads = self.kv_heads(at);
        if kv_heads == 0 {
            return None;
        }
        let usual = width / self.number_at("attention.head_count", 0).filter(|heads| *heads > 0).unwrap_or(kv_heads);
        let key = self.head("attention.key_length", window).unwrap_or(usual);
        let value = self.head("attention.value_length", window).unwrap_or(usual);
        let latent = self.number("attention.key_length_mla").is_some_and(|length| length > 0);
        let indexer = self.number("attention.indexer.key_length").unwrap_or(0);
        let reach = if latent {
            Reach::Latent
        } else if window {
            Reach::Window
        } else {
            Reach::Full
        };
        let shared = self.number("attention.shared_kv_layers").unwrap_or(0);
        let owner = if at < layers.saturating_sub(shared) { Owner::Itself } else { Owner::Earlier };
        Some(Attention {
            queries: product([heads, key]),
            heads,
            keys: product([kv_heads, key]).saturating_add(if latent { indexer } else { 0 }),
            values: if latent { 0 } else { product([kv_heads, value]) },
            reach,
            owner,
        })
    }

    /// The length of a head; layers with a window may have one of their own.
    fn head(&self, key: &str, window: bool) -> Option<u64> {
        let own = if window { self.number(&format!("{key}_swa")) } else { None };
        own.or_else(|| self.number(key))
    }
}
