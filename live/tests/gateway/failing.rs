//! Children that fail, and what their clients hear of it.

use super::{
    upstream::{Upstream, answer},
    world::{World, running},
};

const CHAT: &str = r#"{"model":"chat","messages":[]}"#;
const STREAM: &str = r#"{"model":"chat","stream":true,"messages":[]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_childs_error_keeps_its_status_and_bytes() {
    let error = r#"{"error":{"code":400,"message":"too long","type":"exceed_context_size_error","n_ctx":512}}"#;
    for (name, status) in [("400 Bad Request", 400), ("500 Internal Server Error", 500), ("404 Not Found", 404)] {
        let world = World::new(&format!("error-{status}"), Upstream::saying(answer(name, error)).await).await;
        let reply = world.client().post("/v1/chat/completions", CHAT).await;
        assert_eq!((reply.status, reply.text()), (status, error));
        assert_eq!(world.upstream.count(), 1, "an error is an answer");
        let journal = world.close().await;
        assert!(journal.contains("rejected"), "{journal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_dies_before_it_answers_is_asked_again_once() {
    let world = World::new("dies-once", Upstream::told().await).await;
    let mut client = world.client().begin_post("/v1/chat/completions", CHAT).await;
    drop(world.upstream.next().await);
    world.upstream.next().await.say(answer("200 OK", "{}"));
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
    let mut client = world.client().begin_post("/v1/chat/completions", CHAT).await;
    drop(world.upstream.next().await);
    drop(world.upstream.next().await);
    let head = client.head().await;
    let reply = client.rest("POST", head).await;
    assert_eq!((reply.status, reply.reason()), (503, "runtime_disconnected"));
    assert_eq!(reply.json()["error"]["code"], "runtime_disconnected");
    assert_eq!(world.upstream.count(), 4);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_says_so_and_ends_without_done() {
    let world = World::new("breaks", Upstream::told().await).await;
    let mut client = world.client().begin_post("/v1/chat/completions", STREAM).await;
    let child = world.upstream.next().await;
    child.open_stream();
    child.chunk("data: {\"half\":");
    client.head().await;
    assert_eq!(client.chunk().await.as_deref(), Some(&b"data: {\"half\":"[..]));
    drop(child);
    let (rest, whole) = client.chunks().await;
    let rest = String::from_utf8(rest).unwrap();
    assert!(whole && rest.starts_with("\n\ndata: {\"error\":{") && rest.ends_with("}\n\n"), "{rest}");
    assert!(rest.contains("runtime_disconnected") && !rest.contains("[DONE]"), "{rest}");
    let journal = world.close().await;
    assert!(journal.contains("\"disconnected\""), "{journal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_breaks_ends_the_connection() {
    let world = World::new("breaks-text", Upstream::told().await).await;
    let mut client = world.client().begin_post("/v1/chat/completions", CHAT).await;
    let child = world.upstream.next().await;
    child.say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    child.chunk("{\"choices\":");
    client.head().await;
    assert!(client.chunk().await.is_some());
    drop(child);
    assert_eq!(client.chunk().await, None, "nobody may take this for an answer");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_says_memory_ran_out_is_told_and_the_request_runs_again() {
    let world = World::new("memory", Upstream::told().await).await;
    let mut client = world.client().begin_post("/v1/chat/completions", CHAT).await;
    let error = r#"{"error":{"code":500,"message":"CUDA error: out of memory","type":"server_error"}}"#;
    world.upstream.next().await.say(answer("500 Internal Server Error", error));
    world.upstream.next().await.say(answer("200 OK", "{}"));
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
    let journal = world.close().await;
    assert!(journal.contains("out_of_memory"), "{journal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_the_scheduler_breaks_off_ends_in_the_stream() {
    let world = World::new("broken-off", Upstream::told().await).await;
    let mut client = world.client().begin_post("/v1/chat/completions", STREAM).await;
    let child = world.upstream.next().await;
    child.open_stream();
    child.chunk("data: {}\n\n");
    client.head().await;
    client.chunk().await;
    let job = windtunnel_core::JobId(0);
    world.desk.gone(job);
    let (rest, whole) = client.chunks().await;
    let rest = String::from_utf8(rest).unwrap();
    assert!(whole && rest.starts_with("data: {\"error\":{") && rest.contains("aborted"), "{rest}");
    child.closed().await;
    world.until("no grant", |view| running(view) == 0).await;
    world.close().await;
}
