//! Between the simulator's requests and the load generator, which do not know each other.

use windtunnel_config::Scenario;
use windtunnel_core::Time;
use windtunnel_live::load::{self, Call, Gauge, Lag, Length, LoadError, Plan, Recording, Rest, Settings, Watch};
use windtunnel_reports::journal::{Header, JOURNAL, LOAD_GENERATOR, Source};
use windtunnel_sim::{Callers, Control, Setup};

/// Callers whose calls are sent.
struct Calls(Callers);

impl Plan for Calls {
    fn next(&self) -> Option<Time> {
        self.0.next()
    }

    fn take(&mut self) -> Option<Call> {
        let windtunnel_sim::Call { at, patience, workload, client, inputs, prompt_tokens, output_tokens } =
            self.0.take()?;
        Some(Call { at, patience, workload, client, inputs, prompt_tokens, output_tokens })
    }

    fn ended(&mut self, call: &Call, started: Option<Time>, ended: Time) {
        let &Call { at, patience, workload, client, inputs, prompt_tokens, output_tokens } = call;
        let call = windtunnel_sim::Call { at, patience, workload, client, inputs, prompt_tokens, output_tokens };
        self.0.ended(&call, started, ended);
    }
}

/// Sends the requests of one replication of `setup`.
pub fn send(
    setup: &Setup,
    replication: u32,
    settings: &Settings,
    recording: &mut Recording,
    control: &Control,
    gauge: &Gauge,
) -> Result<Lag, LoadError> {
    let run = &setup.scenario().run;
    let rest = if run.drain { Rest::Awaited } else { Rest::Unfinished };
    let length = Length { horizon: run.horizon, jobs: run.jobs, rest };
    let watch = Watch { stop: &|| control.is_interrupted(), gauge };
    let mut calls = Calls(setup.callers(replication));
    let header = header(setup, replication, settings);
    load::run(settings, setup.scenario(), header, length, &mut calls, recording, watch)
}

/// The header of a journal of what a client sees: it knows of no device and of no capacity.
fn header(setup: &Setup, replication: u32, settings: &Settings) -> Header {
    let mut header = Header { source: Source::Live, devices: Vec::new(), ..setup.header(replication) };
    header.models.iter_mut().for_each(|model| model.capacity.clear());
    header.workloads.iter_mut().for_each(|workload| workload.capacity = None);
    // Live runs differ even where nothing is drawn.
    header.remarks.remove("replications");
    let written = format!("{LOAD_GENERATOR}: what a client saw of {}", settings.address);
    header.remarks.insert(JOURNAL.to_owned(), written);
    header
}

/// What a scenario asks for and an endpoint is not asked for.
pub fn left_out(scenario: &Scenario) -> Vec<String> {
    let mut remarks = Vec::new();
    if !scenario.faults.is_empty() {
        remarks.push("faults of the scenario are left out: they happen to simulated cards".to_owned());
    }
    let needing = scenario.workloads.iter().filter(|workload| !workload.needs.is_empty());
    remarks.extend(needing.map(|workload| {
        format!("workload {} needs more than text, and only text is sent: no images, no tools", workload.name)
    }));
    remarks
}
