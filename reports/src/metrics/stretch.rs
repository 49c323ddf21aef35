//! Equal stretches of the run, so that its beginning can be cut off after it has ended.
//!
//! Time from an origin on is cut into at most [`STRETCHES`] pieces of a power of two of nanoseconds. When a run outgrows
//! them, neighbours become one and the length doubles. What happens before the origin (a warm-up whose length is known
//! beforehand), or after the last moment that counts, goes into a place of its own.

use std::ops::{Index, IndexMut};

/// The most stretches there are.
pub const STRETCHES: usize = 32;
/// Points of a stretch, for pictures.
const POINTS_BITS: u32 = 4;
/// The most points there are.
pub const POINTS: usize = STRETCHES << POINTS_BITS;
/// The place of what happened before the origin or after the window.
pub const OUTSIDE: usize = STRETCHES;
/// log2 of the nanoseconds of the first, shortest stretch: 65.5 microseconds.
const SHORTEST: u32 = 16;

/// Takes another's share in.
pub trait Absorb {
    /// Adds `other`.
    fn absorb(&mut self, other: Self);
}

/// Adds to a count of events, of which there can never be 2^64: without a check, since this is done for every event.
#[inline(always)]
pub fn count(count: &mut u64, more: u64) {
    *count = count.wrapping_add(more);
}

/// Where the stretches lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    origin: u64,
    shift: u32,
}

impl Grid {
    /// Stretches from `origin` on that reach to `known`, where the length of the run is known.
    pub fn new(origin: u64, known: Option<u64>) -> Grid {
        let mut grid = Grid { origin, shift: SHORTEST };
        while known.is_some_and(|end| grid.outgrown(end)) {
            grid.double();
        }
        grid
    }

    /// The stretch in which `t` lies, or [`OUTSIDE`].
    #[inline]
    pub fn stretch(&self, t: u64) -> usize {
        match t.checked_sub(self.origin) {
            Some(since) => ((since >> self.shift) as usize).min(STRETCHES - 1),
            None => OUTSIDE,
        }
    }

    /// The point in which `t` lies; `None` before the origin.
    pub fn point(&self, t: u64) -> Option<usize> {
        let since = t.checked_sub(self.origin)?;
        Some(((since >> (self.shift - POINTS_BITS)) as usize).min(POINTS - 1))
    }

    /// Whether `t` lies beyond the last stretch.
    pub fn outgrown(&self, t: u64) -> bool {
        t.saturating_sub(self.origin) >> self.shift >= STRETCHES as u64
    }

    /// Makes every stretch twice as long.
    pub fn double(&mut self) {
        self.shift += 1;
    }

    /// The end of the point in which `t` lies, or the origin.
    pub fn next_boundary(&self, t: u64) -> u64 {
        let Some(since) = t.checked_sub(self.origin) else { return self.origin };
        let shift = self.shift - POINTS_BITS;
        let next = ((since >> shift) + 1).saturating_mul(1 << shift);
        self.origin.saturating_add(next)
    }

    /// When the stretch begins.
    pub fn start(&self, stretch: usize) -> u64 {
        self.origin.saturating_add(self.length().saturating_mul(stretch as u64))
    }

    /// The first stretch that begins at `t` or later.
    pub fn first_from(&self, t: u64) -> usize {
        let since = t.saturating_sub(self.origin);
        (since.div_ceil(self.length()) as usize).min(STRETCHES - 1)
    }

    /// The length of a stretch in nanoseconds.
    pub fn length(&self) -> u64 {
        1 << self.shift
    }

    /// The length of a point in nanoseconds.
    pub fn point_length(&self) -> u64 {
        1 << (self.shift - POINTS_BITS)
    }

    /// Where the first stretch begins.
    pub fn origin(&self) -> u64 {
        self.origin
    }
}

/// A value for each stretch.
#[derive(Clone, Debug)]
pub struct Stretched<T>(Vec<T>);

impl<T: Default> Default for Stretched<T> {
    fn default() -> Self {
        Stretched(std::iter::repeat_with(T::default).take(STRETCHES + 1).collect())
    }
}

impl<T> Index<usize> for Stretched<T> {
    type Output = T;

    #[inline]
    fn index(&self, stretch: usize) -> &T {
        &self.0[stretch]
    }
}

impl<T> IndexMut<usize> for Stretched<T> {
    #[inline]
    fn index_mut(&mut self, stretch: usize) -> &mut T {
        &mut self.0[stretch]
    }
}

impl<T: Default + Absorb> Stretched<T> {
    /// Makes one of each pair.
    pub fn halve(&mut self) {
        halve(&mut self.0[..STRETCHES]);
    }

    /// All from stretch `first` on in one.
    pub fn from(self, first: usize) -> T {
        let mut all = T::default();
        self.0.into_iter().take(STRETCHES).skip(first).for_each(|one| all.absorb(one));
        all
    }

    /// The stretches and what was outside of them.
    pub fn all(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// The stretches, without what was outside of them.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0[..STRETCHES].iter()
    }
}

/// Makes one of each pair; the second half becomes empty.
pub fn halve<T: Default + Absorb>(list: &mut [T]) {
    for pair in 0..list.len() / 2 {
        let mut one = std::mem::take(&mut list[2 * pair]);
        one.absorb(std::mem::take(&mut list[2 * pair + 1]));
        list[pair] = one;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Absorb for u64 {
        fn absorb(&mut self, other: u64) {
            *self += other;
        }
    }

    #[test]
    fn a_longer_run_makes_longer_stretches() {
        let mut grid = Grid::new(0, None);
        let mut counts: Stretched<u64> = Stretched::default();
        for t in (0..10_000_000u64).step_by(1000) {
            while grid.outgrown(t) {
                grid.double();
                counts.halve();
            }
            counts[grid.stretch(t)] += 1;
        }
        assert_eq!(grid.length(), 1 << 19);
        assert_eq!(counts.iter().sum::<u64>(), 10_000);
        assert_eq!(counts[0], 525);
        assert_eq!(counts.from(1), 10_000 - 525);
    }

    #[test]
    fn what_is_before_the_origin_stays_there() {
        let grid = Grid::new(1_000_000_000, Some(3_000_000_000));
        assert_eq!(grid.stretch(999_999_999), OUTSIDE);
        assert_eq!(grid.stretch(1_000_000_000), 0);
        assert!(!grid.outgrown(3_000_000_000));
        assert!(grid.stretch(3_000_000_000) >= STRETCHES / 2 - 1);
        assert_eq!(grid.next_boundary(5), 1_000_000_000);
    }

    #[test]
    fn the_cut_falls_on_the_next_boundary() {
        let grid = Grid::new(0, Some(31 << 20));
        assert_eq!(grid.length(), 1 << 20);
        assert_eq!(grid.first_from(0), 0);
        assert_eq!(grid.first_from(1), 1);
        assert_eq!(grid.first_from(1 << 20), 1);
        assert_eq!(grid.start(1), 1 << 20);
    }
}
