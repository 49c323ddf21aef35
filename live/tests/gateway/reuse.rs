//! Connections to a child that carry several requests, and those that may not.

use std::time::Duration;

use windtunnel_core::{InstanceId, Request};

use super::{
    client::{Reply, Stream},
    upstream::{Conversation, STREAM, Upstream, answer, chunk},
    world::{Kept, World},
};

const CHAT: &str = r#"{"model":"chat","messages":[]}"#;
const STREAMED: &str = r#"{"model":"chat","stream":true,"messages":[]}"#;

/// The connection stays open for as long as anybody likes.
const KEPT: &str = "Keep-Alive: max=100";

/// A good answer with these headers of its connection.
fn fine(headers: &str) -> Vec<u8> {
    let answer = String::from_utf8(answer("200 OK", "{}")).unwrap();
    answer.replace("\r\n\r\n", &format!("\r\n{headers}\r\n\r\n")).into_bytes()
}

async fn reply(mut client: Stream) -> Reply {
    let head = client.head().await;
    client.rest("POST", head).await
}

/// A chat that is answered so, and the child's side of it, which keeps the connection open.
async fn chat(world: &World, headers: &str) -> Conversation {
    let client = world.client().begin_post("/v1/chat/completions", CHAT).await;
    let child = world.upstream.next().await;
    child.say(fine(headers));
    assert_eq!(reply(client).await.status, 200);
    child
}

