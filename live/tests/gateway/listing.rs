//! What can be read without asking a model.

use windtunnel_core::{Class, Mode, Tier};
use windtunnel_live::operator::Status;

use super::{
    upstream::{Upstream, answer},
    world::{Loads, World, settings},
};

async fn world(name: &str) -> World {
    World::new(name, Upstream::saying(answer("200 OK", "{}")).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn models_aliases_and_families_are_listed_loaded_or_not() {
    let world = world("models").await;
    for path in ["/v1/models", "/models"] {
        let list = world.client().get(path).await.json();
        let names: Vec<&str> = list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        assert_eq!(names, ["chat", "code", "gpt", "org/chat:latest", "small", "talk", "tiny", "vectors"]);
    }
    for (path, kind) in [
        ("/v1/models/org/chat:latest", "alias"),
        ("/v1/models/org%2Fchat%3Alatest", "alias"),
        ("/v1/models/talk", "family"),
        ("/models/code", "model"),
    ] {
        let one = world.client().get(path).await.json();
        assert_eq!((&one["object"], &one["windtunnel"]["kind"]), (&"model".into(), &kind.into()), "{path}: {one}");
    }
    let reply = world.client().get("/v1/models/nothing").await;
    assert_eq!((reply.status, reply.reason()), (404, "model_not_found"));
    assert_eq!(world.log.lock().unwrap().len(), 0);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_have_the_length_and_no_body_and_the_connection_goes_on() {
    let world = world("heads").await;
    for path in ["/v1/models", "/v1/models/chat", "/health", "/readyz", "/metrics", "/admin/status", "/v1/nothing"] {
        let whole = world.client().get(path).await;
        let mut stream = world.client().begin("HEAD", path, &[], b"").await;
        let head = stream.head().await;
        stream.send("GET", "/v1/models/chat", &[], b"").await;
        let next = stream.head().await;
        assert!(next.starts_with("HTTP/1.1 200 "), "{path}: {next}");
        assert_eq!(super::client::header(&head, "content-length"), whole.header("content-length"), "{path}");
        assert_eq!(head.split(' ').nth(1), whole.head.split(' ').nth(1), "{path}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_see_devices_residents_and_queues_by_name() {
    let world = World::with("status", Upstream::told().await, settings(), Loads::AtOnce).await;
    let body = r#"{"model":"tiny"}"#;
    let runs = world.client().begin_post("/v1/chat/completions", body).await;
    world.upstream.next().await;
    let waits = world.client().begin_post("/v1/chat/completions", body).await;
    world.until("a waiting job", |view| super::world::waiting(view) == 1).await;
    let status = world.client().get("/admin/status").await.json();
    let device = &status["devices"][0];
    assert_eq!((&device["device"], &device["mode"]), (&"gpu0".into(), &"interactive".into()), "{status}");
    assert_eq!(device["memory"]["budget"], (16u64 << 30) - (512 << 20));
    let resident = &device["residents"][0];
    assert_eq!(
        (&resident["model"], &resident["tier"], &resident["running"]),
        (&"tiny".into(), &"hot".into(), &1.into())
    );
    let queue = &status["queues"][0];
    assert_eq!((&queue["variants"][0], &queue["reason"]), (&"tiny".into(), &"slots_busy".into()), "{status}");
    assert_eq!(queue["why"], "every instance that could serve it is full");
    let status: Status = serde_json::from_value(status).expect("what `windtunnel status` reads");
    let device = &status.devices[0];
    assert_eq!((device.mode, device.memory.budget), (Mode::Interactive, Some((16 << 30) - (512 << 20))));
    let [resident] = &device.residents[..] else { panic!("one is loaded: {device:?}") };
    assert_eq!((&resident.stage[..], resident.tier, resident.running), ("ready", Tier::Hot, 1));
    let [queue] = &status.queues[..] else { panic!("one waits: {status:?}") };
    assert_eq!((queue.class, queue.jobs, &queue.reason[..]), (Class::Interactive, 1, "slots_busy"));
    drop((runs, waits));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_load_and_unload_and_read_what_happened() {
    let world = world("operate").await;
    let reply = world.client().post("/admin/models/tiny/load?device=gpu0", "").await;
    assert_eq!((reply.status, reply.text()), (202, r#"{"accepted":"tiny"}"#));
    world.until("a resident", |view| view.devices[0].instances.len() == 1).await;
    assert_eq!(world.client().post("/admin/models/tiny/unload", "").await.status, 202);
    world.until("no resident", |view| view.devices[0].instances.is_empty()).await;
    let reply = world.client().post("/tokenize", r#"{"model":"tiny"}"#).await;
    assert_eq!((reply.status, reply.reason()), (503, "not_loaded"), "what was unloaded answers nothing");
    let reply = world.client().post("/admin/models/tiny/unload", "").await;
    assert_eq!((reply.status, reply.reason()), (503, "not_loaded"));
    for (path, reason) in [
        ("/admin/models/tiny/load?device=tpu", "bad_value"),
        ("/admin/models/talk/load", "bad_value"),
        ("/admin/models/none/reset", "model_not_found"),
        ("/admin/reload", "reload_failed"),
    ] {
        let reply = world.client().post(path, "").await;
        assert_eq!(reply.reason(), reason, "{path}: {}", reply.text());
    }
    let reply = world.client().post("/admin/reload", "").await;
    assert_eq!(reply.json()["error"]["message"], "line 3: no such key `modles`; meant `models`?");
    let events = world.client().get("/admin/events?after=7").await;
    assert_eq!(events.text(), r#"{"last":9,"lines":["one","two"]}"#);
    assert_eq!(world.client().get("/admin/events?after=x").await.status, 400);
    assert_eq!(world.client().get("/metrics").await.text(), "# EOF\n");
    world.close().await;
}
