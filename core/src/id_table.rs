//! Values by dense, increasing ids, in memory proportional to the ids in use.

use alloc::{collections::BTreeMap, vec::Vec};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The smallest ring.
const SMALLEST: usize = 32;

/// A map from ids that are handed out in order, and mostly end in order, to values. Each id has its place in a ring of a
/// power of two of places, so insertion, look-up and removal take constant time. Where an earlier id still stands in the
/// place of a new one, the ring is doubled if half of it is in use; otherwise the earlier one is a straggler and goes into a
/// map. The values lie apart, and the room of the last that left is taken first: it is still in the processor's cache, however
/// many others wait.
#[derive(Clone, Debug)]
pub struct IdTable<T> {
    /// One more than the room of a value; 0: nobody is here.
    ring: Vec<u32>,
    /// How many stand in the ring.
    near: usize,
    stragglers: BTreeMap<u64, u32>,
    rooms: Vec<Option<Entry<T>>>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    id: u64,
    value: T,
}

/// What becomes of a value after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It stays.
    Kept,
    /// It is not needed any more.
    Dropped,
}

impl<T> Default for IdTable<T> {
    fn default() -> Self {
        IdTable { ring: Vec::new(), near: 0, stragglers: BTreeMap::new(), rooms: Vec::new(), free: Vec::new() }
    }
}

