//! Which models are in memory: loads, evictions, turns, and the memory numbers that lie.

use windtunnel_core::*;

use crate::{
    machine::{Machine, Truth, truth},
    world::*,
};

fn models(count: u32) -> Vec<Model> {
    (0..count).map(|number| model(&format!("m{number}"), slots(2), (200, 0), &[0])).collect()
}

fn chat(model: u32) -> Submission {
    request(model, Class::Interactive)
}

/// One card of 16 GiB.
fn machine(truths: &[Truth]) -> Machine {
    Machine::new(&[16_384], models(truths.len() as u32), truths.to_vec(), |_| {})
}

#[test]
fn a_model_is_loaded_when_somebody_asks_for_it() {
    let mut machine = machine(&[truth(8000, 2000, 200)]);
    machine.submit_at(0, chat(0));
    machine.run_until(1999);
    assert!(machine.ready().is_empty());
    machine.run_until(2199);
    assert_eq!((machine.ready(), machine.clients[0].answers), (vec![0], 0));
    machine.run_until(2200);
    assert_eq!(machine.clients[0].answers, 1);
}

#[test]
fn two_chats_whose_models_do_not_fit_take_turns() {
    let truths = [truth(10_000, 2000, 200), truth(10_000, 2000, 200)];
    let mut turns = machine(&truths);
    let mut none = Machine::new(&[16_384], models(2), truths.to_vec(), |all| all.policy.interactive_turn = Span::ZERO);
    for machine in [&mut turns, &mut none] {
        machine.client(chat(0), 0, 0);
        machine.client(chat(1), 0, 0);
        machine.run_until(30_000);
    }
    let answers = |machine: &Machine| machine.clients.iter().map(|client| client.answers).sum::<u64>();
    assert!(
        answers(&turns) >= 60 && turns.loads.len() <= 10,
        "{} answers, {} loads",
        answers(&turns),
        turns.loads.len()
    );
    let (few, loads) = (answers(&none), none.loads.len() as u64);
    assert!(few <= 16 && loads >= few, "one load an answer without turns: {few} answers, {loads} loads");
}

#[test]
fn memory_that_is_already_coming_needs_no_further_victim() {
    // 6 and 6 and 3 GiB are loaded; 7 GiB are wanted, for which one victim is enough.
    let mut machine =
        machine(&[truth(6000, 100, 50), truth(6000, 100, 50), truth(3000, 100, 50), truth(7000, 100, 50)]);
    machine.stop_ms = 3000;
    for model in 0..3 {
        machine.submit_at(u64::from(model) * 1000, request(model, Class::Background));
    }
    machine.submit_at(40_000, chat(3));
    machine.submit_at(40_500, chat(3));
    machine.run_until(42_000);
    assert_eq!(machine.evictions(), 1);
    machine.run_until(60_000);
    assert_eq!((machine.evictions(), machine.clients[3].answers, machine.clients[4].answers), (1, 1, 1));
}

#[test]
fn background_does_not_evict_what_somebody_talks_to_and_says_why_it_waits() {
    let mut machine = machine(&[truth(10_000, 1000, 200), truth(10_000, 1000, 200)]);
    machine.client(chat(0), 0, 1000);
    machine.submit_at(5000, request(1, Class::Background));
    machine.run_until(60_000);
    assert_eq!((machine.loads.len(), machine.clients[1].answers), (1, 0));
    assert!(matches!(machine.world.why_waits(4), Some(WaitReason::InteractiveMode { .. } | WaitReason::NoRoom { .. })));
    let view = machine.world.scheduler.view();
    assert!(matches!(view.queues[0].reason, WaitReason::NoRoom { until: Some(_), .. }), "{:?}", view.queues);
}

#[test]
fn background_loads_through_the_guard_beside_a_chat() {
    let mut machine = machine(&[truth(10_000, 1000, 500), truth(4000, 1000, 200)]);
    machine.client(chat(0), 0, 100);
    machine.submit_at(5000, request(1, Class::Background));
    machine.run_until(20_000);
    let load = machine.loads.iter().find(|(_, model)| model.0 == 1).map(|(at, _)| *at);
    assert_eq!(load, Some(8000 * MS), "after background_max_starvation");
    assert_eq!(machine.clients[1].answers, 1);
}

