//! The scanner against a parser that builds every value: the same texts are JSON, the same model is found, and what is not
//! replaced stays as it was.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value};
use windtunnel_core::{Capability, Class, Needs};

use super::{LookFor, Request, Stream, Unusable, edited, scan::Found};

/// JSON as people and programs write it, and sometimes not quite.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][-+]?[0-9]{1,2})?",
        string(),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let pair = (key(), space(), inner.clone()).prop_map(|(key, space, value)| format!("{key}{space}:{value}"));
        prop_oneof![
            vec((inner, space()), 0..5).prop_map(|items| listed('[', ']', &items)),
            vec((pair, space()), 0..5).prop_map(|items| listed('{', '}', &items)),
        ]
    })
}

fn listed(open: char, close: char, items: &[(String, String)]) -> String {
    let items: Vec<String> = items.iter().map(|(item, space)| format!("{space}{item}{space}")).collect();
    format!("{open}{}{close}", items.join(","))
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z \\[\\]{}:,]{0,12}",
        Just("\\\"".to_owned()),
        Just("\\\\".to_owned()),
        Just("\\n".to_owned()),
        Just("\\u00e9".to_owned()),
        Just("\\ud83d\\ude00".to_owned()),
        Just("\u{1f600}é".to_owned()),
        Just("\\\"model\\\":\\\"x\\\"".to_owned()),
    ];
    vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        string(),
        Just("\"model\"".to_owned()),
        Just("\"mod\\u0065l\"".to_owned()),
        Just("\"stream\"".to_owned()),
        Just("\"messages\"".to_owned()),
        Just("\"type\"".to_owned()),
        Just("\"windtunnel\"".to_owned()),
        Just("\"gridcore\"".to_owned()),
    ]
}

fn space() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[ \t\r\n]{0,3}"]
}

/// A member of the outer object.
fn member() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (key(), space(), value()).prop_map(|(key, space, value)| format!("{key}{space}:{space}{value}")),
        2 => string().prop_map(|name| format!("\"model\" : {name}")),
        1 => Just("\"windtunnel\":{\"class\":\"batch\"}".to_owned()),
        1 => Just("\"gridcore\": {\"class\":\"background\",\"x\":[1]}".to_owned()),
        1 => Just("\"stream\":true".to_owned()),
    ]
}

fn object() -> impl Strategy<Value = String> {
    vec((member(), space()), 0..7).prop_map(|members| listed('{', '}', &members))
}

/// An object without a model and without anything of ours.
fn others() -> impl Strategy<Value = String> {
    let key = prop_oneof![string(), Just("\"messages\"".to_owned()), Just("\"tools\"".to_owned())];
    let member = (key, space(), value()).prop_map(|(key, space, value)| format!("{key}{space}:{space}{value}"));
    vec((member, space()), 0..7).prop_map(|members| listed('{', '}', &members))
}

fn read(text: &str) -> Result<Request, Unusable> {
    Request::read(Bytes::copy_from_slice(text.as_bytes()), LookFor::Prompt)
}

fn sent(request: &Request, model: &str) -> String {
    String::from_utf8(edited(&request.bytes, &request.edits, model).concat()).expect("text stays text")
}

/// What a child should understand: as it was, without our member, and with the model's name.
fn expected(text: &str) -> Value {
    let Value::Object(mut members) = serde_json::from_str(text).unwrap() else { panic!("an object") };
    members.retain(|key, _| key != "windtunnel" && key != "gridcore");
    members.insert("model".to_owned(), Value::from("the \"model\""));
    Value::Object(members)
}

/// Everything but values of models and our own members, with what holds them apart left out.
fn bare(text: &str) -> String {
    text.chars().filter(|letter| !matches!(letter, ',' | ' ' | '\t' | '\r' | '\n')).collect()
}

