//! One process of the server, from its start to its end.

use std::{io, process::ExitStatus, time::Duration};

use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use windtunnel_core::ExitCause;

use super::{
    launch::Identity,
    ledger::end_marked,
    output::{Output, Passed},
    platform::{self, Ending},
    settings::Limits,
};

/// Memory that ran out so shortly before the end of a process is the reason for it.
const CONNECTED: Duration = Duration::from_secs(5);

/// A line that has not been taken after so long is not read.
const LEAVE: Duration = Duration::from_millis(100);

/// A process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Held open: the process ends when it closes.
    stdin: Option<ChildStdin>,
    /// Its number, which stays known after its end.
    pub pid: u32,
    pub identity: Identity,
    pub output: Output,
}

/// What may happen to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It has ended.
    Ended(Option<ExitStatus>),
    /// It said that memory ran out.
    OutOfMemory,
}

/// How far the end of a process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It is gone.
    Gone,
    /// It was killed and is still there.
    Remains,
}

impl Process {
    /// Takes charge of a child that has just been started with its output in pipes.
    ///
    /// # Errors
    /// If it has no pipes, or is gone already without a number.
    pub fn new(mut child: Child, identity: Identity, passed: Passed) -> io::Result<Process> {
        let missing = || io::Error::other("a child without pipes");
        let pid = child.id().ok_or_else(missing)?;
        let streams = (child.stdout.take().ok_or_else(missing)?, child.stderr.take().ok_or_else(missing)?);
        let stdin = child.stdin.take();
        Ok(Process { child, stdin, pid, identity, output: Output::read(streams, passed) })
    }

    /// Waits for its end.
    pub async fn wait(&mut self) -> Option<ExitStatus> {
        self.child.wait().await.ok()
    }

    /// Waits for what happens to it next.
    pub async fn sign(&mut self) -> Sign {
        tokio::select! {
            status = self.child.wait() => Sign::Ended(status.ok()),
            () = self.output.out_of_memory() => Sign::OutOfMemory,
        }
    }

    /// Asks it to end and sees to it that it does: TERM, grace, KILL, and a while more. In a hurry the grace ends at once.
    pub async fn stop(&mut self, limits: Limits, hurry: &CancellationToken) -> Stopped {
        self.signal(Ending::Term);
        let ended = timeout(limits.grace, async {
            self.take_leave().await;
            self.wait().await
        });
        let ended = tokio::select! {
            ended = ended => ended.is_ok(),
            () = hurry.cancelled() => false,
        };
        if ended { Stopped::Gone } else { self.kill(limits).await }
    }

    /// One whose stdin is held waits for this line, or for the end of it, before it ends after a TERM.
    async fn take_leave(&mut self) {
        if let Some(stdin) = &mut self.stdin {
            // Who reads nothing is ended by the signals alone.
            let _unread = timeout(LEAVE, stdin.write_all(b"cmd_router_to_child:exit\n")).await;
        }
    }

    #[cfg(unix)]
    fn signal(&mut self, ending: Ending) {
        platform::kill_group(self.pid, ending);
    }

    #[cfg(not(unix))]
    fn signal(&mut self, ending: Ending) {
        match ending {
            Ending::Term => {}
            Ending::Kill => drop(self.child.start_kill()),
        }
    }

    /// Kills it, and waits a while.
    pub async fn kill(&mut self, limits: Limits) -> Stopped {
        self.signal(Ending::Kill);
        if timeout(limits.kill, self.wait()).await.is_ok() { Stopped::Gone } else { Stopped::Remains }
    }

    /// After its end: hears its last words, and ends what it has started and left behind, in whichever session.
    pub async fn clear_up(&mut self) {
        let mark = self.identity.mark.clone();
        // Looking through all processes takes longer than a task should.
        drop(tokio::task::spawn_blocking(move || end_marked(&[&mark])).await);
        self.output.finish().await;
    }

    /// Why it ended, where nobody had asked it to.
    pub fn cause(&self, status: Option<ExitStatus>) -> ExitCause {
        if self.output.ran_out_of_memory(CONNECTED) {
            return ExitCause::OutOfMemory;
        }
        status.map_or(ExitCause::Code(-1), ended)
    }

    /// Bytes of it that are in memory.
    pub fn resident(&self) -> Option<u64> {
        platform::resident(self.pid)
    }
}

#[cfg(unix)]
fn ended(status: ExitStatus) -> ExitCause {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => ExitCause::Signal(signal),
        None => ExitCause::Code(status.code().unwrap_or(-1)),
    }
}

#[cfg(not(unix))]
fn ended(status: ExitStatus) -> ExitCause {
    ExitCause::Code(status.code().unwrap_or(-1))
}