impl<T> IdTable<T> {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.near + self.stragglers.len()
    }

    /// Whether it holds nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.near == 0 && self.stragglers.is_empty()
    }

    /// Puts `value` at `id` in place of what was there.
    #[inline]
    pub fn insert(&mut self, id: u64, value: T) {
        self.insert_with(id, || value);
    }

    /// Puts what `make` makes at `id` in place of what was there. It is made where it is to lie.
    #[inline(always)]
    pub fn insert_with(&mut self, id: u64, make: impl FnOnce() -> T) {
        let mut place = self.place(id);
        if self.ring.get(place) != Some(&0) || !self.stragglers.is_empty() {
            place = self.make_room(id);
        }
        let room = match self.free.pop() {
            Some(room) => room,
            None => self.add_room(),
        };
        if let (Some(slot), Some(here)) = (self.rooms.get_mut(room as usize), self.ring.get_mut(place)) {
            *slot = Some(Entry { id, value: make() });
            *here = room + 1;
            self.near += 1;
        }
    }

    /// The value at `id`.
    #[inline]
    pub fn get(&self, id: u64) -> Option<&T> {
        match self.rooms.get(self.near_room(id)) {
            Some(Some(entry)) if entry.id == id => Some(&entry.value),
            _ => self.far(id),
        }
    }

    /// The value at `id`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        let mut room = self.near_room(id);
        if !matches!(self.rooms.get(room), Some(Some(entry)) if entry.id == id) {
            room = *self.stragglers.get(&id)? as usize;
        }
        self.rooms.get_mut(room)?.as_mut().map(|entry| &mut entry.value)
    }

    /// Takes the value at `id` out.
    #[inline]
    pub fn remove(&mut self, id: u64) -> Option<T> {
        let room = self.leave(id)?;
        self.rooms.get_mut(room as usize)?.take().map(|entry| entry.value)
    }

    /// Drops the value at `id` where it lies.
    #[inline]
    pub fn discard(&mut self, id: u64) {
        if let Some(slot) = self.leave(id).and_then(|room| self.rooms.get_mut(room as usize)) {
            *slot = None;
        }
    }

    /// Changes the value at `id` where it lies, and drops it if `change` says so; `None`: there is none.
    #[inline(always)]
    pub fn change(&mut self, id: u64, change: impl FnOnce(&mut T) -> Fate) -> Option<()> {
        if change(self.get_mut(id)?) == Fate::Dropped {
            self.discard(id);
        }
        Some(())
    }

    #[inline]
    fn place(&self, id: u64) -> usize {
        id as usize & self.ring.len().wrapping_sub(1)
    }

    /// The room that the place of an id names; one that does not exist where it names none.
    #[inline]
    fn near_room(&self, id: u64) -> usize {
        self.ring.get(self.place(id)).map_or(usize::MAX, |&room| (room as usize).wrapping_sub(1))
    }

    #[cold]
    fn far(&self, id: u64) -> Option<&T> {
        let room = *self.stragglers.get(&id)?;
        self.rooms.get(room as usize)?.as_ref().map(|entry| &entry.value)
    }

    /// Takes an id out of the ring or the stragglers, and gives its room, which is free from now on.
    #[inline]
    fn leave(&mut self, id: u64) -> Option<u32> {
        let (place, near) = (self.place(id), self.near_room(id));
        let room = if matches!(self.rooms.get(near), Some(Some(entry)) if entry.id == id) {
            self.near -= 1;
            self.ring[place] = 0;
            near as u32
        } else {
            self.stragglers.remove(&id)?
        };
        self.free.push(room);
        Some(room)
    }

    #[cold]
    fn add_room(&mut self) -> u32 {
        self.rooms.push(None);
        self.rooms.len() as u32 - 1
    }

    /// Makes the place of `id` free, forgets what was at `id`, and says where that is.
    #[cold]
    fn make_room(&mut self, id: u64) -> usize {
        self.discard(id);
        let (place, size) = (self.place(id), self.ring.len());
        match self.ring.get_mut(place) {
            Some(0) => place,
            Some(room) if 2 * self.near < size => {
                let room = core::mem::take(room) - 1;
                self.near -= 1;
                let straggler = self.rooms.get(room as usize).and_then(|slot| slot.as_ref());
                self.stragglers.extend(straggler.map(|entry| (entry.id, room)));
                place
            }
            _ => {
                self.double();
                self.make_room(id)
            }
        }
    }

    fn double(&mut self) {
        let size = (2 * self.ring.len()).max(SMALLEST);
        let old = core::mem::replace(&mut self.ring, alloc::vec![0; size]);
        for room in old.into_iter().filter(|&room| room > 0) {
            if let Some(Some(entry)) = self.rooms.get(room as usize - 1) {
                self.ring[entry.id as usize & (size - 1)] = room;
            }
        }
    }

    /// Ids and values in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let mut all: Vec<(u64, &T)> = self.rooms.iter().flatten().map(|entry| (entry.id, &entry.value)).collect();
        all.sort_unstable_by_key(|entry| entry.0);
        all.into_iter()
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
        let mut last = None;
        for (id, value) in pairs {
            if last.replace(id) == Some(id) {
                return Err(D::Error::custom(format_args!("the id {id} stands twice")));
            }
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
            table.insert(id, id * 2);
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
    fn stragglers_make_way_and_are_found() {
        let mut table = IdTable::new();
        (0..10).for_each(|id| table.insert(id, id));
        for id in 10..100_000 {
            table.insert(id, id);
            table.discard(id);
        }
        assert_eq!((table.ring.len(), table.stragglers.len(), table.len()), (SMALLEST, 10, 10));
        assert!(table.iter().map(|(id, &value)| (id, value)).eq((0..10).map(|id| (id, id))));
        table.insert(3, 33);
        assert_eq!((table.get(3), table.get(4), table.get(SMALLEST as u64)), (Some(&33), Some(&4), None));
        assert_eq!(table.get_mut(4), Some(&mut 4));
        (0..10).for_each(|id| table.discard(id));
        assert!(table.is_empty());
    }

    #[test]
    fn it_agrees_with_an_ordered_map() {
        let (mut table, mut model, mut state) = (IdTable::new(), BTreeMap::new(), 7_u64);
        for id in 0..20_000 {
            table.insert(id, id);
            model.insert(id, id);
            for _ in 0..if id % 2_000 < 1_000 { 0 } else { 3 } {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                // young ones more often than old ones
                let one = id - (state % 1_000) * (state >> 10) % (1 + id.min(3_000));
                assert_eq!(table.remove(one), model.remove(&one));
            }
            assert_eq!(table.len(), model.len());
        }
        assert!(table.iter().eq(model.iter().map(|(&id, value)| (id, value))));
        assert!((0..20_000).all(|id| table.get(id) == model.get(&id)));
    }
}