#[test]
fn exit_is_not_release() {
    let mut machine = machine(&[truth(10_000, 1000, 200), truth(10_000, 1000, 200)]);
    (machine.stop_ms, machine.release_ms) = (500, 2000);
    machine.submit_at(0, request(0, Class::Background));
    machine.submit_at(40_000, chat(1));
    machine.run_until(60_000);
    let at = machine.loads[1].0 / MS;
    assert!((42_500..=42_550).contains(&at), "loaded at {at} ms, once the memory was seen to be free");
    assert_eq!(machine.clients[1].answers, 1);
}

#[test]
fn memory_that_is_never_seen_to_be_free_is_believed_to_be_after_a_while() {
    let mut machine = machine(&[truth(10_000, 1000, 200), truth(6000, 1000, 200), truth(9000, 1000, 200)]);
    (machine.stop_ms, machine.release_ms) = (500, 1_000_000);
    machine.submit_at(0, request(0, Class::Background));
    machine.submit_at(40_000, chat(2));
    machine.run_until(55_000);
    let overdue = machine.world.notes().any(|note| matches!(note, Note::ReleaseOverdue { .. }));
    assert!(overdue, "it is said");
}

#[test]
fn a_model_that_can_never_fit_is_refused_at_once() {
    let mut machine = machine(&[truth(17_000, 1000, 200)]);
    machine.submit_at(0, chat(0));
    machine.run_until(1);
    let refused =
        Outcome::Refused(Refusal::CannotFit { needs: Bytes::from_mib(17_000), room: Bytes::from_mib(16_384) });
    assert_eq!(machine.world.finished.get(&0), Some(&refused));
}

#[test]
fn other_programs_memory_is_waited_for_and_named() {
    let mut machine = machine(&[truth(11_000, 1000, 200)]);
    machine.foreign_at(0, 0, 6000);
    machine.submit_at(1000, chat(0));
    machine.run_until(30_000);
    assert_eq!(
        machine.world.why_waits(0),
        Some(WaitReason::ForeignMemory { device: DeviceId(0), used: Bytes::from_mib(6000) })
    );
    machine.foreign_at(40_000, 0, 0);
    machine.run_until(42_000);
    assert_eq!(machine.clients[0].answers, 1);
}

#[test]
fn a_process_missing_from_the_list_is_not_taken_for_another_program() {
    // 10 GiB serve; for one reading the list is empty although they are in use. Nothing goes for that.
    let mut machine = machine(&[truth(10_000, 1000, 200), truth(4000, 1000, 200)]);
    machine.submit_at(0, request(0, Class::Background));
    machine.run_until(2000);
    machine.hide(0, 0);
    let reading = machine.reading(DeviceId(0));
    machine.input(Input::Snapshot(reading));
    machine.submit_at(3000, chat(1));
    machine.run_until(6000);
    assert_eq!((machine.evictions(), machine.clients[1].answers), (0, 1));
}

#[test]
fn phantom_memory_around_an_exit_evicts_nobody() {
    // 6 GiB leave; the total still has them while the list does not. A healthy model of 5 GiB stays.
    let truths = [truth(6000, 1000, 200), truth(5000, 1000, 200), truth(8000, 1000, 200)];
    let mut machine = machine(&truths);
    machine.release_ms = 400;
    machine.submit_at(0, request(0, Class::Background));
    machine.client(chat(1), 10, 500);
    machine.submit_at(40_000, chat(2));
    machine.run_until(60_000);
    assert_eq!(machine.evictions(), 1, "only the cold one");
    assert_eq!(machine.clients[2].answers, 1);
    assert_eq!(machine.loads.iter().filter(|(_, model)| model.0 == 1).count(), 1);
}

