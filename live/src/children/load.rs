//! A load: a process is started, and watched until it is ready, fails, gets nowhere, or is not wanted any more.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    time::{Duration, Instant},
};

use rand::RngExt;
use windtunnel_core::{Attempt, ExitCause, LoadFailure};

use super::{
    become_child,
    keeper::{Keeper, Order},
    launch::{Identity, Launch},
    probe::{self, Found},
    process::Process,
};
use crate::descriptors;

/// A port that was free a moment ago may be taken now; after so many of them something else is wrong.
const PORTS: u32 = 5;
/// Between two looks at whether a load gets on.
const LOOK: Duration = Duration::from_millis(200);
/// Growth below this is none.
const GROWTH: u64 = 256 * 1024;
/// What was said before a server got ready has been read so long after.
const SAID: Duration = Duration::from_millis(50);

/// A load that came to nothing; its process is gone.
#[derive(Debug)]
pub struct Failed {
    pub cause: LoadFailure,
    pub text: String,
    /// What its process said.
    pub output: Vec<String>,
    /// A stop that was asked for meanwhile.
    pub stop: Option<Attempt>,
}

/// A process that is ready.
#[derive(Debug)]
pub struct Loaded {
    pub process: Process,
    pub requests_a_connection: Option<u32>,
}

/// How a start ends that does not end well.
enum Bad {
    Lacks(Lack),
    Failed(Failed),
}

/// What a start did not get, which is not the model's fault: it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// The port that was free.
    Port,
    /// Descriptors of this process for pipes or a port, which come back.
    Descriptors,
}

impl<W: Send + Sync + 'static> Keeper<W> {
    /// Starts a process until one has its port.
    pub(super) async fn load(&mut self) -> Result<Loaded, Failed> {
        let mut tries = Tries::new(self.limits.start, Instant::now());
        loop {
            match self.start().await {
                Ok(loaded) => return Ok(loaded),
                Err(Bad::Failed(failed)) => return Err(failed),
                Err(Bad::Lacks(lack)) => {
                    tries.again(lack, Instant::now())?;
                    if lack == Lack::Descriptors {
                        self.rest().await?;
                    }
                }
            }
        }
    }

    /// Waits a moment before the next try, unless the load is not wanted any more.
    async fn rest(&mut self) -> Result<(), Failed> {
        tokio::select! {
            order = self.orders.recv() => self.unwanted(order).map_or(Ok(()), |stop| Err(not_wanted(stop))),
            () = tokio::time::sleep(LOOK) => Ok(()),
        }
    }

    async fn start(&mut self) -> Result<Loaded, Bad> {
        let not_started = |wrong: &io::Error| {
            if descriptors::are_used_up(wrong) {
                return Bad::Lacks(Lack::Descriptors);
            }
            Bad::Failed(failed(LoadFailure::NotStarted, wrong.to_string()))
        };
        let environment: Vec<(String, String)> =
            [&self.device.environment, &self.model.environment].into_iter().flatten().cloned().collect();
        let build = self.shared.builds.get(&self.model.program, &environment).await;
        let build = build.map_err(|wrong| not_started(&wrong))?;
        let identity = Identity::random().map_err(|wrong| not_started(&wrong))?;
        let launch = Launch::new(&self.model, &self.device, &build, &identity);
        let command = become_child::command(&self.own_program, &launch);
        let child = self.shared.spawner.spawn(command, identity.mark.clone(), self.model.name.clone()).await;
        let child = child.map_err(|wrong| not_started(&wrong))?;
        let mut process = Process::new(child, identity, self.passed()).map_err(|wrong| not_started(&wrong))?;
        self.began(&process);
        match self.watch_load(&mut process).await {
            Ok(requests_a_connection) => Ok(Loaded { process, requests_a_connection }),
            Err(bad) => {
                self.over(process).await;
                Err(bad)
            }
        }
    }

    /// Waits until a process is ready; one that will not be is gone afterwards.
    async fn watch_load(&mut self, process: &mut Process) -> Result<Option<u32>, Bad> {
        let identity = process.identity.clone();
        let mut found = std::pin::pin!(probe::look(&identity));
        let mut pace = Pace::new(self.limits.stall, self.limits.start);
        loop {
            tokio::select! {
                status = process.wait() => {
                    process.output.finish().await;
                    return Err(self.died(process, process.cause(status)));
                }
                found = &mut found => match found {
                    Found::Ours { requests_a_connection } => {
                        tokio::time::sleep(SAID).await;
                        return self.ready(process, requests_a_connection).await;
                    }
                    Found::Stranger => {
                        self.stop_now(process).await;
                        return Err(Bad::Lacks(Lack::Port));
                    }
                },
                order = self.orders.recv() => if let Some(stop) = self.unwanted(order) {
                    self.stop_now(process).await;
                    return Err(Bad::Failed(not_wanted(stop)));
                },
                () = tokio::time::sleep(LOOK) => if let Some(text) = pace.look(process) {
                    self.stop_now(process).await;
                    return Err(failed_with(process, LoadFailure::Stalled, &text));
                },
            }
        }
    }

    /// Healthy, but memory may have run out while it warmed up: then every request would fail.
    async fn ready(&mut self, process: &mut Process, requests: Option<u32>) -> Result<Option<u32>, Bad> {
        if !process.output.ran_out_of_memory(Duration::MAX) {
            return Ok(requests);
        }
        self.stop_now(process).await;
        Err(failed_with(process, LoadFailure::OutOfMemory, "memory ran out in its warm-up"))
    }

    fn died(&self, process: &Process, cause: ExitCause) -> Bad {
        if process.output.was_not_bound() {
            return Bad::Lacks(Lack::Port);
        }
        let out_of_memory = process.output.ran_out_of_memory(Duration::MAX);
        let cause = if out_of_memory { ExitCause::OutOfMemory } else { cause };
        let (failure, what) = match cause {
            ExitCause::OutOfMemory => (LoadFailure::OutOfMemory, "memory ran out".to_owned()),
            ExitCause::Code(code) => (LoadFailure::Crashed, format!("it exited with code {code}")),
            ExitCause::Signal(signal) => (LoadFailure::Crashed, format!("it was ended by signal {signal}")),
            ExitCause::Wedged => (LoadFailure::Stalled, "it was wedged".to_owned()),
        };
        failed_with(process, failure, &what)
    }

    /// Whether an order ends a load; the attempt of a stop.
    fn unwanted(&self, order: Option<Order>) -> Option<Option<Attempt>> {
        match order {
            Some(Order::Abort(attempt)) => (attempt == self.order.attempt).then_some(None),
            Some(Order::Stop(attempt)) => Some(Some(attempt)),
            Some(Order::Shutdown) | None => Some(None),
        }
    }
}

