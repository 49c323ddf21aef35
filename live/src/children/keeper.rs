//! Who keeps one instance: a task from the order to load it until its process is gone.

use std::{path::PathBuf, sync::Arc, time::Instant};

use tokio::sync::mpsc::UnboundedReceiver;
use windtunnel_core::{Attempt, ExitCause};

use super::{
    Alert, Phase, Shared,
    load::{Failed, Loaded, said},
    output::Passed,
    platform,
    process::{Process, Sign, Stopped},
    settings::{ChildDevice, ChildModel, Limits},
    watch::{Verdict, Watch},
};
use crate::{Endpoint, Lines, LoadOrder, Progress};

/// What a keeper is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Stop; no work is under way.
    Stop(Attempt),
    /// Break the load off, if it is this one.
    Abort(Attempt),
    /// The daemon ends.
    Shutdown,
}

/// A keeper.
pub struct Keeper<W> {
    pub(super) shared: Arc<Shared<W>>,
    pub(super) order: LoadOrder,
    pub(super) orders: UnboundedReceiver<Order>,
    pub(super) progress: Arc<Progress>,
    pub(super) own_program: PathBuf,
    pub(super) model: ChildModel,
    pub(super) device: ChildDevice,
    pub(super) limits: Limits,
}

/// Why a process that served is gone.
enum End {
    /// It was asked to; by whom.
    Asked(Option<Attempt>),
    /// It was not.
    Exited(ExitCause, String, Vec<String>),
    /// It was given up, which was said at once.
    Wedged,
}

impl<W: Send + Sync + 'static> Keeper<W> {
    /// Loads, serves, ends.
    pub async fn keep(mut self) {
        match self.load().await {
            Ok(loaded) => self.serve(loaded).await,
            Err(Failed { cause, text, output, stop }) => {
                self.shared.failed(self.order.model, text, output);
                self.shared.desk.load_failed(self.order.attempt, self.order.instance, cause);
                self.stopped(stop);
            }
        }
        self.leave();
    }

    async fn serve(&mut self, loaded: Loaded) {
        let Loaded { mut process, requests_a_connection } = loaded;
        process.output.knows_requests();
        self.shared.set_phase(self.order.instance, Phase::Ready);
        self.shared.recovered(self.order.model);
        let footprint = self.measure().await;
        let (address, key) = (process.identity.address, process.identity.key.clone());
        let progress = Arc::clone(&self.progress);
        let lines = Arc::new(Lines::new(self.model.slots));
        let endpoint = Endpoint { address, key, requests_a_connection, progress, lines };
        self.shared.desk.loaded(self.order.attempt, self.order.instance, footprint, endpoint);
        match self.attend(&mut process).await {
            End::Asked(attempt) => {
                self.over(process).await;
                self.stopped(attempt);
            }
            // Before anything else, since requests under way fail for it.
            End::Exited(cause, text, output) => {
                self.exited(cause, text, output);
                self.over(process).await;
            }
            End::Wedged => self.over(process).await,
        }
    }

    /// What the instance takes, as its monitor has it.
    async fn measure(&self) -> Option<windtunnel_core::Bytes> {
        let (watcher, instance) = (Arc::clone(&self.shared.watcher), self.order.instance);
        tokio::task::spawn_blocking(move || watcher.footprint(instance)).await.ok().flatten()
    }

    /// Watches a process that serves until it is gone.
    async fn attend(&mut self, process: &mut Process) -> End {
        let mut watch = Watch::new(self.limits.silence, Instant::now());
        loop {
            tokio::select! {
                sign = process.sign() => match sign {
                    Sign::Ended(status) => {
                        process.output.finish().await;
                        let cause = process.cause(status);
                        return End::Exited(cause, said(process, &described(cause)), process.output.recent());
                    }
                    Sign::OutOfMemory => self.shared.desk.out_of_memory(self.order.device, self.order.instance),
                },
                order = self.orders.recv() => match order {
                    Some(Order::Abort(_)) => {}
                    Some(Order::Stop(attempt)) => {
                        self.stop_now(process).await;
                        return End::Asked(Some(attempt));
                    }
                    Some(Order::Shutdown) | None => {
                        self.stop_now(process).await;
                        return End::Asked(None);
                    }
                },
                () = tokio::time::sleep(watch.pause()) => if self.is_wedged(&mut watch, process) {
                    self.give_up(process).await;
                    return End::Wedged;
                },
            }
        }
    }

    fn is_wedged(&self, watch: &mut Watch, process: &Process) -> bool {
        let processor = platform::processor_time(process.pid);
        watch.look(Instant::now(), self.progress.sight(), processor) == Verdict::Wedged
    }

    /// The scheduler hears of it before anything else, so that nothing more is sent there; then requests under way are told.
    async fn give_up(&mut self, process: &mut Process) {
        let text = format!("it was silent and idle for {} s with work under way", self.limits.silence.as_secs_f64());
        self.exited(ExitCause::Wedged, text, process.output.recent());
        self.progress.given_up().cancel();
        if process.kill(self.limits).await == Stopped::Remains {
            self.wait_for_unkillable(process).await;
        }
    }

    /// Ends a process, however long that takes.
    pub(super) async fn stop_now(&mut self, process: &mut Process) {
        self.shared.set_phase(self.order.instance, Phase::Stopping);
        if process.stop(self.limits, &self.shared.hurry).await == Stopped::Remains {
            self.wait_for_unkillable(process).await;
        }
    }

    /// Its memory stays booked, since nobody is told that it is gone.
    async fn wait_for_unkillable(&self, process: &mut Process) {
        let (instance, model, pid) = (self.order.instance, self.order.model, process.pid);
        self.shared.set_phase(instance, Phase::Unkillable);
        self.shared.witness.alert(Alert::Unkillable { instance, model, pid });
        process.wait().await;
        self.shared.witness.alert(Alert::GoneAtLast { instance, model, pid });
    }

    /// A process was started for the instance.
    pub(super) fn began(&self, process: &Process) {
        self.shared.watcher.started(self.order.instance, self.order.device, process.pid);
        self.shared.set_process(self.order.instance, process.pid, process.identity.address);
    }

    /// A process of the instance is gone.
    pub(super) async fn over(&self, mut process: Process) {
        process.clear_up().await;
        self.shared.watcher.ended(self.order.instance);
        self.shared.spawner.forget(process.pid);
    }

    fn exited(&self, cause: ExitCause, text: String, output: Vec<String>) {
        self.shared.failed(self.order.model, text, output);
        self.shared.desk.exited(self.order.instance, cause);
    }

    fn stopped(&self, attempt: Option<Attempt>) {
        if let Some(attempt) = attempt {
            self.shared.desk.stopped(attempt, self.order.instance);
        }
    }

    /// Orders that come too late are carried out already.
    fn leave(mut self) {
        self.shared.forget(self.order.instance);
        self.orders.close();
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Stop(attempt) => self.stopped(Some(attempt)),
                Order::Abort(_) | Order::Shutdown => {}
            }
        }
    }

    pub(super) fn passed(&self) -> Passed {
        let (witness, order) = (Arc::clone(&self.shared.witness), self.order);
        Arc::new(move |line| witness.said(order.model, order.instance, line))
    }
}

fn described(cause: ExitCause) -> String {
    match cause {
        ExitCause::Code(code) => format!("it exited with code {code}"),
        ExitCause::Signal(signal) => format!("it was ended by signal {signal}"),
        ExitCause::Wedged => "it was wedged".to_owned(),
        ExitCause::OutOfMemory => "memory ran out".to_owned(),
    }
}
