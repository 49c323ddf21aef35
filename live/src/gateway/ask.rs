//! What a request asks of the scheduler: class, deadline, longest wait, quality.
//!
//! Each is taken from the first place that names it: a header, the body's own member, the suffix of the model's name, the
//! key's default, the configuration.

use http::HeaderMap;
use serde_json::Value;
use windtunnel_core::{Class, Quality, Span};

/// What was asked for; what is `None` was not spoken of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub class: Option<Class>,
    pub deadline: Option<Span>,
    pub max_wait: Option<Span>,
    pub quality: Option<Quality>,
    pub drop_hopeless: Option<bool>,
}

/// Whose names are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Ours; a name we do not know is an error.
    Own,
    /// GridCore's; what has no counterpart is passed over.
    GridCore,
}

/// Something was asked for that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadAsk {
    /// The header or key.
    pub name: String,
    /// What would be right.
    pub wanted: &'static str,
}

/// One thing that can be asked for.
#[derive(Clone, Copy)]
enum Wish {
    Class,
    Deadline,
    MaxWait,
    Quality,
    DropHopeless,
}

/// Header of ours, header of GridCore, key of the body.
const WISHES: [(Wish, &str, &str, &str); 5] = [
    (Wish::Class, "x-windtunnel-class", "x-gridcore-class", "class"),
    (Wish::Deadline, "x-windtunnel-deadline-ms", "x-gridcore-deadline-ms", "deadline_ms"),
    (Wish::MaxWait, "x-windtunnel-max-wait-ms", "x-gridcore-max-wait-ms", "max_wait_ms"),
    (Wish::Quality, "x-windtunnel-quality", "x-gridcore-quality", "quality"),
    (Wish::DropHopeless, "x-windtunnel-drop-hopeless", "x-gridcore-drop-hopeless", "drop_hopeless"),
];

impl Asked {
    /// What is asked for here, and what is not, there.
    pub(super) fn or(self, other: Asked) -> Asked {
        Asked {
            class: self.class.or(other.class),
            deadline: self.deadline.or(other.deadline),
            max_wait: self.max_wait.or(other.max_wait),
            quality: self.quality.or(other.quality),
            drop_hopeless: self.drop_hopeless.or(other.drop_hopeless),
        }
    }

    /// What headers ask for.
    ///
    /// # Errors
    /// Names the first header that makes no sense.
    pub(super) fn in_headers(headers: &HeaderMap) -> Result<Asked, BadAsk> {
        let mut asked = Asked::default();
        for (wish, own, other, _) in WISHES {
            let Some((name, value)) = [own, other].into_iter().find_map(|name| Some((name, headers.get(name)?))) else {
                continue;
            };
            let text = value.to_str().unwrap_or_default().trim();
            asked.take(wish, text).map_err(|wanted| BadAsk { name: name.to_owned(), wanted })?;
        }
        Ok(asked)
    }

    /// What the member of a body asks for.
    ///
    /// # Errors
    /// Names the first key that makes no sense, or that nobody knows.
    pub(super) fn in_body(text: &[u8], spelling: Spelling) -> Result<Asked, BadAsk> {
        let prefix = match spelling {
            Spelling::Own => "windtunnel",
            Spelling::GridCore => "gridcore",
        };
        let bad = |key: &str, wanted| BadAsk { name: format!("{prefix}.{key}"), wanted };
        let Ok(Value::Object(members)) = serde_json::from_slice(text) else {
            return Err(BadAsk { name: prefix.to_owned(), wanted: "an object" });
        };
        let mut asked = Asked::default();
        for (key, value) in &members {
            let wish = WISHES.iter().find(|(.., name)| name == key).map(|(wish, ..)| *wish);
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Null => continue,
                other => other.to_string(),
            };
            match (wish, spelling) {
                (Some(wish), _) => asked.take(wish, text.trim()).map_err(|wanted| bad(key, wanted))?,
                (None, Spelling::GridCore) => {}
                (None, Spelling::Own) => {
                    let wanted = "one of class, deadline_ms, max_wait_ms, quality, drop_hopeless";
                    return Err(bad(key, wanted));
                }
            }
        }
        Ok(asked)
    }

    fn take(&mut self, wish: Wish, text: &str) -> Result<(), &'static str> {
        match wish {
            Wish::Class => {
                let class = Class::ALL.into_iter().find(|class| class.name().eq_ignore_ascii_case(text));
                self.class = Some(class.ok_or("interactive, background or batch")?);
            }
            Wish::Deadline => self.deadline = Some(millis(text)?),
            Wish::MaxWait => self.max_wait = Some(millis(text)?),
            Wish::Quality => self.quality = Some(quality(text)?),
            Wish::DropHopeless => self.drop_hopeless = Some(yes_or_no(text)?),
        }
        Ok(())
    }
}

fn millis(text: &str) -> Result<Span, &'static str> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let millis = digits.then(|| text.parse().ok()).flatten();
    millis.map(Span::from_millis).ok_or("a whole number of milliseconds")
}

fn quality(text: &str) -> Result<Quality, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "preferred" => Ok(Quality::Preferred),
        "balanced" => Ok(Quality::Balanced),
        "compact" => Ok(Quality::Compact),
        _ => Err("preferred, balanced or compact"),
    }
}

fn yes_or_no(text: &str) -> Result<bool, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("true or false"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_go_before_the_body_and_ours_before_those_of_others() {
        let mut headers = HeaderMap::new();
        headers.insert("x-gridcore-class", "batch".parse().unwrap());
        headers.insert("x-gridcore-deadline-ms", "250".parse().unwrap());
        headers.insert("x-windtunnel-class", "Background".parse().unwrap());
        let body = br#"{"class": "interactive", "quality": "compact", "drop_hopeless": true, "max_wait_ms": 0}"#;
        let asked = Asked::in_headers(&headers).unwrap().or(Asked::in_body(body, Spelling::Own).unwrap());
        let expected = Asked {
            class: Some(Class::Background),
            deadline: Some(Span::from_millis(250)),
            max_wait: Some(Span::ZERO),
            quality: Some(Quality::Compact),
            drop_hopeless: Some(true),
        };
        assert_eq!(asked, expected);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let header = |name: &'static str, value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(name, http::HeaderValue::from_bytes(value).unwrap());
            Asked::in_headers(&headers).map_err(|bad| format!("{} wants {}", bad.name, bad.wanted))
        };
        for value in [&b"-1"[..], b"+1", b"1e3", b"", b"\xff", b"99999999999999999999"] {
            let wrong = header("x-windtunnel-max-wait-ms", value).unwrap_err();
            assert_eq!(wrong, "x-windtunnel-max-wait-ms wants a whole number of milliseconds");
        }
        assert!(header("x-windtunnel-deadline-ms", b"18446744073709551615").is_ok(), "endless is long enough");
        let body = |text: &str, spelling| Asked::in_body(text.as_bytes(), spelling).map_err(|bad| bad.name);
        assert_eq!(body(r#"{"clas": "batch"}"#, Spelling::Own), Err("windtunnel.clas".to_owned()));
        assert_eq!(body(r#"{"clas": "batch"}"#, Spelling::GridCore), Ok(Asked::default()));
        assert_eq!(body("7", Spelling::GridCore), Err("gridcore".to_owned()));
    }
}
