//! Checks of certificate files: the server's own, client certificates towards backends and collectors, and CA
//! certificates. Each must be readable as the server reads it, match its key, and be valid for some time.

use std::path::Path;

use chrono::{DateTime, Utc};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::check_result::Finding;
use super::x509::{self, Validity};
use crate::serve::listener::tls::Certificate;
use config::otel::{Otel, Push};
use config::tls::TlsConfig;
use config::{BackendConfig, Config, OidcConfig, ServerTls};

/// Days. Most certificates are renewed a month before expiry; at half of that the renewal has probably failed.
const LEFT_WARN: i64 = 14;

/// The server's certificate.
pub(super) fn check_server(config: &Config, now: DateTime<Utc>) -> Vec<Finding> {
    let renewed = "the server uses the new file within seconds, without a restart";
    let tls = config.access.tls.as_ref();
    tls.map(|files| check_pair("tls", files, renewed, now))
        .unwrap_or_default()
}

/// The certificates of one backend.
pub(super) fn check_backend(config: &BackendConfig, now: DateTime<Utc>) -> Vec<Finding> {
    let TlsConfig {
        ca_file,
        cert_file,
        key_file,
        ..
    } = &config.tls;
    let check = format!("backend {}", config.name);
    let mut findings = Vec::new();
    if let Some(file) = ca_file {
        findings.push(check_authority(&check, file, RELOAD, now));
    }
    if let (Some(cert), Some(key)) = (cert_file, key_file) {
        let files = ServerTls {
            cert_file: cert.clone(),
            key_file: key.clone(),
        };
        findings.extend(check_pair(&check, &files, RELOAD, now));
    }
    findings
}

/// The CA of the identity provider.
pub(super) fn check_provider(config: &OidcConfig, now: DateTime<Utc>) -> Option<Finding> {
    let file = config.ca_file.as_ref()?;
    Some(check_authority("oidc", file, RESTART, now))
}

/// The certificates of the collectors in the `OTEL_*` variables.
pub(super) fn check_collectors(otel: &Otel, now: DateTime<Utc>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for push in [&otel.metrics, &otel.traces, &otel.logs].into_iter().flatten() {
        for finding in check_collector(push, now) {
            // Signals usually share their files.
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    findings
}

fn check_collector(push: &Push, now: DateTime<Utc>) -> Vec<Finding> {
    let check = "telemetry";
    let mut findings = Vec::new();
    if let Some(file) = &push.certificate {
        findings.push(check_authority(check, file, RESTART, now));
    }
    if let (Some(cert), Some(key)) = (&push.client_certificate, &push.client_key) {
        let files = ServerTls {
            cert_file: cert.clone(),
            key_file: key.clone(),
        };
        findings.extend(check_pair(check, &files, RESTART, now));
    }
    findings
}

const RELOAD: &str = "then: systemctl reload leasehold";
const RESTART: &str = "then: systemctl restart leasehold";

/// A certificate with its key.
fn check_pair(check: &str, files: &ServerTls, renewed: &str, now: DateTime<Utc>) -> Vec<Finding> {
    match Certificate::load(files) {
        Ok(_) => {
            let path = files.cert_file.display();
            let match_finding = Finding::ok(check, format!("{path} and its key match"));
            // Later certificates of the file belong to the chain.
            vec![
                match_finding,
                check_file(check, &files.cert_file, Selection::First, renewed, now),
            ]
        }
        Err(error) => {
            let found = format!("{} {}", error.path.display(), error.why);
            vec![Finding::fault(check, found, error.remedy)]
        }
    }
}

/// CA certificates: one valid certificate is sufficient.
fn check_authority(check: &str, file: &Path, renewed: &str, now: DateTime<Utc>) -> Finding {
    check_file(check, file, Selection::Longest, renewed, now)
}

/// The certificate of a file that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selection {
    First,
    Longest,
}

fn check_file(check: &str, file: &Path, selection: Selection, renewed: &str, now: DateTime<Utc>) -> Finding {
    let path = file.display();
    let read = std::fs::read(file);
    let pem = match read {
        Ok(pem) => pem,
        Err(why) => {
            let found = format!("{path} cannot be read: {why}");
            return Finding::fault(
                check,
                found,
                format!("ls -l {path} # the user that serves must read it"),
            );
        }
    };
    let all = CertificateDer::pem_slice_iter(&pem).map_while(Result::ok);
    let mut all = all.filter_map(|der| x509::validity(&der));
    let validity = match selection {
        Selection::First => all.next(),
        Selection::Longest => all.max_by_key(|validity| validity.until),
    };
    match validity {
        Some(validity) => check_validity(check, file, validity, renewed, now),
        None => Finding::fault(
            check,
            format!("{path} holds no certificate"),
            "Write it as PEM, beginning with -----BEGIN CERTIFICATE-----.",
        ),
    }
}

fn check_validity(
    check: &str,
    file: &Path,
    validity: Validity,
    renewed: &str,
    now: DateTime<Utc>,
) -> Finding {
    let path = file.display();
    let remedy = format!("renew {path}; {renewed}");
    let day = validity.until.format("%Y-%m-%d");
    if now < validity.from {
        let from = validity.from.format("%Y-%m-%d %H:%M");
        let found = format!("{path} is not valid before {from} UTC");
        return Finding::fault(
            check,
            found,
            "timedatectl set-ntp true # if this clock is right, wait until then",
        );
    }
    let left = validity.until - now;
    if left <= chrono::TimeDelta::zero() {
        let found = format!("{path} expired on {day}: clients reject it");
        return Finding::fault(check, found, remedy);
    }
    let days = left.num_days();
    let days_left = domain::format::counted(days.unsigned_abs(), "day", "days");
    let found = format!("{path} is valid until {day}, {days_left} from now");
    match days {
        ..=LEFT_WARN => Finding::warning(check, found, remedy),
        _ => Finding::ok(check, found),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::super::check_result::Level;
    use super::*;

    #[test]
    fn a_certificate_is_rated_by_its_remaining_days() {
        // Long valid, expiring soon, expired a moment ago, and not yet valid.
        let from = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let until = from + TimeDelta::days(90);
        let level = |now| check_validity("x", Path::new("c.pem"), Validity { from, until }, "", now).level;
        assert_eq!(level(from), Level::Ok);
        assert_eq!(level(until - TimeDelta::days(15)), Level::Ok);
        assert_eq!(level(until - TimeDelta::days(14)), Level::Warning);
        assert_eq!(level(until - TimeDelta::seconds(1)), Level::Warning);
        assert_eq!(level(until), Level::Fault);
        assert_eq!(level(from - TimeDelta::seconds(1)), Level::Fault);
    }
}
