//! Five thousand requests wait for memory: what each takes, what that does to somebody else, and how fast they can leave.

use std::time::{Duration, Instant};

use crate::{
    Effort,
    client::{Client, body_of, chat},
    process::Daemon,
    sheet::{Goal, Sheet, median},
};

const CROWD: usize = 5_000;
/// Rounds of a crowd that comes and leaves.
const ROUNDS: u32 = 3;

/// Measures.
pub async fn measure(sheet: &mut Sheet, daemon: &Daemon, effort: Effort) {
    let (request, wish) = (chat("chat", ""), chat("large", ""));
    let mut client = Client::connect(daemon.address).await;
    let (mut each, mut ratios, mut left, mut used) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let alone = latency(&mut client, &request, effort).await;
        let memory = daemon.process.memory();
        let crowd = crowd(daemon, &wish).await;
        // The first crowd finds the memory as the start left it; what later ones take is taken again.
        if round == 0 {
            let grown = (daemon.process.memory() - memory) * 1024.0 / CROWD as f64;
            each.push(grown - body_of(&wish) as f64);
        }
        ratios.push(latency(&mut client, &request, effort).await / alone);
        let (start, before) = (Instant::now(), daemon.process.processor());
        drop(crowd);
        daemon.until_waiting(0).await;
        left.push(start.elapsed().as_secs_f64() * 1e3);
        tokio::time::sleep(Duration::from_millis(200)).await;
        used.push((daemon.process.processor() - before) * 1e3);
    }
    sheet.line("5,000 wait: memory of each beyond its body", median(each), "B", Goal::AtMost(4096.0));
    sheet.line("5,000 wait: a chat's median latency by that without them", median(ratios), "x", Goal::AtMost(1.1));
    sheet.line("5,000 leave: until nobody waits", median(left), "ms", Goal::AtMost(100.0));
    sheet.line("5,000 leave: processor time of the daemon", median(used), "ms", Goal::None);
}

async fn latency(client: &mut Client, request: &[u8], effort: Effort) -> f64 {
    let mut times = Vec::new();
    for _ in 0..500 * effort.share {
        times.push(client.ask(request).await);
    }
    median(times)
}

/// Clients that wait.
async fn crowd(daemon: &Daemon, wish: &[u8]) -> Vec<Client> {
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        let mut client = Client::connect(daemon.address).await;
        client.send(wish).await;
        crowd.push(client);
    }
    daemon.until_waiting(CROWD as u64).await;
    crowd
}