/// Over which connections chats go that are answered so, one after the other.
async fn connections(name: &str, headers: &str, count: usize) -> Vec<usize> {
    let world = World::keeping(name, Upstream::told().await, Kept::LONG).await;
    let mut seen = Vec::new();
    let mut children = Vec::new();
    for _ in 0..count {
        let child = chat(&world, headers).await;
        seen.push(child.asked.connection);
        children.push(child);
    }
    drop(children);
    world.close().await;
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_request_goes_over_the_same_connection() {
    let world = World::keeping("reuse-same", Upstream::told().await, Kept::LONG).await;
    let first = chat(&world, KEPT).await;
    assert_eq!(first.asked.header("connection"), None);
    let client = world.client().begin_post("/v1/chat/completions", STREAMED).await;
    let second = world.upstream.next().await;
    second.say([STREAM.as_bytes(), &chunk(b"data: {}\n\n"), b"0\r\n\r\n"].concat());
    assert_eq!(reply(client).await.text(), "data: {}\n\n");
    let third = chat(&world, KEPT).await;
    assert_eq!([&first, &second, &third].map(|child| child.asked.connection), [0, 0, 0]);
    drop(third);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_of_texts_share_connections_too() {
    let world = World::keeping("reuse-vectors", Upstream::told().await, Kept::LONG).await;
    let mut last = None;
    for _ in 0..2 {
        let body = r#"{"model":"vectors","input":"one"}"#;
        let client = world.client().begin_post("/v1/embeddings", body).await;
        let child = world.upstream.next().await;
        let vector = r#"{"data":[{"embedding":[0.5],"index":0}],"usage":{"prompt_tokens":1,"total_tokens":1}}"#;
        child.say(answer("200 OK", vector));
        assert_eq!(reply(client).await.text(), vector);
        assert_eq!(child.asked.connection, 0);
        last = Some(child);
    }
    drop(last);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_at_once_have_a_connection_each_and_both_are_kept() {
    let world = World::keeping("reuse-two", Upstream::told().await, Kept::LONG).await;
    let mut last = Vec::new();
    for _ in 0..2 {
        let mut pairs = Vec::new();
        for _ in 0..2 {
            let client = world.client().begin_post("/v1/chat/completions", CHAT).await;
            pairs.push((client, world.upstream.next().await));
        }
        let mut seen: Vec<usize> = pairs.iter().map(|(_, child)| child.asked.connection).collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1]);
        for (client, child) in pairs {
            child.say(fine(KEPT));
            assert_eq!(reply(client).await.status, 200);
            last.push(child);
        }
    }
    drop(last);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_connection_carries_more_requests_than_the_child_says() {
    assert_eq!(connections("reuse-max", "Keep-Alive: timeout=5, max=2", 5).await, [0, 0, 1, 1, 2]);
    assert_eq!(connections("reuse-once", "Keep-Alive: timeout=5, max=1", 2).await, [0, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_child_says_nothing_it_is_four() {
    assert_eq!(connections("reuse-unstated", "X-Other: 1", 6).await, [0, 0, 0, 0, 1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_child_is_about_to_close_is_not_used_again() {
    assert_eq!(connections("reuse-close", "Connection: close\r\nKeep-Alive: max=9", 2).await, [0, 1]);
    assert_eq!(connections("reuse-timeout", "Keep-Alive: timeout=0, max=9", 2).await, [0, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_is_closed_although_nobody_comes() {
    let kept = Kept { most: 2, idle: Duration::from_millis(20) };
    let world = World::keeping("reuse-idle", Upstream::told().await, kept).await;
    let first = chat(&world, KEPT).await;
    first.closed().await;
    let second = chat(&world, KEPT).await;
    assert_eq!((first.asked.connection, second.asked.connection), (0, 1));
    second.closed().await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_the_child_closed_meanwhile_costs_nobody_an_answer() {
    let world = World::keeping("reuse-closed", Upstream::told().await, Kept::LONG).await;
    drop(chat(&world, KEPT).await);
    world.upstream.until_closed().await;
    let second = chat(&world, KEPT).await;
    assert_eq!(second.asked.connection, 1);
    drop(second);
    let journal = world.close().await;
    assert!(!journal.contains("disconnected"), "{journal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_meets_the_end_of_its_connection_is_sent_once_more_and_answered_once() {
    let world = World::keeping("reuse-retry", Upstream::told().await, Kept::LONG).await;
    let first = chat(&world, KEPT).await;
    let client = world.client().begin_post("/v1/chat/completions", CHAT).await;
    let second = world.upstream.next().await;
    let asked = second.asked.clone();
    drop(second);
    let third = world.upstream.next().await;
    assert_eq!([first.asked.connection, asked.connection, third.asked.connection], [0, 0, 1]);
    assert_eq!((&third.asked.head, &third.asked.body), (&asked.head, &asked.body), "the same request");
    third.say(fine("Connection: close"));
    assert_eq!(reply(client).await.status, 200);
    assert_eq!(world.upstream.count(), 3);
    drop(third);
    let journal = world.close().await;
    assert!(!journal.contains("disconnected"), "{journal}");
}

/// The scheduler gives a grant that failed before a byte once more, and that one is all.
#[tokio::test(flavor = "multi_thread")]
async fn what_fails_on_a_new_connection_is_not_sent_once_more() {
    let world = World::keeping("reuse-new", Upstream::told().await, Kept::LONG).await;
    let first = chat(&world, KEPT).await;
    let client = world.client().begin_post("/v1/chat/completions", CHAT).await;
    let mut seen = vec![first.asked.connection];
    for _ in 0..3 {
        seen.push(world.upstream.next().await.asked.connection);
    }
    let reply = reply(client).await;
    assert_eq!((reply.status, reply.reason()), (503, "runtime_disconnected"));
    assert_eq!(seen, [0, 0, 1, 2], "one retry of the connection that was kept, one of the scheduler");
    assert_eq!(world.upstream.count(), 4);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_child_began_to_answer_is_not_sent_once_more() {
    let world = World::keeping("reuse-begun", Upstream::told().await, Kept::LONG).await;
    let first = chat(&world, KEPT).await;
    let client = world.client().begin_post("/v1/chat/completions", CHAT).await;
    let second = world.upstream.next().await;
    assert_eq!((first.asked.connection, second.asked.connection), (0, 0));
    second.say("HTTP/1.1 200 O");
    drop(second);
    let third = world.upstream.next().await;
    third.say(fine("Connection: close"));
    assert_eq!(reply(client).await.status, 200);
    drop(third);
    let journal = world.close().await;
    assert!(journal.contains("disconnected"), "only the scheduler may decide that: {journal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_mid_stream_closes_a_connection_that_was_kept() {
    let world = World::keeping("reuse-leaves", Upstream::told().await, Kept::LONG).await;
    let first = chat(&world, KEPT).await;
    let mut client = world.client().begin_post("/v1/chat/completions", STREAMED).await;
    let second = world.upstream.next().await;
    assert_eq!((first.asked.connection, second.asked.connection), (0, 0));
    second.open_stream();
    second.chunk("data: {}\n\n");
    client.head().await;
    client.chunk().await;
    drop(client);
    second.closed().await;
    let third = chat(&world, "Connection: close").await;
    // Another one may have gone to whoever looks whether the slot is free.
    assert_ne!(third.asked.connection, 0);
    drop(third);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_asked_to_stop_has_no_idle_connections() {
    let world = World::keeping("reuse-stop", Upstream::told().await, Kept::LONG).await;
    let first = chat(&world, KEPT).await;
    world.desk.operate(Request::Unload { instance: InstanceId(0) });
    first.closed().await;
    world
        .until("an instance that was asked to stop", |_| {
            world.log.lock().unwrap().iter().any(|line| line.starts_with("stop"))
        })
        .await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_ends_has_no_idle_connections() {
    let world = World::keeping("reuse-end", Upstream::told().await, Kept::LONG).await;
    let first = chat(&world, KEPT).await;
    world.shutdown.cancel();
    first.closed().await;
    world.close().await;
}
