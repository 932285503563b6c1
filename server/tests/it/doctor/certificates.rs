//! Certificates in files: near expiry, expired, of another key, and files without a certificate.

use ::testkit::{RedisOptions, Throwaway, Tls};

use super::command::{ConfigFolder, DoctorReport, report};
use testkit::Certs;

fn own(tls: &Tls) -> ConfigFolder {
    let (cert, key) = (tls.cert.display(), tls.key.display());
    ConfigFolder::new(&format!("[tls]\ncert_file = \"{cert}\"\nkey_file = \"{key}\"\n"))
}

fn line_with<'a>(report: &'a [String], words: &str) -> &'a str {
    let found = report.iter().find(|line| line.contains(words));
    found.unwrap_or_else(|| panic!("{words}: {report:#?}"))
}

#[tokio::test]
async fn the_server_certificate_is_checked_for_key_and_expiry() {
    // Detects an expiring certificate: two months left, three days left, expired yesterday, a key of another
    // certificate, a file with other content.
    let (certs, others) = (Certs::make(), Certs::make());
    let fine = own(&certs.server_until(60)).doctor().await;
    assert_eq!(fine.code, 0, "{fine:#?}");
    let ok = fine.level("ok");
    line_with(&ok, "tls: ");
    assert!(
        line_with(&ok, "is valid until").contains(" days from now"),
        "{ok:#?}"
    );

    let soon = own(&certs.server_until(3)).doctor().await;
    let warnings = soon.level("warning");
    let warned = line_with(&warnings, "tls: ");
    assert!(
        soon.code == 0 && warned.contains("days from now") && warned.contains("→ renew "),
        "{soon:#?}"
    );

    let over = certs.server_until(-1);
    let over = own(&over).doctor().await;
    over.has_one_fault(&["tls: ", "expired on", "→ renew ", "without a restart"]);

    let mut mixed = certs.server_until(60);
    mixed.key = others.server().key;
    let mixed = own(&mixed).doctor().await;
    mixed.has_one_fault(&[
        "server.key is not the key of this certificate",
        "→ Use the private key that",
    ]);

    let empty = Tls {
        cert: others.server().key,
        ..certs.server()
    };
    let empty = own(&empty).doctor().await;
    empty.has_one_fault(&[
        "server.key holds no certificate",
        "→ Write the server's certificate",
    ]);
}

#[tokio::test]
async fn backend_certificates_are_checked() {
    // A server that requires client certificates: ours is valid, near expiry, and expired, which is reported before
    // the failing handshake.
    let certs = Certs::make();
    let redis = Throwaway::redis(RedisOptions {
        tls: Some(certs.mutual()),
        ..RedisOptions::default()
    })
    .await
    .unwrap();
    let doctor = async |client: &Tls| -> DoctorReport {
        let toml = format!(
            "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\nca_file = \"{}\"\ncert_file = \"{}\"\nkey_file = \"{}\"\n",
            redis.tls_url().unwrap(),
            certs.ca().display(),
            client.cert.display(),
            client.key.display()
        );
        ConfigFolder::new(&toml).doctor().await
    };
    let fine = doctor(&certs.client_until(60)).await;
    assert_eq!(fine.code, 0, "{fine:#?}");
    line_with(&fine.level("ok"), "client60.crt is valid until");
    // The authority of this test lives for a day.
    line_with(&fine.level("warning"), "backend cache: ");
    let over = doctor(&certs.client_until(-1)).await;
    assert_eq!(over.code, 1, "{over:#?}");
    let faults = over.level("fault");
    let fault = line_with(&faults, "client-1.crt expired on");
    assert!(fault.contains("then: systemctl reload leasehold"), "{fault}");
}

#[tokio::test]
async fn collector_certificates_from_the_environment_are_checked() {
    // An authority with one day left, then a file without a certificate.
    let certs = Certs::make();
    let config = ConfigFolder::new("");
    let doctor = async |file: String| {
        let mut command = config.leasehold();
        command.args(["doctor", "--json"]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1");
        command.env("OTEL_EXPORTER_OTLP_CERTIFICATE", file);
        report(command).await
    };
    let soon = doctor(certs.ca().display().to_string()).await;
    line_with(&soon.level("warning"), "telemetry: ");
    let key = doctor(certs.client_key().display().to_string()).await;
    key.has_one_fault(&[
        "telemetry: ",
        "client.key holds no certificate",
        "→ Write it as PEM",
    ]);
}
