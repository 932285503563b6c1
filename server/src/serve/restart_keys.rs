//! Keys that have changed since the start and apply only after a restart.
//!
//! Displayed values hide secrets, and show the path of a file, not its content: both are compared here.

use std::path::Path;

use secrecy::ExposeSecret;

use super::file_fingerprints::digest;
use super::reload::ReloadReport;
use config::{Config, LeaseStores};

/// The configuration that the server was started with.
pub(super) struct StartedConfig {
    report: ReloadReport,
    /// Hashes of the files that are read only at the start, by key; `None`: no such file.
    files: [(&'static str, Option<[u8; 32]>); 4],
}

impl StartedConfig {
    pub(super) fn new(report: ReloadReport) -> Self {
        let files = file_digests(&report.config);
        Self { report, files }
    }

    /// Changed keys outside of `[[backend]]`, `[[identity]]` and `log`.
    pub(super) fn changed_keys(&self, now: &ReloadReport) -> Vec<String> {
        let before = &self.report;
        let value = |report: &ReloadReport, key: &str| {
            let entry = report.entries.iter().find(|entry| entry.key == key);
            entry.map(|entry| entry.value.clone())
        };
        let all = before.entries.iter().chain(&now.entries);
        let mut keys: Vec<String> = all
            .map(|entry| entry.key.clone())
            .filter(|key| key != "log" && !key.starts_with("backend") && !key.starts_with("identity["))
            .filter(|key| value(before, key) != value(now, key))
            .collect();
        let (old, new) = (secrets(&before.config), secrets(&now.config));
        for ((key, old), (_, new)) in old.into_iter().zip(new) {
            if old != new {
                keys.push(written_key(key, now));
            }
        }
        for ((key, old), (_, new)) in self.files.iter().zip(file_digests(&now.config)) {
            if *old != new {
                keys.push((*key).to_owned());
            }
        }
        keys.sort();
        keys.dedup();
        keys
    }
}

fn secrets(config: &Config) -> [(&'static str, Option<&str>); 4] {
    let (lease, notify) = (&config.lease, &config.notify);
    let secrets = [
        ("store", Some(&config.store)),
        (
            "lease.password",
            lease.store.as_ref().and_then(LeaseStores::password),
        ),
        ("notify.secret_key", notify.secret_key.as_ref()),
        ("notify.previous_secret_key", notify.previous_secret_key.as_ref()),
    ];
    secrets.map(|(key, secret)| (key, secret.map(ExposeSecret::expose_secret)))
}

/// The key of a secret as it is written in the configuration: that of its file, if it is in one.
fn written_key(key: &str, now: &ReloadReport) -> String {
    let file_key = format!("{key}_file");
    if now.entries.iter().any(|entry| entry.key == file_key) {
        file_key
    } else {
        key.to_owned()
    }
}

fn file_digests(config: &Config) -> [(&'static str, Option<[u8; 32]>); 4] {
    let tls = config.lease.store.as_ref().and_then(LeaseStores::tls);
    let oidc = config.access.oidc.as_ref();
    let files: [(&'static str, Option<&Path>); 4] = [
        ("lease.ca_file", tls.and_then(|tls| tls.ca_file.as_deref())),
        ("lease.cert_file", tls.and_then(|tls| tls.cert_file.as_deref())),
        ("lease.key_file", tls.and_then(|tls| tls.key_file.as_deref())),
        ("oidc.ca_file", oidc.and_then(|oidc| oidc.ca_file.as_deref())),
    ];
    files.map(|(key, file)| (key, file.and_then(digest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{ConfigSources, FileSource};

    fn report(text: &str) -> ReloadReport {
        let file = FileSource {
            path: "leasehold.toml".into(),
            text: text.to_owned(),
        };
        let loaded = config::read(&ConfigSources {
            file: Some(file),
            ..ConfigSources::default()
        });
        ReloadReport {
            config: loaded.config.unwrap(),
            entries: loaded.entries,
        }
    }

    #[test]
    fn changed_content_of_files_needs_a_restart() {
        // The same paths with the same content, and then with another one, file by file.
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
        let first = [
            ("password", "one".to_owned()),
            ("ca", "one".to_owned()),
            ("key", "0a1b".repeat(16)),
        ];
        for (name, text) in &first {
            write(name, text);
        }
        let text = format!(
            "[lease]\nstore = \"etcds://a/l/\"\nuser = \"u\"\npassword_file = {:?}\nca_file = {:?}\n\
             [notify]\nsecret_key_file = {:?}\n",
            path("password"),
            path("ca"),
            path("key")
        );
        let started = StartedConfig::new(report(&text));
        assert!(started.changed_keys(&report(&text)).is_empty());
        for (name, changed, key) in [
            ("password", "two".to_owned(), "lease.password_file"),
            ("ca", "two".to_owned(), "lease.ca_file"),
            ("key", "1b2c".repeat(16), "notify.secret_key_file"),
        ] {
            write(name, &changed);
            assert_eq!(started.changed_keys(&report(&text)), [key]);
            for (name, text) in &first {
                write(name, text);
            }
        }
    }

    #[test]
    fn changed_secrets_without_files_need_a_restart() {
        // Their displayed values are equal.
        for (before, now, key) in [
            (
                "store = \"postgres://u:one@h/d\"",
                "store = \"postgres://u:two@h/d\"",
                "store",
            ),
            (
                "[lease]\nstore = \"postgres://u@h/d\"\npassword = \"one\"",
                "[lease]\nstore = \"postgres://u@h/d\"\npassword = \"two\"",
                "lease.password",
            ),
        ] {
            let started = StartedConfig::new(report(before));
            assert!(started.changed_keys(&report(before)).is_empty());
            assert_eq!(started.changed_keys(&report(now)), [key]);
        }
    }
}
