//! `windtunnel whatif`: the requests of a journal under other settings.

use std::path::Path;

use windtunnel_config::{Override, Scenario, ScenarioFile, policy_settings, scenario_of};
use windtunnel_core::Time;
use windtunnel_reports::{
    journal::{Record, Records, in_order, left_out},
    table::whatif_table,
    whatif::{Change, JobEnd, JobEnds, Story, judge},
};
use windtunnel_sim::{
    SimError,
    recorded::{Drawn, Playback, Reader, RecordedRun},
};

use crate::{
    args::{Format, WhatifArgs},
    command::replay::check_decisions,
    failure::Failure,
    output::print,
    reading::Reading,
    session::Session,
};

/// Blocks of time over all runs, at least.
const BLOCKS: usize = 20;

/// Sections that describe what the journal gives.
const RECORDED: [&str; 3] = ["workload.", "run.", "faults."];

pub fn run(args: &WhatifArgs, session: &Session) -> Result<(), Failure> {
    check(session)?;
    let (runs, mut remarks) = read(args, session)?;
    if args.scenario.is_none() {
        remarks.push(
            "service is modelled as the journal predicts it; contention is taken as perfect time slicing, memory is \
             left out; --scenario gives the cards as they are"
                .to_owned(),
        );
    }
    let blocks = BLOCKS.div_ceil(runs.len());
    let mut stories = Vec::new();
    let mut drawn = Drawn::default();
    let progress = session.progress("simulating");
    for (number, run) in runs.into_iter().enumerate() {
        let (base, changed) = scenarios(args, &run, session)?;
        let playback = Playback::new(run, &base, base.run.seed);
        drawn.residuals += playback.drawn().residuals;
        drawn.outputs += playback.drawn().outputs;
        let fresh: Vec<String> =
            playback.remarks().iter().filter(|remark| !remarks.contains(remark)).cloned().collect();
        remarks.extend(fresh);
        let (again, changed) = rayon::join(|| ends(&playback, base, session), || ends(&playback, changed, session));
        let (Some(again), Some(changed)) = (again?, changed?) else { break };
        stories.extend(told(&playback, &again, &changed, number * blocks, blocks));
    }
    drop(progress);
    session.unless_interrupted("nothing was compared")?;
    remarks.extend(drawn_remarks(drawn));
    deliver(&judge(&stories), drawn, &remarks, session)
}

fn check(session: &Session) -> Result<(), Failure> {
    if session.format == Format::Csv {
        return Err(Failure::BadInput("--format: `whatif` prints a table or JSON".to_owned()));
    }
    let given = |set: &&Override| RECORDED.iter().any(|section| set.text().starts_with(section));
    match session.overrides.iter().filter(|set| !set.text().starts_with("run.seed")).find(given) {
        None => Ok(()),
        Some(set) => {
            let text = set.text();
            let message = format!("--set {text}: requests are those of the journal; set devices, models or the policy");
            Err(Failure::BadInput(message))
        }
    }
}

fn read(args: &WhatifArgs, session: &Session) -> Result<(Vec<RecordedRun>, Vec<String>), Failure> {
    let mut reader = Reader::new();
    let mut remarks = Vec::new();
    let mut headers = 0;
    let reading = Reading::of(&args.journals);
    let _progress = session.reading("reading", &reading);
    let journals = in_order(&args.journals);
    remarks.extend(left_out(&journals));
    for path in &journals {
        let mut records = Records::new(reading.open(path)?);
        for record in records.by_ref() {
            let record = record.map_err(|wrong| Failure::BadInput(format!("{}: {wrong}", path.display())))?;
            check_decisions(path, &record)?;
            headers += usize::from(matches!(record, Record::Header(_)));
            reader.record(record);
            reading.record();
        }
        remarks.extend(records.warnings().iter().map(|warning| format!("{}: {warning}", path.display())));
    }
    let runs = reader.finish();
    if runs.is_empty() {
        let message =
            "there is no run from its beginning in what was given; a journal begins with a header and `started`";
        return Err(Failure::BadInput(message.to_owned()));
    }
    if runs.len() < headers {
        remarks.push(format!("{} runs do not begin with their first input and are left out", headers - runs.len()));
    }
    Ok((runs, remarks))
}

/// The scenario as it was recorded, and with the settings.
fn scenarios(args: &WhatifArgs, run: &RecordedRun, session: &Session) -> Result<(Scenario, Scenario), Failure> {
    let configuration = &run.started.configuration;
    let file = match &args.scenario {
        Some(path) => session.load(path)?,
        None => {
            let text = scenario_of(configuration, &run.started.residents);
            ScenarioFile::parse(&text, Path::new("the journal's configuration"))?
        }
    };
    let policy = policy_settings(&configuration.policy).into_iter();
    let mut all = policy.map(|(key, value)| Override::new(&key, &value)).collect::<Result<Vec<_>, _>>()?;
    let base = file.resolve(&all)?;
    all.extend_from_slice(&session.overrides);
    Ok((base, file.resolve(&all)?))
}

/// How every job of the playback ends under `scenario`; `None` if it was interrupted.
fn ends(playback: &Playback, scenario: Scenario, session: &Session) -> Result<Option<JobEnds>, SimError> {
    let setup = playback.under(scenario)?;
    let mut done = setup.recorded(0..1, |_| Ok(JobEnds::new()), |ends| ends, &session.control)?;
    Ok(done.pop())
}

/// The requests of a playback, told three times, in `count` blocks from number `first`.
fn told<'a>(
    playback: &'a Playback,
    again: &'a JobEnds,
    changed: &'a JobEnds,
    first: usize,
    count: usize,
) -> impl Iterator<Item = Story> + 'a {
    let run = playback.run();
    let length = u128::from(run.end.as_nanos()) + 1;
    let block = move |at: Time| first + (u128::from(at.as_nanos()) * count as u128 / length) as usize;
    let default = run.started.configuration.policy.default_class;
    playback.order().iter().enumerate().map(move |(number, &place)| {
        let job = &run.jobs[place];
        Story {
            class: job.submission.class.unwrap_or(default),
            block: block(job.at),
            recorded: job.end.as_ref().map(|(t, finish)| JobEnd::of(*t, finish)),
            again: again.get(number),
            changed: changed.get(number),
        }
    })
}

fn drawn_remarks(drawn: Drawn) -> impl Iterator<Item = String> {
    let residuals =
        (drawn.residuals, "a step never ran to its end: its service is drawn from others of their workload");
    let outputs = (drawn.outputs, "the output is not known: it is drawn from others of their workload");
    [residuals, outputs]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("of {count} requests {what}"))
}

fn deliver(change: &Change, drawn: Drawn, remarks: &[String], session: &Session) -> Result<(), Failure> {
    if session.format == Format::Json {
        let sets: Vec<&str> = session.overrides.iter().map(Override::text).collect();
        let drawn = serde_json::json!({ "residuals": drawn.residuals, "outputs": drawn.outputs });
        let json = serde_json::json!({ "set": sets, "classes": change.classes, "drawn": drawn, "remarks": remarks });
        return print(&format!("{json}\n"));
    }
    remarks.iter().for_each(|remark| session.remark(remark));
    print(&whatif_table(change))
}
