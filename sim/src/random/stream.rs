//! Streams of random numbers and how they are seeded.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::ziggurat;

/// What a stream is for. The numbers behind the names are part of every result and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Times between requests, or of thinking.
    Gaps = 1,
    /// Stays in the states of a modulated process.
    States = 2,
    /// Inputs per request.
    Inputs = 3,
    /// Prompt tokens per input.
    PromptTokens = 4,
    /// Output tokens per request.
    OutputTokens = 5,
    /// How long clients wait before they give up.
    Patience = 6,
    /// Unit exponentials that vary service times.
    ExponentialNoise = 7,
    /// Standard normals that vary service times.
    NormalNoise = 8,
    /// Where equal stamps of a trace go.
    Dejitter = 9,
    /// When faults strike.
    Moments = 10,
    /// What becomes of an occasion that a fault looks at.
    Occasion = 11,
    /// Figures that a memory monitor makes up.
    Readings = 12,
}

/// The seed of everything one workload, one client of it, or one fault draws in one replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

/// A stream of random numbers: xoshiro256++.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Seed {
    /// The seed of a workload of that name in one replication of a run with the seed `run`.
    pub fn of_workload(run: u64, replication: u32, name: &str) -> Seed {
        Seed(mix(mix(mix(run) ^ u64::from(replication)) ^ fnv1a(name.as_bytes())))
    }

    /// The seed of the fault that stands at `number` in the scenario.
    pub fn of_fault(run: u64, replication: u32, number: u64) -> Seed {
        Seed(mix(mix(mix(run) ^ u64::from(replication)) ^ fnv1a(b"fault") ^ mix(number)))
    }

    /// The seed of one occasion of the fault, or of one device it strikes.
    pub fn of_occasion(self, number: u64) -> Seed {
        Seed(mix(self.0 ^ mix(number + 1)))
    }

    /// The seed of one client of the workload.
    pub fn of_client(self, client: u32) -> Seed {
        Seed(mix(self.0 ^ mix(u64::from(client) + 1)))
    }

    /// The stream for `purpose`.
    pub fn stream(self, purpose: Purpose) -> Stream {
        Stream::from_seed(mix(self.0 ^ mix(purpose as u64)))
    }
}

impl Stream {
    /// The stream that begins at `seed`.
    pub fn from_seed(seed: u64) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform on [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as i64 as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform on 0, 1, .., `count` - 1; 0 if `count` is 0. The bias is below `count` * 2^-64.
    #[inline]
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.bits()) * count as u128) >> 64) as usize
    }

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        ziggurat::exponential(self)
    }

    /// Normal with mean 0 and variance 1.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        ziggurat::normal(self)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014) after one step of its counter: a bijection that spreads
/// every bit of its argument over the result.
const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// FNV-1a with 64 bits (Fowler, Noll and Vo).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_mixed_by_the_published_functions() {
        // First outputs of SplitMix64 from the seeds 0 and 1234567, and FNV-1a of "foobar", as their authors give them.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn every_part_of_the_key_gives_another_stream() {
        let chat = Seed::of_workload(1, 0, "chat");
        let keys = [
            chat.stream(Purpose::Gaps),
            chat.stream(Purpose::Patience),
            Seed::of_workload(2, 0, "chat").stream(Purpose::Gaps),
            Seed::of_workload(1, 1, "chat").stream(Purpose::Gaps),
            Seed::of_workload(1, 0, "code").stream(Purpose::Gaps),
            chat.of_client(0).stream(Purpose::Gaps),
            chat.of_client(1).stream(Purpose::Gaps),
        ];
        let mut firsts = keys.map(|mut stream| stream.bits());
        firsts.sort_unstable();
        assert!(firsts.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_stream_is_the_same_stream_every_time() {
        let mut stream = Seed::of_workload(1, 0, "chat").stream(Purpose::Gaps);
        let first = [stream.bits(), stream.bits(), stream.bits()];
        assert_eq!(first, EXPECTED);
    }

    /// Written down once: a change of these numbers changes every result of every scenario.
    const EXPECTED: [u64; 3] = [17_125_167_140_091_734_032, 15_765_522_184_428_827_875, 8_922_665_134_880_673_992];
}
