//! Random cards with less memory than their models need: whatever happens every invariant holds, and when the trouble is
//! over every job ends.

use windtunnel_core::*;

use crate::{
    machine::{MIB, Machine, Truth},
    random::{Dice, seeds},
    world::*,
};

fn truths(dice: &mut Dice, count: usize) -> Vec<Truth> {
    let one = |dice: &mut Dice| Truth {
        mib: 500 + 500 * dice.roll(18),
        load_ms: 100 + 100 * dice.roll(40),
        service_ms: 20 + 20 * dice.roll(100),
        failing: if dice.one_in(8) { dice.roll(4) as u32 } else { 0 },
    };
    (0..count).map(|_| one(dice)).collect()
}

fn policy(dice: &mut Dice, policy: &mut Policy) {
    policy.eviction = dice.pick(&[Eviction::Cost, Eviction::Lru]);
    policy.min_residency = Span::from_secs(dice.pick(&[0, 5, 30]));
    policy.interactive_turn = Span::from_secs(dice.pick(&[0, 2]));
    policy.interactive_idle = Span::from_millis(dice.pick(&[0, 500, 2000]));
    policy.background_max_starvation = Span::from_secs(dice.pick(&[1, 3]));
    policy.batch_max_starvation = Span::from_secs(dice.pick(&[0, 20, 120]));
    policy.hot_ttl = Span::from_secs(dice.pick(&[1, 30, 300]));
    policy.guard_parallel = 1 + dice.roll(2) as u32;
}

fn family(dice: &mut Dice, count: usize) -> Vec<Family> {
    if count < 2 || dice.one_in(2) {
        return Vec::new();
    }
    let variant = |(model, quality)| Variant { model: ModelId(model), quality };
    let variants = [(0, Quality::Preferred), (1, Quality::Balanced)].map(variant).to_vec();
    vec![Family { name: "family".into(), aliases: Vec::new(), variants }]
}

fn machine(dice: &mut Dice) -> Machine {
    let cards: Vec<u64> = (0..1 + dice.roll(2)).map(|_| dice.pick(&[8_192, 16_384])).collect();
    let everywhere: Vec<u32> = (0..cards.len() as u32).collect();
    let count = 2 + dice.roll(4) as usize;
    let truths = truths(dice, count);
    let model = |(number, truth): (usize, &Truth)| {
        let capacity = slots(1 + (number as u32) % 3);
        let mut model = model(&format!("m{number}"), capacity, (truth.service_ms, 0), &everywhere);
        model.pinned = number == 4;
        model.preload = number == 4;
        model.idle_ttl = (number == 3).then(|| Span::from_secs(20));
        model
    };
    let models = truths.iter().enumerate().map(model).collect();
    let families = family(dice, count);
    let mut settings = Policy::default();
    policy(dice, &mut settings);
    let loads = 1 + dice.roll(2) as u32;
    let mut machine = Machine::new(&cards, models, truths, |configuration| {
        configuration.families = families.clone();
        configuration.policy = settings;
        configuration.devices.iter_mut().for_each(|device| device.parallel_loads = loads);
    });
    machine.stop_ms = dice.pick(&[0, 200, 3000]);
    machine.release_ms = dice.pick(&[0, 100, 4000, 15_000]);
    for _ in 0..2 + dice.roll(6) {
        let mut asked = request(dice.roll(count as u64) as u32, dice.pick(&Class::ALL));
        if !families.is_empty() && dice.one_in(3) {
            asked.wanted = Wanted::Family(FamilyId(0));
        }
        let think = dice.pick(&[0, 100, 1000, 20_000]);
        machine.client(asked, dice.roll(20) * 500, think);
    }
    machine
}

fn trouble(dice: &mut Dice, machine: &mut Machine, until_ms: u64) {
    for _ in 0..dice.roll(6) {
        let (at, device) = (dice.roll(until_ms), dice.roll(machine.cards() as u64) as u32);
        match dice.roll(5) {
            0 => {
                machine.foreign_at(at, device, 1000 * dice.roll(9));
                machine.foreign_at(at + dice.roll(30_000), device, 0);
            }
            1 => {
                let level = dice.pick(&[PressureLevel::Warn, PressureLevel::Critical]);
                machine.fact_at(at, Input::Pressure { device: DeviceId(device), level });
                let level = PressureLevel::Normal;
                machine.fact_at(at + 15_000, Input::Pressure { device: DeviceId(device), level });
            }
            2 => machine.crash_at(at, dice.roll(8) as u32),
            3 => machine.hide(device, dice.roll(6) as u32),
            _ => {
                let instance = InstanceId(dice.roll(6) as u32);
                machine.fact_at(at, Input::OutOfMemory { device: DeviceId(device), instance });
            }
        }
    }
}

fn crowd(seed: u64) {
    let mut dice = Dice::of(seed);
    let mut machine = machine(&mut dice);
    let end = 60_000;
    if dice.one_in(2) {
        trouble(&mut dice, &mut machine, end);
    }
    machine.run_until(end);
    machine.clients.iter_mut().for_each(|client| client.leaves = true);
    machine.run_until(end + 40 * 60_000);
    assert_eq!(
        machine.world.scheduler.jobs_in_flight(),
        0,
        "{:#?}\n{}",
        machine.world.scheduler.view(),
        machine.last()
    );
    assert_eq!(machine.world.finished.len() as u64, machine.world.next_job, "every job ends exactly once");
    assert!(machine.world.grants.is_empty(), "every grant ends");
    let most = machine.peak / MIB;
    assert!(most <= 16_384, "{most} MiB of processes on a card: a load was begun that did not fit");
}

#[test]
fn crowded_cards_keep_every_invariant() {
    for seed in seeds(300) {
        if let Err(panic) = std::panic::catch_unwind(|| crowd(seed)) {
            eprintln!("run it again with WINDTUNNEL_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
