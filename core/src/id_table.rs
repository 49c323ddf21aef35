//! Values by dense, increasing ids, in memory proportional to the ids in use.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const PAGE: usize = 32;

/// A map from ids that are handed out in order, and mostly end in order, to values. Insertion, look-up and removal take
/// constant time: the ids are cut into pages, and a page goes when its last value does. A straggler keeps one page and one
/// pointer for every page of ids after it.
#[derive(Clone, Debug)]
pub struct IdTable<T> {
    first_page: u64,
    pages: VecDeque<Option<Box<Page<T>>>>,
    len: usize,
    spare: Vec<Box<Page<T>>>,
}

#[derive(Clone, Debug)]
struct Page<T> {
    used: u32,
    values: [Option<T>; PAGE],
}

impl<T> Default for IdTable<T> {
    fn default() -> Self {
        IdTable { first_page: 0, pages: VecDeque::new(), len: 0, spare: Vec::new() }
    }
}

impl<T> IdTable<T> {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts `value` at `id` in place of what was there. An id before every page in use cannot be taken up again; then
    /// nothing changes. Says whether the value is kept.
    #[inline]
    pub fn insert(&mut self, id: u64, value: T) -> bool {
        let page = id / PAGE as u64;
        if self.pages.is_empty() {
            self.first_page = page;
        }
        let Some(at) = page.checked_sub(self.first_page) else { return false };
        let at = at as usize;
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        let page = self.pages[at].get_or_insert_with(|| self.spare.pop().unwrap_or_else(Page::empty));
        let place = &mut page.values[(id % PAGE as u64) as usize];
        if place.is_none() {
            page.used += 1;
            self.len += 1;
        }
        *place = Some(value);
        true
    }

    /// The value at `id`.
    #[inline]
    pub fn get(&self, id: u64) -> Option<&T> {
        let at = (id / PAGE as u64).checked_sub(self.first_page)? as usize;
        self.pages.get(at)?.as_ref()?.values[(id % PAGE as u64) as usize].as_ref()
    }

    /// The value at `id`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        let at = (id / PAGE as u64).checked_sub(self.first_page)? as usize;
        self.pages.get_mut(at)?.as_mut()?.values[(id % PAGE as u64) as usize].as_mut()
    }

    /// Takes the value at `id` out.
    #[inline]
    pub fn remove(&mut self, id: u64) -> Option<T> {
        let at = (id / PAGE as u64).checked_sub(self.first_page)? as usize;
        let page = self.pages.get_mut(at)?.as_mut()?;
        let value = page.values[(id % PAGE as u64) as usize].take()?;
        page.used -= 1;
        self.len -= 1;
        if page.used == 0 {
            self.retire(at);
        }
        Some(value)
    }

    /// Drops the value at `id` where it lies.
    #[inline]
    pub fn discard(&mut self, id: u64) {
        let Some(at) = (id / PAGE as u64).checked_sub(self.first_page) else { return };
        let Some(Some(page)) = self.pages.get_mut(at as usize) else { return };
        let place = &mut page.values[(id % PAGE as u64) as usize];
        if place.is_some() {
            *place = None;
            page.used -= 1;
            self.len -= 1;
            if page.used == 0 {
                self.retire(at as usize);
            }
        }
    }

    fn retire(&mut self, at: usize) {
        if let Some(page) = self.pages[at].take()
            && self.spare.len() < 4
        {
            self.spare.push(page);
        }
        while let Some(None) = self.pages.front() {
            self.pages.pop_front();
            self.first_page += 1;
        }
    }

    /// Ids and values in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.pages.iter().zip(self.first_page..).flat_map(|(page, number)| {
            let values = page.as_ref().map_or(&[][..], |page| &page.values[..]);
            values.iter().zip(number * PAGE as u64..).filter_map(|(value, id)| value.as_ref().map(|value| (id, value)))
        })
    }
}

impl<T> Page<T> {
    fn empty() -> Box<Page<T>> {
        Box::new(Page { used: 0, values: [const { None }; PAGE] })
    }
}

/// A list of pairs of id and value.
impl<T: Serialize> Serialize for IdTable<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for IdTable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut pairs = Vec::<(u64, T)>::deserialize(deserializer)?;
        pairs.sort_by_key(|pair| pair.0);
        let mut table = IdTable::new();
        for (id, value) in pairs {
            table.insert(id, value);
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_ids_until_removed() {
        let mut table = IdTable::new();
        for id in 0..100 {
            assert!(table.insert(id, id * 2));
        }
        for id in (0..100).filter(|id| id % 3 != 0) {
            assert_eq!(table.remove(id), Some(id * 2));
        }
        assert_eq!(table.get(50), None);
        assert_eq!(table.get(51), Some(&102));
        assert_eq!(table.len(), 34);
        assert!(table.iter().map(|(id, _)| id).eq((0..100).step_by(3)));
    }

    #[test]
    fn a_straggler_keeps_one_page() {
        let mut table = IdTable::new();
        table.insert(0, ());
        for id in 1..100_000 {
            table.insert(id, ());
            table.remove(id);
        }
        assert_eq!(table.pages.iter().filter(|page| page.is_some()).count(), 1);
        table.remove(0);
        assert!(table.pages.is_empty());
        assert!(table.insert(200_000, ()));
        assert_eq!(table.len(), 1);
    }
}
