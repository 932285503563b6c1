//! Encryption of receivers' addresses and secrets: AES-256-GCM with a key outside of the store, each text bound to
//! its row and field as associated data.
//!
//! Owns the keys and the format of an encrypted text; `secret_keys.rs` loads keys and encrypts plain text.
//! **Invariant:** a text that no key decrypts is left unchanged, so a wrong key loses nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::hex;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use config::notify::{KEY_BYTES, key_bytes};
use runtime::random;

/// Prefix of every encrypted text, with the format version. No valid plain text begins with it.
const MARK: &str = "leasehold-sealed:1:";

struct Key {
    /// Identifies the key without revealing it.
    id: String,
    aead: LessSafeKey,
}

/// The keys of this server: the first encrypts, all decrypt.
#[derive(Default)]
pub struct SecretBox {
    keys: Vec<Key>,
    /// Why encryption is required although there is no key.
    refuses: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VaultError {
    #[error("{0}")]
    NoKey(String),
    #[error(
        "it was sealed with the key {0}, which this server does not have: set `secret_key` or `previous_secret_key` \
         in [notify] to that key, or enter the address and secret again"
    )]
    OtherKey(String),
    #[error(
        "the stored ciphertext is damaged or belongs to another receiver: enter the receiver's address and secret again"
    )]
    Damaged,
    #[error("the operating system returned no random numbers; see the server's log and try again")]
    NoChance,
}

/// A new key in its file format.
///
/// # Errors
/// The random number generator failed.
pub(super) fn new_key() -> Result<SecretString, VaultError> {
    let bytes = random::secret::<KEY_BYTES>().map_err(|_| VaultError::NoChance)?;
    Ok(SecretString::from(hex::text(&bytes)))
}

impl Key {
    fn parse(text: &str) -> Option<Self> {
        let bytes = key_bytes(text)?;
        let hash = Sha256::new()
            .chain_update(b"leasehold key id")
            .chain_update(bytes)
            .finalize();
        Some(Self {
            id: hex::text(&hash[..4]),
            aead: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes).ok()?),
        })
    }
}

