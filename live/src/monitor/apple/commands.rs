//! Tools as programs of the system, none of which may take longer than a limit.

use std::{
    io::Read,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::Tools;
use crate::monitor::Unreadable;

/// Between two looks at whether a program has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Runs programs.
#[derive(Clone, Copy, Debug)]
pub struct Commands {
    limit: Duration,
}

impl Commands {
    /// Programs that are ended when they take longer than `limit`.
    pub const fn within(limit: Duration) -> Commands {
        Commands { limit }
    }
}

impl Tools for Commands {
    fn run(&mut self, program: &str, arguments: &[&str]) -> Result<String, Unreadable> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let fail = |what: String| Unreadable(format!("{program}: {what}"));
        let mut child = command.spawn().map_err(|wrong| fail(wrong.to_string()))?;
        let output = child.stdout.take();
        // What is printed is taken away at once, since a full pipe would keep the program from ending.
        let reader = thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut output) = output {
                drop(output.read_to_end(&mut bytes));
            }
            bytes
        });
        match ended(&mut child, self.limit) {
            Some(true) => {
                let bytes = reader.join().unwrap_or_default();
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Some(false) => Err(fail("failed".to_owned())),
            None => {
                drop(child.kill());
                drop(child.wait());
                Err(fail(format!("did not end within {} s", self.limit.as_secs_f64())))
            }
        }
    }
}

/// Whether it ended well; `None`: it goes on beyond the limit.
fn ended(child: &mut Child, limit: Duration) -> Option<bool> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if started.elapsed() < limit => thread::sleep(LOOK),
            Ok(None) => return None,
            Err(_) => return Some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_run_and_none_for_ever() {
        let mut tools = Commands::within(Duration::from_secs(20));
        assert_eq!(tools.run("echo", &["a", "b"]), Ok("a b\n".to_owned()));
        assert!(tools.run("/no/such/program", &[]).is_err());
        assert_eq!(tools.run("false", &[]), Err(Unreadable("false: failed".to_owned())));
        let started = Instant::now();
        let hung = Commands::within(Duration::from_millis(50)).run("sleep", &["300"]);
        assert_eq!(hung, Err(Unreadable("sleep: did not end within 0.05 s".to_owned())));
        assert!(started.elapsed() < Duration::from_secs(100));
    }
}
