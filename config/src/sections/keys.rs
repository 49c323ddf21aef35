//! `[[keys]]`: who may ask for what.

use windtunnel_core::Class;

use crate::daemon::{ClientKey, Secret};
use crate::decode::Section;
use crate::form::{Form, Key, Scalar, Shape};

/// The name of whoever has no key, in reports and metrics.
pub(crate) const ANONYMOUS: &str = "anonymous";

const SOURCES: [&str; 3] = ["key", "env", "file"];

pub(crate) static KEY: Form = Form::new(
    "key",
    "Who may ask for what. Exactly one of `key`, `env` and `file` says what clients send.",
    &[
        Key::scalar("name", Scalar::Name, "its name in reports and metrics").required(),
        Key::scalar("key", Scalar::Name, "the key itself"),
        Key::scalar("env", Scalar::Name, "the environment variable that holds it"),
        Key::scalar("file", Scalar::Name, "the file that holds it"),
        Key::new(
            "classes",
            Shape::List(&Shape::Scalar(super::policy::CLASS_KEY)),
            "classes it may ask for; default: all",
        ),
        Key::scalar(
            "class",
            super::policy::CLASS_KEY,
            "the class of a request that names none; default: that of the policy",
        ),
        Key::scalar("admin", Scalar::Flag, "whether it may give orders to the daemon").or("false"),
        Key::scalar(
            "max_in_flight",
            Scalar::Count(1, u32::MAX as u64),
            "requests it may have under way, waiting ones included; default: any number",
        ),
    ],
);

/// Reads all keys.
pub(crate) fn read(root: &Section<'_>) -> Vec<ClientKey> {
    let mut keys: Vec<ClientKey> = Vec::new();
    for section in root.sections("keys") {
        let Some(key) = one(&section) else { continue };
        if key.name == ANONYMOUS {
            section.wrong("name", "stands for those who have no key; give it another name");
        }
        if keys.iter().any(|other| other.name == key.name) {
            section.wrong("name", "is the name of another key already");
        }
        if let Some(other) = keys.iter().find(|other| other.secret == key.secret) {
            // The line of the key itself must not be shown.
            section.wrong("name", &format!("has the key of `keys.{}`; two keys cannot be the same", other.name));
        }
        keys.push(key);
    }
    keys
}

fn one(section: &Section<'_>) -> Option<ClientKey> {
    let name = section.text("name")?.to_owned();
    let classes = section.choices("classes", Class::ALL).unwrap_or_default();
    let class = section.choice("class", Class::ALL);
    if let Some(class) = class.filter(|class| !classes.is_empty() && !classes.contains(class)) {
        section.wrong("class", &format!("is {:?}, which is not among its `classes`", class.name()));
    }
    Some(ClientKey {
        name,
        secret: secret(section)?,
        classes,
        class,
        admin: section.flag("admin").unwrap_or(false),
        max_in_flight: section.count32("max_in_flight"),
    })
}

fn secret(section: &Section<'_>) -> Option<Secret> {
    match section.given(&SOURCES)[..] {
        ["key"] => section.text("key").map(|text| Secret::Inline(text.to_owned())),
        ["env"] => section.text("env").map(|text| Secret::Environment(text.to_owned())),
        ["file"] => section.path_beside("file").map(Secret::File),
        [] => {
            section.complain("has none of `key`, `env` and `file`; one of them says what clients send");
            None
        }
        [first, second, ..] => {
            section.wrong(second, &format!("cannot be given beside `{first}`: the key is in one place"));
            None
        }
        [_] => None,
    }
}
