//! The arguments of `llama-server` that decide about memory.

use std::path::PathBuf;

use crate::gguf::TensorType;

use super::overrides::Override;

/// How many blocks `-ngl` sends to the device, the output counting as one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuLayers {
    /// `auto` (as many as fit, which without `--fit` is all), `all`, a negative number, or not given.
    All,
    /// So many, counted from the last one.
    Count(u64),
}

/// Whether attention is computed in one pass (`-fa`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flash {
    /// `on` and `auto`: every backend can do it for the common head sizes.
    On,
    /// `off`: the products of queries and keys are kept as a whole, and the values are stored transposed.
    Off,
}

/// What the runtime gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outputs {
    /// One row of logits per slot.
    Text,
    /// An embedding (or a rank) of every token of a batch.
    Embeddings,
}

/// How the cache is divided (`--kv-unified`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// One pool for all slots.
    Shared,
    /// An equal part for each slot.
    Divided,
}

/// What the arguments of a `llama-server` say about memory; what they leave out has the default of the runtime
/// (b10068). Of an argument that is given twice the last one counts, except `-ot` and its kin, which add up.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// `-c`: tokens of all slots together; 0 is what the model was trained with.
    pub context: u64,
    /// `-np`: slots. Not given, the runtime takes four that share the cache.
    pub slots: u64,
    /// `-kvu`.
    pub pool: Pool,
    /// `-ctk`.
    pub keys: TensorType,
    /// `-ctv`.
    pub values: TensorType,
    /// `-fa`.
    pub flash: Flash,
    /// `-b`: tokens of a batch.
    pub batch: u64,
    /// `-ub`: tokens computed at once.
    pub ubatch: u64,
    /// `-ngl`.
    pub gpu_layers: GpuLayers,
    /// `-dev none`.
    pub no_device: bool,
    /// `-ot`, `--cpu-moe` and `--n-cpu-moe`, in the order they were given; the first that fits a tensor decides.
    pub overrides: Vec<Override>,
    /// `--mmproj`.
    pub projector: Option<PathBuf>,
    /// Not `--no-mmproj-offload`.
    pub projector_offload: bool,
    /// Not `--no-kv-offload`.
    pub kv_offload: bool,
    /// Not `--no-op-offload`: the device also computes with weights that lie on the host, and needs room for copies.
    pub op_offload: bool,
    /// `--swa-full`: sliding-window layers get as many cells as others.
    pub swa_full: bool,
    /// Not `--no-mmap`.
    pub mmap: bool,
    /// `--embedding` or `--reranking`.
    pub outputs: Outputs,
    /// `--spec-type draft-mtp`: the model's blocks for predicting further tokens are used.
    pub prediction_blocks: bool,
}

/// An argument that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{flag}` is given {found}, and should be {right}")]
pub struct ArgumentError {
    /// The flag.
    pub flag: String,
    /// What follows it.
    pub found: String,
    /// What may follow it.
    pub right: String,
}

impl Default for Arguments {
    fn default() -> Arguments {
        Arguments {
            context: 0,
            slots: AUTOMATIC_SLOTS,
            pool: Pool::Shared,
            keys: TensorType::F16,
            values: TensorType::F16,
            flash: Flash::On,
            batch: 2048,
            ubatch: 512,
            gpu_layers: GpuLayers::All,
            no_device: false,
            overrides: Vec::new(),
            projector: None,
            projector_offload: true,
            kv_offload: true,
            op_offload: true,
            swa_full: false,
            mmap: true,
            outputs: Outputs::Text,
            prediction_blocks: false,
        }
    }
}

/// The slots that a server takes without `-np`.
const AUTOMATIC_SLOTS: u64 = 4;

impl Arguments {
    /// Reads a list of arguments, `flag value` or `flag=value`. Flags that say nothing about memory are passed over.
    ///
    /// # Errors
    ///
    /// If a flag that matters has no value, or one that the runtime would not take.
    pub fn parse<S: AsRef<str>>(list: &[S]) -> Result<Arguments, ArgumentError> {
        let mut arguments = Arguments::default();
        let mut slots = Slots { given: None, pool: None };
        let mut rest = list.iter().map(AsRef::as_ref);
        while let Some(word) = rest.next() {
            let (flag, inline) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with('-') => (flag, Some(value)),
                _ => (word, None),
            };
            if arguments.switch(flag, &mut slots) {
                continue;
            }
            if takes_value(flag) {
                let value = inline.or_else(|| rest.next());
                arguments.setting(&Setting { flag, value }, &mut slots)?;
            }
        }
        slots.settle(&mut arguments);
        Ok(arguments)
    }

    /// Applies a flag without a value; whether it is one.
    fn switch(&mut self, flag: &str, slots: &mut Slots) -> bool {
        match flag {
            "-kvu" | "--kv-unified" => slots.pool = Some(Pool::Shared),
            "-no-kvu" | "--no-kv-unified" => slots.pool = Some(Pool::Divided),
            "-cmoe" | "--cpu-moe" => self.overrides.push(Override::experts()),
            "-kvo" | "--kv-offload" => self.kv_offload = true,
            "-nkvo" | "--no-kv-offload" => self.kv_offload = false,
            "--op-offload" => self.op_offload = true,
            "--no-op-offload" => self.op_offload = false,
            "--mmproj-offload" => self.projector_offload = true,
            "--no-mmproj-offload" => self.projector_offload = false,
            "--swa-full" => self.swa_full = true,
            "--mmap" => self.mmap = true,
            "--no-mmap" => self.mmap = false,
            "--embedding" | "--embeddings" | "--rerank" | "--reranking" => self.outputs = Outputs::Embeddings,
            _ => return false,
        }
        true
    }

    fn setting(&mut self, setting: &Setting<'_>, slots: &mut Slots) -> Result<(), ArgumentError> {
        match setting.flag {
            "-c" | "--ctx-size" => self.context = setting.number(0)?,
            "-np" | "--parallel" => slots.given = Some(setting.signed()?),
            "-b" | "--batch-size" => self.batch = setting.number(1)?,
            "-ub" | "--ubatch-size" => self.ubatch = setting.number(1)?,
            "-ctk" | "--cache-type-k" => self.keys = setting.cache_type()?,
            "-ctv" | "--cache-type-v" => self.values = setting.cache_type()?,
            "-fa" | "--flash-attn" => self.flash = setting.flash()?,
            "-ngl" | "--gpu-layers" | "--n-gpu-layers" => self.gpu_layers = setting.gpu_layers()?,
            "-ncmoe" | "--n-cpu-moe" => self.overrides.extend((0..setting.number(0)?).map(Override::experts_of)),
            "-ot" | "--override-tensor" => self.overrides.extend(setting.overrides()?),
            "-mm" | "--mmproj" => self.projector = Some(PathBuf::from(setting.text()?)),
            "-dev" | "--device" => self.no_device = setting.text()? == "none",
            "--spec-type" => self.prediction_blocks = setting.text()?.split(',').any(|one| one == "draft-mtp"),
            _ => {}
        }
        Ok(())
    }

    /// Tokens that are computed at once: no more than a batch has, and no more than fit the context.
    pub(super) fn tokens(&self, context: u64) -> u64 {
        self.ubatch.min(self.batch).min(context).max(1)
    }
}

