//! Clients that leave, at every stage: nothing may stay behind, and a slot is used again only once it is free.

use std::{sync::atomic::Ordering, time::Duration};

use windtunnel_live::gateway::Settings;

use super::{
    upstream::Upstream,
    world::{Loads, World, loading, running, settings, waiting},
};

const CHAT: &str = r#"{"model":"chat","messages":[{"role":"user","content":"hello"}]}"#;
const STREAM: &str = r#"{"model":"chat","stream":true,"messages":[]}"#;
const TINY: &str = r#"{"model":"tiny","messages":[]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_while_it_waits_for_a_slot_never_touches_the_child() {
    let world = World::new("leaves-queued", Upstream::told().await).await;
    let mut first = world.client().begin_post("/v1/chat/completions", TINY).await;
    let child = world.upstream.next().await;
    let second = world.client().begin_post("/v1/chat/completions", TINY).await;
    world.until("a waiting job", |view| waiting(view) == 1).await;
    drop(second);
    world.until("nobody waiting", |view| waiting(view) == 0).await;
    child.say(super::upstream::answer("200 OK", "{}"));
    assert!(first.head().await.starts_with("HTTP/1.1 200 "));
    assert_eq!(world.upstream.count(), 1);
    let answered = world.answered(2).await;
    assert!(answered.iter().any(|one| (one.status, one.reason) == (0, "left") && one.job.is_some()), "{answered:?}");
    let journal = world.close().await;
    assert!(journal.contains("\"cancelled\""), "{journal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_during_a_load_leaves_no_job() {
    let world = World::with("leaves-loading", Upstream::told().await, settings(), Loads::Never).await;
    let client = world.client().begin_post("/v1/chat/completions", CHAT).await;
    world.until("a load", |view| loading(view) && waiting(view) == 1).await;
    drop(client);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_child_answers_closes_the_childs_connection() {
    leaves("leaves-headers", CHAT, Stage::BeforeTheHead).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_mid_stream_closes_the_childs_connection() {
    leaves("leaves-stream", STREAM, Stage::MidStream).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_an_answer_held_open_closes_the_childs_connection() {
    leaves("leaves-held", STREAM, Stage::HeldOpen).await;
}

#[derive(PartialEq, Eq)]
enum Stage {
    BeforeTheHead,
    MidStream,
    HeldOpen,
}

/// The slot works on for a while after the client has gone, and its grant ends only then.
async fn leaves(name: &str, body: &str, stage: Stage) {
    let quick = Settings { hold_after: Duration::ZERO, ..settings() };
    let settings = if stage == Stage::HeldOpen { quick } else { settings() };
    let world = World::with(name, Upstream::told().await, settings, Loads::AtOnce).await;
    world.upstream.working.store(1, Ordering::SeqCst);
    let mut client = world.client().begin_post("/v1/chat/completions", body).await;
    let child = world.upstream.next().await;
    match stage {
        Stage::BeforeTheHead => {}
        Stage::MidStream => {
            child.open_stream();
            child.chunk("data: {}\n\n");
            client.head().await;
            client.chunk().await;
        }
        Stage::HeldOpen => {
            client.head().await;
            assert_eq!(client.chunk().await.as_deref(), Some(&b": keepalive\n\n"[..]));
        }
    }
    drop(client);
    child.closed().await;
    let looks = world.upstream.looks.load(Ordering::SeqCst);
    while world.upstream.looks.load(Ordering::SeqCst) < looks + 3 {
        assert_eq!(running(&world.view().await), 1, "the slot still works");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.upstream.working.store(0, Ordering::SeqCst);
    world.until("no grant", |view| running(view) == 0).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn others_on_the_instance_do_not_keep_a_slot_from_being_free() {
    let world = World::new("leaves-beside", Upstream::told().await).await;
    world.upstream.working.store(1, Ordering::SeqCst);
    let mut stays = world.client().begin_post("/v1/chat/completions", CHAT).await;
    let child = world.upstream.next().await;
    let leaves = world.client().begin_post("/v1/chat/completions", CHAT).await;
    let left = world.upstream.next().await;
    drop(leaves);
    left.closed().await;
    world.until("one grant", |view| running(view) == 1).await;
    child.say(super::upstream::answer("200 OK", "{}"));
    assert!(stays.head().await.starts_with("HTTP/1.1 200 "));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_says_nothing_of_its_slots_is_not_watched_for_ever() {
    let mut quick = settings();
    quick.slot_watch.limit = Duration::from_millis(50);
    quick.slot_watch.look = Duration::from_millis(10);
    let world = World::with("leaves-mute", Upstream::told().await, quick, Loads::AtOnce).await;
    world.upstream.working.store(usize::MAX, Ordering::SeqCst);
    let client = world.client().begin_post("/v1/chat/completions", CHAT).await;
    let child = world.upstream.next().await;
    drop(client);
    child.closed().await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_leaves_at_once_leaves_nothing() {
    let world = World::with("leaves-crowd", Upstream::told().await, settings(), Loads::Never).await;
    let mut crowd = Vec::new();
    for _ in 0..200 {
        crowd.push(world.client().begin_post("/v1/chat/completions", CHAT).await);
    }
    world.until("a crowd", |view| waiting(view) == 200).await;
    drop(crowd);
    world.until("nobody", |view| waiting(view) == 0).await;
    world.answered(200).await;
    world.close().await;
}
