//! Taking a body in, up to a limit.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use super::inflate::{Packing, Spoiled, unpack};

/// Bodies up to this size are copied, so that they do not keep the buffer of their connection.
const COPIED: usize = 16 * 1024;
/// Between two pieces of a body, at most.
const PAUSE: Duration = Duration::from_secs(60);

/// Why a body was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Refused {
    /// It is larger than allowed.
    TooLarge { limit: usize },
    /// It is packed in a way nobody knows here.
    UnknownPacking { found: String },
    /// It cannot be unpacked.
    Damaged,
    /// Its client stopped sending.
    Broken,
    /// Nothing came of it for too long.
    Stalled,
    /// It took longer than it may.
    Slow { limit: Duration },
}

/// Takes a whole body in and unpacks it.
///
/// # Errors
/// If it is larger than `limit`, packed or not, cannot be unpacked, or does not arrive in `time`.
pub(in crate::gateway) async fn take(
    headers: &HeaderMap,
    body: Incoming,
    limit: usize,
    time: Duration,
) -> Result<Bytes, Refused> {
    let packing = packing(headers)?;
    if body.size_hint().lower() > limit as u64 {
        return Err(Refused::TooLarge { limit });
    }
    let bytes = timeout(time, whole(body, limit)).await.map_err(|_| Refused::Slow { limit: time })??;
    let Some(packing) = packing else { return Ok(bytes) };
    let unpacked = tokio::task::spawn_blocking(move || unpack(packing, &bytes, limit)).await;
    match unpacked {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(Spoiled::TooLarge)) => Err(Refused::TooLarge { limit }),
        Ok(Err(Spoiled::Damaged)) | Err(_) => Err(Refused::Damaged),
    }
}

fn packing(headers: &HeaderMap) -> Result<Option<Packing>, Refused> {
    let Some(value) = headers.get(header::CONTENT_ENCODING) else { return Ok(None) };
    let text = value.to_str().unwrap_or("?").trim().to_ascii_lowercase();
    match text.as_str() {
        "" | "identity" => Ok(None),
        "gzip" | "x-gzip" => Ok(Some(Packing::Gzip)),
        "zstd" => Ok(Some(Packing::Zstd)),
        _ => Err(Refused::UnknownPacking { found: text }),
    }
}

async fn whole(mut body: Incoming, limit: usize) -> Result<Bytes, Refused> {
    let Some(first) = data(&mut body).await? else { return Ok(Bytes::new()) };
    if body.is_end_stream() {
        return Ok(if first.len() <= COPIED { Bytes::copy_from_slice(&first) } else { first });
    }
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(0);
    let mut all = BytesMut::with_capacity(first.len() + expected.min(limit));
    let mut next = Some(first);
    while let Some(piece) = next {
        if all.len() + piece.len() > limit {
            return Err(Refused::TooLarge { limit });
        }
        all.extend_from_slice(&piece);
        next = data(&mut body).await?;
    }
    Ok(all.freeze())
}

/// The next piece; trailers are passed over.
async fn data(body: &mut Incoming) -> Result<Option<Bytes>, Refused> {
    while let Some(frame) = timeout(PAUSE, body.frame()).await.map_err(|_| Refused::Stalled)? {
        if let Ok(piece) = frame.map_err(|_| Refused::Broken)?.into_data() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}
