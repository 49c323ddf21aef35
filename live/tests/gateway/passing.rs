//! What goes through, byte by byte.

use super::{
    client::header,
    upstream::{Upstream, answer},
    world::World,
};

const COMPLETION: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"héllo"}}],"usage":{"completion_tokens":5,"prompt_tokens":3},"timings":{"prompt_ms":12.5,"predicted_n":5}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_goes_to_the_child_with_another_model_and_nothing_else_changed() {
    let world = World::new("chat", Upstream::saying(answer("200 OK", COMPLETION)).await).await;
    let body = "{ \"temperature\": 1.0e-2,\n \"model\" :\"gpt@background\", \"x\":{\"model\":\"inner\"},\"seed\":12345678901234567890123,\"windtunnel\":{\"quality\":\"compact\"} ,\"messages\":[{\"role\":\"user\",\"content\":\"h\\u00e9\"}]}";
    let reply = world.client().post("/v1/chat/completions?a=b%20c", body).await;
    assert_eq!((reply.status, reply.text()), (200, COMPLETION));
    let asked = world.upstream.last();
    let sent = "{ \"temperature\": 1.0e-2,\n \"model\" :\"chat\", \"x\":{\"model\":\"inner\"},\"seed\":12345678901234567890123 ,\"messages\":[{\"role\":\"user\",\"content\":\"h\\u00e9\"}]}";
    assert_eq!(asked.text(), sent);
    assert_eq!(asked.line(), "POST /v1/chat/completions?a=b%20c");
    assert_eq!(asked.header("authorization"), Some("Bearer child-key"));
    assert_eq!(reply.header("x-windtunnel-class"), Some("background"));
    assert_eq!(reply.header("x-windtunnel-model"), Some("chat"));
    assert_eq!(reply.header("x-windtunnel-job-id"), Some("0"));
    assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(reply.header("server"), None);
    assert!(reply.header("x-windtunnel-queue-ms").is_some_and(|millis| millis.parse::<u64>().is_ok()));
    let journal = world.close().await;
    assert!(journal.contains("\"output_tokens\":5"), "what the child counted is told: {journal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_frame_of_a_stream_comes_at_once() {
    let world = World::new("stream", Upstream::told().await).await;
    let body = r#"{"model":"chat","stream":true,"messages":[]}"#;
    let mut stream = world.client().begin_post("/v1/chat/completions", body).await;
    let child = world.upstream.next().await;
    child.open_stream();
    let head = stream.head().await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    for (name, value) in [
        ("content-type", Some("text/event-stream")),
        ("cache-control", Some("no-cache")),
        ("x-accel-buffering", Some("no")),
        ("content-length", None),
        ("server", None),
        ("access-control-allow-origin", None),
        ("keep-alive", None),
        ("x-windtunnel-model", Some("chat")),
    ] {
        assert_eq!(header(&head, name), value, "{name} in {head}");
    }
    // A frame is sent only after the one before has arrived, and a letter may be cut in half.
    for frame in [
        &b"data: {\"delta\":\"h\xc3"[..],
        b"\xa9\"}\n\n",
        b"data: {\"usage\":{\"completion_tokens\":42}}\n\n",
        b"data: [DONE]\n\n",
    ] {
        child.chunk(frame);
        assert_eq!(stream.chunk().await.as_deref(), Some(frame));
    }
    child.say("0\r\n\r\n");
    assert_eq!(stream.chunk().await.as_deref(), Some(&b""[..]));
    let answered = world.answered(1).await;
    assert_eq!((answered[0].status, answered[0].reason), (200, "ok"));
    let journal = world.close().await;
    assert!(journal.contains("\"output_tokens\":42"), "{journal}");
}
