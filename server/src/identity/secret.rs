//! Random secrets of 256 bits, shown once and stored as SHA-256; their entropy needs no slow hash.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::hex;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use super::error::IdentityError;
use runtime::random;

/// The plain secret, for the one time it is shown.
#[derive(Debug, Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// The prefix identifies the kind for users and secret scanners: `lht_` token, `lhs_` session, `lhl_` link.
    pub(super) fn new(prefix: &str) -> Result<Self, IdentityError> {
        let bytes = random::secret::<32>().map_err(|_| IdentityError::NoChance)?;
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

/// The stored form. Lookup by hash leaks nothing through timing.
pub(super) fn hash(text: &str) -> String {
    hex::text(&Sha256::digest(text.as_bytes()))
}
