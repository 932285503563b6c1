//! Reads keys and sessions.

use std::collections::{HashMap, HashSet};

use domain::limits::RESOURCE_BYTES_MAX;
use reqwest::Method;

use super::entry::{ConsulSession, HeldKey, KeyEntry};
use super::error::ConsulError;
use super::http::Http;

/// The held keys of a prefix.
#[derive(Debug, Default)]
pub(super) struct KeyList {
    pub(super) held: Vec<HeldKey>,
    /// Keys with a name that is too long.
    pub(super) too_long: usize,
    /// Keys read, held or not.
    pub(super) keys: u64,
    pub(super) is_filtered: bool,
}

fn parse<'a, T: serde::Deserialize<'a>>(element: &'a [u8]) -> Result<T, ConsulError> {
    serde_json::from_slice(element)
        .map_err(|error| ConsulError::protocol(format!("the answer is not Consul's: {error}")))
}

/// All keys below a prefix; returns whether Consul left some out. Values are skipped.
pub(super) async fn keys(http: &Http, prefix: &str, list: &mut KeyList) -> Result<bool, ConsulError> {
    let url = http.key_url(prefix, &[("recurse", "")]);
    let info = http
        .list(url, http.settings.timeout, |element| {
            let entry: KeyEntry<'_> = parse(element)?;
            list.keys += 1;
            match entry.held() {
                Some(held) if held.key.len() > RESOURCE_BYTES_MAX => list.too_long += 1,
                Some(held) => list.held.push(held),
                None => {}
            }
            Ok(())
        })
        .await?;
    list.is_filtered |= info.is_filtered;
    Ok(info.is_filtered)
}

/// One key, by the leader. `use_entry` gets the key if it exists.
pub(super) async fn key<T>(
    http: &Http,
    key: &str,
    use_entry: impl Fn(&KeyEntry<'_>) -> T,
) -> Result<Option<T>, ConsulError> {
    let mut found = None;
    let url = http.key_url(key, &[("consistent", "")]);
    http.list(url, http.settings.timeout, |element| {
        let entry: KeyEntry<'_> = parse(element)?;
        // A name with relative parts would read another key.
        if entry.key != key {
            return Err(ConsulError::protocol(format!(
                "Consul answered with the key {}",
                entry.key
            )));
        }
        found = Some(use_entry(&entry));
        Ok(())
    })
    .await?;
    Ok(found)
}

/// The sessions among `ids`, by id.
pub(super) async fn sessions(
    http: &Http,
    ids: &HashSet<&str>,
) -> Result<HashMap<String, ConsulSession>, ConsulError> {
    let mut found = HashMap::with_capacity(ids.len());
    let url = http.url(&["v1", "session", "list"], &[]);
    http.list(url, http.settings.timeout, |element| {
        let session: ConsulSession = parse(element)?;
        if ids.contains(session.id.as_str()) {
            found.insert(session.id.clone(), session);
        }
        Ok(())
    })
    .await?;
    Ok(found)
}

/// `None`: it has ended, or the token may not read it.
pub(super) async fn session(http: &Http, id: &str) -> Result<Option<ConsulSession>, ConsulError> {
    let url = http.url(&["v1", "session", "info", id], &[("consistent", "")]);
    let found: Option<Vec<ConsulSession>> = http.json(http.request(Method::GET, url)).await?;
    Ok(found.unwrap_or_default().into_iter().next())
}
