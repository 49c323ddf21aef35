//! Who may be evicted for whom, and which of them go.

use alloc::vec::Vec;

use crate::{
    Bytes, Class, DeviceId, Effect, Effects, Eviction, InstanceId, Note, Scheduler, Span, StopCause, Tier, Time,
    effect::AbortCause, instance::Slot, residency::plan::Wanting,
};

/// Up to so many candidates every set of them is compared.
const FEW: usize = 12;

/// How dear a victim is; the order of declaration is that in which they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grade {
    Cold,
    /// Still loading, for lower classes only.
    Loading,
    Hot,
}

/// Whether an instance may be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    May(Grade),
    /// Not before then.
    Later(Time),
    Never,
}

/// An instance that may be evicted.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: InstanceId,
    grade: Grade,
    busy: bool,
    cost: Span,
    used: Time,
    bytes: Bytes,
}

/// How a set of victims compares with another: less is better.
pub(crate) type Price = (u32, u32, u32, Span, Time, u64);

/// A set of victims.
#[derive(Clone, Debug)]
pub(crate) struct Victims {
    pub price: Price,
    pub members: Vec<(InstanceId, Grade)>,
}

/// What there is to evict on a device.
#[derive(Clone, Debug)]
pub(crate) enum Relief {
    /// These free enough.
    Enough(Victims),
    /// All that may go free only so much; from then on more may go.
    NotYet(Bytes, Option<Time>),
}

impl Scheduler {
    /// The best set of victims on a device that frees `missing` bytes.
    pub(crate) fn victims(&self, id: DeviceId, by: &Wanting, missing: u64) -> Relief {
        let mut allowed = Vec::new();
        let mut later: Option<Time> = None;
        let mut most = Bytes::ZERO;
        for &one in &self.devices[id.index()].instances {
            match self.verdict(one, by) {
                Verdict::May(grade) => {
                    most = most.plus(self.instances[one].booked);
                    allowed.push((one, grade));
                }
                Verdict::Later(at) => later = Some(later.map_or(at, |known| known.min(at))),
                Verdict::Never => {}
            }
        }
        let not_yet = Relief::NotYet(most, later.filter(|&at| at < Time::MAX));
        if most.get() < missing {
            return not_yet;
        }
        let candidates: Vec<Candidate> =
            allowed.into_iter().filter_map(|(one, grade)| self.candidate(one, grade)).collect();
        let chosen = match self.policy().eviction {
            Eviction::Cost if candidates.len() <= FEW => cheapest(&candidates, missing),
            Eviction::Cost => greedy(candidates, missing, |one| {
                let per_byte = u128::from(one.cost.as_nanos()) * (1 << 30) / u128::from(one.bytes.get());
                (one.grade, u32::from(one.busy), per_byte, one.used)
            }),
            Eviction::Lru => greedy(candidates, missing, |one| (one.grade, u32::from(one.busy), 0, one.used)),
        };
        chosen.map_or(not_yet, Relief::Enough)
    }

    fn candidate(&self, id: InstanceId, grade: Grade) -> Option<Candidate> {
        let instance = &self.instances[id];
        let reload = self.load_time(instance.model, instance.device);
        let cost = Scheduler::cost(reload, self.demand(instance.model));
        let busy = !instance.slot.running().is_empty();
        let (bytes, used) = (instance.booked, instance.last_used);
        (bytes > Bytes::ZERO).then_some(Candidate { id, grade, busy, cost, used, bytes })
    }

    fn verdict(&self, id: InstanceId, by: &Wanting) -> Verdict {
        let instance = &self.instances[id];
        if by.models.contains(&instance.model) || self.is_pinned(instance.model) {
            return Verdict::Never;
        }
        match &instance.slot {
            Slot::Loading { then: None, .. } => {
                let wanted = self.models[instance.model.index()].awaited[Class::Interactive.index()];
                let lower = instance.loaded_for > Class::Interactive && !wanted;
                if by.class == Class::Interactive && lower { Verdict::May(Grade::Loading) } else { Verdict::Never }
            }
            Slot::Ready { .. } => match by.class {
                Class::Interactive => self.for_interactive(id),
                Class::Background => self.for_background(id),
                Class::Batch => self.for_batch(id, by),
            },
            Slot::Loading { .. } | Slot::Draining { .. } | Slot::Stopping { .. } => Verdict::Never,
        }
    }

    /// Whether work of a class waits for a model: what was loaded for somebody is not taken away before he has used it.
    fn is_awaited(&self, model: crate::ModelId, class: Class) -> bool {
        self.models[model.index()].awaited[class.index()]
    }

    fn for_interactive(&self, id: InstanceId) -> Verdict {
        let awaited = self.head(&self.instances[id], Class::Interactive).is_some();
        match (self.tier(id), self.turn_until(id)) {
            (Tier::Cold, Some(end)) if awaited => Verdict::Later(end),
            (Tier::Cold, _) => Verdict::May(Grade::Cold),
            (Tier::Hot, None) => Verdict::May(Grade::Hot),
            (Tier::Hot, Some(end)) => Verdict::Later(end),
            (Tier::Pinned, _) => Verdict::Never,
        }
    }