impl SecretBox {
    /// The first key encrypts. Without keys, texts are stored in plain text.
    pub fn from_keys<'k>(keys: impl IntoIterator<Item = &'k SecretString>) -> Self {
        let keys = keys.into_iter().filter_map(|key| Key::parse(key.expose_secret()));
        Self {
            keys: keys.collect(),
            refuses: None,
        }
    }

    /// Refuses to store plain text although there is no key.
    pub(super) fn refusing(self, why: String) -> Self {
        let refuses = self.keys.is_empty().then_some(why);
        Self { refuses, ..self }
    }

    pub const fn has_key(&self) -> bool {
        !self.keys.is_empty()
    }

    /// `context` is the row and field; the text can be decrypted only with it.
    ///
    /// # Errors
    /// There is no key although one is required.
    pub(super) fn seal(&self, context: &str, clear: &str) -> Result<String, VaultError> {
        let Some(key) = self.keys.first() else {
            return match &self.refuses {
                Some(why) => Err(VaultError::NoKey(why.clone())),
                None => Ok(clear.to_owned()),
            };
        };
        let nonce = random::secret::<NONCE_LEN>().map_err(|_| VaultError::NoChance)?;
        let mut sealed = clear.as_bytes().to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        let tag = key
            .aead
            .seal_in_place_separate_tag(unique, Aad::from(context), &mut sealed)
            .map_err(|_| VaultError::NoChance)?;
        let bytes = [&nonce[..], &sealed, tag.as_ref()].concat();
        Ok(format!("{MARK}{}:{}", key.id, URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Plain text is returned unchanged.
    ///
    /// # Errors
    /// No key of this server decrypts it.
    pub fn open(&self, context: &str, stored: &str) -> Result<SecretString, VaultError> {
        let Some(sealed) = stored.strip_prefix(MARK) else {
            return Ok(SecretString::from(stored));
        };
        let (id, text) = sealed.split_once(':').ok_or(VaultError::Damaged)?;
        let key = self.keys.iter().find(|key| key.id == id);
        let key = key.ok_or_else(|| VaultError::OtherKey(id.to_owned()))?;
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| VaultError::Damaged)?;
        let (nonce, ciphertext) = bytes.split_at_checked(NONCE_LEN).ok_or(VaultError::Damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultError::Damaged)?;
        let mut ciphertext = ciphertext.to_vec();
        let clear = key.aead.open_in_place(nonce, Aad::from(context), &mut ciphertext);
        let clear = clear.map_err(|_| VaultError::Damaged)?;
        let text = str::from_utf8(clear).map_err(|_| VaultError::Damaged)?;
        Ok(SecretString::from(text))
    }

    /// Whether it is encrypted with the current first key.
    pub(super) fn is_current(&self, stored: &str) -> bool {
        match (self.keys.first(), stored.strip_prefix(MARK)) {
            (Some(key), Some(sealed)) => sealed.split_once(':').is_some_and(|(id, _)| id == key.id),
            (None, _) => true,
            (Some(_), None) => false,
        }
    }
}

/// Whether it is encrypted, with any key.
pub fn is_sealed(stored: &str) -> bool {
    stored.starts_with(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: &str = "a_1:secret";

    fn vault(keys: &[char]) -> SecretBox {
        let keys: Vec<SecretString> = keys
            .iter()
            .map(|digit| SecretString::from(format!("0{}", digit.to_string().repeat(63))))
            .collect();
        SecretBox::from_keys(&keys)
    }

    fn decrypt(vault: &SecretBox, context: &str, stored: &str) -> Result<String, VaultError> {
        vault
            .open(context, stored)
            .map(|clear| clear.expose_secret().to_owned())
    }

    #[test]
    fn a_sealed_text_opens_only_with_its_key_and_context() {
        // Detects plain text, a secret moved to another receiver, and a wrong key without an error.
        let (own_vault, other_vault) = (vault(&['a']), vault(&['b']));
        let sealed = own_vault.seal(CONTEXT, "s3cret").unwrap();
        assert!(is_sealed(&sealed) && !sealed.contains("s3cret"));
        assert_ne!(
            sealed,
            own_vault.seal(CONTEXT, "s3cret").unwrap(),
            "two texts show that they are the same"
        );
        assert_eq!(decrypt(&own_vault, CONTEXT, &sealed).as_deref(), Ok("s3cret"));
        assert_eq!(
            decrypt(&own_vault, "a_2:secret", &sealed),
            Err(VaultError::Damaged)
        );
        let Err(VaultError::OtherKey(id)) = decrypt(&other_vault, CONTEXT, &sealed) else {
            panic!("another key opened it");
        };
        assert!(
            sealed.contains(&id)
                && VaultError::OtherKey(id)
                    .to_string()
                    .contains("previous_secret_key")
        );
    }

    #[test]
    fn a_changed_sealed_text_is_rejected() {
        // Each character of an encrypted text changed, and every truncation.
        let own_vault = vault(&['a']);
        let sealed = own_vault.seal(CONTEXT, "s3cret").unwrap();
        for at in MARK.len()..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_ne!(
                decrypt(&own_vault, CONTEXT, &changed).as_deref(),
                Ok("s3cret"),
                "{at}"
            );
            assert!(decrypt(&own_vault, CONTEXT, &sealed[..at]).is_err(), "{at}");
        }
    }

    #[test]
    fn the_first_key_seals_and_every_key_opens() {
        // Old key, both, new key; and plain text from before there was a key.
        let sealed = vault(&['a']).seal(CONTEXT, "s3cret").unwrap();
        let both = vault(&['b', 'a']);
        assert_eq!(decrypt(&both, CONTEXT, &sealed).as_deref(), Ok("s3cret"));
        assert!(!both.is_current(&sealed) && !both.is_current("s3cret"));
        let resealed = both.seal(CONTEXT, "s3cret").unwrap();
        assert!(both.is_current(&resealed));
        assert_eq!(
            decrypt(&vault(&['b']), CONTEXT, &resealed).as_deref(),
            Ok("s3cret")
        );
        assert_eq!(decrypt(&both, CONTEXT, "in clear").as_deref(), Ok("in clear"));
        assert_eq!(SecretBox::default().seal(CONTEXT, "x"), Ok("x".to_owned()));
        let refusing = SecretBox::default().refusing("why".to_owned());
        assert_eq!(
            refusing.seal(CONTEXT, "x"),
            Err(VaultError::NoKey("why".to_owned()))
        );
    }
}
