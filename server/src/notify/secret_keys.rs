//! Source of the encryption key, and encryption of secrets stored in plain text.
//!
//! With SQLite a key is created at the first start, in a file next to the store that only its owner may read. On
//! Postgres, which several servers share, the key is configured; without one, receivers are stored in plain text.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::Row as _;

use super::sealed_columns::{SECRET, URLS, encryption_context};
use super::secret_box::{self, SecretBox, is_sealed};
use config::NotifyConfig;
use config::notify::check_key;
use runtime::db::{Db, on_either};

/// Stored secrets of one receiver.
pub struct StoredSecrets {
    pub id: String,
    pub name: String,
    pub urls: String,
    pub secret: Option<String>,
}

/// `leasehold.db` → `leasehold.secret_key`; `None` on Postgres.
pub fn key_file(store: &str) -> Option<PathBuf> {
    let path = store.strip_prefix("sqlite:")?;
    let path = Path::new(path.strip_prefix("//").unwrap_or(path));
    Some(path.with_extension("secret_key"))
}

/// The key in the file; `None` if there is no file.
///
/// # Errors
/// The file cannot be read or has no key.
pub fn read_key(file: &Path) -> Result<Option<SecretString>, String> {
    match std::fs::read_to_string(file) {
        Ok(text) => {
            let text = text.trim();
            check_key(text).map_err(|why| format!("{} {why}", file.display()))?;
            Ok(Some(SecretString::from(text)))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", file.display())),
    }
}

/// Atomic, and never replaces an existing file.
fn make_key(file: &Path) -> Result<SecretString, String> {
    let key = secret_box::new_key().map_err(|error| error.to_string())?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let written = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).and_then(|mut made| {
        writeln!(made, "{}", key.expose_secret())?;
        made.as_file().sync_all()?;
        made.persist_noclobber(file).map_err(|error| error.error)
    });
    written.map_err(|error| format!("{} cannot be created: {error}", file.display()))?;
    tracing::info!(
        "created the key file {} for the receivers' secrets: back it up, separately from the store",
        file.display()
    );
    Ok(key)
}

/// The configured keys, then the one of the file.
///
/// # Errors
/// The file cannot be read or has no key.
pub fn known(config: &NotifyConfig, file: Option<&Path>) -> Result<Vec<SecretString>, String> {
    let mut keys: Vec<SecretString> = [&config.secret_key, &config.previous_secret_key]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    if let Some(file) = file {
        keys.extend(read_key(file)?);
    }
    Ok(keys)
}

/// Loads or creates the key, encrypts everything with it, and logs what it cannot decrypt.
///
/// # Errors
/// The store does not answer.
pub async fn open(db: &Db, store: &str, config: &NotifyConfig) -> Result<SecretBox, sqlx::Error> {
    let held = load_stored_secrets(db).await?;
    let is_any_sealed = held.iter().any(|secrets| is_sealed(&secrets.urls));
    let file = key_file(store);
    let keys = known(config, file.as_deref()).and_then(|keys| match &file {
        // A new key would not decrypt the existing secrets, and its file would be in the place where the old one has to be
        // restored.
        Some(file) if keys.is_empty() && !is_any_sealed => make_key(file).map(|key| vec![key]),
        _ => Ok(keys),
    });
    let vault = match keys {
        Ok(keys) if keys.is_empty() && (file.is_some() || is_any_sealed) => {
            SecretBox::default().refusing(missing_key_error(file.as_deref()))
        }
        Ok(keys) => SecretBox::from_keys(&keys),
        Err(why) => SecretBox::from_keys(
            [&config.secret_key, &config.previous_secret_key]
                .into_iter()
                .flatten(),
        )
        .refusing(format!(
            "the encryption key of the receivers' secrets is invalid: {why}"
        )),
    };
    if !vault.has_key() && file.is_none() && !is_any_sealed && !held.is_empty() {
        tracing::warn!(
            "the secrets of receivers are stored unencrypted: set secret_key_file in [notify] (openssl rand -hex 32)"
        );
    }
    seal_all(db, &vault, held).await?;
    Ok(vault)
}

fn missing_key_error(file: Option<&Path>) -> String {
    let put = file.map(|file| format!("put {} back from the backup, or ", file.display()));
    format!(
        "the key that encrypts the receivers' secrets is missing: {}set secret_key in [notify] to it",
        put.unwrap_or_default()
    )
}

/// # Errors
/// The store does not answer.
pub async fn load_stored_secrets(db: &Db) -> Result<Vec<StoredSecrets>, sqlx::Error> {
    let select = "SELECT id, name, urls, secret FROM receivers ORDER BY name";
    let mut all = Vec::new();
    on_either!(db, Db, |pool| {
        for row in sqlx::query(select).fetch_all(pool).await? {
            all.push(StoredSecrets {
                id: row.try_get(0)?,
                name: row.try_get(1)?,
                urls: row.try_get(2)?,
                secret: row.try_get(3)?,
            });
        }
    });
    Ok(all)
}

impl StoredSecrets {
    /// Address and secret encrypted with the first key; `None` if they already are.
    ///
    /// # Errors
    /// No key decrypts them.
    fn reseal(&self, vault: &SecretBox) -> Result<Option<(String, Option<String>)>, secret_box::VaultError> {
        let secret_context = encryption_context(&self.id, SECRET);
        let urls = vault.open(&encryption_context(&self.id, URLS), &self.urls)?;
        let secret = self
            .secret
            .as_deref()
            .map(|text| vault.open(&secret_context, text));
        let secret = secret.transpose()?;
        let mut texts = [Some(&self.urls), self.secret.as_ref()].into_iter().flatten();
        if texts.all(|text| vault.is_current(text)) {
            return Ok(None);
        }
        let urls = vault.seal(&encryption_context(&self.id, URLS), urls.expose_secret())?;
        let secret = secret.map(|secret| vault.seal(&secret_context, secret.expose_secret()));
        Ok(Some((urls, secret.transpose()?)))
    }

    /// Checks that this box decrypts them.
    ///
    /// # Errors
    /// It does not; includes the remedy.
    pub fn opens(&self, vault: &SecretBox) -> Result<(), secret_box::VaultError> {
        vault.open(&encryption_context(&self.id, URLS), &self.urls)?;
        let secret = self.secret.as_deref();
        secret.map_or(Ok(()), |text| {
            vault.open(&encryption_context(&self.id, SECRET), text).map(drop)
        })
    }
}

async fn seal_all(db: &Db, vault: &SecretBox, held: Vec<StoredSecrets>) -> Result<(), sqlx::Error> {
    let update = "UPDATE receivers SET urls = $1, secret = $2
        WHERE id = $3 AND urls = $4 AND coalesce(secret, '') = $5";
    for secrets in held {
        let (urls, secret) = match secrets.reseal(vault) {
            Ok(Some(sealed)) => sealed,
            Ok(None) => continue,
            Err(why) => {
                tracing::error!(
                    receiver.name = secrets.name,
                    "{} cannot be notified: {why}",
                    secrets.name
                );
                continue;
            }
        };
        // Only if unchanged since the read: a concurrent change has encrypted it.
        on_either!(db, Db, |pool| sqlx::query(update)
            .bind(&urls)
            .bind(&secret)
            .bind(&secrets.id)
            .bind(&secrets.urls)
            .bind(secrets.secret.as_deref().unwrap_or_default())
            .execute(pool)
            .await?
            .rows_affected());
        tracing::info!(
            receiver.name = secrets.name,
            "encrypted the address and secret of {}",
            secrets.name
        );
    }
    Ok(())
}
