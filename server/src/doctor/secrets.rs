//! Checks of receivers' secrets: whether they are encrypted, and whether this server's key decrypts them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use secrecy::ExposeSecret as _;

use super::check_result::Finding;
use crate::notify::SecretBox;
use crate::notify::secret_keys::{self, StoredSecrets};
use config::Config;
use runtime::db::Db;

const CHECK: &str = "receivers' secrets";
/// Permission bits of group and others.
const OTHERS: u32 = 0o077;

pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let store = config.store.expose_secret();
    let file = secret_keys::key_file(store);
    let known = match secret_keys::known(&config.notify, file.as_deref()) {
        Ok(known) => known,
        Err(why) => return vec![Finding::fault(CHECK, why, "restore the file from the backup")],
    };
    let held = load_stored_secrets(store).await;
    let mut findings: Vec<Finding> = file.as_deref().and_then(check_file).into_iter().collect();
    if known.is_empty() {
        findings.push(without_key(file.as_deref(), &held));
        return findings;
    }
    let vault = SecretBox::from_keys(&known);
    let undecryptable = held
        .iter()
        .filter_map(|secrets| Some((secrets, secrets.opens(&vault).err()?)));
    let mut undecryptable: Vec<Finding> = undecryptable
        .map(|(secrets, why)| {
            let remedy = "set previous_secret_key in [notify] to the key that encrypted it, or enter the address and \
                secret again";
            Finding::fault(CHECK, format!("{} cannot be notified: {why}", secrets.name), remedy)
        })
        .collect();
    if undecryptable.is_empty() {
        undecryptable.push(Finding::ok(
            CHECK,
            "encrypted in the store; this server's key decrypts them",
        ));
    }
    findings.append(&mut undecryptable);
    findings
}

fn check_file(file: &Path) -> Option<Finding> {
    let mode = std::fs::metadata(file).ok()?.permissions().mode();
    (mode & OTHERS != 0).then(|| {
        let path = file.display();
        Finding::warning(
            CHECK,
            format!("other users may read {path}, the key that decrypts them"),
            format!("chmod 600 {path}"),
        )
    })
}

fn without_key(file: Option<&Path>, held: &[StoredSecrets]) -> Finding {
    let is_any_sealed = held
        .iter()
        .any(|secrets| secrets.opens(&SecretBox::default()).is_err());
    match file {
        _ if is_any_sealed => Finding::fault(
            CHECK,
            "the key that encrypted them is missing: no notification can be sent",
            match file {
                Some(file) => format!(
                    "restore {} from the backup, or set secret_key_file in [notify]",
                    file.display()
                ),
                None => "set secret_key_file in [notify] to the key that encrypted them".to_owned(),
            },
        ),
        Some(file) => Finding::ok(
            CHECK,
            format!("the next start creates {} and encrypts them", file.display()),
        ),
        None => Finding::warning(
            CHECK,
            "no key is set: they are stored unencrypted",
            "openssl rand -hex 32 > /etc/leasehold/secret_key # then set secret_key_file in [notify], the same on \
             every server",
        ),
    }
}

/// With the keys that are available.
pub(super) fn vault(config: &Config) -> SecretBox {
    let file = secret_keys::key_file(config.store.expose_secret());
    let known = secret_keys::known(&config.notify, file.as_deref());
    SecretBox::from_keys(&known.unwrap_or_default())
}

/// Empty without receivers or table: faults of the store are reported by its own check.
async fn load_stored_secrets(store: &str) -> Vec<StoredSecrets> {
    let Ok(Some(db)) = Db::open_read_only(store) else {
        return Vec::new();
    };
    let held = secret_keys::load_stored_secrets(&db).await;
    db.close().await;
    held.unwrap_or_default()
}
