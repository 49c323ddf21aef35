//! What looks at a daemon.

use clap::Args;

use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel status
  windtunnel status --watch                              q ends it, arrows scroll
  windtunnel status --url http://gpu.house:8080 --key-env OWNER_KEY --format json

The bar is memory that may be used: █ ours, ▒ ours that becomes free, ▓ of other programs, · free. NO_COLOR=1 takes the
colours away. Exit codes: 0 shown, 1 no daemon answers, 2 bad input.")]
pub struct StatusArgs {
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Show it again and again, in the whole terminal.
    #[arg(long)]
    pub watch: bool,
}

/// Which daemon is meant.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// The daemon's address.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    #[command(flatten)]
    pub secret: SecretArgs,
}

/// Who asks.
#[derive(Debug, Args)]
pub struct SecretArgs {
    /// An operator's API key; others may read it in the list of processes.
    #[arg(long, value_name = "KEY", conflicts_with = "key_env")]
    pub key: Option<String>,
    /// The environment variable that holds the key.
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
}

impl SecretArgs {
    /// The key.
    pub fn secret(&self) -> Result<Option<String>, Failure> {
        let Some(name) = &self.key_env else { return Ok(self.key.clone()) };
        let key = std::env::var(name);
        key.map(Some).map_err(|_| Failure::BadInput(format!("--key-env: the environment variable {name} is not set")))
    }
}
