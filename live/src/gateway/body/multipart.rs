//! Forms with files (`multipart/form-data`, RFC 7578): where the model's name is, nothing else is touched.

use std::ops::Range;

use bytes::Bytes;
use memchr::memmem;

use super::{
    edit::{Edit, With},
    request::{Request, Stream},
};

/// Why a form cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Unformed {
    /// The content type names no boundary.
    NoBoundary,
    /// A part has no end.
    Endless,
    /// No part is called `model`.
    NoModel,
}

/// A part of a form.
struct Part {
    name: Option<String>,
    content: Range<usize>,
}

/// Looks through a form once.
///
/// # Errors
/// If it has no boundary, a part without an end, or no part that names a model.
pub(in crate::gateway) fn read(bytes: Bytes, content_type: &str) -> Result<Request, Unformed> {
    let boundary = boundary(content_type).ok_or(Unformed::NoBoundary)?;
    let mut request = Request::default();
    for part in parts(&bytes, &boundary)? {
        let text = || bytes.get(part.content.clone()).and_then(|text| std::str::from_utf8(text).ok());
        match part.name.as_deref() {
            Some("model") => {
                request.model = text().map(|text| text.trim().to_owned());
                request.edits.push(Edit { range: part.content.clone(), with: With::BareModel });
            }
            Some("stream") if text().is_some_and(|text| text.trim() == "true") => request.stream = Stream::Yes,
            Some(_) | None => {}
        }
    }
    if request.model.is_none() {
        return Err(Unformed::NoModel);
    }
    request.bytes = bytes;
    Ok(request)
}

/// The parameter of that name of a header such as `form-data; name="model"`.
fn parameter(header: &str, wanted: &str) -> Option<String> {
    let mut rest = header;
    while let Some((_, more)) = rest.split_once(';') {
        let (name, value) = more.split_once('=')?;
        let value = value.trim_start();
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_at(value.find(';').unwrap_or(value.len())),
        };
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(value.trim().to_owned());
        }
        rest = after;
    }
    None
}

fn boundary(content_type: &str) -> Option<String> {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    let boundary = parameter(content_type, "boundary")?;
    (kind.eq_ignore_ascii_case("multipart/form-data") && (1..=70).contains(&boundary.len())).then_some(boundary)
}

/// The parts of a form; what stands before the first and behind the last counts nothing.
fn parts(bytes: &[u8], boundary: &str) -> Result<Vec<Part>, Unformed> {
    let delimiter = format!("\r\n--{boundary}");
    let finder = memmem::Finder::new(delimiter.as_bytes());
    let mut parts = Vec::new();
    // The first may stand at the very beginning, without a line end before it.
    let mut at = match bytes.starts_with(&delimiter.as_bytes()[2..]) {
        true => delimiter.len() - 2,
        false => finder.find(bytes).ok_or(Unformed::Endless)? + delimiter.len(),
    };
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        let line_end = memmem::find(rest, b"\r\n").ok_or(Unformed::Endless)?;
        // A part without headers begins with the empty line that ends them.
        let head =
            memmem::find(rest.get(line_end..).unwrap_or_default(), b"\r\n\r\n").ok_or(Unformed::Endless)? + line_end;
        let start = at + head + 4;
        let length = finder.find(bytes.get(start..).unwrap_or_default()).ok_or(Unformed::Endless)?;
        let headers = rest.get(line_end..head).unwrap_or_default();
        parts.push(Part { name: name(headers), content: start..start + length });
        at = start + length + delimiter.len();
    }
}

fn name(headers: &[u8]) -> Option<String> {
    let headers = std::str::from_utf8(headers).ok()?;
    let disposition = headers.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    parameter(disposition, "name")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a; name=b.wav\"\r\n\r\nRIFF\r\n--y\r\n--x\r\ncontent-disposition: form-data; name=model\r\n\r\nwhisper\r\n--x--\r\n";

    #[test]
    fn the_model_of_a_form_is_found_and_nothing_else_changed() {
        let request = read(Bytes::from(FORM), "multipart/form-data; boundary=x").unwrap();
        assert_eq!(request.model.as_deref(), Some("whisper"));
        let pieces = super::super::edit::edited(&request.bytes, &request.edits, "large");
        assert_eq!(pieces.concat(), FORM.replace("whisper", "large").as_bytes());
    }

    #[test]
    fn what_is_no_form_is_said() {
        let form = |text: &str, kind: &str| read(Bytes::copy_from_slice(text.as_bytes()), kind).map(drop);
        assert_eq!(form(FORM, "multipart/form-data"), Err(Unformed::NoBoundary));
        assert_eq!(form(FORM, "application/json; boundary=x"), Err(Unformed::NoBoundary));
        assert_eq!(form(&FORM[..60], "multipart/form-data; boundary=\"x\""), Err(Unformed::Endless));
        assert_eq!(form("--x--\r\n", "multipart/form-data; boundary=x"), Err(Unformed::NoModel));
    }
}
