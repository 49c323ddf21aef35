use super::*;

#[test]
fn random_worlds_break_no_rule() {
    let search = Search { seed: 1, ground: None };
    let findings = search.run(&Control::new(), &Pulses::new(2), |so_far| so_far.worlds < 60).unwrap();
    let found: Vec<String> =
        findings.finds.iter().map(|find| format!("seed {}: {}: {}", find.seed, find.rule, find.message)).collect();
    assert_eq!(found, [""; 0]);
    let tally = &findings.tally;
    let counts = [tally.completed, tally.otherwise, tally.guarded, tally.loads, tally.stops, tally.evictions];
    assert!(counts.iter().all(|&count| count > 0), "{tally:?}");
}

#[test]
fn a_step_a_minute_is_no_job_without_an_end() {
    // Two models that fit and make memory critical together: 60 steps, of which relief lets one be done a minute.
    let text = r#"
        [run]
        horizon = "20s"
        drain = true
        [[devices]]
        name = "mac"
        kind = "unified"
        memory = "8192MiB"
        headroom = "0MiB"
        [models.chat]
        service = { kind = "slots", decode_beta = "1556us" }
        footprint = "2452MiB"
        pinned = true
        preload = true
        [models.embedder]
        service = { kind = "batch", beta = "558us" }
        footprint = "5403MiB"
        [[workload]]
        name = "index"
        class = "background"
        model = "embedder"
        kind = "embedding"
        inputs = 60
        arrivals = { process = "at", times = ["10s"] }
    "#;
    let (tally, found) = audited(text);
    assert_eq!((found, tally.completed, tally.loads), (None, 1, 61));
}

#[test]
fn a_load_that_two_faults_slow_down_takes_its_time() {
    // 8.3 s, made 20 times as long twice, are 55 minutes.
    let (tally, found) = audited(
        r#"
        [run]
        horizon = "1s"
        drain = true
        [[devices]]
        name = "gpu"
        memory = "8GiB"
        load = { fixed = "1371ms", bandwidth = "1GiB/s" }
        [models.m]
        service = { kind = "batch", beta = "885us" }
        footprint = "7129MiB"
        [[workload]]
        name = "w"
        model = "m"
        arrivals = { process = "at", times = ["0s"] }
        [[faults]]
        kind = "slow_load"
        factor = 20.0
        [[faults]]
        kind = "slow_load"
        factor = 20.0
        "#,
    );
    assert_eq!((found, tally.completed), (None, 1));
}

fn audited(text: &str) -> (Tally, Option<(String, String)>) {
    let origin = std::path::Path::new("world.toml");
    let file = ScenarioFile::parse(text, origin).unwrap();
    as_it_stands(&file, origin, &[], &Pulses::new(1), &Control::new()).unwrap()
}

#[test]
fn a_search_is_the_same_search_every_time() {
    let search =
        || Search { seed: 7, ground: None }.run(&Control::new(), &Pulses::new(2), |so_far| so_far.worlds < 8).unwrap();
    let (one, other) = (search(), search());
    assert!(one.worlds >= 8 && one.tally.steps > 0);
    if one.worlds == other.worlds {
        assert_eq!(one.tally, other.tally);
    }
}

#[test]
fn a_world_in_which_a_thread_stands_still_is_written_down_with_its_requests_so_far() {
    let pulses = Pulses::new(2);
    assert_eq!((pulses.beats(), pulses.findings_with_stuck(0).is_none()), (vec![None, None], true));
    let at = windtunnel_core::Time::from_nanos(1_500);
    let document = serde_json::json!({
        "run": { "horizon": "10s" },
        "models": { "m": { "service": { "kind": "batch", "beta": "1ms", "noise": "exponential" } } },
        "workload": [{ "name": "w", "model": "m", "arrivals": { "process": "poisson", "rate": 5 } }],
    });
    let pulse = pulses.iter().nth(1).unwrap();
    pulse.begin(&document, 6);
    pulse.beat(at);
    pulse.end();
    let noted = pulse.begin(&document, 7);
    (0..3).for_each(|_| pulse.beat(at));
    let slept = windtunnel_core::Span::ZERO;
    let request = crate::run::Arrival { workload: 0, at, slept, inputs: 1, prompt_tokens: 0, output_tokens: 9 };
    noted.lock().unwrap().push(request);
    assert_eq!(pulses.beats(), [None, Some(4)]);
    let findings = pulses.findings_with_stuck(1).unwrap();
    let stuck = &findings.finds[0];
    assert_eq!((stuck.seed, stuck.at, stuck.after.steps, stuck.frozen), (7, at, 4, Frozen::ButNoise));
    assert!(stuck.message.starts_with("step 4 of"), "{}", stuck.message);
    assert!(stuck.scenario.contains("1500ns") && stuck.scenario.contains("exponential"), "{}", stuck.scenario);
    assert!(!stuck.scenario.contains("poisson"), "{}", stuck.scenario);
}
