//! Instances by their ids, from the start of their loads until they are gone.
//!
//! Ids are handed out in order and never used again, so a scheduler that loads models for a year has handed out many, while few
//! instances live. The ids from `first` on have their places one after another: look-up is a subtraction, a bounds check and
//! one pointer. Where fewer than half of the places are taken, the older half is given up and who still lives there becomes
//! an elder, in a map. So memory follows the instances that live, and where all stay for good each has its place. An id that
//! was handed out and has no instance is that of one that is gone.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use core::{
    fmt,
    ops::{Index, IndexMut},
};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use crate::{InstanceId, Violation, check::agree, instance::Instance};

/// So many places are never too many.
const FEW: usize = 64;

/// The instances that live.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instances {
    first: u32,
    places: Vec<Option<Box<Instance>>>,
    elders: BTreeMap<InstanceId, Box<Instance>>,
    /// How many live.
    living: usize,
}

impl Instances {
    /// How many live.
    pub fn len(&self) -> usize {
        self.living
    }

    /// The id that the next instance gets: all below have been handed out.
    pub fn next(&self) -> InstanceId {
        InstanceId(self.first + self.places.len() as u32)
    }

    /// Whether that id has been handed out: its instance lives or is gone.
    pub fn was_handed_out(&self, id: InstanceId) -> bool {
        id < self.next()
    }

    /// Takes in a new instance under the next id.
    pub fn add(&mut self, instance: Instance) -> InstanceId {
        let id = self.next();
        self.push(Some(Box::new(instance)));
        id
    }

    /// Forgets an instance that is gone.
    pub fn forget(&mut self, id: InstanceId) {
        let place = self.place(id);
        let known = match self.places.get_mut(place) {
            Some(place) => place.take(),
            None => self.elders.remove(&id),
        };
        self.living -= usize::from(known.is_some());
    }

    /// The instance of an id, if it lives.
    #[inline]
    pub fn get(&self, id: InstanceId) -> Option<&Instance> {
        match self.places.get(self.place(id)) {
            Some(place) => place.as_deref(),
            None => self.elder(id),
        }
    }

    /// The same for one that is no elder: where every instance stays for good, that is each.
    #[inline]
    pub fn recent(&self, id: InstanceId) -> Option<&Instance> {
        self.places.get(self.place(id))?.as_deref()
    }

    #[inline]
    pub fn get_mut(&mut self, id: InstanceId) -> Option<&mut Instance> {
        let place = self.place(id);
        match self.places.get_mut(place) {
            Some(place) => place.as_deref_mut(),
            None => elder_mut(&mut self.elders, id),
        }
    }

    /// Those that live, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (InstanceId, &Instance)> {
        let places = self.places.iter().zip(self.first..);
        let recent = places.filter_map(|(place, id)| Some((InstanceId(id), place.as_deref()?)));
        self.elders.iter().map(|(&id, elder)| (id, &**elder)).chain(recent)
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (InstanceId, &mut Instance)> {
        let places = self.places.iter_mut().zip(self.first..);
        let recent = places.filter_map(|(place, id)| Some((InstanceId(id), place.as_deref_mut()?)));
        self.elders.iter_mut().map(|(&id, elder)| (id, &mut **elder)).chain(recent)
    }

    /// Whether as many are found as are counted, elders among the old ids and all others behind them.
    pub fn check(&self) -> Result<(), Violation> {
        let old = self.elders.range(..InstanceId(self.first)).count();
        let found = old + self.places.iter().flatten().count();
        agree("instances that live", self.living as u64, found as u64)
    }

    /// The place of an id; one that does not exist for elders, and for ids that are yet to come.
    #[inline]
    fn place(&self, id: InstanceId) -> usize {
        id.0.wrapping_sub(self.first) as usize
    }

    #[cold]
    #[inline(never)]
    fn elder(&self, id: InstanceId) -> Option<&Instance> {
        self.elders.get(&id).map(|elder| &**elder)
    }

    fn push(&mut self, place: Option<Box<Instance>>) {
        let size = self.places.len();
        if size >= FEW && 2 * (self.living - self.elders.len()) < size {
            self.age(size / 2);
        }
        self.living += usize::from(place.is_some());
        self.places.push(place);
    }