    fn for_background(&self, id: InstanceId) -> Verdict {
        let instance = &self.instances[id];
        if self.is_awaited(instance.model, Class::Interactive) {
            return Verdict::Never;
        }
        if let Some(verdict) = self.unless_cold(id) {
            return verdict;
        }
        let turn = self.devices[instance.device.index()].turn.filter(|turn| turn.model == instance.model);
        let settled = instance.ready_at.after(self.policy().min_residency);
        let stays = if instance.loaded_for == Class::Background { settled } else { Time::ZERO };
        later_or(stays.max(turn.map_or(Time::ZERO, |turn| turn.until)), self.now)
    }

    /// Batch work whose turn is due spares nobody's wait but that of a chat which this very instance is to serve.
    fn for_batch(&self, id: InstanceId, by: &Wanting) -> Verdict {
        let instance = &self.instances[id];
        let overdue_at = self.overdue_at(instance.device, by);
        let overdue = overdue_at <= self.now;
        let chat = if overdue {
            self.head(instance, Class::Interactive).is_some()
        } else {
            self.is_awaited(instance.model, Class::Interactive)
        };
        if chat {
            return Verdict::Never;
        }
        if let Some(verdict) = self.unless_cold(id) {
            return verdict;
        }
        let stay = self.policy().min_residency;
        let settled = if instance.loaded_for == Class::Batch { instance.ready_at.after(stay) } else { Time::ZERO };
        let kept = match instance.last_background {
            _ if overdue => Time::ZERO,
            _ if self.is_awaited(instance.model, Class::Background) => overdue_at,
            _ if instance.slot.running().iter().any(|grant| grant.class == Class::Background) => self.now.after(stay),
            last => last.map_or(Time::ZERO, |last| last.after(stay)),
        };
        later_or(settled.max(kept.min(overdue_at)), self.now)
    }

    /// Lower classes never evict what somebody is talking to.
    fn unless_cold(&self, id: InstanceId) -> Option<Verdict> {
        match self.tier(id) {
            Tier::Cold => None,
            Tier::Hot => Some(Verdict::Later(self.cools_at(id))),
            Tier::Pinned => Some(Verdict::Never),
        }
    }

    pub(crate) fn tier(&self, id: InstanceId) -> Tier {
        let instance = &self.instances[id];
        let runs = || instance.slot.running().iter().any(|grant| grant.class == Class::Interactive);
        if self.is_pinned(instance.model) {
            Tier::Pinned
        } else if self.hot(instance.model) || runs() {
            Tier::Hot
        } else {
            Tier::Cold
        }
    }

    /// When nobody will have talked to it for `hot_ttl`; not a matter of time while somebody does.
    fn cools_at(&self, id: InstanceId) -> Time {
        let last = self.models[self.instances[id].model.index()].last_interactive;
        let cools = last.map_or(Time::MAX, |last| last.after(self.policy().hot_ttl));
        if cools > self.now { cools } else { Time::MAX }
    }

    /// Lets victims go for a model.
    pub(crate) fn evict(&mut self, victims: &Victims, missing: Bytes, by: &Wanting, effects: &mut Effects) {
        let Some(&for_model) = by.models.first() else { return };
        let ids: Vec<InstanceId> = victims.members.iter().map(|(id, _)| *id).collect();
        self.audit_eviction(&ids, by.class, missing);
        let devices = ids.iter().map(|&id| self.instances[id].device);
        if let Some(device) = devices.min().filter(|&device| self.is_overdue_on(device, by)) {
            self.promise_turn(device, for_model);
        }
        let books = self.close_books();
        for &(id, grade) in &victims.members {
            let tier = self.tier(id);
            let instance = &self.instances[id];
            let (frees, reload) = (instance.booked, self.load_time(instance.model, instance.device));
            let demand = self.demand(instance.model);
            let cost = Scheduler::cost(reload, demand);
            let (victim, at) = (instance.model, instance.device);
            self.models[victim.index()].evicted_for = Some((at, for_model));
            effects.note(Note::Evict {
                instance: id,
                by: for_model,
                class: by.class,
                tier,
                cost,
                reload,
                demand,
                frees,
            });
            match grade {
                Grade::Cold | Grade::Hot => self.drain(id, StopCause::Evicted, effects),
                Grade::Loading => self.break_load_off(id, effects),
            }
        }
        self.reopen_books(books);
    }

    fn break_load_off(&mut self, id: InstanceId, effects: &mut Effects) {
        if let Slot::Loading { attempt, then, .. } = &mut self.instances[id].slot {
            *then = Some(StopCause::Evicted);
            effects.push(Effect::Abort { attempt: *attempt, instance: id, cause: AbortCause::Evicted });
        }
    }
}

