//! Earliest deadline first, with the weight before any rank: an order-statistic index.
//!
//! Entries lie sorted in leaves of at most [`LEAF`] entries; a Fenwick tree (Fenwick 1994) over the leaves answers how much
//! weight lies before one. A leaf that fills at its end starts a new one behind the last, which costs O(log n); one that
//! fills in the middle is split and the tree rebuilt from itself, O(n / LEAF) once in LEAF / 2 insertions.

use alloc::{collections::VecDeque, vec::Vec};

use serde::{Deserialize, Serialize};

use super::Rank;
use crate::JobId;

const LEAF: usize = 128;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Edf {
    /// Sorted; those before `first` are empty, all others are not.
    leaves: Vec<Leaf>,
    first: usize,
    /// Fenwick tree over the weights of `leaves`.
    tree: Vec<u64>,
    len: usize,
    weight: u64,
    /// The room of a leaf that is gone, for the next one: short queues come and go all the time.
    #[serde(skip)]
    spare: VecDeque<(Rank, u64)>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Leaf {
    entries: VecDeque<(Rank, u64)>,
}

impl Edf {
    /// Whether its entries are in order and are what `entry` says of their jobs, and every sum is right.
    pub fn is_sound(&self, entry: impl Fn(JobId) -> Option<(Rank, u64)>) -> bool {
        let entries = || self.leaves.iter().flat_map(|leaf| &leaf.entries);
        let ordered = entries().zip(entries().skip(1)).all(|(one, next)| one.0 < next.0);
        let own = entries().all(|&(rank, weight)| entry(rank.job) == Some((rank, weight)));
        // Weights are those of jobs from here on, so that sums of them do not overflow.
        let empty = self.leaves.iter().take_while(|leaf| leaf.entries.is_empty()).count();
        let filled = self.leaves.iter().skip(empty).all(|leaf| !leaf.entries.is_empty());
        let counted = || (self.len, self.weight) == (entries().count(), entries().map(|entry| entry.1).sum());
        ordered && own && filled && self.first == empty && counted() && self.tree == tree_over(&self.leaves)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn weight(&self) -> u64 {
        self.weight
    }

    pub fn first(&self) -> Option<Rank> {
        self.leaves.get(self.first)?.entries.front().map(|entry| entry.0)
    }

    pub fn insert(&mut self, rank: Rank, weight: u64) {
        self.len += 1;
        self.weight += weight;
        let at = self.leaf_for(rank);
        match self.leaves.get(at) {
            None => self.append(rank, weight),
            Some(leaf) if leaf.entries.len() < LEAF => self.insert_into(at, rank, weight),
            Some(leaf) if at + 1 == self.leaves.len() && leaf.last().is_some_and(|last| last < rank) => {
                self.append(rank, weight);
            }
            Some(_) => {
                self.split(at);
                let at = self.leaf_for(rank);
                self.insert_into(at, rank, weight);
            }
        }
    }

    /// The first leaf whose last entry is not before `rank`; the last leaf if all are.
    #[inline]
    fn leaf_for(&self, rank: Rank) -> usize {
        // A short queue has one leaf.
        if self.first + 1 == self.leaves.len() { self.first } else { self.leaf_among_many(rank) }
    }

    fn leaf_among_many(&self, rank: Rank) -> usize {
        let tail = self.leaves.get(self.first..).unwrap_or(&[]);
        let at = self.first + tail.partition_point(|leaf| leaf.last().is_some_and(|last| last < rank));
        at.min(self.leaves.len().saturating_sub(1)).max(self.first)
    }

    fn insert_into(&mut self, at: usize, rank: Rank, weight: u64) {
        let entries = &mut self.leaves[at].entries;
        if entries.back().is_none_or(|last| last.0 < rank) {
            entries.push_back((rank, weight));
        } else {
            let place = entries.partition_point(|entry| entry.0 < rank);
            entries.insert(place, (rank, weight));
        }
        self.add(at, weight);
    }

    fn append(&mut self, rank: Rank, weight: u64) {
        let number = self.leaves.len() + 1;
        let mut entries = core::mem::take(&mut self.spare);
        entries.reserve(LEAF);
        entries.push_back((rank, weight));
        self.leaves.push(Leaf { entries });
        let reach = 1 << number.trailing_zeros();
        let below = self.sum(number - 1) - self.sum(number - reach);
        self.tree.push(below + weight);
    }

    fn split(&mut self, at: usize) {
        let upper = Leaf { entries: self.leaves[at].entries.split_off(LEAF / 2) };
        let moved = upper.weight();
        unfold(&mut self.tree);
        self.tree[at] -= moved;
        self.tree.insert(at + 1, moved);
        self.leaves.insert(at + 1, upper);
        self.drop_empty();
    }

    /// Drops empty leaves; `tree` holds the weights of all leaves one by one, and becomes the tree over those that are left.
    fn drop_empty(&mut self) {
        let mut leaves = self.leaves.iter();
        self.tree.retain(|_| leaves.next().is_some_and(|leaf| !leaf.entries.is_empty()));
        self.leaves.retain(|leaf| !leaf.entries.is_empty());
        self.first = 0;
        fold(&mut self.tree);
    }

    pub fn remove(&mut self, rank: Rank, _weight: u64) -> bool {
        let at = self.leaf_for(rank);
        let Some(leaf) = self.leaves.get_mut(at) else { return false };
        let Ok(place) = leaf.entries.binary_search_by(|entry| entry.0.cmp(&rank)) else { return false };
        let Some((_, weight)) = leaf.entries.remove(place) else { return false };
        self.removed(at, weight);
        true
    }

    pub fn remove_first(&mut self) {
        let at = self.first;
        if let Some((_, weight)) = self.leaves.get_mut(at).and_then(|leaf| leaf.entries.pop_front()) {
            self.removed(at, weight);
        }
    }

    /// An entry of that weight is gone from a leaf.
    #[inline]
    fn removed(&mut self, at: usize, weight: u64) {
        self.len -= 1;
        self.weight -= weight;
        self.subtract(at, weight);
        if self.leaves[at].entries.is_empty() {
            self.drop_leaf(at);
        }
    }

    /// Forgets a leaf that has become empty, or notes that it is.
    fn drop_leaf(&mut self, at: usize) {
        self.spare = core::mem::take(&mut self.leaves[at].entries);
        if self.len == 0 {
            self.leaves.clear();
            self.tree.clear();
            self.first = 0;
            return;
        }
        if at == self.first {
            self.first += 1;
            if self.first <= 16 + self.leaves.len() / 2 {
                return;
            }
        }
        unfold(&mut self.tree);
        self.drop_empty();
    }

    pub fn lighten_first(&mut self, by: u64) {
        let at = self.first;
        let Some(entry) = self.leaves.get_mut(at).and_then(|leaf| leaf.entries.front_mut()) else { return };
        let by = by.min(entry.1);
        entry.1 -= by;
        self.weight -= by;
        self.subtract(at, by);
    }

    pub fn weight_before(&self, rank: Rank) -> u64 {
        let at = self.leaf_for(rank);
        let Some(leaf) = self.leaves.get(at) else { return 0 };
        let within: u64 = leaf.entries.iter().take_while(|entry| entry.0 < rank).map(|entry| entry.1).sum();
        self.sum(at) + within
    }

    pub fn iter(&self) -> impl Iterator<Item = JobId> {
        self.leaves.iter().flat_map(|leaf| leaf.entries.iter().map(|entry| entry.0.job))
    }

    /// The weight of the first `count` leaves.
    fn sum(&self, count: usize) -> u64 {
        let (mut total, mut number) = (0, count);
        while number > 0 {
            total += self.tree[number - 1];
            number &= number - 1;
        }
        total
    }

    fn add(&mut self, leaf: usize, weight: u64) {
        let mut number = leaf + 1;
        while number <= self.tree.len() {
            self.tree[number - 1] += weight;
            number += 1 << number.trailing_zeros();
        }
    }

    fn subtract(&mut self, leaf: usize, weight: u64) {
        let mut number = leaf + 1;
        while number <= self.tree.len() {
            self.tree[number - 1] -= weight;
            number += 1 << number.trailing_zeros();
        }
    }
}

/// The Fenwick tree over the weights of leaves.
fn tree_over(leaves: &[Leaf]) -> Vec<u64> {
    let mut tree: Vec<u64> = leaves.iter().map(Leaf::weight).collect();
    fold(&mut tree);
    tree
}

/// Makes a Fenwick tree of the weights it is over.
fn fold(tree: &mut [u64]) {
    for number in 1..=tree.len() {
        let parent = number + (1 << number.trailing_zeros());
        if parent <= tree.len() {
            tree[parent - 1] += tree[number - 1];
        }
    }
}

/// Makes the weights again that a Fenwick tree is over, without asking every entry for its own.
fn unfold(tree: &mut [u64]) {
    for number in (1..=tree.len()).rev() {
        let parent = number + (1 << number.trailing_zeros());
        if parent <= tree.len() {
            tree[parent - 1] -= tree[number - 1];
        }
    }
}

impl Leaf {
    fn last(&self) -> Option<Rank> {
        self.entries.back().map(|entry| entry.0)
    }

    fn weight(&self) -> u64 {
        self.entries.iter().map(|entry| entry.1).sum()
    }
}

#[cfg(test)]
mod tests {
    use alloc::{collections::BTreeMap, vec::Vec};

    use super::*;
    use crate::Time;

    fn rank(due: u64, job: u64) -> Rank {
        Rank { due: Time::from_nanos(due), job: JobId(job) }
    }

    /// A small reproducible generator: Marsaglia's xorshift (2003).
    fn next(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    fn agrees(edf: &Edf, model: &BTreeMap<Rank, u64>, probe: Rank) {
        assert_eq!(edf.len(), model.len());
        assert_eq!(edf.weight(), model.values().sum::<u64>());
        assert_eq!(edf.first(), model.keys().next().copied());
        assert_eq!(edf.weight_before(probe), model.range(..probe).map(|entry| entry.1).sum::<u64>());
    }

    #[test]
    fn it_agrees_with_an_ordered_map_through_random_changes() {
        let (mut edf, mut model, mut random) = (Edf::default(), BTreeMap::new(), 7);
        for job in 0..30_000_u64 {
            let grow = job % 10_000 < 6_000;
            let new = rank(next(&mut random) % 5_000, job);
            let weight = 1 + next(&mut random) % 32;
            if grow || next(&mut random).is_multiple_of(3) {
                edf.insert(new, weight);
                model.insert(new, weight);
            } else if next(&mut random).is_multiple_of(2) {
                edf.remove_first();
                model.pop_first();
            } else if let Some((&some, _)) = model.range(new..).next() {
                model.remove(&some);
                assert!(edf.remove(some, 0));
                assert!(!edf.remove(some, 0));
            }
            if let Some(mut first) = model.first_entry()
                && *first.get() > 1
            {
                *first.get_mut() -= 1;
                edf.lighten_first(1);
            }
            agrees(&edf, &model, rank(next(&mut random) % 6_000, u64::MAX));
        }
        assert!(edf.iter().eq(model.keys().map(|rank| rank.job)));
    }

    #[test]
    fn rising_deadlines_fill_leaves_one_after_another() {
        let mut edf = Edf::default();
        for job in 0..1_000 {
            edf.insert(rank(job, job), 1);
        }
        assert_eq!(edf.leaves.len(), 1_000_usize.div_ceil(LEAF));
        let order: Vec<_> = core::iter::from_fn(|| {
            let first = edf.first()?;
            edf.remove_first();
            Some(first.job.0)
        })
        .collect();
        assert!(order.into_iter().eq(0..1_000));
        assert!(edf.leaves.is_empty());
    }
}
