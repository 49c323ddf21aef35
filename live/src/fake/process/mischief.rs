//! What a process does beside serving: its log, its deaths, what it leaves behind and what it takes.

use std::{
    fs::OpenOptions,
    io::Write,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Signal, getpid, kill_process, setsid};

use super::arguments::Arguments;
use crate::fake::{Death, Process};

/// This process.
#[derive(Debug)]
pub struct Itself {
    started: Instant,
}

impl Itself {
    pub fn new(started: Instant) -> Itself {
        Itself { started }
    }

    /// Tells whoever holds stdin how far the load is.
    pub fn state(&self, share: f64) {
        say(
            &mut std::io::stdout(),
            &format!(r#"cmd_child_to_router:state:{{"state":"loading","payload":{{"value":{share:.3}}}}}"#),
        );
    }
}

impl Process for Itself {
    /// Ends the process as if something had ended it.
    fn die(&self, death: Death) {
        match death {
            Death::Code(code) => std::process::exit(code),
            Death::Signal(number) => {
                let signal = Signal::from_named_raw(number).unwrap_or(Signal::KILL);
                // Some signals are taken for an overflow of the stack first.
                loop {
                    let _sent = kill_process(getpid(), signal);
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// A line as the real server writes it, to stderr.
    fn log(&self, line: &str) {
        let passed = self.started.elapsed();
        let (minutes, seconds) = (passed.as_secs() / 60, passed.as_secs() % 60);
        let (millis, micros) = (passed.subsec_millis(), passed.subsec_micros() % 1_000);
        say(&mut std::io::stderr(), &format!("{minutes}.{seconds:02}.{millis:03}.{micros:03} I {line}"));
    }
}

/// Nobody may be there to read it.
fn say(to: &mut impl Write, line: &str) {
    let _unread = to.write_all(format!("{line}\n").as_bytes());
    let _unsent = to.flush();
}

/// Adds a line to the file of starts.
pub fn note_start(arguments: &Arguments) {
    let Some(path) = &arguments.starts else { return };
    let told: Vec<String> = std::env::args().skip(1).collect();
    let line = format!("{} {}\n", std::process::id(), told.join(" "));
    let written =
        OpenOptions::new().create(true).append(true).open(path).and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(wrong) = written {
        eprintln!("error: {}: {wrong}", path.display());
    }
}

/// Begins what goes on beside serving.
pub async fn begin(arguments: &Arguments, itself: &Itself) {
    if let Some(time) = arguments.grandchild {
        leave_behind(time, itself);
    }
    if let Some((bytes, over)) = arguments.balloon {
        take(bytes, over).await;
    }
}

/// A process that is in no group of ours, and that has our output.
fn leave_behind(time: Duration, itself: &Itself) {
    let Ok(program) = std::env::current_exe() else { return };
    let time = format!("{}ms", time.as_millis());
    let started = Command::new(program).args(["--fake-be-idle", &time]).stdin(Stdio::null()).spawn();
    match started {
        Ok(child) => itself.log(&format!("grandchild {}", child.id())),
        Err(wrong) => itself.log(&format!("grandchild: {wrong}")),
    }
}

/// Does nothing in a session of its own.
pub fn idle(time: Duration) -> ExitCode {
    match setsid() {
        Ok(_) => {
            std::thread::sleep(time);
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            eprintln!("error: no session: {wrong}");
            ExitCode::FAILURE
        }
    }
}

/// Takes memory, a MiB at a time, and keeps it.
async fn take(bytes: usize, over: Duration) {
    const MIB: usize = 1 << 20;
    let pieces = bytes / MIB;
    let mut taken: Vec<Vec<u8>> = Vec::new();
    for _ in 0..pieces {
        // Written to, since memory that is only asked for is not taken.
        taken.push(vec![1; MIB]);
        tokio::time::sleep(over / u32::try_from(pieces).unwrap_or(u32::MAX).max(1)).await;
    }
    std::future::pending::<()>().await;
    drop(taken);
}