#[test]
fn a_game_that_starts_during_a_long_load_is_seen() {
    let mut machine = machine(&[truth(6000, 60_000, 200), truth(4000, 1000, 200)]);
    machine.submit_at(0, chat(0));
    machine.foreign_at(10_000, 0, 8000);
    machine.run_until(11_000);
    machine.submit_at(12_000, chat(1));
    machine.run_until(20_000);
    let foreign = machine.world.notes().filter_map(|note| match note {
        Note::Foreign { used, .. } => Some(used),
        _other => None,
    });
    assert_eq!(foreign.last(), Some(Bytes::from_mib(2000)), "used beyond all that is booked");
}

#[test]
fn a_load_that_runs_out_of_memory_is_tried_again_with_more_room() {
    // It is believed to need 4 GiB and needs 8: beside a cold one of 10 there is no room for that.
    let mut machine = machine(&[truth(10_000, 1000, 200), truth(4000, 1000, 200)]);
    machine.submit_at(0, request(0, Class::Background));
    machine.run_until(5000);
    machine.truth[1].mib = 8000;
    machine.submit_at(40_000, chat(1));
    machine.run_until(60_000);
    assert_eq!((machine.loads.len(), machine.evictions()), (3, 1), "one failed, one eviction, one retry");
    assert_eq!(machine.clients[1].answers, 1);
}

#[test]
fn loads_that_fail_back_off_until_the_breaker_opens_and_half_opens() {
    let mut machine = machine(&[Truth { failing: 3, ..truth(4000, 500, 200) }]);
    machine.submit_at(0, chat(0));
    machine.run_until(1000);
    assert_eq!(machine.world.why_waits(0), Some(WaitReason::BackOff { until: Time::from_nanos(1500 * MS) }));
    machine.run_until(10_000);
    let starts: Vec<u64> = machine.loads.iter().map(|(at, _)| at / MS).collect();
    assert_eq!(starts, [0, 1500, 4000], "after one and after two seconds");
    assert_eq!(machine.world.finished.get(&0), Some(&Outcome::Failed(Failure::Broken)));
    machine.submit_at(20_000, chat(0));
    machine.run_until(21_000);
    let retry_after = Span::from_millis(44_500);
    assert_eq!(machine.world.finished.get(&1), Some(&Outcome::Refused(Refusal::Broken { retry_after })));
    machine.submit_at(70_000, chat(0));
    machine.run_until(72_000);
    assert_eq!(machine.clients[2].answers, 1, "half open, one try, and it works");
}

#[test]
fn interactive_work_loads_first() {
    let mut machine = machine(&[truth(9000, 1000, 200), truth(9000, 1000, 200), truth(3000, 1000, 200)]);
    machine.stop_ms = 5000;
    machine.submit_at(0, request(0, Class::Background));
    machine.submit_at(40_000, chat(1));
    machine.submit_at(41_000, request(2, Class::Background));
    machine.run_until(44_000);
    assert_eq!(machine.loads.len(), 1);
    let first = Some(WaitReason::InteractiveLoadFirst { device: DeviceId(0) });
    assert_eq!(machine.world.why_waits(2), first);
    machine.run_until(60_000);
    let order: Vec<u32> = machine.loads.iter().map(|(_, model)| model.0).collect();
    assert_eq!(order, [0, 1, 2]);
}

#[test]
fn a_silent_monitor_stops_new_loads_and_nothing_else() {
    let mut machine = machine(&[truth(4000, 1000, 200), truth(4000, 1000, 200)]);
    machine.client(chat(0), 0, 1000);
    machine.run_until(5000);
    machine.silent = true;
    machine.submit_at(30_000, chat(1));
    machine.run_until(40_000);
    assert_eq!(machine.clients[1].answers, 0);
    assert!(machine.world.notes().any(|note| matches!(note, Note::Monitor { health: MonitorHealth::Stale, .. })));
    assert!(machine.clients[0].answers > 25, "what is there goes on serving");
    machine.silent = false;
    machine.run_until(45_000);
    assert_eq!(machine.clients[1].answers, 1);
}

#[test]
fn a_load_for_lower_work_is_broken_off_for_a_chat_as_a_last_resort() {
    let mut machine = machine(&[truth(10_000, 20_000, 200), truth(10_000, 1000, 200)]);
    machine.submit_at(0, request(0, Class::Batch));
    machine.submit_at(5000, chat(1));
    machine.run_until(10_000);
    assert_eq!(machine.clients[1].answers, 1);
}

