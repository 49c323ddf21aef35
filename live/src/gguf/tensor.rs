//! Tensors: names, types, shapes, exact sizes.

use std::fmt;

/// A tensor as a header describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name, such as `blk.0.attn_q.weight`.
    pub name: String,
    /// The type of its elements.
    pub kind: TensorType,
    /// Elements in each dimension, the fastest first; 1 where it has no such dimension.
    pub dims: [u64; 4],
    /// Bytes from the start of the file's weights.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

impl Tensor {
    /// The number of its elements.
    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }

    /// The number of its rows.
    pub fn rows(&self) -> u64 {
        self.dims[1..].iter().product()
    }

    /// The block it belongs to: 12 of `blk.12.ffn_up.weight`.
    pub fn block(&self) -> Option<u64> {
        self.name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
    }
}

/// Makes the table of types: name in the file format, number, elements of a block, bytes of a block.
macro_rules! types {
    ($($variant:ident $name:literal = $number:literal: $elements:literal in $bytes:literal;)*) => {
        /// How the elements of a tensor are stored (`ggml_type`). Rows are whole blocks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum TensorType {
            $(
                #[doc = concat!("`", $name, "`: ", $elements, " elements in ", $bytes, " bytes.")]
                $variant,
            )*
        }

        impl TensorType {
            /// Every type.
            pub const ALL: &[TensorType] = &[$(TensorType::$variant),*];

            /// The type with this number in a file.
            pub fn numbered(number: u32) -> Option<TensorType> {
                match number {
                    $($number => Some(TensorType::$variant),)*
                    _ => None,
                }
            }

            /// Its number in a file.
            pub fn number(self) -> u32 {
                match self {
                    $(TensorType::$variant => $number,)*
                }
            }

            /// Its name as llama.cpp prints it.
            pub fn name(self) -> &'static str {
                match self {
                    $(TensorType::$variant => $name,)*
                }
            }

            /// How many elements a block has.
            pub fn block(self) -> u64 {
                match self {
                    $(TensorType::$variant => $elements,)*
                }
            }

            /// How many bytes a block takes.
            pub fn block_bytes(self) -> u64 {
                match self {
                    $(TensorType::$variant => $bytes,)*
                }
            }
        }
    };
}

types! {
    F32 "f32" = 0: 1 in 4;
    F16 "f16" = 1: 1 in 2;
    Q4_0 "q4_0" = 2: 32 in 18;
    Q4_1 "q4_1" = 3: 32 in 20;
    Q5_0 "q5_0" = 6: 32 in 22;
    Q5_1 "q5_1" = 7: 32 in 24;
    Q8_0 "q8_0" = 8: 32 in 34;
    Q8_1 "q8_1" = 9: 32 in 36;
    Q2K "q2_K" = 10: 256 in 84;
    Q3K "q3_K" = 11: 256 in 110;
    Q4K "q4_K" = 12: 256 in 144;
    Q5K "q5_K" = 13: 256 in 176;
    Q6K "q6_K" = 14: 256 in 210;
    Q8K "q8_K" = 15: 256 in 292;
    Iq2Xxs "iq2_xxs" = 16: 256 in 66;
    Iq2Xs "iq2_xs" = 17: 256 in 74;
    Iq3Xxs "iq3_xxs" = 18: 256 in 98;
    Iq1S "iq1_s" = 19: 256 in 50;
    Iq4Nl "iq4_nl" = 20: 32 in 18;
    Iq3S "iq3_s" = 21: 256 in 110;
    Iq2S "iq2_s" = 22: 256 in 82;
    Iq4Xs "iq4_xs" = 23: 256 in 136;
    I8 "i8" = 24: 1 in 1;
    I16 "i16" = 25: 1 in 2;
    I32 "i32" = 26: 1 in 4;
    I64 "i64" = 27: 1 in 8;
    F64 "f64" = 28: 1 in 8;
    Iq1M "iq1_m" = 29: 256 in 56;
    Bf16 "bf16" = 30: 1 in 2;
    Tq1_0 "tq1_0" = 34: 256 in 54;
    Tq2_0 "tq2_0" = 35: 256 in 66;
    Mxfp4 "mxfp4" = 39: 32 in 17;
    Nvfp4 "nvfp4" = 40: 64 in 36;
    Q1_0 "q1_0" = 41: 128 in 18;
    Q2_0 "q2_0" = 42: 64 in 18;
}

impl TensorType {
    /// The type that llama.cpp calls so.
    pub fn named(name: &str) -> Option<TensorType> {
        TensorType::ALL.iter().copied().find(|one| one.name().eq_ignore_ascii_case(name))
    }

    /// The bytes of a row of `elements`, a multiple of the block; nothing if it is none or overflows.
    pub fn row_bytes(self, elements: u64) -> Option<u64> {
        if !elements.is_multiple_of(self.block()) {
            return None;
        }
        (elements / self.block()).checked_mul(self.block_bytes())
    }

    /// The bytes of `elements` elements, blocks begun counting whole, at most [`u64::MAX`].
    pub fn bytes_of(self, elements: u64) -> u64 {
        elements.div_ceil(self.block()).saturating_mul(self.block_bytes())
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
