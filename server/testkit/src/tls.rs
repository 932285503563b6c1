//! Certificates for a throwaway server's TLS endpoint. Callers provide the files.

use std::{fs, io, path::PathBuf};

use super::temp_dir::Folder;

/// PEM files. They are copied into the server's folder, because each server wants to own its key.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The server's certificate (chain); should be valid for `127.0.0.1`.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// When given, clients must show a certificate of this authority.
    pub client_ca: Option<PathBuf>,
}

/// The copies, as paths for a configuration.
#[derive(Debug, Clone)]
pub(super) struct Installed {
    pub(super) cert: String,
    pub(super) key: String,
    pub(super) client_ca: Option<String>,
}

impl Tls {
    pub(super) fn install(&self, folder: &Folder) -> io::Result<Installed> {
        let copy = |name: &str, from: &PathBuf| {
            let path = folder.write_private(name, &fs::read(from)?)?;
            io::Result::Ok(path.to_string_lossy().into_owned())
        };
        Ok(Installed {
            cert: copy("tls.crt", &self.cert)?,
            key: copy("tls.key", &self.key)?,
            client_ca: self
                .client_ca
                .as_ref()
                .map(|ca| copy("tls-clients.crt", ca))
                .transpose()?,
        })
    }
}
