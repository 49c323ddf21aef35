//! Bodies that take their time to arrive.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use windtunnel_live::gateway::Settings;

use super::{
    client::Stream,
    upstream::{Upstream, answer},
    world::{Loads, World, settings},
};

/// A client that is about to send its body, which the gateway waits for.
async fn about_to_send(world: &World) -> Stream {
    let headers = [("content-length", "1000000"), ("expect", "100-continue")];
    let mut stream = world.client().begin_bare("POST", "/v1/chat/completions", &headers).await;
    assert!(stream.head().await.starts_with("HTTP/1.1 100 "));
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_byte_after_byte_has_to_end_in_time() {
    let quick = Settings { body_time: Duration::from_millis(300), ..settings() };
    let world = World::with("drips", Upstream::saying(answer("200 OK", "{}")).await, quick, Loads::AtOnce).await;
    let mut stream = about_to_send(&world).await;
    let (reader, mut writer) = tokio::io::split(&mut stream.socket);
    let drips = async {
        while writer.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let (mut line, mut reader) = (String::new(), BufReader::new(reader));
    let read = tokio::time::timeout(Duration::from_secs(20), reader.read_line(&mut line));
    tokio::select! {
        read = read => drop(read.expect("it is refused in time").unwrap()),
        () = drips => panic!("the connection ended without an answer"),
    }
    assert_eq!(line, "HTTP/1.1 408 Request Timeout\r\n");
    let [refused] = &world.answered(1).await[..] else { panic!("one is refused") };
    assert_eq!((refused.status, refused.reason), (408, "body_too_slow"));
    drop(stream);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_still_sends_does_not_keep_the_daemon_from_its_end() {
    let world = World::new("sends", Upstream::saying(answer("200 OK", "{}")).await).await;
    let mut stream = about_to_send(&world).await;
    stream.write(b"{").await;
    world.shutdown.cancel();
    let head = stream.head().await;
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("draining"), "{head}");
    world.close().await;
}
