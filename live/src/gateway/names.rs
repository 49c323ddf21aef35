//! `/v1/models`: what there is, from memory.

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use windtunnel_config::did_you_mean;

use super::{
    answer::Answer,
    catalogue::Catalogue,
    refuse::{Reason, Refusal},
    shared::Rules,
};

/// So many names are listed to somebody who uses an unknown one.
const LISTED: usize = 10;

/// Every name.
pub(super) fn all(rules: &Rules) -> Response<Answer> {
    json(rules.catalogue.listing())
}

/// One name, as it is written in a path.
///
/// # Errors
/// If nothing is called that.
pub(super) fn one(rules: &Rules, written: &str) -> Result<Response<Answer>, Refusal> {
    let name = unescaped(written);
    let described = rules.catalogue.described(&name);
    described.map(json).ok_or_else(|| unknown(&rules.catalogue, &name))
}

/// Nothing is called `name`; says what it may have been meant for, or else what there is.
pub(super) fn unknown(catalogue: &Catalogue, name: &str) -> Refusal {
    // A class may stand behind it.
    let plain = name.rsplit_once('@').map_or(name, |(plain, _)| plain);
    let instead = did_you_mean(plain, catalogue.names()).unwrap_or_else(|| there_are(catalogue));
    let message = format!("the model {name:?} is not configured; {instead}");
    Refusal::new(Reason::UnknownModel, message).about("model")
}

fn there_are(catalogue: &Catalogue) -> String {
    let listed: Vec<&str> = catalogue.names().take(LISTED).collect();
    match catalogue.names().count().saturating_sub(LISTED) {
        _ if listed.is_empty() => "no model is".to_owned(),
        0 => format!("there are {}", listed.join(", ")),
        more => format!("there are {} and {more} more", listed.join(", ")),
    }
}

/// An answer of JSON.
pub(super) fn json(text: impl Into<Bytes>) -> Response<Answer> {
    text_of("application/json", text)
}

/// An answer of that content type.
pub(super) fn text_of(kind: &'static str, text: impl Into<Bytes>) -> Response<Answer> {
    let mut answer = Response::new(Answer::once(text));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// `%2F` is `/`, and so on (RFC 3986, section 2.1); what is no escape stands for itself.
pub(super) fn unescaped(written: &str) -> String {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { more.get(2..).unwrap_or_default() } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_unescaped_and_nonsense_stands_for_itself() {
        for (written, name) in
            [("a/b:c", "a/b:c"), ("a%2Fb%3ac", "a/b:c"), ("100%", "100%"), ("%zz%4", "%zz%4"), ("%ff", "\u{fffd}")]
        {
            assert_eq!(unescaped(written), name);
        }
    }
}
