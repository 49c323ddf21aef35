//! The grants under way on one instance.

use windtunnel_core::{Attempt, Capacity};

/// An instance.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Where it is, among the places.
    pub place: usize,
    /// How many grants are under way.
    pub under_way: u32,
    /// The most that may be.
    pub grants: u32,
    /// The most inputs of a grant.
    pub weight: u32,
    pub ready: bool,
    /// Since when at least one is.
    pub since: u64,
    /// One of those under way, and the others.
    open: Open,
    others: Vec<Open>,
}

/// A grant under way.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    pub attempt: Attempt,
    pub weight: u32,
}

impl Instance {
    /// One that holds nothing yet.
    pub fn new(place: usize, capacity: Option<Capacity>) -> Instance {
        let (grants, weight) = match capacity {
            Some(Capacity::Batch { max, .. }) => (1, max),
            Some(Capacity::Slots { slots }) => (slots, u32::MAX),
            None => (u32::MAX, u32::MAX),
        };
        let open = Open { attempt: Attempt(0), weight: 0 };
        Instance { place, under_way: 0, grants, weight, ready: false, since: 0, open, others: Vec::new() }
    }

    /// A grant begins.
    #[inline]
    pub fn begin(&mut self, open: Open) {
        if self.under_way == 0 {
            self.open = open;
        } else {
            self.others.push(open);
        }
        self.under_way = self.under_way.saturating_add(1);
    }

    /// The weight of the grant that ends, if it is under way.
    #[inline]
    pub fn end(&mut self, attempt: Attempt) -> Option<u32> {
        if self.under_way == 1 && self.open.attempt == attempt {
            self.under_way = 0;
            return Some(self.open.weight);
        }
        self.end_one(attempt)
    }

    fn end_one(&mut self, attempt: Attempt) -> Option<u32> {
        if self.under_way == 0 {
            return None;
        }
        let ended = match self.others.iter().position(|open| open.attempt == attempt) {
            Some(at) => self.others.swap_remove(at),
            None if self.open.attempt == attempt => std::mem::replace(&mut self.open, self.others.pop()?),
            None => return None,
        };
        self.under_way -= 1;
        Some(ended.weight)
    }
}
