//! Small reproducible random numbers.

/// Marsaglia's xorshift (2003), begun with a number scrambled as in SplitMix64 (Steele, Lea and Flood 2014).
pub struct Dice(u64);

impl Dice {
    pub fn of(seed: u64) -> Dice {
        let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Dice((mixed ^ (mixed >> 29)) | 1)
    }

    /// A number below `sides`, of which there is at least one.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % sides.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }

    /// A place and a length within `length`, mostly short.
    pub fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let most = *self.pick(&[1, 4, 16, 64, 1024]);
        let start = self.roll(length + 1);
        start..(start + self.roll(most) + 1).min(length)
    }
}
