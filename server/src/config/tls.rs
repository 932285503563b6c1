//! TLS towards a backend. Used when the URL asks for TLS (`sslmode`, `rediss://`, `https://`) or a file is given.

use std::path::PathBuf;

use super::reader::Section;
use super::rules;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// `ca_file`: PEM of the authority that signed the server's certificate. Default: the system's roots.
    pub ca_file: Option<PathBuf>,
    /// `cert_file` and `key_file`: PEM of our own certificate and key, both or neither.
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    /// `server_name`: the name expected in the server's certificate. Default: the host of the URL.
    pub server_name: Option<String>,
}

impl TlsConfig {
    pub fn is_configured(&self) -> bool {
        self.ca_file.is_some() || self.cert_file.is_some() || self.server_name.is_some()
    }

    pub(super) fn read(section: &mut Section<'_>) -> Self {
        let tls = Self {
            ca_file: section.optional("ca_file", &rules::path()),
            cert_file: section.optional("cert_file", &rules::path()),
            key_file: section.optional("key_file", &rules::path()),
            server_name: section.optional("server_name", &rules::text("db.example.com")),
        };
        for (given, other) in [("cert_file", "key_file"), ("key_file", "cert_file")] {
            if section.has(given) && !section.has(other) {
                section.missing(
                    other,
                    &format!("{given} is given: write {other} too, or neither."),
                );
            }
        }
        tls
    }
}
