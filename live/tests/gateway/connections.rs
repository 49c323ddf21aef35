//! Connections: how many there may be, and what becomes of the bytes of clients that are refused or leave.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use windtunnel_live::gateway::Settings;

use super::{
    client::Stream,
    upstream::{Upstream, answer},
    world::{Loads, World, running, settings},
};

const TINY: &str = r#"{"model":"tiny","messages":[]}"#;
const PATIENCE: Duration = Duration::from_secs(20);

async fn with(name: &str, upstream: Upstream, connections: usize) -> World {
    World::with(name, upstream, Settings { connections, ..settings() }, Loads::AtOnce).await
}

/// Waits for the end of a connection of which nothing more is to come.
async fn ended(mut socket: TcpStream) {
    let read = timeout(PATIENCE, socket.read(&mut [0; 16])).await.expect("the connection should end");
    assert_eq!(read.unwrap_or(0), 0);
}

/// Asks for the health on a connection that stays open.
async fn health(stream: &mut Stream) {
    stream.send("GET", "/health", &[], b"").await;
    assert!(stream.head().await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_rests_makes_room_for_who_comes() {
    let world = with("rests", Upstream::saying(answer("200 OK", "{}")).await, 2).await;
    let silent = TcpStream::connect(world.address).await.unwrap();
    let mut begun = TcpStream::connect(world.address).await.unwrap();
    begun.write_all(b"POST /v1/chat/compl").await.unwrap();
    for _ in 0..5 {
        let reply = world.client().post("/v1/chat/completions", TINY).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    // Two that stay, where there is room for two.
    let others = [TcpStream::connect(world.address).await.unwrap(), TcpStream::connect(world.address).await.unwrap()];
    ended(silent).await;
    ended(begun).await;
    drop(others);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_an_answer_stays_and_others_wait_for_room() {
    let world = with("stays", Upstream::told().await, 1).await;
    let mut stays = world.client().begin_post("/v1/chat/completions", TINY).await;
    let child = world.upstream.next().await;
    let mut comes = TcpStream::connect(world.address).await.unwrap();
    comes.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let early = timeout(Duration::from_millis(200), comes.read(&mut [0; 16])).await;
    assert!(early.is_err(), "there is no room: {early:?}");
    child.say(answer("200 OK", "{}"));
    assert!(stays.head().await.starts_with("HTTP/1.1 200 "));
    let mut start = [0; 12];
    timeout(PATIENCE, comes.read_exact(&mut start)).await.expect("an answer in time").unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    drop((stays, comes));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_used_rests_from_then_on() {
    let world = with("used", Upstream::saying(answer("200 OK", "{}")).await, 2).await;
    let mut old = world.client().begin("GET", "/health", &[], b"").await;
    assert!(old.head().await.starts_with("HTTP/1.1 200 "));
    let newer = TcpStream::connect(world.address).await.unwrap();
    // Not before the newer one is there.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut old = Stream::of(old.socket);
    health(&mut old).await;
    assert_eq!(world.client().get("/health").await.status, 200);
    ended(newer).await;
    let mut old = Stream::of(old.socket);
    health(&mut old).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_refused_can_send_all_and_read_why() {
    let small = Settings { body_limit: 1000, ..settings() };
    let world = World::with("lingers", Upstream::saying(answer("200 OK", "{}")).await, small, Loads::AtOnce).await;
    let body = vec![b'x'; 12_000_000];
    for (path, status) in [("/v1/chat/completions", "413"), ("/v1/nothing", "404"), ("/v1/models", "405")] {
        let mut socket = TcpStream::connect(world.address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
        socket.write_all(head.as_bytes()).await.unwrap();
        timeout(PATIENCE, socket.write_all(&body)).await.unwrap().unwrap_or_else(|wrong| panic!("{path}: {wrong}"));
        let mut text = String::new();
        timeout(PATIENCE, socket.read_to_string(&mut text)).await.unwrap().unwrap();
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")) && text.ends_with('}'), "{path}: {text}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_is_noticed_whatever_it_sent_after_its_request() {
    for (name, more) in [("crlf", "\r\n"), ("pipelined", "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")] {
        let world = World::new(&format!("leaves-{name}"), Upstream::told().await).await;
        let mut client = world.client().begin_post("/v1/chat/completions", TINY).await;
        client.write(more.as_bytes()).await;
        let child = world.upstream.next().await;
        drop(client);
        child.closed().await;
        world.until("no grant", |view| running(view) == 0).await;
        world.close().await;
    }
}
