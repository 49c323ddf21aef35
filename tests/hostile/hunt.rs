//! Case after case, watched: a panic, one that takes too long and one that takes too much memory are failures, and what was
//! read is kept in a file that the failure names.

use std::{
    any::Any,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use crate::dice::Dice;

/// No case takes longer, on a busy machine either.
const LONGEST: Duration = Duration::from_secs(60);
/// No case takes more memory than this.
const MOST_MEMORY: u64 = 512 << 20;

/// What is tried.
pub struct Hunt<M, R> {
    /// The name of it, for files.
    pub name: &'static str,
    /// Cases, where `WINDTUNNEL_CASES` does not say how many.
    pub usual: u64,
    /// Makes a case.
    pub make: M,
    /// Reads it; what is wrong, if anything is.
    pub read: R,
}

impl<M, R> Hunt<M, R>
where
    M: Fn(&mut Dice) -> Vec<u8> + Send + 'static,
    R: Fn(&[u8]) -> Result<(), String> + Send + 'static,
{
    /// Tries every case; how many there were.
    pub fn run(self) -> u64 {
        let (name, current) = (self.name, Arc::new(Mutex::new(Vec::new())));
        let (begun, beginnings) = mpsc::channel();
        let shown = Arc::clone(&current);
        let worker = thread::spawn(move || self.cases(&begun, &shown));
        loop {
            match beginnings.recv_timeout(LONGEST) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let input = current.lock().map(|input| input.clone()).unwrap_or_default();
                    panic!(
                        "{name}: a case takes more than {LONGEST:?}; it is in {}",
                        keep(name, "slow", &input).display()
                    );
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn cases(&self, begun: &Sender<()>, current: &Mutex<Vec<u8>>) -> u64 {
        let seed = number("WINDTUNNEL_SEED").unwrap_or(0) << 32;
        let cases = number("WINDTUNNEL_CASES").unwrap_or(self.usual);
        for case in 0..cases {
            let input = (self.make)(&mut Dice::of(seed + case));
            // An abort cannot be caught; then this file is what did it.
            let last = keep(self.name, "last", &input);
            if let Ok(mut current) = current.lock() {
                current.clone_from(&input);
            }
            let _ = begun.send(());
            let before = peak();
            let failure = match catch_unwind(AssertUnwindSafe(|| (self.read)(&input))) {
                Ok(Ok(())) => match peak().saturating_sub(before) {
                    0..MOST_MEMORY => continue,
                    taken => format!("it takes {} MiB of memory", taken >> 20),
                },
                Ok(Err(wrong)) => wrong,
                Err(panic) => format!("a panic: {}", said(panic.as_ref())),
            };
            let kept = keep(self.name, &format!("{case}"), &input);
            let _ = fs::remove_file(last);
            panic!("{}: {failure}; the case is in {}", self.name, kept.display());
        }
        cases
    }
}

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn keep(name: &str, which: &str, input: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{name}-{which}"));
    fs::write(&path, input).expect("the folder for files of tests can be written to");
    path
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words")
}

/// The most memory this process has had, where the system tells.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or(0) << 10
}
