//! The command line.

mod bench;
mod config;
mod load;
mod status;

use std::{net::SocketAddr, num::NonZero, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use bench::BenchArgs;
pub use config::{ConfigArgs, ConfigTask, ImportArgs, ImportFrom};
pub use load::{Cache, EndpointArgs, LoadArgs};
pub use status::{SecretArgs, StatusArgs};

/// A GPU scheduler for local language models, and the wind tunnel it is tested in.
#[derive(Debug, Parser)]
#[command(name = "windtunnel", version, arg_required_else_help = true, propagate_version = true)]
#[command(after_help = "Examples:
  windtunnel sweep --report knee            where do 1, 2 and 4 cards saturate? (with charts)
  windtunnel sim scenarios/knee.toml        one scenario, all replications
  windtunnel sim --set workload.requests.arrivals.rate=900
  windtunnel test scenarios                 every scenario with its expectations

Exit codes: 0 done, 1 an expectation failed or a replay differs, 2 bad input, 130 interrupted (finished work is kept).")]
pub struct Arguments {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

/// What every subcommand takes.
#[derive(Debug, Args)]
pub struct Common {
    /// How results are printed on stdout.
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Print results only: no progress, no remarks.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// The seed of every random stream, instead of the scenario's.
    #[arg(long, global = true, value_name = "N")]
    pub seed: Option<u64>,
    /// Replace a value of the scenario; values are TOML, a bare word is a string. May be given several times.
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Threads to run replications on; default: all cores.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// One JSON object and nothing else.
    Json,
    /// Comma-separated values with a header.
    Csv,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Simulate one scenario, all replications.
    Sim(SimArgs),
    /// Run a grid of settings, or search for the knee.
    Sweep(SweepArgs),
    /// Run scenarios and check their expectations.
    Test(TestArgs),
    /// Make the report of journals.
    Report(ReportArgs),
    /// Print a journal the way an operator reads it.
    Events(EventsArgs),
    /// Feed what a journal recorded to the scheduler and compare what it wants.
    Replay(ReplayArgs),
    /// Search random worlds for a broken rule of the scheduler.
    Fuzz(FuzzArgs),
    /// Simulate the requests of a journal under other settings and say what would have changed.
    Whatif(WhatifArgs),
    /// Run the daemon: the scheduler in front of real models.
    Serve(ServeArgs),
    /// Show what a daemon does now: memory, models, queues, events.
    Status(StatusArgs),
    /// Check a daemon's configuration on this machine: files, runtimes, devices, and what fits with what.
    Check(CheckArgs),
    /// List models with what they take of memory, or explain that row by row.
    Models(ModelsArgs),
    /// Measure what models take and how fast they are, for profiles and scenarios.
    Bench(BenchArgs),
    /// List or prune what was learned of models.
    Profiles(ProfilesArgs),
    /// Make a daemon's configuration of that of another program.
    Config(ConfigArgs),
    /// Put a load on an OpenAI endpoint and report what its clients see.
    Load(LoadArgs),
    /// Check the simulator against exact queueing results on this machine, in seconds.
    Selftest,
    /// Print a JSON Schema, or a reference of keys.
    Schema(SchemaArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel sim scenarios/bursts.toml
  windtunnel sim scenario.toml --journal run.jsonl --report out --format json
  windtunnel sim scenario.toml --set policy.background_share=0.25 --seed 7")]
pub struct SimArgs {
    /// The scenario; default: the embedded one, a card with dynamic batching.
    pub scenario: Option<PathBuf>,
    /// Write a journal of all replications, one after another.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Write the scheduler's whole state into the journal every so much virtual time, such as 60s.
    #[arg(long, value_name = "SPAN", requires = "journal")]
    pub checkpoint: Option<String>,
    /// Write report.json, tables and charts into this folder.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel sweep --report knee                          the embedded scenario on 1, 2 and 4 cards
  windtunnel sweep scenario.toml --devices 1,2,4 --rates 1000,2000,4000
  windtunnel sweep scenario.toml --format json > sweep.json
  windtunnel sweep small.toml --live http://127.0.0.1:8080 --report out

With --live every replication of every point takes its time, one after another: points x replications x (horizon +
cool-down), and a search for the rate at a target runs some fifteen rates more, to within 5%. So keep all three small: five
rates, 3 replications and 60s take a quarter of an hour.")]
pub struct SweepArgs {
    /// The scenario; default: the embedded knee sweep.
    pub scenario: Option<PathBuf>,
    /// Numbers of devices of the first device group to try.
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub devices: Vec<u32>,
    /// Total offered rates to try; all open workloads are scaled in proportion.
    #[arg(long, value_name = "R,..", value_delimiter = ',')]
    pub rates: Vec<f64>,
    /// Write sweep.json, sweep.csv, sweep.txt and charts into this folder.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Run the points against this OpenAI endpoint instead of simulated cards.
    #[arg(long, value_name = "URL", conflicts_with = "devices")]
    pub live: Option<String>,
    /// How long requests may take to end after each live run before they are broken off.
    #[arg(long, value_name = "SPAN", requires = "live", default_value = "10s")]
    pub cool_down: String,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel test scenarios
  windtunnel test scenarios/knee.toml --junit junit.xml")]
pub struct TestArgs {
    /// Scenario files, or folders of them.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Write the results as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Where the journals of failed scenarios are kept.
    #[arg(long, value_name = "DIR", default_value = "windtunnel-failed")]
    pub keep: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel report run.jsonl
  windtunnel report night*.jsonl                       night.jsonl, night.0002.jsonl, ..: one run in several files
  windtunnel report night-1.jsonl night-2.jsonl --report out --format json")]
pub struct ReportArgs {
    /// Journals, each run in them is a replication; those of a run in several files in any order; - for stdin.
    #[arg(required = true)]
    pub journals: Vec<PathBuf>,
    /// Write report.json, tables and charts into this folder.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel events run.jsonl | less
  windtunnel events run.jsonl --job 17
  windtunnel events live*.jsonl --follow --model gemma4-12b")]
pub struct EventsArgs {
    /// The journal, or its files after a rotation; - for stdin.
    #[arg(required = true)]
    pub journals: Vec<PathBuf>,
    /// Go on as the last file grows.
    #[arg(long)]
    pub follow: bool,
    /// Only lines of this job.
    #[arg(long, value_name = "N")]
    pub job: Option<u64>,
    /// Only lines of this model.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel replay run.jsonl                          every run from its beginning
  windtunnel replay night*.jsonl                       night.jsonl, night.0002.jsonl, ..: one run in several files
  windtunnel replay night.jsonl --from-checkpoint 3 --format json

The first effect or checkpoint that differs is printed with what led to it. Exit codes: 0 equal, 1 something differs,
2 bad input.")]
pub struct ReplayArgs {
    /// Journals, those of a run in several files in any order; - for stdin.
    #[arg(required = true)]
    pub journals: Vec<PathBuf>,
    /// Start each run at its checkpoint of this number, from 1.
    #[arg(long, value_name = "N")]
    pub from_checkpoint: Option<NonZero<u32>>,
    /// Compare effects only, not the scheduler's state at checkpoints.
    #[arg(long)]
    pub no_checkpoints: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel fuzz                              random worlds for 30 seconds, another seed every time
  windtunnel fuzz --seed 1 --worlds 2000       the same worlds every time
  windtunnel fuzz my.toml                      does my configuration starve anything, whatever is asked of it?
  windtunnel fuzz --for 8h --out found         over night; Ctrl-C keeps what was found
  windtunnel fuzz --as-is found/fuzz-17.toml   look again at a world that was found

Every world is checked after every step. One that breaks a rule is made as small as it can be and written into the folder
of --out as a scenario. What a daemon's configuration does not say, such as how long its models take, is taken from what was
learned of them and from their files, else assumed, and the output says so. Exit codes: 0 nothing was found, 1 a rule is broken, 2 bad input, 130 interrupted.")]
pub struct FuzzArgs {
    /// A scenario or configuration: what it configures stays, requests and faults vary; default: everything is random.
    pub config: Option<PathBuf>,
    /// Search so long, such as 10m; default: 30s, unless --steps or --worlds says when it is enough.
    #[arg(long = "for", value_name = "SPAN")]
    pub lasting: Option<String>,
    /// Search until so many steps were checked.
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Search so many worlds.
    #[arg(long, value_name = "N")]
    pub worlds: Option<u64>,
    /// Stop at the first broken rule.
    #[arg(long)]
    pub first: bool,
    /// Where worlds that break a rule are written.
    #[arg(long, value_name = "DIR", default_value = "windtunnel-fuzz")]
    pub out: PathBuf,
    /// Run the scenario once, exactly as it stands, with every check.
    #[arg(long, requires = "config", conflicts_with_all = ["lasting", "steps", "worlds", "first"])]
    pub as_is: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel whatif night.jsonl --set policy.background_share=0.1
  windtunnel whatif run.jsonl --scenario cards.toml --set models.m.service.alpha=0.5ms --format json

Each request is simulated with the service times it had, scaled as the model of its service says. First the journal is
simulated again as it was recorded, and the error of that is printed; then what the settings change, with intervals.
Without --scenario the journal's own predictions are the model of service.")]
pub struct WhatifArgs {
    /// Journals that hold whole runs, those of a run in several files in any order; - for stdin.
    #[arg(required = true)]
    pub journals: Vec<PathBuf>,
    /// The scenario whose cards and services were recorded; its workloads are not used.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel serve --simulated                          nothing is needed: canned answers at the pace of a simulated card
  windtunnel serve --demo                               your llama-server and the model files it finds
  windtunnel serve --demo --model qwen3-4b.gguf --llama-server ~/llama.cpp/build/bin/llama-server
  windtunnel serve --config windtunnel.toml --journal night.jsonl
  windtunnel serve --simulated --listen 127.0.0.1:0     any free port; the address is the first line printed

SIGTERM or Ctrl-C ends it in good order, a second one at once; SIGHUP or a changed file takes up the new configuration.
Clients: http://127.0.0.1:8080/v1 is its OpenAI endpoint, /admin/status what it is doing, /metrics for Prometheus.")]
pub struct ServeArgs {
    /// The configuration; default: ./windtunnel.toml, else ~/.config/windtunnel/config.toml.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["demo", "simulated"])]
    pub config: Option<PathBuf>,
    /// Without a configuration: serve the model files that are found or named on the device that is found.
    #[arg(long, conflicts_with = "simulated")]
    pub demo: bool,
    /// A model file for --demo; may be given several times.
    #[arg(long, value_name = "FILE", requires = "demo")]
    pub model: Vec<PathBuf>,
    /// The llama-server for --demo; default: the one on PATH.
    #[arg(long, value_name = "FILE", requires = "demo")]
    pub llama_server: Option<PathBuf>,
    /// Without a configuration, a model or a device: a simulated card with canned answers.
    #[arg(long)]
    pub simulated: bool,
    /// Where to listen, instead of what the configuration says; port 0 is any free one.
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Serve other machines although the configuration has no keys.
    #[arg(long)]
    pub public: bool,
    /// Where to keep what is learned and which processes were started.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Write a journal: every request, decision and reading of memory, never a prompt.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// End as if asked to when stdin ends: whoever started it may be killed, and would leave it behind.
    #[arg(long, hide = true)]
    pub while_stdin: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel check
  windtunnel check config.toml --format json

Exit codes: 0 all is well, 1 something on this machine is not as the configuration needs it, 2 it cannot be used.")]
pub struct CheckArgs {
    /// The configuration; default: windtunnel.toml here, else config.toml in the user's folder for windtunnel.
    pub config: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel models                                    every model of the configuration
  windtunnel models --explain gemma4-12b               what it takes, row by row
  windtunnel models --explain file.gguf -- -c 16384 -np 2 -ctk q8_0")]
pub struct ModelsArgs {
    /// Models of the configuration, or model files; default: every model of the configuration.
    pub models: Vec<String>,
    /// Print every part of the memory and how it comes about.
    #[arg(long)]
    pub explain: bool,
    /// The configuration; default: as `check` has it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What model files are to be estimated for; default: the first device of this machine.
    #[arg(long, value_enum)]
    pub backend: Option<BackendName>,
    /// Arguments of the runtime, for model files; one slot unless they say otherwise.
    #[arg(last = true)]
    pub args: Vec<String>,
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    Cuda,
    Hip,
    Vulkan,
    Metal,
    Cpu,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Columns: `factor` is how much longer steps took than was predicted (1: as predicted), smoothed over `steps` \
of them; `current` says whether the files are still those that were measured.

Examples:
  windtunnel profiles
  windtunnel profiles prune --config config.toml"
)]
pub struct ProfilesArgs {
    /// What to do.
    #[arg(value_enum, default_value_t = ProfilesTask::List)]
    pub task: ProfilesTask,
    /// The configuration that names the state directory.
    #[arg(long, value_name = "FILE", conflicts_with = "state_dir")]
    pub config: Option<PathBuf>,
    /// The state directory; default: the usual one of this user.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// What to do with profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfilesTask {
    /// Show them.
    List,
    /// Remove those about files that are gone or have changed.
    Prune,
}

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// What to describe.
    #[arg(value_enum)]
    pub what: SchemaKind,
}

/// What a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaKind {
    /// A scenario file.
    Scenario,
    /// A daemon's configuration file.
    Config,
    /// A line of a journal.
    Journal,
    /// The report of `sim --format json`.
    Report,
    /// Every key of `[policy]` with its default (a table, not a schema).
    Policy,
    /// Every key of a daemon's configuration with type, default and example (Markdown, not a schema).
    Reference,
}
