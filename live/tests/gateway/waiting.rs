//! Requests that wait, and the connections over which they came: clients see nothing of what is put away meanwhile.

use std::time::Duration;

use tokio::{io::AsyncReadExt, net::TcpStream, time::timeout};

use super::{
    client::Stream,
    upstream::{Conversation, Upstream, answer},
    world::{World, waiting},
};

const PATIENCE: Duration = Duration::from_secs(20);
const PATH: &str = "/v1/chat/completions";
const TINY: &str = r#"{"model":"tiny","messages":[]}"#;

/// A world whose only slot for `tiny` is taken, by a request that the child has not answered.
async fn taken(name: &str) -> (World, Stream, Conversation) {
    let world = World::new(name, Upstream::told().await).await;
    let first = world.client().begin_post(PATH, TINY).await;
    let child = world.upstream.next().await;
    (world, first, child)
}

/// Has the slot free, and the next request answered.
async fn answered(world: &World, first: &mut Stream, child: Conversation) {
    child.say(answer("200 OK", r#"{"first":1}"#));
    drop(child);
    assert_eq!(first.reply().await.text(), r#"{"first":1}"#);
    world.upstream.next().await.say(answer("200 OK", r#"{"second":2}"#));
}

async fn connected(world: &World) -> Stream {
    Stream::of(TcpStream::connect(world.address).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waited_goes_on_over_his_connection() {
    let (world, mut first, child) = taken("waited").await;
    let mut waits = world.client().begin_post(PATH, TINY).await;
    world.until("a waiting job", |view| waiting(view) == 1).await;
    answered(&world, &mut first, child).await;
    let reply = waits.reply().await;
    assert_eq!((reply.status, reply.text()), (200, r#"{"second":2}"#));
    assert_eq!(reply.header("x-windtunnel-job-id"), Some("1"));
    waits.send("GET", "/health", &[], b"").await;
    assert_eq!(waits.reply().await.status, 200);
    drop((first, waits));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_while_a_request_waits_is_answered_after_it() {
    let (world, mut first, child) = taken("waited-more").await;
    let mut waits = world.client().begin_post(PATH, TINY).await;
    world.until("a waiting job", |view| waiting(view) == 1).await;
    let mut further = Vec::new();
    for number in 0..200 {
        further.extend(format!("GET /v1/models/{number} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes());
    }
    waits.write(&further).await;
    answered(&world, &mut first, child).await;
    assert_eq!(waits.reply().await.text(), r#"{"second":2}"#);
    for number in 0..200 {
        let reply = waits.reply().await;
        assert!(reply.status == 404 && reply.text().contains(&format!("\\\"{number}\\\"")), "{}", reply.text());
    }
    drop((first, waits));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_together_with_a_request_that_waits_is_answered_after_it() {
    let (world, mut first, child) = taken("waited-together").await;
    let mut waits = connected(&world).await;
    let head = format!("POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", TINY.len());
    waits.write(format!("{head}{TINY}GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await;
    world.until("a waiting job", |view| waiting(view) == 1).await;
    answered(&world, &mut first, child).await;
    assert_eq!(waits.reply().await.text(), r#"{"second":2}"#);
    assert!(waits.reply().await.text().contains("\"status\":\"ok\""));
    drop((first, waits));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_ends_after_a_wait_where_its_client_wants_that() {
    for (name, version, header, stays) in [
        ("keeps", "1.1", "", true),
        ("closes", "1.1", "connection: foo, Close\r\n", false),
        ("old-closes", "1.0", "", false),
        ("old-keeps", "1.0", "connection: Keep-Alive\r\n", true),
    ] {
        let (world, mut first, child) = taken(&format!("waited-{name}")).await;
        let mut waits = connected(&world).await;
        let head =
            format!("POST {PATH} HTTP/{version}\r\nhost: localhost\r\n{header}content-length: {}\r\n\r\n", TINY.len());
        waits.write(format!("{head}{TINY}").as_bytes()).await;
        world.until("a waiting job", |view| waiting(view) == 1).await;
        answered(&world, &mut first, child).await;
        let reply = waits.reply().await;
        assert!(reply.head.starts_with(&format!("HTTP/{version} 200 ")), "{name}: {}", reply.head);
        if stays {
            waits.send("GET", "/health", &[], b"").await;
            assert_eq!(waits.reply().await.status, 200, "{name}");
        } else {
            let read = timeout(PATIENCE, waits.socket.read(&mut [0; 16])).await.expect("the connection ends");
            assert_eq!(read.unwrap(), 0, "{name}");
        }
        drop((first, waits));
        world.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_in_pieces_that_was_asked_for_waits_like_any_other() {
    let (world, mut first, child) = taken("waited-pieces").await;
    let mut waits = connected(&world).await;
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    waits.write(head.as_bytes()).await;
    assert!(waits.head().await.starts_with("HTTP/1.1 100 "));
    let (one, other) = TINY.split_at(7);
    for piece in [one, other, ""] {
        waits.write(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).await;
    }
    world.until("a waiting job", |view| waiting(view) == 1).await;
    answered(&world, &mut first, child).await;
    assert_eq!(waits.reply().await.text(), r#"{"second":2}"#);
    assert_eq!(world.upstream.asked.lock().unwrap()[1].text(), TINY);
    waits.send("GET", "/health", &[], b"").await;
    assert_eq!(waits.reply().await.status, 200);
    drop((first, waits));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_while_it_waits_is_noticed_whatever_it_sent_before() {
    let (world, mut first, child) = taken("waited-left").await;
    let mut waits = world.client().begin_post(PATH, TINY).await;
    world.until("a waiting job", |view| waiting(view) == 1).await;
    waits.write(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    drop(waits);
    world.until("nobody waiting", |view| waiting(view) == 0).await;
    child.say(answer("200 OK", r#"{"first":1}"#));
    assert_eq!(first.reply().await.status, 200);
    drop((first, child));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_at_the_end_is_told_so_and_his_connection_ends() {
    let (world, mut first, child) = taken("waited-end").await;
    let mut waits = world.client().begin_post(PATH, TINY).await;
    world.until("a waiting job", |view| waiting(view) == 1).await;
    world.shutdown.cancel();
    let reply = waits.reply().await;
    assert_eq!((reply.status, reply.reason()), (503, "draining"));
    child.say(answer("200 OK", r#"{"first":1}"#));
    assert_eq!(first.reply().await.status, 200);
    let read = timeout(PATIENCE, waits.socket.read(&mut [0; 16])).await.expect("the connection ends");
    assert_eq!(read.unwrap(), 0);
    drop((first, child));
    world.close().await;
}
