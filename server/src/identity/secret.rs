//! Random secrets of 256 bits, shown once and stored as SHA-256. So much chance needs no slow hash.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::hex;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use super::error::IdentityError;

/// In clear, for the one moment that it is shown.
#[derive(Debug, Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// The prefix lets people and scanners see what it is: `lht_` a token, `lhs_` a session, `lhl_` a link.
    pub(super) fn new(prefix: &str) -> Result<Self, IdentityError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| IdentityError::NoChance)?;
        let text = format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes));
        Ok(Self(text.into()))
    }

    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    pub(super) fn hash(&self) -> String {
        hash(self.expose())
    }
}

/// How a secret is stored and looked up. Comparing hashes tells nothing of the secret by its time.
pub(super) fn hash(text: &str) -> String {
    hex::text(&Sha256::digest(text.as_bytes()))
}

/// A name for a row: 128 bits.
pub fn id(prefix: &str) -> Result<String, IdentityError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| IdentityError::NoChance)?;
    Ok(format!("{prefix}{}", hex::text(&bytes)))
}
