//! Where the key of the vault comes from, and sealing what lies in the store otherwise.
//!
//! With SQLite a key is made at the first start, in a file beside the store that its owner alone may read. On Postgres,
//! which several servers share, a key is configured or there is none: then receivers stay as they were, in clear.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::Row as _;

use super::receivers::{SECRET, URLS, place};
use super::vault::{self, Vault, is_sealed};
use crate::config::NotifyConfig;
use crate::config::notify::check_key;
use crate::db::{Db, on_either};

/// One receiver as the store holds it.
pub struct Held {
    pub id: String,
    pub name: String,
    pub urls: String,
    pub secret: Option<String>,
}

/// `leasehold.db` → `leasehold.secret_key`; none on Postgres.
pub fn key_file(store: &str) -> Option<PathBuf> {
    let path = store.strip_prefix("sqlite:")?;
    let path = Path::new(path.strip_prefix("//").unwrap_or(path));
    Some(path.with_extension("secret_key"))
}

/// The key in the file; none where there is no file.
///
/// # Errors
/// It cannot be read, or holds no key: what and why.
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

/// Whole or not at all, and never over another.
fn make_key(file: &Path) -> Result<SecretString, String> {
    let key = vault::new_key().map_err(|error| error.to_string())?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let written = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).and_then(|mut made| {
        writeln!(made, "{}", key.expose_secret())?;
        made.as_file().sync_all()?;
        made.persist_noclobber(file).map_err(|error| error.error)
    });
    written.map_err(|error| format!("{} cannot be made: {error}", file.display()))?;
    tracing::info!(
        "made {}, which opens the secrets of receivers: keep it with your backups, apart from the store",
        file.display()
    );
    Ok(key)
}

/// The keys that are configured, then the one of the file.
///
/// # Errors
/// The file cannot be read, or holds no key.
pub fn known(config: &NotifyConfig, file: Option<&Path>) -> Result<Vec<SecretString>, String> {
    let mut keys: Vec<SecretString> = [&config.secret_key, &config.secret_key_before]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    if let Some(file) = file {
        keys.extend(read_key(file)?);
    }
    Ok(keys)
}

/// Finds the key or makes it, seals what is not sealed with it, and says in the log what it cannot open.
///
/// # Errors
/// The store does not answer.
pub async fn open(db: &Db, store: &str, config: &NotifyConfig) -> Result<Vault, sqlx::Error> {
    let held = held(db).await?;
    let is_any_sealed = held.iter().any(|one| is_sealed(&one.urls));
    let file = key_file(store);
    let keys = known(config, file.as_deref()).and_then(|keys| match &file {
        // A new key would not open what another sealed, and would lie where that one is put back.
        Some(file) if keys.is_empty() && !is_any_sealed => make_key(file).map(|key| vec![key]),
        _ => Ok(keys),
    });
    let vault = match keys {
        Ok(keys) if keys.is_empty() && (file.is_some() || is_any_sealed) => {
            Vault::default().refusing(missing(file.as_deref()))
        }
        Ok(keys) => Vault::of(&keys),
        Err(why) => Vault::of(
            [&config.secret_key, &config.secret_key_before]
                .into_iter()
                .flatten(),
        )
        .refusing(format!("the key of the receivers' secrets: {why}")),
    };
    if !vault.has_key() && file.is_none() && !is_any_sealed && !held.is_empty() {
        tracing::warn!(
            "the secrets of receivers lie in clear in the store: set secret_key_file in [notify] (openssl rand -hex 32)"
        );
    }
    seal_all(db, &vault, held).await?;
    Ok(vault)
}

fn missing(file: Option<&Path>) -> String {
    let put = file.map(|file| format!("put {} back from the backup, or ", file.display()));
    format!(
        "the key that sealed the receivers' secrets is missing: {}set secret_key in [notify] to it",
        put.unwrap_or_default()
    )
}

/// # Errors
/// The store does not answer.
pub async fn held(db: &Db) -> Result<Vec<Held>, sqlx::Error> {
    let select = "SELECT id, name, urls, secret FROM receivers ORDER BY name";
    let mut all = Vec::new();
    on_either!(db, Db, |pool| {
        for row in sqlx::query(select).fetch_all(pool).await? {
            all.push(Held {
                id: row.try_get(0)?,
                name: row.try_get(1)?,
                urls: row.try_get(2)?,
                secret: row.try_get(3)?,
            });
        }
    });
    Ok(all)
}

impl Held {
    /// Address and secret as the first key seals them; none when they are so already.
    ///
    /// # Errors
    /// No key opens them.
    fn sealed_anew(&self, vault: &Vault) -> Result<Option<(String, Option<String>)>, vault::VaultError> {
        let secret_place = place(&self.id, SECRET);
        let urls = vault.open(&place(&self.id, URLS), &self.urls)?;
        let secret = self.secret.as_deref().map(|text| vault.open(&secret_place, text));
        let secret = secret.transpose()?;
        let mut texts = [Some(&self.urls), self.secret.as_ref()].into_iter().flatten();
        if texts.all(|text| vault.is_current(text)) {
            return Ok(None);
        }
        let urls = vault.seal(&place(&self.id, URLS), urls.expose_secret())?;
        let secret = secret.map(|secret| vault.seal(&secret_place, secret.expose_secret()));
        Ok(Some((urls, secret.transpose()?)))
    }

    /// Whether this vault opens it.
    ///
    /// # Errors
    /// It does not: why, and the mend.
    pub fn opens(&self, vault: &Vault) -> Result<(), vault::VaultError> {
        vault.open(&place(&self.id, URLS), &self.urls)?;
        let secret = self.secret.as_deref();
        secret.map_or(Ok(()), |text| {
            vault.open(&place(&self.id, SECRET), text).map(drop)
        })
    }
}

async fn seal_all(db: &Db, vault: &Vault, held: Vec<Held>) -> Result<(), sqlx::Error> {
    let update = "UPDATE receivers SET urls = $1, secret = $2
        WHERE id = $3 AND urls = $4 AND coalesce(secret, '') = $5";
    for one in held {
        let (urls, secret) = match one.sealed_anew(vault) {
            Ok(Some(sealed)) => sealed,
            Ok(None) => continue,
            Err(why) => {
                tracing::error!(
                    receiver.name = one.name,
                    "{} cannot be told anything: {why}",
                    one.name
                );
                continue;
            }
        };
        // Unless somebody changed it meanwhile, who sealed it then.
        on_either!(db, Db, |pool| sqlx::query(update)
            .bind(&urls)
            .bind(&secret)
            .bind(&one.id)
            .bind(&one.urls)
            .bind(one.secret.as_deref().unwrap_or_default())
            .execute(pool)
            .await?
            .rows_affected());
        tracing::info!(
            receiver.name = one.name,
            "address and secret of {} are sealed",
            one.name
        );
    }
    Ok(())
}
