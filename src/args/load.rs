//! What puts a load on an endpoint.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(override_usage = "windtunnel load [OPTIONS] --url <URL> <SCENARIO>
       windtunnel load [OPTIONS] --url <URL> --model <NAME>")]
#[command(after_help = "Examples:
  windtunnel load --url http://127.0.0.1:8080 scenarios/closed-loop.toml --set run.horizon=60s
  windtunnel load --url http://127.0.0.1:8080 --model gemma --rate 5 --for 2m --prompt-tokens 800 --output-tokens 100
  windtunnel load --url http://127.0.0.1:8080 --model gemma --trace day.csv --journal seen.jsonl
  windtunnel load --url http://127.0.0.1:8080 --model embedder --rate 50 --set workload.requests.kind=embedding

Every [[workload]] of a scenario is sent once, with the sizes, moments and pauses that the simulator draws from the same
seed; cards, services and faults are those of the endpoint. Latencies count from when a request was to be sent. Prompts are
words drawn for each request, about one a token, so that no prompt cache helps unless --cache on asks for it. What is
under way at the horizon is unfinished, or waited for if the scenario says drain = true. `windtunnel report` on the journal
prints the same figures. Exit codes: 0 done, 2 bad input, 130 interrupted (what was measured is reported).")]
pub struct LoadArgs {
    /// The scenario whose workloads are sent; left out: one workload, as --model and --rate or --trace say.
    pub scenario: Option<PathBuf>,
    /// The endpoint, such as http://127.0.0.1:8080.
    #[arg(long, value_name = "URL")]
    pub url: String,
    /// The model or family that is asked for.
    #[arg(long, value_name = "NAME", required_unless_present = "scenario", conflicts_with = "scenario")]
    pub model: Option<String>,
    /// Requests per second, with exponential gaps; default: 1.
    #[arg(long, value_name = "R", conflicts_with_all = ["scenario", "trace"])]
    pub rate: Option<f64>,
    /// Send for so long; default: 60s, or as long as the trace.
    #[arg(long = "for", value_name = "SPAN", conflicts_with = "scenario")]
    pub lasting: Option<String>,
    /// Prompt tokens of a request; default: 100.
    #[arg(long, value_name = "N", conflicts_with_all = ["scenario", "trace"])]
    pub prompt_tokens: Option<u32>,
    /// Output tokens of a request; default: 50.
    #[arg(long, value_name = "N", conflicts_with_all = ["scenario", "trace"])]
    pub output_tokens: Option<u32>,
    /// Send at the moments and with the sizes of a recorded trace.
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    pub trace: Option<PathBuf>,
    /// Write a journal of what was seen.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Write report.json, tables and charts into this folder.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
}

/// How an endpoint is spoken to.
#[derive(Debug, Args)]
pub struct EndpointArgs {
    /// The API key; others may read it in the list of processes.
    #[arg(long, value_name = "KEY", conflicts_with = "key_env")]
    pub key: Option<String>,
    /// The environment variable that holds the API key.
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
    /// Whether prompt caches may help: on, all prompts of a workload begin alike.
    #[arg(long, value_enum, default_value_t = Cache::Off)]
    pub cache: Cache,
    /// Send only what OpenAI's interface knows: no `ignore_eos`, so answers may be shorter than asked for.
    #[arg(long)]
    pub plain: bool,
    /// A request without an end after so long has failed.
    #[arg(long, value_name = "SPAN", default_value = "600s")]
    pub timeout: String,
}

impl EndpointArgs {
    /// Whether anything was said of an endpoint.
    pub fn is_given(&self) -> bool {
        self.key.is_some() || self.key_env.is_some() || self.plain || self.cache == Cache::On
    }
}

/// Whether prompt caches may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cache {
    /// Each prompt begins with other words.
    Off,
    /// All prompts of a workload begin alike.
    On,
}
