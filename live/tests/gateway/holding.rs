//! Streams that wait: opened with comments, and everything after that is said in the stream.

use std::time::Duration;

use windtunnel_live::gateway::Settings;

use super::{
    client::{Stream, header},
    upstream::{Upstream, answer},
    world::{Loads, World, settings},
};

const STREAM: &str = r#"{"model":"chat","stream":true,"messages":[]}"#;
const COMMENT: &[u8] = b": keepalive\n\n";

fn at_once() -> Settings {
    Settings { hold_after: Duration::ZERO, ..settings() }
}

/// What comes after any number of comments.
async fn behind_comments(stream: &mut Stream) -> Vec<u8> {
    loop {
        let chunk = stream.chunk().await.expect("the stream goes on");
        if chunk != COMMENT {
            return chunk;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_waits_is_held_open_with_comments_until_its_first_frame() {
    let world = World::with("held", Upstream::told().await, at_once(), Loads::AtOnce).await;
    let mut stream = world.client().begin_post("/v1/chat/completions", STREAM).await;
    let child = world.upstream.next().await;
    let head = stream.head().await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(header(&head, "content-type"), Some("text/event-stream"));
    assert_eq!(header(&head, "x-windtunnel-job-id"), Some("0"));
    assert_eq!(header(&head, "x-windtunnel-model"), Some("chat"));
    for _ in 0..3 {
        assert_eq!(stream.chunk().await.as_deref(), Some(COMMENT), "alone in its frame");
    }
    child.open_stream();
    for _ in 0..3 {
        assert_eq!(stream.chunk().await.as_deref(), Some(COMMENT), "a head is no frame");
    }
    child.chunk("data: 1\n\n");
    assert_eq!(behind_comments(&mut stream).await, b"data: 1\n\n");
    child.say("0\r\n\r\n");
    assert_eq!(stream.chunk().await.as_deref(), Some(&b""[..]), "no comments among frames");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_no_stream_is_not_held_open() {
    let world = World::with("not-held", Upstream::told().await, at_once(), Loads::AtOnce).await;
    let mut client = world.client().begin_post("/v1/chat/completions", r#"{"model":"chat"}"#).await;
    let child = world.upstream.next().await;
    child.say(answer("418 I'm a teapot", "{}"));
    assert!(client.head().await.starts_with("HTTP/1.1 418 "));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_childs_error_comes_in_the_stream_in_its_own_words() {
    let error = r#"{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}"#;
    for (path, event) in [
        ("/v1/chat/completions", format!("data: {error}\n\n")),
        ("/v1/messages", format!("event: error\ndata: {error}\n\n")),
    ] {
        let world = World::with("held-error", Upstream::told().await, at_once(), Loads::AtOnce).await;
        let mut stream = world.client().begin_post(path, STREAM).await;
        stream.head().await;
        world.upstream.next().await.say(answer("400 Bad Request", error));
        assert_eq!(String::from_utf8(behind_comments(&mut stream).await).unwrap(), event);
        assert_eq!(stream.chunk().await.as_deref(), Some(&b""[..]));
        world.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_error_comes_in_the_stream_in_the_envelope_of_the_path() {
    for (path, start) in
        [("/v1/chat/completions", "data: {\"error\":{"), ("/messages", "event: error\ndata: {\"type\":\"error\",")]
    {
        let world = World::with("held-refused", Upstream::told().await, at_once(), Loads::Fail).await;
        let headers = [("x-windtunnel-max-wait-ms", "50")];
        let mut stream = world.client().begin("POST", path, &headers, STREAM.as_bytes()).await;
        stream.head().await;
        let event = String::from_utf8(behind_comments(&mut stream).await).unwrap();
        assert!(event.starts_with(start) && event.ends_with("}\n\n"), "{event}");
        assert_eq!(stream.chunk().await.as_deref(), Some(&b""[..]));
        assert_eq!(world.answered(1).await[0].reason, "queue_expired");
        world.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_stream_is_put_into_one() {
    let world = World::with("held-text", Upstream::told().await, at_once(), Loads::AtOnce).await;
    let mut stream = world.client().begin_post("/v1/chat/completions", STREAM).await;
    stream.head().await;
    world.upstream.next().await.say(answer("200 OK", "{\"a\":\n1}"));
    assert_eq!(behind_comments(&mut stream).await, b"data: {\"a\":\ndata: 1}\n\n");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_end_waiting_requests_are_refused_and_streams_may_end() {
    let world = World::with("drain", Upstream::told().await, settings(), Loads::AtOnce).await;
    let body = r#"{"model":"tiny","stream":true}"#;
    let mut stream = world.client().begin_post("/v1/chat/completions", body).await;
    let child = world.upstream.next().await;
    child.open_stream();
    child.chunk("data: 1\n\n");
    stream.head().await;
    stream.chunk().await;
    let mut waits = world.client().begin_post("/v1/chat/completions", body).await;
    world.until("a waiting job", |view| super::world::waiting(view) == 1).await;
    world.shutdown.cancel();
    let head = waits.head().await;
    let reply = waits.rest("POST", head).await;
    assert_eq!((reply.status, reply.reason()), (503, "draining"));
    let ready = world.client().get("/readyz").await;
    assert_eq!((ready.status, ready.text()), (503, r#"{"status":"draining"}"#));
    let reply = world.client().post("/v1/chat/completions", body).await;
    assert_eq!((reply.status, reply.reason()), (503, "draining"));
    child.chunk("data: 2\n\n");
    assert_eq!(stream.chunk().await.as_deref(), Some(&b"data: 2\n\n"[..]));
    child.say("0\r\n\r\n");
    assert_eq!(stream.chunk().await.as_deref(), Some(&b""[..]));
    let journal = world.close().await;
    assert!(journal.contains(r#""outcome":{"failed":"draining"}"#), "who was refused did not leave by himself");
    assert!(!journal.contains("cancelled"), "{journal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_does_not_end_in_time_is_told_so() {
    let hasty = Settings { drain: Duration::from_millis(20), ..settings() };
    let world = World::with("cut", Upstream::told().await, hasty, Loads::AtOnce).await;
    let mut stream = world.client().begin_post("/v1/messages", STREAM).await;
    let child = world.upstream.next().await;
    child.open_stream();
    child.chunk("data: 1\n\n");
    stream.head().await;
    stream.chunk().await;
    world.shutdown.cancel();
    let (rest, whole) = stream.chunks().await;
    let rest = String::from_utf8(rest).unwrap();
    assert!(whole && rest.starts_with("event: error\ndata: {"), "{rest}");
    child.closed().await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_hurry_a_stream_is_told_so_however_long_it_might_have_gone_on() {
    let patient = Settings { drain: Duration::from_secs(600), ..settings() };
    let world = World::with("hurry", Upstream::told().await, patient, Loads::AtOnce).await;
    let mut stream = world.client().begin_post("/v1/chat/completions", STREAM).await;
    let child = world.upstream.next().await;
    child.open_stream();
    child.chunk("data: 1\n\n");
    stream.head().await;
    stream.chunk().await;
    world.shutdown.cancel();
    world.gateway.cut();
    let (rest, whole) = stream.chunks().await;
    let rest = String::from_utf8(rest).unwrap();
    assert!(whole && rest.starts_with("data: {") && rest.contains("\"aborted\""), "{rest}");
    child.closed().await;
    world.close().await;
}
