//! Texts to be embedded: cut, batched, and put together again.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    upstream::{Asked, Upstream, answer},
    world::{Loads, World, loading, settings},
};

/// A child whose vector for a text is its number in words and its length.
fn vectors(asked: &Asked) -> Vec<u8> {
    let body: Value = serde_json::from_slice(&asked.body).unwrap();
    let texts = match &body["input"] {
        Value::Array(texts) => texts.clone(),
        text => vec![text.clone()],
    };
    if texts.iter().any(|text| text == "too long") {
        return answer(
            "400 Bad Request",
            r#"{"error":{"message":"input is too large","type":"invalid_request_error"}}"#,
        );
    }
    let base64 = body["encoding_format"] == "base64";
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let number: f32 = text.as_str().and_then(|text| text.trim_start_matches('t').parse().ok()).unwrap_or(-1.0);
            let vector = if base64 { json!(packed(number)) } else { json!([number, 0.5]) };
            json!({"embedding": vector, "index": index, "object": "embedding"})
        })
        .rev()
        .collect();
    let tokens = texts.len() * 2;
    let body = json!({"model": "inner", "object": "list", "usage": {"prompt_tokens": tokens, "total_tokens": tokens}, "data": data, "more": 1});
    answer("200 OK", &body.to_string())
}

fn packed(number: f32) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode([number.to_le_bytes(), 0.5_f32.to_le_bytes()].concat())
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("t{number}")).collect()
}

