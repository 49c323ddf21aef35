//! Everything that serves: instances by id, the places they are at, devices.

use windtunnel_core::{Attempt, Bytes, Capacity, DeviceId, Grant, InstanceId, Mode, ModelId};

use super::{
    device_time::DeviceTime,
    instance::{Instance, Open},
    stretch::{Absorb, Stretched, count},
    work::Work,
};

/// An instance id further than this beyond those known makes no sense.
const FAR: usize = 1 << 16;

/// Everything that serves.
#[derive(Clone, Debug, Default)]
pub struct Service {
    models: Vec<Option<Capacity>>,
    instances: Vec<Option<Instance>>,
    places: Vec<Place>,
    /// By device id.
    pub devices: Vec<DeviceTime>,
    /// Grants that an instance should not have been given.
    pub overfull: u64,
}

/// A model on a device.
#[derive(Clone, Debug)]
pub struct Place {
    pub model: usize,
    pub device: usize,
    /// What was done in the stretch that lasts.
    current: Work,
    pub stretches: Stretched<Work>,
    ready: u32,
    since: u64,
}

/// How a grant ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Its work is done.
    Done,
    /// It came to nothing.
    Lost,
}

impl Service {
    /// So many devices, nothing known of models.
    pub fn new(devices: usize) -> Service {
        Service { devices: vec![DeviceTime::default(); devices], ..Service::default() }
    }

    /// What instances of each model can do at once.
    pub fn set_capacities(&mut self, capacities: Vec<Option<Capacity>>) {
        self.models = capacities;
    }

    /// An instance of that id exists from now on.
    #[cold]
    pub fn appear(&mut self, id: InstanceId, model: ModelId, device: DeviceId) -> Option<()> {
        let at = id.index();
        if at >= self.instances.len() {
            if at - self.instances.len() > FAR {
                return None;
            }
            self.instances.resize_with(at + 1, || None);
        }
        let place = self.place(model.index(), device.index());
        self.instances[at] = Some(Instance::new(place, self.models.get(model.index()).copied().flatten()));
        Some(())
    }

    /// An instance can take work from now on.
    #[cold]
    pub fn ready(&mut self, id: InstanceId, now: u64) {
        let Some(Some(instance)) = self.instances.get_mut(id.index()) else { return };
        if !std::mem::replace(&mut instance.ready, true) {
            let place = &mut self.places[instance.place];
            place.pass(now);
            place.ready += 1;
        }
    }

    /// An instance is gone.
    pub fn gone(&mut self, id: InstanceId, now: u64) {
        let Some(slot) = self.instances.get_mut(id.index()) else { return };
        let Some(instance) = slot.take() else { return };
        let place = &mut self.places[instance.place];
        if instance.ready {
            place.pass(now);
            place.ready -= 1;
        }
        if instance.under_way > 0 {
            place.current.busy_for(now.saturating_sub(instance.since));
            if let Some(device) = self.devices.get_mut(place.device) {
                device.stop(now);
            }
        }
    }

    /// A load begins.
    pub fn loading(&mut self, id: InstanceId, model: ModelId, device: DeviceId) {
        if self.appear(id, model, device).is_some() {
            let place = self.place(model.index(), device.index());
            self.places[place].current.loads += 1;
        }
    }

    /// A grant begins.
    #[inline(always)]
    pub fn grant<S>(&mut self, grant: &Grant<S>, now: u64) {
        let known = matches!(self.instances.get(grant.instance.index()), Some(Some(_)));
        if !known && self.appear(grant.instance, grant.model, grant.device).is_some() {
            // An instance nothing is known of is taken as ready from now on.
            self.ready(grant.instance, now);
        }
        let Some(Some(instance)) = self.instances.get_mut(grant.instance.index()) else { return };
        let place = &mut self.places[instance.place];
        if instance.under_way == 0 {
            instance.since = now;
            if let Some(device) = self.devices.get_mut(place.device) {
                device.start(now);
            }
        }
        let overfull = instance.under_way >= instance.grants || grant.weight > instance.weight;
        count(&mut self.overfull, u64::from(overfull));
        instance.begin(Open { attempt: grant.attempt, weight: grant.weight });
        place.current.began(grant.weight);
    }

    /// A grant ends.
    #[inline]
    pub fn settle(&mut self, id: InstanceId, attempt: Attempt, how: Settled, now: u64) {
        let Some(Some(instance)) = self.instances.get_mut(id.index()) else { return };
        let Some(weight) = instance.end(attempt) else { return };
        let place = &mut self.places[instance.place];
        if instance.under_way == 0 {
            place.current.busy_for(now.wrapping_sub(instance.since));
            if let Some(device) = self.devices.get_mut(place.device) {
                device.stop(now);
            }
        }
        match how {
            Settled::Done => count(&mut place.current.inputs, u64::from(weight)),
            Settled::Lost => {}
        }
    }