    /// Gives up the first `count` places.
    fn age(&mut self, count: usize) {
        let ids = self.first..;
        self.first += count as u32;
        let old = self.places.drain(..count).zip(ids);
        self.elders.extend(old.filter_map(|(place, id)| Some((InstanceId(id), place?))));
    }

    /// Counts every id below `next` as handed out.
    fn skip_to(&mut self, next: InstanceId) {
        if next.0 - self.next().0 > FEW as u32 {
            self.age(self.places.len());
            self.first = next.0;
        }
        while self.next() < next {
            self.push(None);
        }
    }
}

/// For ids of instances that are known to live, since a list of those that do names them.
impl Index<InstanceId> for Instances {
    type Output = Instance;

    #[inline]
    fn index(&self, id: InstanceId) -> &Instance {
        match self.places.get(self.place(id)) {
            Some(Some(instance)) => instance,
            Some(None) | None => self.elder(id).unwrap_or_else(|| absent(id)),
        }
    }
}

impl IndexMut<InstanceId> for Instances {
    #[inline]
    fn index_mut(&mut self, id: InstanceId) -> &mut Instance {
        let place = self.place(id);
        match self.places.get_mut(place) {
            Some(Some(instance)) => instance,
            Some(None) | None => elder_mut(&mut self.elders, id).unwrap_or_else(|| absent(id)),
        }
    }
}

#[cold]
#[inline(never)]
fn elder_mut(elders: &mut BTreeMap<InstanceId, Box<Instance>>, id: InstanceId) -> Option<&mut Instance> {
    elders.get_mut(&id).map(|elder| &mut **elder)
}

#[cold]
#[inline(never)]
fn absent(id: InstanceId) -> ! {
    panic!("{id} is named by a list of those that live, and is gone")
}

/// As instances stand in a checkpoint.
#[derive(Serialize, Deserialize)]
struct Form<T> {
    /// The id of the next.
    next: InstanceId,
    /// Those that live, with their ids.
    living: Vec<(InstanceId, T)>,
}

impl Serialize for Instances {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Form { next: self.next(), living: self.iter().collect() }.serialize(serializer)
    }
}

impl Form<Instance> {
    fn into_instances<E: Error>(mut self) -> Result<Instances, E> {
        self.living.sort_by_key(|entry| entry.0);
        let mut all = Instances::default();
        for (id, instance) in self.living {
            if id < all.next() {
                return Err(E::custom(format_args!("{id} stands twice among those that live")));
            }
            if id >= self.next {
                return Err(E::custom(format_args!("{id} lives although {} is the next", self.next)));
            }
            all.skip_to(id);
            all.add(instance);
        }
        all.skip_to(self.next);
        Ok(all)
    }
}

/// An entry of the list that checkpoints held once, in which those that are gone kept their places.
#[derive(Deserialize)]
#[serde(untagged, expecting = "neither an instance nor one that is gone")]
enum Listed {
    Gone {
        #[serde(rename = "slot")]
        _slot: Gone,
    },
    Lives(Box<Instance>),
}

#[derive(Deserialize)]
enum Gone {
    Gone,
}

impl<'de> Deserialize<'de> for Instances {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Instances, D::Error> {
        deserializer.deserialize_any(FormOrList)
    }
}

struct FormOrList;

