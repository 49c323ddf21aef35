//! A daemon of our own, in which nothing is loaded but what is asked for. It holds our end of its stdin, so it ends with us
//! even if we are killed.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::Apart;

/// A process of `windtunnel serve`, ended in good order when it is dropped.
pub struct OwnDaemon {
    child: Child,
    url: String,
    said: Said,
}

/// The last lines that it said.
type Said = Arc<Mutex<VecDeque<String>>>;

const LINES: usize = 20;
/// From asking it to end until it is killed; processes of models may take their grace.
const GRACE: Duration = Duration::from_secs(40);

impl OwnDaemon {
    /// Starts one with the configuration at `path`, `sets` put in place, which keeps things `apart` and writes a journal only
    /// if the configuration has one. An error is a whole message.
    pub fn start(path: &Path, sets: &[String], apart: &Apart, journal: Option<&Path>) -> Result<OwnDaemon, String> {
        let program = std::env::current_exe().map_err(|wrong| format!("find this program: {wrong}"))?;
        let mut command = Command::new(program);
        command.arg("serve").arg("--config").arg(path).args(["--listen", "127.0.0.1:0", "--while-stdin"]);
        command.arg("--state-dir").arg(apart.state());
        if journal.is_some() {
            command.arg("--journal").arg(apart.journal());
        }
        for set in sets {
            command.args(["--set", set]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|wrong| format!("start a daemon: {wrong}"))?;
        let said = Said::default();
        if let Some(stderr) = child.stderr.take() {
            let said = Arc::clone(&said);
            thread::spawn(move || keep_lines(stderr, &said));
        }
        let mut daemon = OwnDaemon { child, url: String::new(), said };
        let mut first = String::new();
        if let Some(out) = daemon.child.stdout.take() {
            let mut out = BufReader::new(out);
            // What it says beyond that is nothing; the end of it is the end of the daemon.
            drop(out.read_line(&mut first));
            thread::spawn(move || drop(out.read_to_end(&mut Vec::new())));
        }
        daemon.url = first.trim().to_owned();
        if daemon.url.is_empty() {
            // Its last words may still be on their way.
            drop(daemon.child.wait());
            thread::sleep(Duration::from_millis(100));
            return Err(format!("the daemon did not start:\n{}", daemon.last_words()));
        }
        Ok(daemon)
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it said last.
    pub fn last_words(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

fn keep_lines(from: impl Read, said: &Said) {
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() == LINES {
            said.pop_front();
        }
        said.push_back(line);
    }
}

impl Drop for OwnDaemon {
    fn drop(&mut self) {
        let until = Instant::now() + GRACE;
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // If it is gone already, so much the better.
            let _ = kill_process(pid, Signal::TERM);
        }
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
