//! What opens receivers: whether it is sealed in the store, and whether this server's key opens it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use secrecy::ExposeSecret as _;

use super::finding::Finding;
use crate::config::Config;
use crate::db::Db;
use crate::notify::Vault;
use crate::notify::keys::{self, Held};

const CHECK: &str = "receivers' secrets";
/// Others than its owner.
const OTHERS: u32 = 0o077;

pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let store = config.store.expose_secret();
    let file = keys::key_file(store);
    let known = match keys::known(&config.notify, file.as_deref()) {
        Ok(known) => known,
        Err(why) => return vec![Finding::fault(CHECK, why, "put the file back from the backup")],
    };
    let held = held(store).await;
    let mut findings: Vec<Finding> = file.as_deref().and_then(of_file).into_iter().collect();
    if known.is_empty() {
        findings.push(without_key(file.as_deref(), &held));
        return findings;
    }
    let vault = Vault::of(&known);
    let closed = held
        .iter()
        .filter_map(|one| Some((one, one.opens(&vault).err()?)));
    let mut closed: Vec<Finding> = closed
        .map(|(one, why)| {
            let mend = "set secret_key_before in [notify] to the key that it was sealed with, or give address and secret anew";
            Finding::fault(CHECK, format!("{} cannot be told anything: {why}", one.name), mend)
        })
        .collect();
    if closed.is_empty() {
        closed.push(Finding::ok(
            CHECK,
            "sealed in the store, and this server's key opens them",
        ));
    }
    findings.append(&mut closed);
    findings
}

fn of_file(file: &Path) -> Option<Finding> {
    let mode = std::fs::metadata(file).ok()?.permissions().mode();
    (mode & OTHERS != 0).then(|| {
        let shown = file.display();
        Finding::warning(
            CHECK,
            format!("others may read {shown}, which opens them"),
            format!("chmod 600 {shown}"),
        )
    })
}

fn without_key(file: Option<&Path>, held: &[Held]) -> Finding {
    let is_any_sealed = held.iter().any(|one| one.opens(&Vault::default()).is_err());
    match file {
        _ if is_any_sealed => Finding::fault(
            CHECK,
            "the key that sealed them is missing: nobody is told anything",
            match file {
                Some(file) => format!(
                    "put {} back from the backup, or set secret_key_file in [notify]",
                    file.display()
                ),
                None => "set secret_key_file in [notify] to the key that they were sealed with".to_owned(),
            },
        ),
        Some(file) => Finding::ok(
            CHECK,
            format!("the next start makes {}, which seals them", file.display()),
        ),
        None => Finding::warning(
            CHECK,
            "there is no key: they lie in clear in the store",
            "openssl rand -hex 32 > /etc/leasehold/secret_key # then secret_key_file in [notify], the same on every server",
        ),
    }
}

/// As far as the key is there.
pub(super) fn vault(config: &Config) -> Vault {
    let file = keys::key_file(config.store.expose_secret());
    let known = keys::known(&config.notify, file.as_deref());
    Vault::of(&known.unwrap_or_default())
}

/// None where there are none, or no table yet: what is wrong with the store is said elsewhere.
async fn held(store: &str) -> Vec<Held> {
    let Ok(Some(db)) = Db::look(store) else {
        return Vec::new();
    };
    let held = keys::held(&db).await;
    db.close().await;
    held.unwrap_or_default()
}
