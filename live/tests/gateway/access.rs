//! Who may ask.

use windtunnel_core::Class;
use windtunnel_live::gateway::{Key, Secret, Settings, WithoutKeys, may_listen};

use super::{
    upstream::{Upstream, answer},
    world::{Loads, World, settings},
};

const TINY: &str = r#"{"model":"tiny","messages":[]}"#;

fn keys() -> Settings {
    let key = |name: &str, classes: &[Class], default_class, most| Key {
        name: name.to_owned(),
        secret: Secret::new(format!("sk-{name}")),
        classes: classes.to_vec(),
        default_class,
        most,
    };
    Settings {
        keys: vec![key("first", &[], Some(Class::Background), None), key("second", &[Class::Batch], None, Some(1))],
        admin_keys: vec![Secret::new("sk-admin".to_owned())],
        ..settings()
    }
}

async fn world(name: &str, settings: Settings) -> World {
    World::with(name, Upstream::saying(answer("200 OK", "{}")).await, settings, Loads::AtOnce).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_nothing_is_served() {
    let world = world("keys", keys()).await;
    for (headers, reason) in [(&[][..], "no_api_key"), (&[("authorization", "Bearer sk-admin")][..], "invalid_api_key")]
    {
        let reply = world.client().request("POST", "/v1/chat/completions", headers, TINY.as_bytes()).await;
        assert_eq!((reply.status, reply.reason()), (401, reason));
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(world.client().get("/v1/models").await.status, 401);
    assert_eq!(world.client().get("/health").await.status, 200);
    assert_eq!(world.upstream.count(), 0);
    let journal = world.close().await;
    assert!(!journal.contains("sk-"), "keys are never written down");
}

#[tokio::test(flavor = "multi_thread")]
async fn header_body_suffix_and_key_give_the_class_and_the_key_caps_it() {
    let world = world("classes", keys()).await;
    let named = r#"{"model":"tiny@batch"}"#;
    let asked = r#"{"model":"tiny@batch","windtunnel":{"class":"interactive"}}"#;
    let other = r#"{"model":"tiny","gridcore":{"class":"batch","speed":9}}"#;
    for (key, headers, body, class) in [
        ("sk-first", &[][..], TINY, "background"),
        ("sk-first", &[][..], named, "batch"),
        ("sk-first", &[][..], asked, "interactive"),
        ("sk-first", &[][..], other, "batch"),
        ("sk-first", &[("X-GridCore-Class", "background")][..], asked, "background"),
        ("sk-first", &[("X-Windtunnel-Class", "batch"), ("X-GridCore-Class", "background")][..], asked, "batch"),
        ("sk-second", &[][..], asked, "batch"),
    ] {
        let headers = [&[("x-api-key", key)], headers].concat();
        let reply = world.client().request("POST", "/v1/chat/completions", &headers, body.as_bytes()).await;
        assert_eq!(reply.header("x-windtunnel-class"), Some(class), "{headers:?} {body}: {}", reply.text());
        assert_eq!(world.upstream.last().header("x-api-key"), None);
        assert_eq!(world.upstream.last().header("authorization"), Some("Bearer child-key"));
    }
    let labels: Vec<u32> = world.answered(7).await.iter().map(|one| one.label.0).collect();
    assert_eq!(labels, [1, 1, 1, 1, 1, 1, 2]);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_as_many_requests_under_way_as_it_may() {
    let world = World::with("key-limit", Upstream::told().await, keys(), Loads::AtOnce).await;
    let headers = [("x-api-key", "sk-second")];
    let body = br#"{"model":"tiny","stream":true}"#;
    let mut first = world.client().begin("POST", "/v1/chat/completions", &headers, body).await;
    let child = world.upstream.next().await;
    child.open_stream();
    child.chunk("data: 1\n\n");
    first.head().await;
    let reply = world.client().request("POST", "/v1/chat/completions", &headers, body).await;
    assert_eq!((reply.status, reply.reason()), (429, "key_limit"), "an answer under way counts");
    assert_eq!(reply.header("retry-after"), Some("1"));
    child.say("0\r\n\r\n");
    let (_, whole) = first.chunks().await;
    assert!(whole);
    world.answered(2).await;
    let mut again = world.client().begin("POST", "/v1/chat/completions", &headers, body).await;
    world.upstream.next().await.say(answer("200 OK", "{}"));
    assert!(again.head().await.starts_with("HTTP/1.1 200 "));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_names_for_this_host_are_refused() {
    let world = world("hosts", Settings { hosts: vec!["gpu.lan".to_owned()], ..settings() }).await;
    for (host, status) in [("evil.example", 403), ("gpu.lan:8080", 200), ("192.168.1.7", 200), ("localhost", 200)] {
        for path in ["/v1/models", "/health"] {
            let reply = world.client().request("GET", path, &[("host", host)], b"").await;
            assert_eq!(reply.status, status, "{host} {path}");
        }
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_need_their_key_or_this_machine() {
    let world = world("operators", keys()).await;
    for (headers, reads, orders, reason) in [
        (&[][..], 401, 401, "no_api_key"),
        (&[("x-api-key", "sk-nobody")][..], 401, 401, "invalid_api_key"),
        (&[("x-api-key", "sk-first")][..], 200, 403, "not_an_operator"),
        (&[("authorization", "Bearer sk-admin")][..], 200, 202, ""),
    ] {
        for path in ["/admin/status", "/admin/events", "/metrics"] {
            let reply = world.client().request("GET", path, headers, b"").await;
            assert_eq!(reply.status, reads, "{headers:?} {path}");
        }
        let reply = world.client().request("POST", "/admin/models/tiny/load", headers, b"").await;
        assert_eq!(reply.status, orders, "{headers:?}: {}", reply.text());
        assert!(orders == 202 || reply.reason() == reason, "{headers:?}: {}", reply.text());
    }
    world.close().await;
    let world = self::world("operators-local", settings()).await;
    for (headers, status) in [
        (&[][..], 200),
        (&[("host", "127.0.0.1:8080")][..], 200),
        (&[("host", "10.1.1.1")][..], 403),
        (&[("origin", "https://evil.example")][..], 403),
    ] {
        let reply = world.client().request("GET", "/admin/status", headers, b"").await;
        assert_eq!(reply.status, status, "{headers:?}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn web_pages_give_no_orders_unless_they_are_named() {
    let origins = ["*", "https://app.example"].map(str::to_owned).to_vec();
    let world = world("orders", Settings { origins, ..settings() }).await;
    for (origin, fine) in [("https://evil.example", false), ("https://app.example", true), ("http://localhost", true)] {
        let reply = world.client().request("POST", "/admin/reload", &[("origin", origin)], b"").await;
        assert_eq!(reply.status != 403, fine, "{origin}: {}", reply.text());
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn web_pages_read_answers_only_where_that_is_configured() {
    let world = world("cors-off", settings()).await;
    let page = [("origin", "https://app.example"), ("access-control-request-method", "POST")];
    for (method, path, status) in [("OPTIONS", "/v1/chat/completions", 204), ("GET", "/v1/models", 200)] {
        let reply = world.client().request(method, path, &page, b"").await;
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (status, None));
    }
    world.close().await;
    let world = self::world("cors-on", Settings { origins: vec!["https://app.example".to_owned()], ..keys() }).await;
    let reply = world.client().request("OPTIONS", "/v1/chat/completions", &page, b"").await;
    assert_eq!(reply.status, 204, "a preflight has no key");
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(reply.header("access-control-allow-methods"), Some("POST, OPTIONS"));
    let other = [("origin", "https://evil.example")];
    let reply = world.client().request("OPTIONS", "/v1/chat/completions", &other, b"").await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (204, None));
    let headers = [("origin", "https://app.example"), ("x-api-key", "sk-first")];
    let reply = world.client().request("POST", "/v1/chat/completions", &headers, TINY.as_bytes()).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some("https://app.example")));
    assert_eq!(world.upstream.last().header("origin"), None);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_keys_hold_from_the_next_request_on() {
    let world = world("replace", settings()).await;
    assert_eq!(world.client().get("/v1/models").await.status, 200);
    world.gateway.replace(keys(), Default::default());
    assert_eq!(world.client().get("/v1/models").await.status, 401);
    let reply = world.client().request("GET", "/v1/models", &[("x-api-key", "sk-first")], b"").await;
    assert_eq!(reply.text(), r#"{"object":"list","data":[]}"#);
    world.close().await;
}

#[test]
fn a_listener_for_everybody_needs_keys_or_two_words() {
    let everybody = "0.0.0.0:8080".parse().unwrap();
    assert!(may_listen(&settings(), "127.0.0.1:8080".parse().unwrap()).is_ok());
    assert!(may_listen(&settings(), "[::1]:8080".parse().unwrap()).is_ok());
    assert!(may_listen(&settings(), everybody).unwrap_err().starts_with("listen on 0.0.0.0:8080 without keys"));
    assert!(may_listen(&keys(), everybody).is_ok());
    assert!(may_listen(&Settings { without_keys: WithoutKeys::Anywhere, ..settings() }, everybody).is_ok());
}

/// A method, a path, headers, and the reason why nothing comes of it.
type Hopeless<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_is_told_of_whatever_was_asked() {
    let world = world("refusals-told", keys()).await;
    let (first, admin) = ([("x-api-key", "sk-first")], [("x-api-key", "sk-admin")]);
    let asked: [Hopeless<'_>; 8] = [
        ("GET", "/v1/models", &[], "no_api_key"),
        ("GET", "/metrics", &[("x-api-key", "sk-nobody")], "invalid_api_key"),
        ("GET", "/v1/models", &[("host", "evil.example")], "host_not_allowed"),
        ("POST", "/admin/reload", &first, "not_an_operator"),
        ("POST", "/admin/reload", &admin, "reload_failed"),
        ("GET", "/nothing", &[], "no_such_path"),
        ("PUT", "/v1/models", &[], "method_not_allowed"),
        ("POST", "/tokenize", &first, "bad_json"),
    ];
    for (method, path, headers, reason) in asked {
        let reply = world.client().request(method, path, headers, b"").await;
        assert_eq!(reply.reason(), reason, "{method} {path}");
    }
    let told: Vec<&str> = world.answered(8).await.iter().map(|one| one.reason).collect();
    assert_eq!(told, asked.map(|(.., reason)| reason), "once each");
    world.close().await;
}
