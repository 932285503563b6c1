//! Addresses and secrets of receivers as they are stored: sealed, each bound to its receiver and its column.

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::receiver::Address;
use super::secret_box::{SecretBox, VaultError};

/// Fields that are encrypted, as part of the associated data.
pub(super) const URLS: &str = "urls";
pub(super) const SECRET: &str = "secret";

pub(super) fn encryption_context(id: &str, what: &str) -> String {
    format!("{id}:{what}")
}

type Opened = (Vec<Address>, Option<SecretString>);

pub(super) fn decrypt(
    vault: &SecretBox,
    id: &str,
    urls: &str,
    secret: Option<String>,
) -> Result<Opened, VaultError> {
    let urls = vault.open(&encryption_context(id, URLS), urls)?;
    let secret = secret.map(|secret| vault.open(&encryption_context(id, SECRET), &secret));
    Ok((parse_addresses(urls.expose_secret()), secret.transpose()?))
}

pub(super) fn encrypt(
    vault: &SecretBox,
    id: &str,
    urls: &[Address],
    secret: Option<&SecretString>,
) -> Result<(String, Option<String>), VaultError> {
    let urls = vault.seal(&encryption_context(id, URLS), &serialize_urls(urls))?;
    let secret = secret.map(|secret| vault.seal(&encryption_context(id, SECRET), secret.expose_secret()));
    Ok((urls, secret.transpose()?))
}

fn parse_addresses(json: &str) -> Vec<Address> {
    let texts: Vec<String> = serde_json::from_str(json).unwrap_or_default();
    texts
        .iter()
        .filter_map(|text| text.parse().ok())
        .map(Address::new)
        .collect()
}

fn serialize_urls(addresses: &[Address]) -> String {
    let texts: Vec<&str> = addresses.iter().map(|address| address.url().as_str()).collect();
    json!(texts).to_string()
}
