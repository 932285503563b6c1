//! TLS towards a backend. Used if the URL requests TLS (`sslmode`, `rediss://`, `https://`) or a file is set.

use std::path::PathBuf;

use super::reader::Section;
use super::value_parsers;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// `ca_file`: PEM of the CA of the server's certificate. Default: the system's roots.
    pub ca_file: Option<PathBuf>,
    /// `cert_file` and `key_file`: PEM of the client certificate and key, both or neither.
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    /// `server_name`: expected name in the server's certificate. Default: the host of the URL.
    pub server_name: Option<String>,
}

impl TlsConfig {
    pub fn is_configured(&self) -> bool {
        self.ca_file.is_some() || self.cert_file.is_some() || self.server_name.is_some()
    }

    pub(super) fn read(section: &mut Section<'_>) -> Self {
        let tls = Self {
            ca_file: section.optional("ca_file", &value_parsers::path()),
            cert_file: section.optional("cert_file", &value_parsers::path()),
            key_file: section.optional("key_file", &value_parsers::path()),
            server_name: section.optional("server_name", &value_parsers::text("db.example.com")),
        };
        for (key, other) in [("cert_file", "key_file"), ("key_file", "cert_file")] {
            if section.has(key) && !section.has(other) {
                section.report_missing(other, &format!("{key} is set: set {other} too, or remove both."));
            }
        }
        tls
    }
}
