//! How a model serves on each of its devices: what it truly takes there, what is believed of it, how much it does at once.

use windtunnel_core::{Capacity, DeviceId, Placement, ServiceTimes, Span};

use super::devices::Devices;
use super::service;
use crate::decode::Section;
use crate::scenario::Service;

/// What is known of the service of a model about which nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsaid {
    /// Nothing: a simulation cannot do without.
    Missing,
    /// A guess that is put right by what is learned.
    Learned,
}

/// The true service on every device; `None` where it may not be placed.
pub(crate) fn services(
    section: &Section<'_>,
    allowed: &[DeviceId],
    devices: &Devices,
    unsaid: Unsaid,
) -> Vec<Option<Service>> {
    let everywhere = service::read(section).or_else(|| match unsaid {
        Unsaid::Missing => None,
        Unsaid::Learned => Some(service::guessed(section)),
    });
    let mut services: Vec<Option<Service>> =
        devices.all().map(|device| allowed.contains(&device).then(|| everywhere.clone()).flatten()).collect();
    for_each_on(section, devices, |device, on| {
        if let (Some(service), Some(slot)) = (service::read(on), services.get_mut(device.index()))
            && allowed.contains(&device)
        {
            *slot = Some(service);
        }
    });
    check_services(section, allowed, &services, devices);
    check_on(section, allowed, devices);
    services
}

/// Calls `read` for each device named under `on`: groups first, so that a single device's own table has the last word.
fn for_each_on<'a>(section: &Section<'a>, devices: &Devices, mut read: impl FnMut(DeviceId, &Section<'a>)) {
    let mut tables: Vec<_> = Vec::new();
    for (name, place, on) in section.named("on") {
        match devices.find(name) {
            Some(found) => {
                tables.push((devices.name(found.first().copied().unwrap_or(DeviceId(0))) == name, found, on))
            }
            None => {
                let (message, notes) = devices.unknown(name);
                section.context.complain(place, message, notes);
            }
        }
    }
    tables.sort_by_key(|(single, _, _)| *single);
    for (_, found, on) in &tables {
        found.iter().for_each(|device| read(*device, on));
    }
}

/// Complains about tables of devices that the model may not be placed on.
fn check_on(section: &Section<'_>, allowed: &[DeviceId], devices: &Devices) {
    for (name, place, _) in section.named("on") {
        let found = devices.find(name).unwrap_or_default();
        if !found.is_empty() && !found.iter().any(|device| allowed.contains(device)) {
            let message = format!("`{}` may not be placed on {name}, as its `devices` say", section.trail);
            section.context.complain(place, message, Vec::new());
        }
    }
}

fn check_services(section: &Section<'_>, allowed: &[DeviceId], services: &[Option<Service>], devices: &Devices) {
    let on = |device: &DeviceId| services.get(device.index()).and_then(Option::as_ref);
    let missing: Vec<&str> = allowed.iter().filter(|one| on(one).is_none()).map(|one| devices.name(*one)).collect();
    if missing.len() == allowed.len() && !missing.is_empty() {
        return section
            .complain("has no `service`, such as service = { kind = \"batch\", alpha = \"1ms\", beta = \"0.5ms\" }");
    }
    if !missing.is_empty() {
        let names = missing.join(", ");
        section
            .complain(&format!("has no `service` on {names}; give it one there, or list its `devices` without them"));
    }
    let kinds = allowed.iter().filter_map(on).map(|service| matches!(service, Service::Batch { .. }));
    if kinds.clone().any(|batch| batch) && kinds.clone().any(|batch| !batch) {
        section.complain("has services of both kinds; \"batch\" and \"slots\" cannot be mixed in one model");
    }
}

/// How much an instance does at once.
pub(crate) fn capacity(section: &Section<'_>, service: Option<&Service>) -> Capacity {
    let batch = section.section("batch");
    let slots = section.count32("slots");
    match service {
        Some(Service::Slots { .. }) => {
            if batch.is_some() {
                section.wrong("batch", "goes with service kind \"batch\"; with kind \"slots\" write slots = n");
            }
            Capacity::Slots { slots: slots.unwrap_or(1) }
        }
        Some(Service::Batch { .. }) | None => {
            if let Some(slots) = slots {
                if batch.is_some() {
                    section.wrong("slots", "cannot be given beside `batch`: steps run side by side, or together");
                }
                return Capacity::Slots { slots };
            }
            let max = batch.as_ref().and_then(|batch| batch.count32("max")).unwrap_or(1);
            Capacity::Batch { max, wait: batch.and_then(|batch| batch.span("wait")).unwrap_or(Span::ZERO) }
        }
    }
}

/// Where it may be placed, and what is believed of it there.
pub(crate) fn placements(
    section: &Section<'_>,
    allowed: &[DeviceId],
    services: &[Option<Service>],
    devices: &Devices,
) -> Vec<Placement> {
    let truth = |device: DeviceId| services.get(device.index()).and_then(Option::as_ref);
    let mut believed: Vec<Option<ServiceTimes>> = devices
        .all()
        .map(|device| truth(device).map(|truth| (truth, service::predicted(section, truth))))
        .map(|both| both.map(|(truth, predicted)| predicted.unwrap_or_else(|| service::times(truth))))
        .collect();
    for_each_on(section, devices, |device, on| {
        if let (Some(truth), Some(slot)) = (truth(device), believed.get_mut(device.index()))
            && let Some(predicted) = service::predicted(on, truth)
        {
            *slot = Some(predicted);
        }
    });
    let placed = allowed.iter().filter_map(|&device| {
        let times = (*believed.get(device.index())?)?;
        let speed = *devices.speeds.get(device.index())?;
        Some(Placement { device, predicted: service::at_speed(times, speed) })
    });
    placed.collect()
}
