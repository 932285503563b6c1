//! The static site, embedded: wasm, loader, style, font, each with its compressed variants.
//!
//! Pages name the files of `pkg/` below a version that changes with their content, so a browser keeps them without asking
//! again. In debug builds the site is read from disk: after `scripts/site --dev` the server is restarted, not rebuilt.

use std::sync::OnceLock;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use domain::hex;
use rust_embed::{Embed, EmbeddedFile};
use sha2::{Digest as _, Sha256};

use super::accept::accepts;

#[derive(Embed)]
#[folder = "../target/site"]
#[allow_missing = true]
struct Site;

/// Precompressed variants: encoding and file extension, best first.
const VARIANTS: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

/// A year, in seconds: the longest that caches respect.
const VERSIONED: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Without a version a name does not change with its content, so a browser asks again; the answer is nearly always 304.
const UNVERSIONED: HeaderValue = HeaderValue::from_static("no-cache");
/// Hexadecimal digits of a version.
const VERSION_LEN: usize = 16;

/// Version of `pkg/`: changes with the content of any of its files.
pub(super) fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let mut files: Vec<_> = Site::iter().filter(|path| path.starts_with("pkg/")).collect();
        files.sort_unstable();
        let mut hasher = Sha256::new();
        for file in files.iter().filter_map(|path| Site::get(path)) {
            hasher.update(file.metadata.sha256_hash());
        }
        let mut version = hex::text(&hasher.finalize());
        version.truncate(VERSION_LEN);
        version
    })
}

/// The path of the embedded file, and how long a browser may keep it. A page of another version of the server gets the
/// file of this one.
fn locate(path: &str) -> (String, HeaderValue) {
    let versioned = path.strip_prefix("pkg/").and_then(|rest| rest.split_once('/'));
    match versioned {
        Some((found, file)) if found == version() => (format!("pkg/{file}"), VERSIONED),
        Some((found, file)) if found.len() == VERSION_LEN && !file.contains('/') => {
            (format!("pkg/{file}"), UNVERSIONED)
        }
        _ => (path.to_owned(), UNVERSIONED),
    }
}

/// Whether the binary carries this file.
pub fn holds(path: &str) -> bool {
    Site::get(path).is_some()
}

/// The file at this path, in the best encoding that the client accepts; 304 if the client has it already.
pub async fn serve(uri: Uri, headers: HeaderMap) -> Response {
    let (path, lifetime) = locate(uri.path().trim_start_matches('/'));
    let path = path.as_str();
    let accept_encoding = headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let Some(plain) = Site::get(path) else {
        return not_found(path).into_response();
    };
    let compressed = VARIANTS
        .into_iter()
        .filter(|(encoding, _)| accepts(accept_encoding, encoding))
        .find_map(|(encoding, ending)| {
            Site::get(&format!("{path}{ending}")).map(|file| (Some(encoding), file))
        });
    let kind = plain.metadata.mimetype().to_owned();
    let (encoding, file) = compressed.unwrap_or((None, plain));
    let tag = tag(&file);
    let is_unchanged = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|if_none_match| matches_tag(if_none_match, &tag));
    let mut response = if is_unchanged {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, kind)], Body::from(file.data.into_owned())).into_response()
    };
    let out = response.headers_mut();
    out.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    out.insert(header::CACHE_CONTROL, lifetime);
    if let Ok(tag) = HeaderValue::try_from(tag) {
        out.insert(header::ETAG, tag);
    }
    if let (Some(encoding), false) = (encoding, is_unchanged) {
        out.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}

/// Each variant has its own tag, because the variants differ in content.
fn tag(file: &EmbeddedFile) -> String {
    format!("\"{}\"", hex::text(&file.metadata.sha256_hash()[..16]))
}

fn matches_tag(if_none_match: &HeaderValue, tag: &str) -> bool {
    let if_none_match = if_none_match.to_str().unwrap_or("");
    if_none_match
        .split(',')
        .any(|candidate| matches!(candidate.trim(), "*") || candidate.trim().trim_start_matches("W/") == tag)
}

fn not_found(path: &str) -> (StatusCode, String) {
    let how = "the browser's half is built by scripts/site";
    (StatusCode::NOT_FOUND, format!("there is no {path}; {how}\n"))
}
