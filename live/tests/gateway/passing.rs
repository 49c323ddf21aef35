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

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_chunked_bodies_and_bodies_that_wait_arrive_whole() {
    let world = World::new("bodies-whole", Upstream::saying(answer("200 OK", "{}")).await).await;
    let body = format!(r#"{{"pad":"{}","model":"gpt","end":[1.50]}}"#, "x".repeat(3_000_000));
    assert_eq!(world.client().post("/v1/chat/completions", &body).await.status, 200);
    assert!(world.upstream.last().text() == body.replace("gpt", "chat"), "not one byte is another");
    let mut stream = world.client().begin("GET", "/health", &[], b"").await;
    stream.head().await;
    let head = [("transfer-encoding", "chunked"), ("expect", "100-continue")];
    let mut stream = world.client().begin_bare("POST", "/v1/chat/completions", &head).await;
    let go_on = stream.head().await;
    assert!(go_on.starts_with("HTTP/1.1 100 "), "{go_on}");
    stream.write(b"4\r\n{\"mo\r\n10\r\ndel\": \"chat\"   }\r\n0\r\n\r\n").await;
    let head = stream.head().await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(world.upstream.last().text(), "{\"model\": \"chat\"   }");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused_before_it_is_sent() {
    let world = World::new("too-large", Upstream::saying(answer("200 OK", "{}")).await).await;
    let head = [("content-length", "200000000"), ("expect", "100-continue")];
    let mut stream = world.client().begin_bare("POST", "/v1/chat/completions", &head).await;
    let head = stream.head().await;
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_goes_through_as_a_form() {
    let world = World::new("sound", Upstream::saying(answer("200 OK", "{}")).await).await;
    let form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n\0\x01\r\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\norg/chat:latest\r\n--b--\r\n";
    let headers = [("content-type", "multipart/form-data; boundary=b")];
    let reply = world.client().request("POST", "/audio/transcriptions", &headers, form.as_bytes()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let asked = world.upstream.last();
    assert_eq!(asked.text(), form.replace("org/chat:latest", "chat"));
    assert_eq!(asked.line(), "POST /v1/audio/transcriptions");
    assert_eq!(asked.header("content-type"), Some("multipart/form-data; boundary=b"));
    let reply = world.client().request("POST", "/v1/audio/transcriptions", &headers, b"--b--\r\n").await;
    assert_eq!((reply.status, reply.reason()), (400, "bad_value"));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_that_carries_a_model_reaches_the_child() {
    let world = World::new("paths", Upstream::saying(answer("200 OK", "{}")).await).await;
    for (path, at_the_child) in [
        ("/chat/completions", "/chat/completions"),
        ("/v1/completions", "/v1/completions"),
        ("/completions", "/completions"),
        ("/v1/completion", "/completion"),
        ("/responses", "/v1/responses"),
        ("/messages", "/v1/messages"),
        ("/v1/infill", "/infill"),
        ("/rerank", "/rerank"),
        ("/v1/reranking", "/v1/reranking"),
    ] {
        let reply = world.client().post(path, r#"{"model":"chat"}"#).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert_eq!(world.upstream.last().line(), format!("POST {at_the_child}"));
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_headers_are_refused_or_ignored_and_the_next_request_is_served() {
    let world = World::new("hostile", Upstream::saying(answer("200 OK", "{}")).await).await;
    let names = [
        "x-windtunnel-class",
        "x-windtunnel-deadline-ms",
        "x-windtunnel-max-wait-ms",
        "x-windtunnel-quality",
        "x-windtunnel-drop-hopeless",
        "x-gridcore-class",
        "x-request-id",
        "authorization",
        "x-api-key",
        "origin",
        "host",
        "content-encoding",
        "content-type",
        "connection",
        "expect",
        "transfer-encoding",
        "content-length",
    ];
    let values = [
        "",
        " ",
        "\u{ff}\u{fe}",
        "-1",
        "99999999999999999999999",
        "1e400",
        "NaN",
        "batch, batch",
        "Basic ====",
        "Basic OjpA",
        "Bearer",
        "[::1",
        "a:b:c",
        "\"",
        "close, x-windtunnel-class",
        "gzip, gzip",
        "0x10",
        "%00",
        "\u{1f4a9}",
        "'; drop",
    ];
    for name in names {
        for value in values {
            let headers = [(name, value)];
            let mut stream = world.client().begin_bare("POST", "/v1/chat/completions", &headers).await;
            stream.write(b"").await;
            // Some of these leave no way to tell where the request ends; all that counts is that nothing breaks.
            stream.finish().await;
        }
    }
    assert_eq!(world.client().post("/v1/chat/completions", r#"{"model":"chat"}"#).await.status, 200);
    world.close().await;
}
