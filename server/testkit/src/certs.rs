//! A throwaway certificate authority for TLS tests, made by `openssl`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test's fixture: what fails here ends the test"
)]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::Tls;
use tempfile::TempDir;

/// An authority, a server's certificate for `127.0.0.1` and `localhost`, and a client's for `leasehold`; all valid for
/// one day, removed on drop.
pub struct Certs {
    folder: TempDir,
}

impl Certs {
    pub fn make() -> Self {
        let certs = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let path = |name: &str| certs.file(name).to_string_lossy().into_owned();
        let new_key = [
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ];
        let authority = ["-x509", "-days", "1", "-subj", "/CN=leasehold test authority"];
        openssl(
            &[
                &new_key[..],
                &authority,
                &["-keyout", &path("ca.key"), "-out", &path("ca.crt")],
            ]
            .concat(),
        );
        for (name, subject) in [("server", "/CN=127.0.0.1"), ("client", "/CN=leasehold")] {
            let [key, request, cert] = ["key", "csr", "crt"].map(|ending| path(&format!("{name}.{ending}")));
            std::fs::write(path("names"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n").unwrap();
            openssl(
                &[
                    &new_key[..],
                    &["-subj", subject, "-keyout", &key, "-out", &request],
                ]
                .concat(),
            );
            let authority_args = [
                "-CA",
                &path("ca.crt"),
                "-CAkey",
                &path("ca.key"),
                "-CAcreateserial",
            ];
            let sign = [
                "x509",
                "-req",
                "-days",
                "1",
                "-extfile",
                &path("names"),
                "-in",
                &request,
                "-out",
                &cert,
            ];
            openssl(&[&sign[..], &authority_args].concat());
        }
        certs
    }

    pub fn ca(&self) -> PathBuf {
        self.file("ca.crt")
    }

    pub fn client_cert(&self) -> PathBuf {
        self.file("client.crt")
    }

    pub fn client_key(&self) -> PathBuf {
        self.file("client.key")
    }

    /// For a server that accepts any client.
    pub fn server(&self) -> Tls {
        Tls {
            cert: self.file("server.crt"),
            key: self.file("server.key"),
            client_ca: None,
        }
    }

    /// As [`server`](Self::server), valid for this many days from now; negative: expired.
    pub fn server_until(&self, days: i64) -> Tls {
        self.file_until("server", days)
    }

    /// Client certificate and key, likewise.
    pub fn client_until(&self, days: i64) -> Tls {
        self.file_until("client", days)
    }

    /// Signed by the same authority, valid from a hundred days ago.
    fn file_until(&self, name: &str, days: i64) -> Tls {
        let path = |name: &str| self.file(name).to_string_lossy().into_owned();
        let cert = path(&format!("{name}{days}.crt"));
        let valid_days = (100 + days).to_string();
        let output = Command::new("faketime")
            .args([
                "-f",
                "-100d",
                "openssl",
                "x509",
                "-req",
                "-days",
                &valid_days,
                "-extfile",
                &path("names"),
            ])
            .args(["-in", &path(&format!("{name}.csr")), "-out", &cert])
            .args([
                "-CA",
                &path("ca.crt"),
                "-CAkey",
                &path("ca.key"),
                "-CAcreateserial",
            ])
            .output()
            .expect("faketime is not installed; install it with: apt-get install -y faketime");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Tls {
            cert: cert.into(),
            key: self.file(&format!("{name}.key")),
            client_ca: None,
        }
    }

    /// For a server that requires our client certificate.
    pub fn mutual(&self) -> Tls {
        Tls {
            client_ca: Some(self.ca()),
            ..self.server()
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::join(self.folder.path(), name)
    }
}

fn openssl(args: &[&str]) {
    let output = Command::new("openssl").args(args).output();
    let output = output.expect("openssl is not installed; install it with: apt-get install -y openssl");
    assert!(
        output.status.success(),
        "openssl {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
