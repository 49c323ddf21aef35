//! Small chats: what the daemon adds to one, how many there can be, and what each costs.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use crate::{
    Effort,
    client::{Client, chat},
    process::{Daemon, Server, own_processor},
    sheet::{Goal, Sheet, median},
};

/// Rounds of taking turns.
const ROUNDS: usize = 9;
/// Clients that ask side by side.
const SIDE_BY_SIDE: usize = 64;

/// Measures.
pub async fn measure(sheet: &mut Sheet, daemon: &Daemon, server: &Server, effort: Effort) {
    sheet.line("memory after the start", daemon.process.memory() / 1024.0, "MiB", Goal::AtMost(20.0));
    let request = chat("chat", "");
    Client::connect(daemon.address).await.ask(&request).await;
    latency(sheet, daemon, server, &request, effort).await;
    throughput(sheet, daemon, &request, effort).await;
    sheet.line("memory after many chats", daemon.process.memory() / 1024.0, "MiB", Goal::AtMost(20.0));
}

/// One client, in turns with the daemon and with the server alone.
async fn latency(sheet: &mut Sheet, daemon: &Daemon, server: &Server, request: &[u8], effort: Effort) {
    let (mut to_daemon, mut to_server) = (Client::connect(daemon.address).await, Client::connect(server.address).await);
    let (mut through, mut direct, mut added, mut apart) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let with = one_by_one(&mut to_daemon, request, 200 * effort.share).await;
        let without = one_by_one(&mut to_server, request, 200 * effort.share).await;
        let mut once = Vec::new();
        for _ in 0..200 * effort.share {
            once.push(Client::ask_once(server.address, request).await);
        }
        // The first round warms up.
        if round > 0 {
            through.push(with);
            direct.push(without);
            added.push(with - without);
            apart.push(median(once));
        }
    }
    sheet.line("one client: median latency of the server alone", median(direct), "us", Goal::None);
    sheet.line("one client: the same, a connection a request", median(apart), "us", Goal::None);
    sheet.line("one client: median latency through the daemon", median(through), "us", Goal::None);
    sheet.line("one client: added latency, median", median(added), "us", Goal::AtMost(150.0));
}

async fn one_by_one(client: &mut Client, request: &[u8], count: u32) -> f64 {
    let mut times = Vec::new();
    for _ in 0..count {
        times.push(client.ask(request).await);
    }
    median(times)
}

async fn throughput(sheet: &mut Sheet, daemon: &Daemon, request: &[u8], effort: Effort) {
    side_by_side(daemon.address, request, Duration::from_millis(500)).await;
    let processor = || [daemon.process.processor(), daemon.processor_of_servers(), own_processor()];
    let (before, start) = (processor(), Instant::now());
    let times = side_by_side(daemon.address, request, Duration::from_secs(2) * effort.share).await;
    let (after, passed) = (processor(), start.elapsed().as_secs_f64());
    let count = times.len() as f64;
    sheet.line("64 clients: requests a second", count / passed, "1/s", Goal::AtLeast(10_000.0));
    sheet.line("64 clients: median latency", median(times), "us", Goal::None);
    let each = |part: usize| (after[part] - before[part]) * 1e6 / count;
    sheet.line("64 clients: processor time of the daemon a request", each(0), "us", Goal::AtMost(60.0));
    sheet.line("64 clients: processor time of the server a request", each(1), "us", Goal::None);
    sheet.line("64 clients: processor time of the clients a request", each(2), "us", Goal::None);
}

/// Clients that ask without a pause for so long; the time of every request in microseconds.
async fn side_by_side(address: SocketAddr, request: &[u8], time: Duration) -> Vec<f64> {
    let end = Instant::now() + time;
    let request: std::sync::Arc<[u8]> = request.into();
    let clients: Vec<_> = (0..SIDE_BY_SIDE)
        .map(|_| {
            let request = std::sync::Arc::clone(&request);
            tokio::spawn(async move {
                let (mut client, mut times) = (Client::connect(address).await, Vec::new());
                while Instant::now() < end {
                    times.push(client.ask(&request).await);
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.expect("a client does not break"));
    }
    times
}