impl<'de> Visitor<'de> for FormOrList {
    type Value = Instances;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the instances that live and the id of the next")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Instances, A::Error> {
        Form::deserialize(MapAccessDeserializer::new(map))?.into_instances()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Instances, A::Error> {
        let mut all = Instances::default();
        while let Some(entry) = list.next_element()? {
            all.push(match entry {
                Listed::Gone { .. } => None,
                Listed::Lives(instance) => Some(instance),
            });
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Bytes, Capacity, Class, DeviceId, ModelId, Ppm, Prediction, ServiceTimes, Span, Time, instance::Slot,
        residency::Guarded,
    };

    /// An instance of a model of this number.
    fn of(model: u32) -> Instance {
        Instance {
            model: ModelId(model),
            device: DeviceId(0),
            slot: Slot::Ready { running: Vec::new() },
            capacity: Capacity::Slots { slots: 1 },
            times: ServiceTimes::Batch { alpha: Span::ZERO, beta: Span::ZERO },
            factor: Ppm::ONE,
            prediction: Prediction::Configured,
            lines: Vec::new(),
            held: None,
            booked: Bytes::ZERO,
            loaded: None,
            lower: None,
            loaded_for: Class::Batch,
            guarded: Guarded::No,
            began: None,
            ready_at: Time::ZERO,
            last_used: Time::ZERO,
            last_background: None,
            turn_since: None,
        }
    }

    fn written(all: &Instances) -> Form<Instance> {
        Form { next: all.next(), living: all.iter().map(|(id, one)| (id, one.clone())).collect() }
    }

    fn read(form: Form<Instance>) -> Result<Instances, serde::de::value::Error> {
        form.into_instances()
    }

    #[test]
    fn those_that_stay_have_their_places_and_those_that_are_gone_leave_nothing() {
        let mut all = Instances::default();
        (0..5).for_each(|model| assert_eq!(all.add(of(model)), InstanceId(model)));
        for model in 5..100_000 {
            let id = all.add(of(model));
            assert_eq!((id, all[id].model), (InstanceId(model), ModelId(model)));
            all.forget(id);
            assert_eq!(all.get(id).map(|one| one.model), None);
            assert!(all.was_handed_out(id) && !all.was_handed_out(all.next()));
        }
        assert_eq!((all.len(), all.elders.len(), all.check()), (5, 5, Ok(())));
        assert!(all.places.capacity() <= 2 * FEW, "{} places", all.places.capacity());
        all[InstanceId(3)].model = ModelId(33);
        let living = all.iter().map(|(id, one)| (id.0, one.model.0));
        assert!(living.eq([(0, 0), (1, 1), (2, 2), (3, 33), (4, 4)]));
        all.forget(InstanceId(3));
        all.forget(InstanceId(3));
        assert_eq!((all.len(), all.get_mut(InstanceId(3)).is_none(), all.check()), (4, true, Ok(())));
    }

    #[test]
    fn where_all_stay_none_becomes_an_elder() {
        let mut all = Instances::default();
        (0..1000).for_each(|model| assert_eq!(all.add(of(model)), InstanceId(model)));
        (0..400).for_each(|id| all.forget(InstanceId(id)));
        (1000..1010).for_each(|model| assert_eq!(all.add(of(model)), InstanceId(model)));
        assert_eq!((all.len(), all.elders.len(), all.first), (610, 0, 0));
    }

    #[test]
    fn it_agrees_with_an_ordered_map() {
        let (mut all, mut model, mut state) = (Instances::default(), BTreeMap::new(), 7_u64);
        for round in 0..3000_u32 {
            let id = all.add(of(round));
            model.insert(id, ModelId(round));
            for _ in 0..if round % 400 < 200 { 0 } else { 3 } {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let one = InstanceId(id.0 - (state % 300) as u32 * (state >> 40 & 3) as u32 % (1 + id.0));
                assert_eq!(all.get(one).map(|one| one.model), model.remove(&one));
                all.forget(one);
            }
            assert_eq!((all.len(), all.check()), (model.len(), Ok(())));
            if round % 50 == 0 {
                all = read(written(&all)).expect("it is sound");
            }
        }
        assert!(all.iter().map(|(id, one)| (id, one.model)).eq(model));
    }

    #[test]
    fn far_ids_take_no_room() {
        let far = InstanceId(u32::MAX - 1);
        let form = || Form { next: InstanceId(u32::MAX), living: alloc::vec![(far, of(2)), (InstanceId(7), of(1))] };
        let all = read(form()).expect("it is sound");
        assert_eq!((all.len(), all.next(), all.check()), (2, InstanceId(u32::MAX), Ok(())));
        assert_eq!((all[far].model, all[InstanceId(7)].model), (ModelId(2), ModelId(1)));
        assert!(all.places.capacity() <= 2 * FEW);
        let twice = Form { living: alloc::vec![(far, of(2)), (far, of(1))], ..form() };
        assert_eq!(
            read(twice).err().map(|wrong| alloc::format!("{wrong}")).as_deref(),
            Some("instance 4294967294 stands twice among those that live")
        );
    }

    #[test]
    fn a_count_that_is_wrong_is_seen() {
        let mut all = Instances::default();
        let id = all.add(of(0));
        all.living = 2;
        assert!(all.check().is_err());
        all.living = 1;
        assert_eq!(all.check(), Ok(()));
        all.elders.insert(InstanceId(5), Box::new(of(0)));
        all.places.clear();
        assert!(all.check().is_err(), "{id} lies where nobody finds it");
    }
}