fn failed(cause: LoadFailure, text: String) -> Failed {
    Failed { cause, text, output: Vec::new(), stop: None }
}

fn not_wanted(stop: Option<Attempt>) -> Failed {
    Failed { stop, ..failed(LoadFailure::Stopped, "it was not wanted any more".to_owned()) }
}

fn failed_with(process: &Process, cause: LoadFailure, what: &str) -> Bad {
    let (text, output) = (said(process, what), process.output.recent());
    Bad::Failed(Failed { cause, text, output, stop: None })
}

/// What happened, with the process's own words.
pub(super) fn said(process: &Process, what: &str) -> String {
    match process.output.reason() {
        Some(line) => format!("{what}: {line}"),
        None => what.to_owned(),
    }
}

impl Identity {
    /// A port that is free at the moment, a key and a mark.
    fn random() -> std::io::Result<Identity> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let hex = || format!("{:032x}", rand::rng().random::<u128>());
        Ok(Identity { address, key: hex(), mark: hex() })
    }
}

/// How often and how long a start is tried.
#[derive(Debug)]
struct Tries {
    ports: u32,
    most: Duration,
    until: Instant,
}

impl Tries {
    fn new(most: Duration, now: Instant) -> Tries {
        Tries { ports: PORTS, most, until: now + most }
    }

    /// Whether there is one more after one that lacked something.
    fn again(&mut self, lack: Lack, now: Instant) -> Result<(), Failed> {
        let lacked = match lack {
            Lack::Port => {
                self.ports = self.ports.saturating_sub(1);
                "port"
            }
            Lack::Descriptors => "file descriptor",
        };
        let not_started = |text| Err(failed(LoadFailure::NotStarted, text));
        if self.ports == 0 {
            return not_started(format!("no port could be had in {PORTS} tries"));
        }
        if now >= self.until {
            return not_started(format!("no {lacked} could be had within {} s", self.most.as_secs_f64()));
        }
        Ok(())
    }
}

/// Whether a load gets on: it says something or takes more memory.
struct Pace {
    started: Instant,
    stall: Duration,
    most: Duration,
    grown: Instant,
    resident: u64,
}

impl Pace {
    fn new(stall: Duration, most: Duration) -> Pace {
        let now = Instant::now();
        Pace { started: now, stall, most, grown: now, resident: 0 }
    }

    /// Why it is given up, if it is.
    fn look(&mut self, process: &Process) -> Option<String> {
        let resident = process.resident().unwrap_or(0);
        if resident > self.resident.saturating_add(GROWTH) {
            (self.grown, self.resident) = (Instant::now(), resident);
        }
        let still = process.output.last().max(self.grown).elapsed();
        if still >= self.stall {
            return Some(format!("it said nothing and took no more memory for {} s", self.stall.as_secs_f64()));
        }
        let long = self.started.elapsed() >= self.most;
        long.then(|| format!("it was not ready after {} s", self.most.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_waited_for_no_longer_than_a_start_may_take() {
        let (most, now) = (Duration::from_secs(60), Instant::now());
        let mut tries = Tries::new(most, now);
        for second in 0..60 {
            tries.again(Lack::Descriptors, now + Duration::from_secs(second)).unwrap();
        }
        let failed = tries.again(Lack::Descriptors, now + most).unwrap_err();
        assert_eq!(failed.cause, LoadFailure::NotStarted);
        assert_eq!(failed.text, "no file descriptor could be had within 60 s");
    }

    #[test]
    fn so_many_ports_are_tried() {
        let now = Instant::now();
        let mut tries = Tries::new(Duration::from_secs(60), now);
        (1..PORTS).for_each(|_| tries.again(Lack::Port, now).unwrap());
        assert_eq!(tries.again(Lack::Port, now).unwrap_err().text, "no port could be had in 5 tries");
    }
}
