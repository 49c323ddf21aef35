//! What measures models.

use std::path::PathBuf;

use clap::Args;

use super::SecretArgs;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel bench                                       every model of the configuration, one after another
  windtunnel bench gemma4-12b nomic --config windtunnel.toml
  windtunnel bench gemma4-12b --url http://127.0.0.1:8080

Each model is loaded alone, asked for prompts and answers of known size, one at a time and side by side up to its slots, and
unloaded; one that cannot be measured does not keep the others from it. Without --url that happens in a daemon of its own with
the same configuration, apart from journal and state; what it learns of the models is kept as profiles. A daemon that serves
meanwhile would share the card and spoil the figures. With --url a running daemon is asked,
whose other work spoils them too; a model that is loaded there already stays. The block that is printed goes into a scenario
or a configuration. Times of embeddings are of whole requests, since their answers carry none.
Exit codes: 0 measured, 1 the daemon refuses or a load failed, 2 bad input, 130 interrupted.")]
pub struct BenchArgs {
    /// The models; default: every one of the configuration.
    pub models: Vec<String>,
    /// The configuration; default: as `check` has it.
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub config: Option<PathBuf>,
    /// Ask this daemon instead of one of its own.
    #[arg(long, value_name = "URL", requires = "models")]
    pub url: Option<String>,
    #[command(flatten)]
    pub secret: SecretArgs,
    /// Tokens of the longest prompt.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(16..=100_000))]
    pub prompt_tokens: u32,
    /// Tokens of each answer.
    #[arg(long, value_name = "N", default_value_t = 96, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    pub output_tokens: u32,
    /// How often each question is asked.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
}