    /// An instance is asked to leave so that another fits.
    pub fn evicted(&mut self, id: InstanceId) {
        if let Some(Some(instance)) = self.instances.get(id.index()) {
            self.places[instance.place].current.evictions += 1;
        }
    }

    /// A device changes its mode.
    pub fn mode(&mut self, device: DeviceId, mode: Mode, now: u64) {
        if let Some(device) = self.devices.get_mut(device.index()) {
            device.change(mode, now);
        }
    }

    /// So much memory is in use.
    pub fn memory(&mut self, device: DeviceId, used: Option<Bytes>) {
        if let Some(device) = self.devices.get_mut(device.index()) {
            device.memory_peak = device.memory_peak.max(used);
        }
    }

    /// A stretch ends: what lasts is charged to it and goes on.
    pub fn close_stretch(&mut self, now: u64, stretch: usize) {
        for instance in self.instances.iter_mut().flatten().filter(|instance| instance.under_way > 0) {
            self.places[instance.place].current.busy_for(now.saturating_sub(instance.since));
            instance.since = now;
        }
        for place in &mut self.places {
            place.pass(now);
            let done = std::mem::take(&mut place.current);
            place.current.sizes = vec![0; done.sizes.len()];
            place.stretches[stretch].absorb(done);
        }
        self.devices.iter_mut().for_each(|device| device.close_stretch(now, stretch));
    }

    /// Makes one of each pair of stretches.
    pub fn halve(&mut self) {
        self.places.iter_mut().for_each(|place| place.stretches.halve());
        self.devices.iter_mut().for_each(|device| device.stretches.halve());
    }

    /// The places, in the order in which they were first used.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    fn place(&mut self, model: usize, device: usize) -> usize {
        if let Some(at) = self.places.iter().position(|place| (place.model, place.device) == (model, device)) {
            return at;
        }
        let stretches = Stretched::default();
        self.places.push(Place { model, device, current: Work::default(), stretches, ready: 0, since: 0 });
        self.places.len() - 1
    }
}

impl Place {
    fn pass(&mut self, now: u64) {
        let span = now.saturating_sub(self.since);
        self.since = now;
        self.current.ready = self.current.ready.saturating_add(span.saturating_mul(u64::from(self.ready)));
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_core::{Class, Right};

    use super::*;

    fn grant(attempt: u64, instance: u32, weight: u32) -> Grant<()> {
        Grant {
            attempt: Attempt(attempt),
            instance: InstanceId(instance),
            model: ModelId(0),
            device: DeviceId(0),
            class: Class::Interactive,
            right: Right::Order,
            weight,
            steps: (),
        }
    }

    #[test]
    fn a_device_is_busy_once_however_many_instances_are() {
        let mut service = Service::new(1);
        service.grant(&grant(0, 0, 2), 0);
        service.grant(&grant(1, 1, 4), 10);
        service.settle(InstanceId(0), Attempt(0), Settled::Done, 30);
        service.close_stretch(40, 0);
        service.settle(InstanceId(1), Attempt(1), Settled::Lost, 50);
        service.close_stretch(60, 1);
        let place = &service.places()[0];
        let (first, second) = (&place.stretches[0], &place.stretches[1]);
        assert_eq!((first.busy, second.busy), (30 + 30, 10));
        assert_eq!((first.inputs, second.inputs), (2, 0));
        assert_eq!((first.grants(), first.weight(), first.squares()), (2, 6, 20));
        assert_eq!((first.ready, second.ready), (40 + 30, 40));
        assert_eq!((service.devices[0].stretches[0].busy, service.devices[0].stretches[1].busy), (40, 10));
    }

    #[test]
    fn grants_side_by_side_end_in_any_order() {
        let mut service = Service::new(1);
        (0..4).for_each(|attempt| service.grant(&grant(attempt, 0, 1 << attempt), attempt));
        for (attempt, now) in [(2, 10), (0, 20), (0, 21), (7, 22), (3, 30), (1, 40), (1, 50)] {
            service.settle(InstanceId(0), Attempt(attempt), Settled::Done, now);
        }
        service.close_stretch(100, 0);
        let work = &service.places()[0].stretches[0];
        assert_eq!((work.inputs, work.busy), (15, 40));
    }

    #[test]
    fn a_batch_beside_another_is_one_too_many() {
        let mut service = Service::new(1);
        service.set_capacities(vec![Some(Capacity::Batch { max: 4, wait: windtunnel_core::Span::ZERO })]);
        service.grant(&grant(0, 0, 4), 0);
        assert_eq!(service.overfull, 0);
        service.grant(&grant(1, 0, 4), 1);
        service.grant(&grant(2, 1, 5), 1);
        assert_eq!(service.overfull, 2);
    }

    #[test]
    fn ids_out_of_nowhere_are_left_alone() {
        let mut service = Service::new(0);
        service.grant(&grant(0, u32::MAX, 1), 0);
        service.settle(InstanceId(u32::MAX), Attempt(0), Settled::Done, 1);
        assert!(service.places().is_empty());
    }
}
