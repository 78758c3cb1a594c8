//! The page for people: files of the folder `page/`, which the binary contains.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use charter_kernel::Digest;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::app::App;
use super::caller::one;
use super::meta;
use super::named::Named;
use super::problem::Problem;

/// The files below `page/`, by their path; `build.rs` lists them.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The files with their digests.
static BY_PATH: LazyLock<BTreeMap<&str, (&[u8], Digest)>> =
    LazyLock::new(|| FILES.iter().map(|(path, data)| (*path, (*data, Digest::of_bytes(data)))).collect());

/// The media type of a file, by its name; others are not served.
fn media(path: &str) -> Option<&'static str> {
    let (_, extension) = path.rsplit_once('.')?;
    Some(match extension {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        _ => return None,
    })
}

/// What the page may do: load its own files, and ask its own server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// Compresses a text, if the client reads gzip. Files have no secrets, so their sizes tell nothing.
fn compressed(data: &[u8], headers: &HeaderMap) -> Result<Option<Vec<u8>>, Problem> {
    let accepts = one(headers, header::ACCEPT_ENCODING.as_str())?.unwrap_or_default();
    if !accepts.split(',').any(|coding| coding.split(';').next().is_some_and(|name| name.trim() == "gzip")) {
        return Ok(None);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(data).and_then(|()| encoder.finish());
    Ok(written.ok())
}

/// Answers with a file, or that the client's copy is still the same.
fn file(path: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    let missing = || Problem::new(StatusCode::NOT_FOUND, "no-such-page", "the page has no file of this name");
    let kind = media(path).ok_or_else(missing)?;
    let (data, digest) = *BY_PATH.get(path).ok_or_else(missing)?;
    // Weak: the same file, whether it is compressed or not.
    let tag = format!("W/\"{}\"", digest.hex());
    let known = one(headers, header::IF_NONE_MATCH.as_str())?;
    let is_known = known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag));
    let gzip = if is_known { None } else { compressed(data, headers)? };
    let is_gzip = gzip.is_some();
    let mut response = match (is_known, gzip) {
        (true, _) => StatusCode::NOT_MODIFIED.into_response(),
        (false, Some(gzip)) => gzip.into_response(),
        (false, None) => data.into_response(),
    };
    let mut set = |name, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, kind);
    set(header::ETAG, &tag);
    set(header::CACHE_CONTROL, "no-cache");
    set(header::VARY, "Accept-Encoding");
    if is_gzip {
        set(header::CONTENT_ENCODING, "gzip");
    }
    if kind.starts_with("text/html") {
        set(header::CONTENT_SECURITY_POLICY, POLICY);
    }
    Ok(response)
}

/// `GET /`: the page for a browser, addresses for a program.
pub(super) async fn home(state: State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    let accepts = one(&headers, header::ACCEPT.as_str())?.unwrap_or_default();
    let mut response = match accepts.contains("text/html") {
        true => file("index.html", &headers)?,
        false => meta::home(state).await,
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    Ok(response)
}

/// `GET /page/{path}`
pub(super) async fn one_file(Named(path): Named, headers: HeaderMap) -> Result<Response, Problem> {
    file(&path, &headers)
}
