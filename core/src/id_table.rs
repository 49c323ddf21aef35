//! Values by dense, increasing ids, in memory proportional to the ids in use.

use alloc::{collections::BTreeMap, vec::Vec};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The smallest ring.
const SMALLEST: usize = 32;

/// A map from ids that are handed out in order, and mostly end in order, to values. Each id has its place in a ring of a
/// power of two of places, so insertion, look-up and removal take constant time. Where an earlier id still stands in the
/// place of a new one, the ring is doubled if half of it is in use; otherwise the earlier one is a straggler and goes into a
/// map. The values lie apart, and the room of the last that left is taken first: it is still in the processor's cache, however
/// many others wait. A value that has left lies in its room until that is taken again; the ring and the map alone say who is
/// here.
#[derive(Clone, Debug)]
pub struct IdTable<T> {
    /// One more than the room of a value; 0: nobody is here.
    ring: Vec<u32>,
    stragglers: BTreeMap<u64, u32>,
    rooms: Vec<Room<T>>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Room<T> {
    id: u64,
    value: T,
}

impl<T> Default for IdTable<T> {
    fn default() -> Self {
        IdTable { ring: Vec::new(), stragglers: BTreeMap::new(), rooms: Vec::new(), free: Vec::new() }
    }
}

impl<T> IdTable<T> {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many values it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.rooms.len() - self.free.len()
    }

    /// Whether it holds nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rooms.len() == self.free.len()
    }

    /// Puts `value` at `id` in place of what was there.
    pub fn insert(&mut self, id: u64, value: T)
    where
        T: Default,
    {
        self.insert_over(id, T::default, |slot| *slot = value);
    }

    /// Puts a value at `id` in place of what was there: `write` writes all of it over the last that lay in its room, or over
    /// the blank one that `blank` makes. So nothing is made in one place and moved to another.
    #[inline(always)]
    pub fn insert_over(&mut self, id: u64, blank: fn() -> T, write: impl FnOnce(&mut T)) {
        let mut place = self.place(id);
        if self.ring.get(place) != Some(&0) || !self.stragglers.is_empty() {
            place = self.make_room(id);
        }
        let room = match self.free.pop() {
            Some(room) => room,
            None => self.add_room(blank()),
        };
        if let (Some(slot), Some(here)) = (self.rooms.get_mut(room as usize), self.ring.get_mut(place)) {
            *here = room.wrapping_add(1);
            slot.id = id;
            write(&mut slot.value);
        }
    }

    /// The value at `id`.
    #[inline]
    pub fn get(&self, id: u64) -> Option<&T> {
        match self.rooms.get(self.near_room(id)) {
            Some(room) if room.id == id => Some(&room.value),
            _ => self.far(id),
        }
    }

    /// The value at `id`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        let near = self.near_room(id);
        if !self.lies_in(near, id) {
            return self.far_mut(id);
        }
        self.rooms.get_mut(near).map(|room| &mut room.value)
    }

    /// Drops the value at `id`.
    #[inline]
    pub fn discard(&mut self, id: u64) {
        if let Some(room) = self.room_of(id) {
            self.leave(id, room);
        }
    }

    /// The room of the value at `id`, so that it is not looked up twice; see [`IdTable::in_room`] and [`IdTable::leave`].
    #[inline]
    pub fn room_of(&self, id: u64) -> Option<usize> {
        let near = self.near_room(id);
        if self.lies_in(near, id) { Some(near) } else { self.far_room(id) }
    }

    /// The value in a room.
    #[inline]
    pub fn in_room(&mut self, room: usize) -> Option<&mut T> {
        self.rooms.get_mut(room).map(|room| &mut room.value)
    }

    /// Drops the value at `id`, whose room that is.
    #[inline]
    pub fn leave(&mut self, id: u64, room: usize) {
        let place = self.place(id);
        match self.ring.get_mut(place) {
            Some(here) if *here as usize == room.wrapping_add(1) => *here = 0,
            _ => self.forget_straggler(id),
        }
        self.free.push(room as u32);
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

    #[inline]
    fn lies_in(&self, room: usize, id: u64) -> bool {
        self.rooms.get(room).is_some_and(|room| room.id == id)
    }

    #[cold]
    fn far_room(&self, id: u64) -> Option<usize> {
        self.stragglers.get(&id).map(|&room| room as usize)
    }

    #[cold]
    fn far(&self, id: u64) -> Option<&T> {
        self.rooms.get(self.far_room(id)?).map(|room| &room.value)
    }

    #[cold]
    fn far_mut(&mut self, id: u64) -> Option<&mut T> {
        let room = self.far_room(id)?;
        self.rooms.get_mut(room).map(|room| &mut room.value)
    }

    #[cold]
    fn forget_straggler(&mut self, id: u64) {
        self.stragglers.remove(&id);
    }

    #[cold]
    fn add_room(&mut self, value: T) -> u32 {
        self.rooms.push(Room { id: 0, value });
        self.rooms.len() as u32 - 1
    }

    /// Makes the place of `id` free, forgets what was at `id`, and says where that is.
    #[cold]
    fn make_room(&mut self, id: u64) -> usize {
        self.discard(id);
        let near = self.len() - self.stragglers.len();
        let (place, size) = (self.place(id), self.ring.len());
        match self.ring.get_mut(place) {
            Some(0) => place,
            Some(room) if 2 * near < size => {
                let room = core::mem::take(room) - 1;
                let straggler = self.rooms.get(room as usize);
                self.stragglers.extend(straggler.map(|straggler| (straggler.id, room)));
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
            if let Some(Room { id, .. }) = self.rooms.get(room as usize - 1) {
                self.ring[*id as usize & (size - 1)] = room;
            }
        }
    }

    /// Ids and values in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let near = self.ring.iter().filter_map(|&room| (room as usize).checked_sub(1));
        let taken = near.chain(self.stragglers.values().map(|&room| room as usize));
        let mut all: Vec<(u64, &T)> =
            taken.filter_map(|room| self.rooms.get(room)).map(|room| (room.id, &room.value)).collect();
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

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for IdTable<T> {
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
            assert_eq!(table.get(id), Some(&(id * 2)));
            table.discard(id);
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
                assert_eq!(table.get(one).copied(), model.remove(&one));
                table.discard(one);
            }
            assert_eq!(table.len(), model.len());
        }
        assert!(table.iter().eq(model.iter().map(|(&id, value)| (id, value))));
        assert!((0..20_000).all(|id| table.get(id) == model.get(&id)));
    }
}
