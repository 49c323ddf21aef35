//! The thread that starts children. It lives as long as anybody may want one, since a child dies with the thread that
//! started it; threads of a pool come and go. It keeps the list of children as well: one is written down before anybody
//! hears of it.

use std::{io, sync::mpsc, thread};

use tokio::{
    process::{Child, Command},
    runtime::Handle,
    sync::oneshot,
};

use super::ledger::Ledger;

/// The way to that thread.
#[derive(Clone, Debug)]
pub struct Spawner {
    wishes: mpsc::Sender<Wish>,
}

#[derive(Debug)]
enum Wish {
    Start { command: Box<Command>, mark: String, model: String, answer: oneshot::Sender<io::Result<Child>> },
    Forget { pid: u32 },
}

impl Spawner {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the operating system starts no thread.
    pub fn start(ledger: Ledger, runtime: Handle) -> io::Result<Spawner> {
        let (wishes, inbox) = mpsc::channel();
        thread::Builder::new().name("children".to_owned()).spawn(move || {
            // Whoever waits for a child does so on this runtime.
            let _entered = runtime.enter();
            run(ledger, &inbox);
        })?;
        Ok(Spawner { wishes })
    }

    /// Starts a child.
    ///
    /// # Errors
    /// If the operating system does not, or the list cannot be written.
    pub async fn spawn(&self, command: Command, mark: String, model: String) -> io::Result<Child> {
        let (answer, child) = oneshot::channel();
        let wish = Wish::Start { command: Box::new(command), mark, model, answer };
        self.wishes.send(wish).map_err(|_| ended())?;
        child.await.map_err(|_| ended())?
    }

    /// A child is gone.
    pub fn forget(&self, pid: u32) {
        drop(self.wishes.send(Wish::Forget { pid }));
    }
}

fn ended() -> io::Error {
    io::Error::other("nobody starts children any more")
}

fn run(mut ledger: Ledger, inbox: &mpsc::Receiver<Wish>) {
    while let Ok(wish) = inbox.recv() {
        match wish {
            Wish::Start { mut command, mark, model, answer } => {
                let child = command.spawn().and_then(|child| {
                    // A child that is not on the list could not be found again; dropped, it is killed.
                    ledger.add(child.id().unwrap_or_default(), mark, model).map(|()| child)
                });
                drop(answer.send(child));
            }
            // One too many on the list does no harm: its number, its start and its mark do not all come again.
            Wish::Forget { pid } => drop(ledger.remove(pid)),
        }
    }
}