/// How many of each kind are tried: `WINDTUNNEL_CASES`, for a longer search.
fn cases() -> u32 {
    std::env::var("WINDTUNNEL_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

/// A form as clients send it: a file, a model, and now and then more, with text that looks like a boundary in between.
fn form() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![Just("model"), Just("file"), Just("stream"), Just("language")];
    let content =
        prop_oneof!["[a-z0-9 .-]{0,12}", Just("true".to_owned()), Just("--x".to_owned()), Just("\r\n--y".to_owned())];
    let part = (name, content, any::<bool>()).prop_map(|(name, content, quoted)| {
        let name = if quoted { format!("\"{name}\"") } else { name.to_owned() };
        format!("--x\r\nContent-Disposition: form-data; name={name}\r\n\r\n{content}\r\n")
    });
    vec(part, 0..5).prop_map(|parts| format!("{}--x--\r\n", parts.concat()).into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_texts_are_json(text in value(), cut in any::<prop::sample::Index>(), other in any::<u8>()) {
        let agrees = |text: &[u8]| {
            let ours = super::scan::tests::is_json(text);
            let theirs = serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok() && std::str::from_utf8(text).is_ok();
            prop_assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(text));
            Ok(())
        };
        agrees(text.as_bytes())?;
        let mut bytes = text.into_bytes();
        let at = cut.index(bytes.len());
        agrees(&bytes[..at])?;
        bytes[at] = other;
        agrees(&bytes)?;
    }

    #[test]
    fn the_model_is_found_and_replaced_and_the_rest_stays(text in object()) {
        let Ok(request) = read(&text) else { return Ok(()) };
        let parsed: Map<String, Value> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(request.model.as_deref(), parsed.get("model").and_then(Value::as_str));
        let stream = if parsed.get("stream") == Some(&Value::Bool(true)) { Stream::Yes } else { Stream::No };
        prop_assert_eq!(request.stream, stream);
        let sent = sent(&request, "the \"model\"");
        let understood: Value = serde_json::from_str(&sent).unwrap();
        prop_assert_eq!(understood, expected(&text), "{}", sent);
    }

    #[test]
    fn no_byte_is_changed_but_the_model(before in others(), after in others()) {
        let inside = |text: &str| text[1..text.len() - 1].to_owned();
        let join = |text: String| if bare(&text).is_empty() { text } else { text + "," };
        let tail = inside(&after);
        let tail = if bare(&tail).is_empty() { tail } else { format!(",{tail}") };
        let (start, end) = (format!("{{{}\"model\": ", join(inside(&before))), format!("{tail}}}"));
        let request = read(&format!("{start}\"old\"{end}"));
        prop_assert_eq!(sent(&request.unwrap(), "new"), format!("{start}\"new\"{end}"));
    }

    #[test]
    fn nothing_panics(bytes in vec(any::<u8>(), 0..200), text in "[\\[\\]{}:,\" \\\\u0-9eE.a-z-]{0,60}") {
        for look_for in [LookFor::Prompt, LookFor::Inputs] {
            drop(Request::read(Bytes::from(bytes.clone()), look_for));
            drop(Request::read(Bytes::from(text.clone()), look_for));
        }
        drop(super::read_form(Bytes::from(bytes.clone()), "multipart/form-data; boundary=a"));
        drop(super::read_form(Bytes::from(text), "multipart/form-data; boundary=\"a"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is changed in a form, it is refused, or its model lies within it and can be replaced without another byte.
    #[test]
    fn a_changed_form_is_refused_or_its_model_can_be_replaced(
        form in form(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut form = form;
        for (at, byte) in changes {
            let at = at.index(form.len());
            form[at] = byte;
        }
        if let Some(cut) = cut {
            form.truncate(cut.index(form.len()));
        }
        let Ok(request) = super::read_form(Bytes::from(form.clone()), "multipart/form-data; boundary=x") else {
            return Ok(());
        };
        prop_assert!(request.model.is_some());
        let sent = edited(&request.bytes, &request.edits, "new").concat();
        let old: usize = request.edits.iter().map(|edit| edit.range.len()).sum();
        prop_assert_eq!(sent.len(), form.len() - old + 3 * request.edits.len());
        let again = super::read_form(Bytes::from(sent), "multipart/form-data; boundary=x");
        prop_assert_eq!(again.ok().and_then(|request| request.model), Some("new".to_owned()));
    }
}

#[test]
fn our_member_goes_with_one_comma_wherever_it_stands() {
    let ours = r#""windtunnel":{"class":"batch"}"#;
    for (text, left) in [
        (format!(r#"{{{ours},"model":"a","b":1}}"#), r#"{"model":"x","b":1}"#),
        (format!(r#"{{"model":"a", {ours} ,"b":1}}"#), r#"{"model":"x" ,"b":1}"#),
        (format!(r#"{{"model":"a","b":1,{ours}}}"#), r#"{"model":"x","b":1}"#),
        (format!(r#"{{ {ours} , {ours},"model":"a"}}"#), r#"{  "model":"x"}"#),
        (format!(r#"{{ {ours} }}"#), r#"{"model":"x"  }"#),
        (format!(r#"{{ {ours}, "b":1 }}"#), r#"{"model":"x",  "b":1 }"#),
        ("{}".to_owned(), r#"{"model":"x"}"#),
    ] {
        let request = read(&text).unwrap();
        assert_eq!(sent(&request, "x"), left, "{text}");
        assert_eq!(request.asked.class.is_some(), text != "{}");
    }
}

#[test]
fn a_prompt_is_measured_and_images_and_tools_are_seen() {
    let request = read(
        r#"{"model":"a","tools":[{"type":"image"}],"max_tokens":9,"max_completion_tokens":7,"messages":[
            {"role":"user","content":[{"type":"text","text":"0123456789"},
            {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}]}],
            "windtunnel":{"class":"background"},"gridcore":{"class":"batch"}}"#,
    )
    .unwrap();
    assert_eq!(request.seen.images, Found::Yes);
    assert_eq!(request.seen.text, 14, "the text and the role, and no picture");
    assert_eq!(request.needs, Needs::NONE.with(Capability::Vision).with(Capability::Tools));
    assert_eq!((request.max_tokens, request.asked.class), (Some(7), Some(Class::Background)));
    let request = read(r#"{"tools":[],"messages":[{"content":[{"type":"input_audio"}]}],"n_predict":-1}"#).unwrap();
    assert_eq!((request.needs, request.max_tokens), (Needs::NONE.with(Capability::Audio), None));
}

#[test]
fn deep_bodies_are_refused_before_the_stack_ends() {
    let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(read(&nested(127)).is_ok());
    assert!(read(&nested(128)).is_err());
    assert!(read(&"[".repeat(1_000_000)).is_err() && read(&nested(1_000_000)).is_err());
}