#[test]
fn critical_pressure_unloads_cold_models_one_by_one_and_does_not_load_them_back() {
    let mut machine = Machine::new(&[16_384], models(3), vec![truth(3000, 500, 100); 3], |all| {
        all.devices[0].kind = DeviceKind::Unified;
    });
    machine.client(chat(0), 0, 500);
    machine.client(request(1, Class::Background), 0, 20_000);
    machine.client(request(2, Class::Batch), 0, 20_000);
    machine.run_until(30_000);
    assert_eq!(machine.ready().len(), 3);
    let level = |level| Input::Pressure { device: DeviceId(0), level };
    machine.fact_at(30_001, level(PressureLevel::Critical));
    machine.run_until(34_000);
    assert_eq!(machine.ready().len(), 2);
    machine.run_until(36_000);
    assert_eq!(machine.ready(), [0], "the hot one stays");
    machine.fact_at(36_001, level(PressureLevel::Normal));
    let loads = machine.loads.len();
    machine.run_until(90_000);
    assert_eq!(machine.loads.len(), loads, "for a minute nothing is loaded for lower classes");
    machine.run_until(120_000);
    assert!(machine.loads.len() > loads);
}

#[test]
fn an_unused_model_is_unloaded_after_its_idle_ttl() {
    let mut unused = models(1);
    unused[0].idle_ttl = Some(Span::from_secs(60));
    let mut machine = Machine::new(&[16_384], unused, vec![truth(4000, 1000, 200)], |_| {});
    machine.submit_at(0, chat(0));
    machine.run_until(61_199);
    assert_eq!(machine.ready(), [0]);
    machine.run_until(61_200);
    assert!(machine.ready().is_empty());
}

#[test]
fn a_family_serves_the_screenshot_on_what_fits_beside_the_chat() {
    let mut three = models(3);
    for model in &mut three {
        model.capabilities = vec![Capability::Chat, Capability::Vision];
    }
    let mut machine = Machine::new(
        &[16_384],
        three,
        vec![truth(8486, 2000, 200), truth(4000, 1000, 200), truth(2244, 1000, 200)],
        |all| {
            let variant = |model, quality| Variant { model: ModelId(model), quality };
            all.families = vec![Family {
                name: "gemma".into(),
                aliases: vec![],
                variants: vec![variant(0, Quality::Preferred), variant(1, Quality::Balanced)],
            }];
        },
    );
    machine.client(chat(0), 0, 300);
    machine.client(chat(2), 0, 300);
    let mut screenshot = request(0, Class::Background);
    screenshot.wanted = Wanted::Family(FamilyId(0));
    screenshot.needs = Needs::NONE.with(Capability::Vision);
    machine.submit_at(10_000, screenshot);
    machine.run_until(20_000);
    assert_eq!((machine.clients[2].answers, machine.evictions()), (1, 0));
    assert!(machine.ready().contains(&1));
}

#[test]
fn interactive_work_of_a_family_falls_back_when_the_best_cannot_fit() {
    let mut machine =
        Machine::new(&[16_384], models(2), vec![truth(12_000, 1000, 200), truth(4000, 1000, 200)], |all| {
            let variant = |model, quality| Variant { model: ModelId(model), quality };
            all.families = vec![Family {
                name: "f".into(),
                aliases: vec![],
                variants: vec![variant(0, Quality::Preferred), variant(1, Quality::Compact)],
            }];
        });
    machine.foreign_at(0, 0, 8000);
    let mut asked = chat(0);
    asked.wanted = Wanted::Family(FamilyId(0));
    machine.submit_at(1000, asked);
    machine.run_until(3000);
    assert_eq!((machine.ready(), machine.clients[0].answers), (vec![1], 1));
    let choices: Vec<Choice> = machine
        .world
        .notes()
        .filter_map(|note| match note {
            Note::Variant { choice, .. } => Some(choice),
            _other => None,
        })
        .collect();
    assert_eq!(choices, [Choice::BetterTooLarge]);
    machine.foreign_at(4000, 0, 0);
    machine.submit_at(30_000, asked);
    machine.run_until(33_000);
    assert!(machine.ready().contains(&0), "once it fits, the best is had again");
}

