//! Streams: whether each frame comes when it is there, and what one costs.

use std::net::SocketAddr;

use crate::{
    Effort,
    client::{Client, chat},
    process::Daemon,
    sheet::{Goal, Sheet},
};

/// Streams side by side.
const SIDE_BY_SIDE: usize = 64;
/// Tokens of a long stream.
const TOKENS: usize = 500;

/// Measures.
pub async fn measure(sheet: &mut Sheet, daemon: &Daemon, effort: Effort) {
    let paced = chat("paced", r#","stream":true,"max_tokens":50"#);
    // Loads the model.
    frames(daemon.address, &paced).await;
    let (reads, frames_seen) = frames(daemon.address, &paced).await;
    let share = reads as f64 / frames_seen as f64;
    sheet.line("a stream of a frame every 5 ms: reads a frame", share, "", Goal::AtLeast(0.98));
    let long = chat("chat", &format!(r#","stream":true,"max_tokens":{TOKENS}"#));
    let (before, rounds) = (daemon.process.processor(), 4 * effort.share as usize);
    let mut frames_seen = 0;
    for _ in 0..rounds {
        let streams: Vec<_> = (0..SIDE_BY_SIDE)
            .map(|_| {
                let (address, long) = (daemon.address, long.clone());
                tokio::spawn(async move { frames(address, &long).await.1 })
            })
            .collect();
        for stream in streams {
            frames_seen += stream.await.expect("a client does not break");
        }
    }
    let used = daemon.process.processor() - before;
    sheet.line("64 streams: processor time of the daemon a frame", used * 1e6 / frames_seen as f64, "us", Goal::None);
}

/// A stream: how many reads of the system it took, and how many frames there were.
async fn frames(address: SocketAddr, request: &[u8]) -> (usize, usize) {
    let mut client = Client::connect(address).await;
    client.send(request).await;
    let (mut reads, mut frames) = (0, 0);
    while let Some(piece) = client.piece().await {
        let here = memchr::memmem::find_iter(piece, b"data: ").count();
        (reads, frames) = (reads + usize::from(here > 0), frames + here);
    }
    (reads, frames)
}
