//! Connections: how many there may be, and what becomes of the bytes of clients that are refused or leave.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use windtunnel_live::gateway::Settings;

use super::{
    client::Stream,
    upstream::{Upstream, answer},
    world::{Loads, World, running, settings, waiting},
};

const TINY: &str = r#"{"model":"tiny","messages":[]}"#;
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of an answer that no kernel has room for.
const LONG: usize = 40_000_000;

async fn with(name: &str, upstream: Upstream, connections: usize) -> World {
    World::with(name, upstream, Settings { connections, ..settings() }, Loads::AtOnce).await
}

/// Waits for the end of a connection of which nothing more is to come.
async fn ended(mut socket: TcpStream) {
    let read = timeout(PATIENCE, socket.read(&mut [0; 16])).await.expect("the connection should end");
    assert_eq!(read.unwrap_or(0), 0);
}

async fn connected(world: &World) -> Stream {
    Stream::of(TcpStream::connect(world.address).await.unwrap())
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
    let [mut old, mut newer] = [connected(&world).await, connected(&world).await];
    health(&mut old).await;
    health(&mut newer).await;
    let mut old = Stream::of(old.socket);
    health(&mut old).await;
    assert_eq!(world.client().get("/health").await.status, 200);
    let mut newer = newer.socket;
    let mut rest = Vec::new();
    timeout(PATIENCE, newer.read_to_end(&mut rest)).await.expect("the newer one should end").unwrap();
    let mut old = Stream::of(old.socket);
    health(&mut old).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_silent_or_slow_with_a_head_makes_room_beside_others() {
    let world = with("silent", Upstream::saying(answer("200 OK", "{}")).await, 100).await;
    let mut silent = Vec::new();
    for number in 0..100 {
        let mut socket = TcpStream::connect(world.address).await.unwrap();
        if number % 2 == 0 {
            socket.write_all(b"GET /hea").await.unwrap();
        }
        silent.push(socket);
    }
    let started = Instant::now();
    let mut stay = Vec::new();
    for _ in 0..100 {
        let mut stream = connected(&world).await;
        health(&mut stream).await;
        stay.push(stream);
    }
    assert!(started.elapsed() < Duration::from_secs(30), "one after another takes fifty: {:?}", started.elapsed());
    for socket in silent {
        ended(socket).await;
    }
    drop(stay);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_all_work_that_may_is_under_way_others_are_told_so_and_the_daemon_can_be_asked() {
    let world = with("crowded", Upstream::told().await, 4).await;
    let mut work = vec![world.client().begin_post("/v1/chat/completions", TINY).await];
    let child = world.upstream.next().await;
    for _ in 0..2 {
        work.push(world.client().begin_post("/v1/chat/completions", TINY).await);
    }
    world.until("jobs that wait", |view| waiting(view) == 2).await;
    for path in ["/v1/chat/completions", "/tokenize"] {
        let reply = world.client().post(path, TINY).await;
        assert_eq!((reply.status, reply.reason()), (503, "too_many_connections"), "{}", reply.text());
        assert_eq!(
            (&reply.json()["error"]["code"], reply.header("retry-after")),
            (&"too_many_connections".into(), Some("1"))
        );
    }
    for path in ["/health", "/admin/status", "/v1/models"] {
        assert_eq!(world.client().get(path).await.status, 200, "{path}");
    }
    child.say(answer("200 OK", "{}"));
    drop(child);
    assert!(work.remove(0).head().await.starts_with("HTTP/1.1 200 "));
    let mut more = world.client().begin_post("/v1/chat/completions", TINY).await;
    for _ in 0..3 {
        let child = world.upstream.next().await;
        child.say(answer("200 OK", "{}"));
    }
    assert!(more.head().await.starts_with("HTTP/1.1 200 "));
    drop((work, more));
    world.close().await;
}

/// A client who has the head of an answer that no kernel has room for.
async fn slow_reader(world: &World) -> Stream {
    assert_eq!(world.client().post("/v1/chat/completions", TINY).await.status, 200, "the model is loaded");
    let mut slow = world.client().begin_post("/tokenize", TINY).await;
    assert!(slow.head().await.starts_with("HTTP/1.1 200 "));
    slow
}

fn long_answer() -> Vec<u8> {
    answer("200 OK", &format!("\"{}\"", "x".repeat(LONG - 2)))
}

/// Reads what is left after it took nothing for longer than the last bytes of others may take.
async fn read_late(slow: Stream) {
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let reply = slow.rest("POST", format!("HTTP/1.1 200 OK\r\ncontent-length: {LONG}\r\n\r\n")).await;
    assert_eq!(reply.body.len(), LONG);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_given_is_not_cut_to_make_room() {
    let world = with("slow", Upstream::saying(long_answer()).await, 1).await;
    let slow = slow_reader(&world).await;
    let mut comes = connected(&world).await;
    comes.send("GET", "/health", &[], b"").await;
    read_late(slow).await;
    assert!(comes.head().await.starts_with("HTTP/1.1 200 "));
    drop(comes);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_nothing_of_an_answer_is_gone_after_a_while() {
    let settings = Settings { connections: 1, taken_nothing: Duration::from_millis(200), ..settings() };
    let world = World::with("takes-nothing", Upstream::saying(long_answer()).await, settings, Loads::AtOnce).await;
    let slow = slow_reader(&world).await;
    let mut comes = connected(&world).await;
    comes.send("GET", "/health", &[], b"").await;
    assert!(comes.head().await.starts_with("HTTP/1.1 200 "), "there is room, although nobody has read");
    drop((slow, comes));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_given_is_not_cut_by_the_end() {
    let world = with("slow-end", Upstream::saying(long_answer()).await, 8).await;
    let slow = slow_reader(&world).await;
    world.shutdown.cancel();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(world.is_serving(), "somebody still reads");
    read_late(slow).await;
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