/// The flags that are read together with what follows them.
fn takes_value(flag: &str) -> bool {
    const FLAGS: [&str; 27] = [
        "-c",
        "--ctx-size",
        "-np",
        "--parallel",
        "-b",
        "--batch-size",
        "-ub",
        "--ubatch-size",
        "-ctk",
        "--cache-type-k",
        "-ctv",
        "--cache-type-v",
        "-fa",
        "--flash-attn",
        "-ngl",
        "--gpu-layers",
        "--n-gpu-layers",
        "-ncmoe",
        "--n-cpu-moe",
        "-ot",
        "--override-tensor",
        "-mm",
        "--mmproj",
        "-dev",
        "--device",
        "--spec-type",
        "--split-mode",
    ];
    FLAGS.contains(&flag)
}

/// What was said of slots, which only the whole list settles.
struct Slots {
    given: Option<i64>,
    pool: Option<Pool>,
}

impl Slots {
    fn settle(&self, arguments: &mut Arguments) {
        let count = self.given.and_then(|count| u64::try_from(count).ok()).filter(|count| *count > 0);
        let usual = if count.is_some() { Pool::Divided } else { Pool::Shared };
        arguments.slots = count.unwrap_or(AUTOMATIC_SLOTS);
        arguments.pool = self.pool.unwrap_or(usual);
    }
}

/// A flag and what follows it.
struct Setting<'a> {
    flag: &'a str,
    value: Option<&'a str>,
}

impl<'a> Setting<'a> {
    fn wrong(&self, right: &str) -> ArgumentError {
        let found = self.value.map_or_else(|| "nothing".to_owned(), |value| format!("`{value}`"));
        ArgumentError { flag: self.flag.to_owned(), found, right: right.to_owned() }
    }

    fn text(&self) -> Result<&'a str, ArgumentError> {
        self.value.ok_or_else(|| self.wrong("followed by a value"))
    }

    fn number(&self, least: u64) -> Result<u64, ArgumentError> {
        let number = self.value.and_then(|value| value.parse().ok());
        // The runtime keeps these numbers in 32 bits.
        number.filter(|number| (least..=i32::MAX as u64).contains(number)).ok_or_else(|| self.wrong("a number"))
    }

    fn signed(&self) -> Result<i64, ArgumentError> {
        let number: Option<i32> = self.value.and_then(|value| value.parse().ok());
        number.map(i64::from).ok_or_else(|| self.wrong("a number"))
    }

    fn gpu_layers(&self) -> Result<GpuLayers, ArgumentError> {
        match self.value {
            Some("all" | "auto") => Ok(GpuLayers::All),
            _ => match self.signed().map(u64::try_from) {
                Ok(Ok(count)) => Ok(GpuLayers::Count(count)),
                Ok(Err(_)) => Ok(GpuLayers::All),
                Err(_) => Err(self.wrong("a number of layers, `all` or `auto`")),
            },
        }
    }

    fn flash(&self) -> Result<Flash, ArgumentError> {
        match self.value {
            Some("on" | "auto" | "1" | "true" | "enabled") => Ok(Flash::On),
            Some("off" | "0" | "false" | "disabled") => Ok(Flash::Off),
            _ => Err(self.wrong("`on`, `off` or `auto`")),
        }
    }

    fn cache_type(&self) -> Result<TensorType, ArgumentError> {
        use TensorType::{Bf16, F16, F32, Iq4Nl, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0};
        let known = [F32, F16, Bf16, Q8_0, Q4_0, Q4_1, Iq4Nl, Q5_0, Q5_1];
        let kind = self.value.and_then(TensorType::named).filter(|kind| known.contains(kind));
        kind.ok_or_else(|| self.wrong("one of f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1"))
    }

    fn overrides(&self) -> Result<Vec<Override>, ArgumentError> {
        let rules = self.text()?.split(',').map(Override::parse);
        rules.collect::<Option<_>>().ok_or_else(|| self.wrong("PATTERN=BUFFER, PATTERN a regular expression"))
    }
}
