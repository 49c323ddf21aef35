//! What is not served: status, reason, envelope, and when to come back.

use std::time::Duration;

use windtunnel_core::{Admission, Class};
use windtunnel_live::gateway::{Phase, Settings};

use super::{
    client::Reply,
    upstream::{Upstream, answer},
    world::{Loads, World, settings, waiting},
};

const TINY: &str = r#"{"model":"tiny","messages":[]}"#;

async fn world(name: &str) -> World {
    World::new(name, Upstream::saying(answer("200 OK", "{}")).await).await
}

/// Status, reason and message.
fn said(reply: &Reply) -> (u16, String, String) {
    let json = reply.json();
    let error = &json["error"];
    assert_eq!(error["code"], reply.reason(), "{json}");
    (reply.status, reply.reason().to_owned(), error["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_json_is_refused_with_its_place_and_loads_nothing() {
    let world = world("bad-json").await;
    for (body, message) in [
        ("{\"model\": \"chat\",\n \"a\": tru}", "the body is not JSON at line 2 column 7: found 't', wanted a value"),
        ("{\"model\": \"chat\"", "the body is not JSON at line 1 column 17: the body ends, wanted `,` or `}`"),
        ("", "the body is not JSON at line 1 column 1: the body ends, wanted a JSON object"),
        ("[1]", "the body is not JSON at line 1 column 1: found '[', wanted a JSON object"),
        ("{} x", "the body is not JSON at line 1 column 4: found 'x', wanted the end of the body"),
    ] {
        let reply = world.client().post("/v1/chat/completions", body).await;
        assert_eq!(said(&reply), (400, "bad_json".to_owned(), message.to_owned()), "{body}");
    }
    let reply = world.client().request("POST", "/v1/chat/completions", &[], b"{\"model\":\"\xff\"}").await;
    assert_eq!(said(&reply).2, "the body is not UTF-8 from byte 10 on");
    for (body, message) in [
        (r#"{"model":7}"#, "`model` has to be a string"),
        (r#"{"messages":[]}"#, "`model` is missing, and there is more than one"),
        (
            r#"{"model":"chat","windtunnel":{"class":"urgent"}}"#,
            "`windtunnel.class` has to be interactive, background or batch",
        ),
        (
            r#"{"model":"chat","windtunnel":{"clas":"batch"}}"#,
            "`windtunnel.clas` has to be one of class, deadline_ms, max_wait_ms, quality, drop_hopeless",
        ),
    ] {
        let reply = world.client().post("/v1/chat/completions", body).await;
        assert_eq!(said(&reply), (400, "bad_value".to_owned(), message.to_owned()), "{body}");
    }
    assert_eq!(world.log.lock().unwrap().len(), 0, "nothing is loaded for nonsense");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_models_paths_and_methods_are_refused_in_json() {
    let world = world("unknown").await;
    let reply = world.client().post("/v1/chat/completions", r#"{"model":"gpt-9@batch"}"#).await;
    assert_eq!(
        said(&reply),
        (
            404,
            "model_not_found".to_owned(),
            "the model \"gpt-9@batch\" is not configured; did you mean `gpt`?".to_owned()
        )
    );
    let there = "there are chat, code, gpt, org/chat:latest, small, talk, tiny, vectors";
    let message = format!("the model \"nothing-like-it\" is not configured; {there}");
    let reply = world.client().post("/v1/chat/completions", r#"{"model":"nothing-like-it"}"#).await;
    assert_eq!(said(&reply).2, message);
    assert_eq!(said(&world.client().get("/v1/models/nothing-like-it").await).2, message);
    assert_eq!(said(&world.client().post("/admin/models/nothing-like-it/load", "").await).2, message);
    assert_eq!(reply.json()["error"]["param"], "model");
    for path in ["/v1/nothing", "/ui", "/", "/v1", "/props", "/v1chat/completions"] {
        let reply = world.client().get(path).await;
        assert_eq!((reply.status, reply.reason()), (404, "no_such_path"), "{path}");
        assert_eq!(reply.header("content-type"), Some("application/json"));
    }
    for (method, path, allow) in [
        ("GET", "/v1/chat/completions", "POST, OPTIONS"),
        ("DELETE", "/v1/models/chat", "GET, HEAD, OPTIONS"),
        ("POST", "/health", "GET, HEAD, OPTIONS"),
        ("GET", "/admin/reload", "POST, OPTIONS"),
    ] {
        let reply = world.client().request(method, path, &[], b"").await;
        assert_eq!((reply.status, reply.reason()), (405, "method_not_allowed"), "{method} {path}");
        assert_eq!(reply.header("allow"), Some(allow));
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_paths_have_their_own_envelope() {
    let world = world("anthropic").await;
    let headers = [("x-request-id", "mine-1")];
    let reply = world.client().request("POST", "/v1/messages", &headers, br#"{"model":"x"}"#).await;
    assert_eq!(reply.status, 404);
    let there = "there are chat, code, gpt, org/chat:latest, small, talk, tiny, vectors";
    let expected = serde_json::json!({
        "type": "error",
        "error": {"type": "not_found_error", "message": format!("the model \"x\" is not configured; {there}")},
        "request_id": "mine-1",
    });
    assert_eq!(reply.json(), expected);
    assert_eq!((reply.header("x-request-id"), reply.reason()), (Some("mine-1"), "model_not_found"));
    let reply = world.client().get("/messages").await;
    assert_eq!((reply.status, &reply.json()["type"]), (405, &"error".into()));
    let reply = world.client().get("/v1/messages/nothing").await;
    assert_eq!(reply.json()["error"]["type"], "not_found_error");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn request_ids_are_kept_if_they_are_sane() {
    let world = world("request-ids").await;
    let long = "x".repeat(200);
    for (sent, kept) in [("abc-1.2:3_4", true), ("a b", false), ("a\"b", false), (long.as_str(), false)] {
        let reply = world.client().request("GET", "/v1/models", &[("x-request-id", sent)], b"").await;
        let got = reply.header("x-request-id").unwrap();
        assert_eq!(got == sent, kept, "{sent}: {got}");
        assert!(kept || got.starts_with("req_"), "{got}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_429_and_says_when_to_come_back() {
    let upstream = Upstream::told().await;
    let world = World::changed("queue-full", upstream, settings(), Loads::AtOnce, |started| {
        started.configuration.policy.classes[Class::Interactive.index()].max_queued = Some(1);
    })
    .await;
    let mut runs = world.client().begin_post("/v1/chat/completions", TINY).await;
    let child = world.upstream.next().await;
    let mut waits = world.client().begin_post("/v1/chat/completions", TINY).await;
    world.until("a waiting job", |view| waiting(view) == 1).await;
    let reply = world.client().post("/v1/chat/completions", TINY).await;
    assert_eq!(said(&reply).0, 429);
    assert_eq!((reply.reason(), reply.header("retry-after")), ("queue_full", Some("1")));
    assert_eq!(reply.json()["error"]["type"], "rate_limit_error");
    child.say(answer("200 OK", "{}"));
    runs.head().await;
    world.upstream.next().await.say(answer("200 OK", "{}"));
    waits.head().await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_that_cannot_be_met_are_429() {
    let upstream = Upstream::told().await;
    let world = World::changed("deadline", upstream, settings(), Loads::AtOnce, |started| {
        started.configuration.policy.classes[Class::Interactive.index()].admission = Admission::Deadline;
    })
    .await;
    let mut first = world.client().begin_post("/v1/chat/completions", TINY).await;
    let child = world.upstream.next().await;
    let headers = [("x-windtunnel-deadline-ms", "1")];
    let reply = world.client().request("POST", "/v1/chat/completions", &headers, TINY.as_bytes()).await;
    assert_eq!((reply.status, reply.reason()), (429, "deadline_unreachable"), "{}", reply.text());
    let seconds: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds));
    let headers =
        [("x-windtunnel-deadline-ms", "0"), ("x-windtunnel-drop-hopeless", "true"), ("x-windtunnel-class", "batch")];
    let reply = world.client().request("POST", "/v1/chat/completions", &headers, TINY.as_bytes()).await;
    assert_eq!((reply.status, reply.reason()), (429, "deadline_hopeless"), "{}", reply.text());
    assert_eq!(reply.header("x-should-retry"), Some("false"));
    child.say(answer("200 OK", "{}"));
    first.head().await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_runs_out_says_what_it_waited_for() {
    let world = World::with("expired", Upstream::told().await, settings(), Loads::Never).await;
    let headers = [("x-gridcore-max-wait-ms", "30")];
    let reply = world.client().request("POST", "/v1/chat/completions", &headers, TINY.as_bytes()).await;
    let message = "the request waited as long as it may: its model is being loaded";
    assert_eq!(said(&reply), (503, "queue_expired".to_owned(), message.to_owned()));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_again_and_again_is_503_and_no_storm() {
    let world = World::with("broken", Upstream::told().await, settings(), Loads::Fail).await;
    let reply = world.client().post("/v1/chat/completions", TINY).await;
    // The first one waited through the failures, the others come to a model that is not tried.
    let tells = |reply: &Reply| {
        assert_eq!((reply.status, reply.reason()), (503, "model_broken"), "{}", reply.text());
        let seconds: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((2..=60).contains(&seconds), "{seconds}");
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("because its process ended while it loaded; it is tried again in "), "{message}");
    };
    tells(&reply);
    let loads = world.log.lock().unwrap().len();
    for _ in 0..20 {
        let reply = world.client().post("/v1/chat/completions", TINY).await;
        tells(&reply);
    }
    assert_eq!(world.log.lock().unwrap().len(), loads);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capabilities_and_quality_are_asked_of_families() {
    let upstream = Upstream::saying(answer("200 OK", "{}")).await;
    let world = World::changed("needs", upstream, settings(), Loads::AtOnce, |started| {
        for model in &mut started.configuration.models {
            model.capabilities = vec![windtunnel_core::Capability::Chat];
        }
        started.configuration.models[0].capabilities.push(windtunnel_core::Capability::Vision);
    })
    .await;
    let image = r#"{"model":"talk","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:x"}}]}]}"#;
    let reply = world.client().post("/v1/chat/completions", image).await;
    assert_eq!((reply.header("x-windtunnel-model"), reply.header("x-windtunnel-family")), (Some("chat"), Some("talk")));
    assert_eq!(world.upstream.last().text(), image.replace("talk", "chat"));
    let reply = world.client().post("/v1/chat/completions", &image.replace("talk", "small")).await;
    let message = r#"the model "small" has not the capability "vision"; it has "chat""#;
    assert_eq!(said(&reply), (400, "not_capable".to_owned(), message.to_owned()));
    let body = image.replace("\"messages\"", "\"windtunnel\":{\"quality\":\"preferred\"},\"messages\"");
    assert_eq!(world.client().post("/v1/chat/completions", &body).await.status, 200);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_only_asked_for_what_it_lists_and_loaded_for_nothing_else() {
    use windtunnel_core::Capability::{Chat, Completion, Embedding, Rerank, Vision};
    let upstream = Upstream::saying(answer("200 OK", "{}")).await;
    let world = World::changed("kinds", upstream, settings(), Loads::AtOnce, |started| {
        let lists = [vec![Chat, Vision], vec![], vec![Completion], vec![Chat], vec![Embedding, Rerank]];
        for (model, list) in started.configuration.models.iter_mut().zip(lists) {
            model.capabilities = list;
        }
    })
    .await;
    let of = |model: &str, lacks: &str, has: &str| {
        format!("the model {model:?} has not the capability {lacks:?}; it has {has}")
    };
    let family = r#"no model of the family "talk" has all of "embedding"; they have "chat", "vision""#.to_owned();
    for (path, model, message) in [
        ("/v1/chat/completions", "vectors", of("vectors", "chat", r#""embedding", "rerank""#)),
        ("/v1/messages", "tiny", of("tiny", "chat", r#""completion""#)),
        ("/v1/completions", "chat", of("chat", "completion", r#""chat", "vision""#)),
        ("/infill", "gpt", of("chat", "completion", r#""chat", "vision""#)),
        ("/v1/embeddings", "chat", of("chat", "embedding", r#""chat", "vision""#)),
        ("/v1/embeddings", "talk", family),
        ("/v1/rerank", "tiny", of("tiny", "rerank", r#""completion""#)),
    ] {
        let reply = world.client().post(path, &format!(r#"{{"model":"{model}","input":["a"]}}"#)).await;
        assert_eq!(reply.status, 400, "{path} {model}");
        assert_eq!(reply.json()["error"]["message"], message, "{path} {model}");
        assert_eq!(reply.reason(), "not_capable");
    }
    assert!(world.log.lock().unwrap().is_empty(), "nothing is loaded for it");
    for (path, model) in [("/v1/rerank", "vectors"), ("/v1/completions", "code"), ("/v1/rerank", "code")] {
        let reply = world.client().post(path, &format!(r#"{{"model":"{model}"}}"#)).await;
        assert_eq!(reply.status, 200, "{path} {model}: {}", reply.text());
    }
    let reply = world.client().post("/tokenize", r#"{"model":"vectors"}"#).await;
    assert_eq!(reply.status, 200, "every model has tokens: {}", reply.text());
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_served_before_everything_is_there() {
    let world = world("starting").await;
    *world.around.phase.lock().unwrap() = Phase::Starting;
    let reply = world.client().post("/v1/chat/completions", TINY).await;
    assert_eq!((reply.status, reply.reason()), (503, "starting"));
    assert_eq!(world.client().get("/readyz").await.status, 503);
    assert_eq!(world.client().get("/health").await.status, 200);
    *world.around.phase.lock().unwrap() = Phase::Serving;
    assert_eq!(world.client().get("/readyz").await.status, 200);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_scheduler_health_is_bad() {
    let world = world("dead").await;
    world.desk.close();
    let reply = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            let reply = world.client().get("/health").await;
            if reply.status == 503 {
                return reply;
            }
        }
    });
    assert_eq!(reply.await.unwrap().json()["status"], "error");
    let reply = world.client().post("/v1/chat/completions", TINY).await;
    assert_eq!((reply.status, reply.reason()), (503, "stopped"));
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_load_nothing() {
    let world = world("questions").await;
    for path in ["/tokenize", "/v1/detokenize", "/apply-template", "/v1/messages/count_tokens"] {
        let reply = world.client().post(path, r#"{"model":"tiny","content":"x"}"#).await;
        assert_eq!((reply.status, reply.reason()), (503, "not_loaded"), "{path}");
    }
    assert_eq!(world.log.lock().unwrap().len(), 0);
    world.client().post("/v1/chat/completions", TINY).await;
    for (path, at_the_child) in [
        ("/tokenize?a=1", "POST /tokenize?a=1"),
        ("/v1/detokenize", "POST /detokenize"),
        ("/v1/messages/count_tokens", "POST /v1/messages/count_tokens"),
    ] {
        let reply = world.client().post(path, r#"{"model":"tiny"}"#).await;
        assert_eq!((reply.status, reply.text()), (200, "{}"), "{path}");
        assert_eq!(world.upstream.last().line(), at_the_child);
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_limited_packed_or_not() {
    let small = Settings { body_limit: 1000, ..settings() };
    let world = World::with("bodies", Upstream::saying(answer("200 OK", "{}")).await, small, Loads::AtOnce).await;
    let body = format!("{{\"model\":\"tiny\",\"pad\":\"{}\"}}", "x".repeat(2000));
    let reply = world.client().post("/v1/chat/completions", &body).await;
    assert_eq!(said(&reply), (413, "body_too_large".to_owned(), "the body is larger than 1000 bytes".to_owned()));
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest);
    for (name, bomb, fine) in
        [("gzip", gzip(body.as_bytes()), gzip(TINY.as_bytes())), ("zstd", zstd(body.as_bytes()), zstd(TINY.as_bytes()))]
    {
        let headers = [("content-encoding", name)];
        assert!(bomb.len() < 1000);
        let reply = world.client().request("POST", "/v1/chat/completions", &headers, &bomb).await;
        assert_eq!((reply.status, reply.reason()), (413, "body_too_large"), "{name}");
        let reply = world.client().request("POST", "/v1/chat/completions", &headers, &fine).await;
        assert_eq!(reply.status, 200, "{name}: {}", reply.text());
        assert_eq!(world.upstream.last().text(), TINY);
        assert_eq!(world.upstream.last().header("content-encoding"), None);
        let reply = world.client().request("POST", "/v1/chat/completions", &headers, TINY.as_bytes()).await;
        assert_eq!((reply.status, reply.reason()), (400, "bad_body"), "{name}");
    }
    let reply = world.client().request("POST", "/v1/chat/completions", &[("content-encoding", "br")], b"x").await;
    assert_eq!((reply.status, reply.reason()), (415, "unknown_encoding"));
    world.close().await;
}
