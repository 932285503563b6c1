//! Whether the files behind a configuration hold something else than they did: a certificate is renewed in its place, so that
//! its path says nothing.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::config::tls::TlsConfig;

/// What the certificates and the key towards one backend were, when they were last taken up. A file that cannot be read is
/// none; the adapter says so itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held([Option<[u8; 32]>; 3]);

impl Held {
    /// Called before an adapter reads them: what is renewed in between is seen at the next look.
    pub(super) fn of(tls: &TlsConfig) -> Self {
        Self([&tls.ca_file, &tls.cert_file, &tls.key_file].map(|file| digest(file.as_deref()?)))
    }
}

fn digest(file: &Path) -> Option<[u8; 32]> {
    Some(Sha256::digest(std::fs::read(file).ok()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_renewed_in_its_place_is_another() {
        // The same path: the same text, another text, gone.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("client.crt");
        let tls = TlsConfig {
            cert_file: Some(file.clone()),
            ..TlsConfig::default()
        };
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write("one");
        let first = Held::of(&tls);
        write("one");
        assert_eq!(Held::of(&tls), first);
        write("two");
        assert_ne!(Held::of(&tls), first);
        std::fs::remove_file(&file).unwrap();
        assert_ne!(Held::of(&tls), first);
    }
}