#[test]
fn a_variant_that_is_taken_because_it_is_loaded_says_so_unless_better_ones_need_room() {
    for (memory, because) in [(16_384, Choice::BetterAbsent), (8_000, Choice::BetterNeedsEviction)] {
        let two = vec![truth(5000, 1000, 200), truth(4000, 1000, 200)];
        let mut machine = Machine::new(&[memory], models(2), two, |all| {
            let variant = |model, quality| Variant { model: ModelId(model), quality };
            all.families = vec![Family {
                name: "f".into(),
                aliases: vec![],
                variants: vec![variant(0, Quality::Preferred), variant(1, Quality::Compact)],
            }];
        });
        machine.submit_at(0, request(1, Class::Background));
        let mut any = request(1, Class::Background);
        any.wanted = Wanted::Family(FamilyId(0));
        machine.submit_at(5000, any);
        machine.run_until(10_000);
        let choice = machine.world.notes().find_map(|note| match note {
            Note::Variant { choice, .. } => Some(choice),
            _other => None,
        });
        assert_eq!((choice, machine.ready()), (Some(because), vec![1]), "{memory} MiB");
    }
}

#[test]
fn a_second_card_takes_what_the_first_has_no_room_for() {
    let mut two = models(2);
    for model in &mut two {
        model.placements = placements(&[0, 1], model.placements[0].predicted);
    }
    let mut machine =
        Machine::new(&[10_000, 10_000], two, vec![truth(8000, 1000, 200), truth(8000, 1000, 200)], |_| {});
    machine.client(chat(0), 0, 100);
    machine.client(chat(1), 0, 100);
    machine.run_until(10_000);
    assert_eq!((machine.loads.len(), machine.evictions()), (2, 0));
}

#[test]
fn growth_after_the_measurement_is_booked_at_once() {
    let mut machine = machine(&[truth(6000, 1000, 200), truth(6000, 1000, 200)]);
    machine.submit_at(0, request(0, Class::Background));
    machine.run_until(2000);
    machine.grow(0, 0, 11_000);
    machine.submit_at(40_000, chat(1));
    machine.run_until(45_000);
    assert_eq!((machine.evictions(), machine.clients[1].answers), (1, 1));
}

#[test]
fn interactive_work_of_a_family_does_not_wait_for_a_variant_that_can_never_fit() {
    let mut machine =
        Machine::new(&[16_384], models(2), vec![truth(20_000, 1000, 200), truth(14_000, 1000, 200)], |all| {
            let variant = |model, quality| Variant { model: ModelId(model), quality };
            all.families = vec![Family {
                name: "f".into(),
                aliases: vec![],
                variants: vec![variant(0, Quality::Preferred), variant(1, Quality::Compact)],
            }];
        });
    let mut asked = chat(0);
    asked.wanted = Wanted::Family(FamilyId(0));
    machine.submit_at(1000, asked);
    machine.submit_at(6000, asked);
    machine.run_until(60_000);
    let answers: Vec<u64> = machine.clients.iter().map(|client| client.answers).collect();
    assert_eq!(answers, [1, 1]);
}

#[test]
fn a_model_that_is_started_in_another_way_is_estimated_anew() {
    let mut machine = machine(&[truth(4000, 100, 50)]);
    let configuration = machine.world.scheduler.configuration().clone();
    let (model, device) = (ModelId(0), DeviceId(0));
    let estimates =
        vec![Estimate { model, device, footprint: Bytes::from_mib(6000), load_time: Span::from_millis(100) }];
    let change = Reconfiguration { configuration, removed: Vec::new(), estimates };
    machine.input(Input::Reconfigured(Box::new(change)));
    machine.submit_at(1000, chat(0));
    machine.run_until(1050);
    let reserved = machine.world.log.iter().find_map(|effect| match effect {
        Effect::Load { reservation, .. } => Some(*reservation),
        _ => None,
    });
    assert_eq!(reserved, Some(Bytes::from_mib(6000)), "4000 MiB were measured before");
}
