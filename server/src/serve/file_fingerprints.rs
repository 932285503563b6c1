//! Detects changed files behind a configuration: a certificate is renewed in place, so its path does not change.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use config::tls::TlsConfig;

/// Hashes of a backend's certificates and key when they were last loaded. An unreadable file counts as absent; the
/// adapter reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileFingerprints([Option<[u8; 32]>; 3]);

impl FileFingerprints {
    /// Call before an adapter reads them: a renewal in between is detected at the next check.
    pub(super) fn from_config(tls: &TlsConfig) -> Self {
        Self([&tls.ca_file, &tls.cert_file, &tls.key_file].map(|file| digest(file.as_deref()?)))
    }
}

/// `None`: it cannot be read.
pub(super) fn digest(file: &Path) -> Option<[u8; 32]> {
    Some(Sha256::digest(std::fs::read(file).ok()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_replaced_in_place_has_a_new_fingerprint() {
        // The same path with the same text, another text, and no file.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("client.crt");
        let tls = TlsConfig {
            cert_file: Some(file.clone()),
            ..TlsConfig::default()
        };
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write("one");
        let first = FileFingerprints::from_config(&tls);
        write("one");
        assert_eq!(FileFingerprints::from_config(&tls), first);
        write("two");
        assert_ne!(FileFingerprints::from_config(&tls), first);
        std::fs::remove_file(&file).unwrap();
        assert_ne!(FileFingerprints::from_config(&tls), first);
    }
}