async fn world(name: &str) -> World {
    World::new(name, Upstream::making(vectors).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_texts_are_cut_into_steps_and_come_back_in_order() {
    let world = world("hundred").await;
    let body = json!({"model": "vectors", "input": texts(100), "user": "x"}).to_string();
    let reply = world.client().post("/v1/embeddings", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let answer = reply.json();
    let data = answer["data"].as_array().unwrap();
    let numbers: Vec<(u64, f64)> =
        data.iter().map(|one| (one["index"].as_u64().unwrap(), one["embedding"][0].as_f64().unwrap())).collect();
    let expected: Vec<(u64, f64)> = (0..100).map(|number| (number, number as f64)).collect();
    assert_eq!(numbers, expected);
    assert_eq!(answer["usage"], json!({"prompt_tokens": 200, "total_tokens": 200}));
    assert_eq!((&answer["model"], &answer["more"]), (&json!("inner"), &json!(1)));
    assert_eq!(reply.header("x-windtunnel-model"), Some("vectors"));
    let asked = world.upstream.asked.lock().unwrap().clone();
    let sizes: Vec<usize> = asked
        .iter()
        .map(|one| serde_json::from_slice::<Value>(&one.body).unwrap()["input"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes.iter().sum::<usize>(), 100);
    assert!(sizes.iter().all(|size| *size <= 64) && sizes.len() >= 2, "{sizes:?}");
    let journal = world.close().await;
    assert!(journal.contains("\"inputs\":100"), "{journal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_step_goes_through_untouched() {
    let world = world("untouched").await;
    for input in [json!("t7"), json!(["t7", "t8"]), json!([1, 2, 3]), json!([[1, 2], [3]])] {
        let body = format!("{{\"model\": \"vectors\", \"x\":1.0, \"input\" :{input}}}");
        let reply = world.client().post("/v1/embeddings", &body).await;
        assert_eq!(world.upstream.last().text(), body);
        let sent = vectors(&world.upstream.last());
        assert!(sent.ends_with(&reply.body), "{}", reply.text());
    }
    let reply = world.client().post("/v1/embeddings", r#"{"model":"vectors","input":[]}"#).await;
    assert_eq!((reply.status, reply.reason()), (400, "no_inputs"));
    let journal = world.close().await;
    let counts: Vec<&str> = journal.matches("\"inputs\":2").collect();
    assert_eq!(counts.len(), 2, "tokens of one text are one input: {journal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn base64_is_honoured_whether_the_child_knows_it_or_not() {
    let blind = |asked: &Asked| {
        let body = asked.text().replace("base64", "float");
        vectors(&Asked { body: body.into_bytes(), ..asked.clone() })
    };
    for (name, upstream) in [("packed", Upstream::making(vectors).await), ("packs", Upstream::making(blind).await)] {
        let world = World::new(name, upstream).await;
        for count in [3, 70] {
            let body = json!({"model": "vectors", "input": texts(count), "encoding_format": "base64"}).to_string();
            let answer = world.client().post("/v1/embeddings", &body).await.json();
            let data = answer["data"].as_array().unwrap();
            assert_eq!(data.len(), count);
            for one in data {
                let number = one["index"].as_u64().unwrap();
                assert_eq!(one["embedding"], packed(number as f32), "{name} {number}");
            }
        }
        world.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_several_clients_share_a_request_and_nobody_pays_for_another() {
    let upstream = Upstream::told().await;
    let world = World::new("shared", upstream).await;
    let client = world.client();
    let send = |input: Value| {
        let body = json!({"model": "vectors", "input": input}).to_string();
        async move { client.begin_post("/v1/embeddings", &body).await }
    };
    let mut blocks = send(json!("t0")).await;
    let first = world.upstream.next().await;
    let mut fine = send(json!(["t1", "t2"])).await;
    world.until("a waiting job", |view| super::world::waiting(view) == 1).await;
    let mut wrong = send(json!("too long")).await;
    world.until("two waiting jobs", |view| super::world::waiting(view) == 2).await;
    first.say(vectors(&first.asked));
    drop(first);
    blocks.head().await;
    let together = world.upstream.next().await;
    assert_eq!(together.asked.text(), r#"{"model":"vectors","input":["t1","t2","too long"]}"#);
    together.say(vectors(&together.asked));
    drop(together);
    for _ in 0..2 {
        let alone = world.upstream.next().await;
        alone.say(vectors(&alone.asked));
    }
    let head = fine.head().await;
    let reply = fine.rest("POST", head).await;
    assert_eq!((reply.status, &reply.json()["data"][0]["embedding"][0]), (200, &json!(2.0)));
    let head = wrong.head().await;
    let reply = wrong.rest("POST", head).await;
    assert_eq!((reply.status, &reply.json()["error"]["message"]), (400, &json!("input is too large")));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_requests_are_cut_apart_and_their_usage_shared() {
    let world = World::new("apart", Upstream::told().await).await;
    let mut blocks = world.client().begin_post("/v1/embeddings", r#"{"model":"vectors","input":"t0"}"#).await;
    let first = world.upstream.next().await;
    let mut clients = Vec::new();
    for number in 1..=3 {
        let body = format!(r#"{{"model":"vectors","input":["t{number}","t{}"]}}"#, number + 10);
        clients.push(world.client().begin_post("/v1/embeddings", &body).await);
        world.until("waiting jobs", |view| super::world::waiting(view) == number).await;
    }
    first.say(vectors(&first.asked));
    blocks.head().await;
    let together = world.upstream.next().await;
    together.say(vectors(&together.asked));
    let mut tokens = 0;
    for (number, mut client) in (1..).zip(clients) {
        let head = client.head().await;
        let answer = client.rest("POST", head).await.json();
        let vector = |place: usize| answer["data"][place]["embedding"][0].as_f64().unwrap();
        assert_eq!((vector(0), vector(1)), (f64::from(number), f64::from(number + 10)));
        assert_eq!(answer["data"].as_array().unwrap().len(), 2);
        assert_eq!(answer["data"][1]["index"], 1);
        tokens += answer["usage"]["prompt_tokens"].as_u64().unwrap();
    }
    assert_eq!(tokens, 12, "nothing counted is lost");
    assert_eq!(world.upstream.count(), 2);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_for_all_is_the_childs_own_and_nonsense_is_said() {
    let error = r#"{"error":{"code":400,"message":"no"}}"#;
    let world = World::new("vectors-error", Upstream::saying(answer("400 Bad Request", error)).await).await;
    for input in [json!("x"), json!(texts(100))] {
        let body = json!({"model": "vectors", "input": input}).to_string();
        let reply = world.client().post("/v1/embeddings", &body).await;
        assert_eq!((reply.status, reply.text()), (400, error));
        assert_eq!(reply.header("x-windtunnel-model"), Some("vectors"));
        assert!(reply.header("x-windtunnel-queue-ms").is_some(), "{}", reply.head);
    }
    world.close().await;
    let world = World::new("vectors-few", Upstream::saying(answer("200 OK", r#"{"data":[]}"#)).await).await;
    let body = json!({"model": "vectors", "input": texts(40)}).to_string();
    let reply = world.client().post("/v1/embeddings", &body).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (502, &json!("runtime_error")));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_dies_over_a_batch_is_asked_again_and_a_client_that_leaves_frees_it() {
    let world = World::new("vectors-dies", Upstream::told().await).await;
    let mut client = world.client().begin_post("/v1/embeddings", r#"{"model":"vectors","input":"t1"}"#).await;
    drop(world.upstream.next().await);
    let again = world.upstream.next().await;
    again.say(vectors(&again.asked));
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
    let leaves = world.client().begin_post("/v1/embeddings", r#"{"model":"vectors","input":"t1"}"#).await;
    let child = world.upstream.next().await;
    drop(leaves);
    child.closed().await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_that_have_begun_may_end_and_others_are_refused() {
    let world = World::new("vectors-drain", Upstream::told().await).await;
    let body = json!({"model": "vectors", "input": texts(100)}).to_string();
    let mut client = world.client().begin_post("/v1/embeddings", &body).await;
    let first = world.upstream.next().await;
    let mut waits = world.client().begin_post("/v1/embeddings", r#"{"model":"vectors","input":"t1"}"#).await;
    world.until("a second job", |view| super::world::waiting(view) == 2).await;
    world.shutdown.cancel();
    let head = waits.head().await;
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("draining"), "{head}");
    let mut conversation = first;
    let mut texts = 0;
    loop {
        let body: Value = serde_json::from_slice(&conversation.asked.body).unwrap();
        texts += body["input"].as_array().map_or(1, Vec::len);
        conversation.say(vectors(&conversation.asked));
        if texts == 100 {
            break;
        }
        conversation = world.upstream.next().await;
    }
    let head = client.head().await;
    let reply = client.rest("POST", head).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.json()["data"].as_array().unwrap().len(), 100);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_between_two_steps_count_as_an_answer_under_way() {
    let world = World::with("vectors-between", Upstream::told().await, settings(), Loads::FirstAtOnce).await;
    let body = json!({"model": "vectors", "input": texts(100)}).to_string();
    let mut client = world.client().begin_post("/v1/embeddings", &body).await;
    let first = world.upstream.next().await;
    assert_eq!(world.client().post("/admin/models/vectors/unload", "").await.status, 202);
    first.say(vectors(&first.asked));
    drop(first);
    world.until("a further load", loading).await;
    world.shutdown.cancel();
    for _ in 0..20 {
        assert_eq!(world.client().get("/readyz").await.status, 503, "the end is still to come");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.gateway.cut();
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("draining"), "{head}");
    world.close().await;
}