fn later_or(until: Time, now: Time) -> Verdict {
    if until > now { Verdict::Later(until) } else { Verdict::May(Grade::Cold) }
}

fn price<'a>(members: impl Iterator<Item = &'a Candidate> + Clone, missing: u64) -> Price {
    let count = |grade| members.clone().filter(|one| one.grade == grade).count() as u32;
    let busy = members.clone().filter(|one| one.busy).count() as u32;
    let cost = members.clone().fold(Span::ZERO, |sum, one| sum.plus(one.cost));
    let used = members.clone().map(|one| one.used).max().unwrap_or(Time::ZERO);
    let bytes = freed(members.clone());
    (count(Grade::Hot), count(Grade::Loading), busy, cost, used, bytes.saturating_sub(missing))
}

fn freed<'a>(members: impl Iterator<Item = &'a Candidate>) -> u64 {
    members.fold(0_u64, |sum, one| sum.saturating_add(one.bytes.get()))
}

/// Compares every set that frees enough. That takes a fraction of a millisecond at most, and is done only where victims are about
/// to go: while too little may go, only that is looked at again and again.
fn cheapest(candidates: &[Candidate], missing: u64) -> Option<Victims> {
    if freed(candidates.iter()) < missing {
        return None;
    }
    let members = |mask: u32| {
        let chosen = candidates.iter().enumerate().filter(move |(at, _)| mask >> at & 1 == 1);
        chosen.map(|(_, one)| one)
    };
    let enough = (1_u32..1 << candidates.len()).filter(|&mask| freed(members(mask)) >= missing);
    let (price, mask) = enough.map(|mask| (price(members(mask), missing), mask)).min()?;
    Some(Victims { price, members: members(mask).map(|one| (one.id, one.grade)).collect() })
}

/// Takes candidates in an order until they free enough, then leaves out whom it does not need, the dearest first.
fn greedy<K: Ord>(mut candidates: Vec<Candidate>, missing: u64, key: impl Fn(&Candidate) -> K) -> Option<Victims> {
    candidates.sort_by_key(|one| (key(one), one.id));
    let mut members: Vec<Candidate> = Vec::new();
    let mut bytes = 0_u64;
    for one in candidates {
        if bytes >= missing {
            break;
        }
        bytes = bytes.saturating_add(one.bytes.get());
        members.push(one);
    }
    if bytes < missing {
        return None;
    }
    for at in (0..members.len()).rev() {
        let rest = bytes - members[at].bytes.get();
        if rest >= missing {
            bytes = rest;
            members.remove(at);
        }
    }
    let price = price(members.iter(), missing);
    Some(Victims { price, members: members.iter().map(|one| (one.id, one.grade)).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: u32, mib: u64, cost: u64, used: u64) -> Candidate {
        Candidate {
            id: InstanceId(id),
            grade: Grade::Cold,
            busy: false,
            cost: Span::from_secs(cost),
            used: Time::from_nanos(used),
            bytes: Bytes::from_mib(mib),
        }
    }

    fn chosen(victims: Option<Victims>) -> Vec<u32> {
        victims.map_or(Vec::new(), |victims| victims.members.iter().map(|(id, _)| id.0).collect())
    }

    #[test]
    fn the_cheapest_set_frees_enough_and_nobody_in_vain() {
        let candidates = [one(0, 1000, 1, 5), one(1, 1000, 1, 9), one(2, 3000, 3, 1), one(3, 10, 0, 0)];
        let need = |mib: u64| mib << 20;
        assert_eq!(chosen(cheapest(&candidates, need(900))), [0], "of equals the one used longer ago");
        assert_eq!(chosen(cheapest(&candidates, need(1900))), [0, 1], "two cheap ones before one dear one");
        assert_eq!(chosen(cheapest(&candidates, need(3000))), [2]);
        assert_eq!(chosen(cheapest(&candidates, need(5010))), [0, 1, 2, 3]);
        assert!(cheapest(&candidates, need(5011)).is_none());
        let busy = Candidate { busy: true, ..one(4, 5000, 0, 0) };
        let hot = Candidate { grade: Grade::Hot, ..one(5, 5000, 0, 0) };
        assert_eq!(chosen(cheapest(&[one(6, 5000, 99, 99), busy, hot], need(10))), [6], "idle cold ones go first");
        assert_eq!(chosen(cheapest(&[busy, hot], need(10))), [4]);
    }

    #[test]
    fn a_greedy_choice_leaves_out_whom_it_does_not_need() {
        let candidates: Vec<Candidate> =
            (0..20).map(|id| one(id, 100 * (1 + u64::from(id)), 1, u64::from(id))).collect();
        let victims = greedy(candidates, 950 << 20, |one| one.used).unwrap();
        let bytes: u64 = victims.members.iter().map(|(id, _)| 100 * (1 + u64::from(id.0))).sum();
        assert!(bytes >= 950);
        assert!(victims.members.iter().all(|(id, _)| bytes - 100 * (1 + u64::from(id.0)) < 950));
    }
}
