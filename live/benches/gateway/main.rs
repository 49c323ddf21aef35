//! What the daemon costs: a client, a daemon and a fake `llama-server` that answers at once, three processes on one machine.
//!
//! Everything is as in production: the daemon is started with a configuration, starts the server itself, reads the memory of
//! the machine, and writes its journal. Client and server take their part of the same processors, so what can be compared
//! with another machine is processor time a request; requests a second are what is left when all three share the processors.
//!
//! * `chats`: latency beside the server alone, requests a second, processor time, memory.
//! * `streams`: whether frames come one by one, and what one costs.
//! * `crowd`: five thousand requests that wait for memory, and leave at once.
//!
//! `cargo bench -p windtunnel-live --bench gateway` prints a table; with `-- --json` one object a line instead. `-- --quick`
//! takes a fifth of the requests.

mod chats;
mod client;
mod crowd;
mod process;
mod sheet;
mod streams;

use std::process::ExitCode;

use sheet::Sheet;

/// How much is measured.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Requests of each kind are so many times this.
    pub share: u32,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(code) = process::is_part(&arguments) {
        return code;
    }
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let effort = Effort { share: if has("--quick") { 1 } else { 5 } };
    let mut sheet = Sheet::new(has("--json"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be had");
    runtime.block_on(async {
        let daemon = process::Daemon::start();
        let server = process::Server::start();
        chats::measure(&mut sheet, &daemon, &server, effort).await;
        streams::measure(&mut sheet, &daemon, effort).await;
        crowd::measure(&mut sheet, &daemon, effort).await;
    });
    ExitCode::SUCCESS
}
