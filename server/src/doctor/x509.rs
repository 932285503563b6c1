//! Validity period of a certificate, from its DER (RFC 5280, 4.1.2.5).

use chrono::{DateTime, NaiveDateTime, Utc};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) from: DateTime<Utc>,
    pub(super) until: DateTime<Utc>,
}

const SEQUENCE: u8 = 0x30;
/// `[0]`: the version, which is absent in version 1.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// `None` if it is not a certificate.
pub(super) fn validity(der: &[u8]) -> Option<Validity> {
    let (certificate, _) = inner(der, SEQUENCE)?;
    let (mut signed, _) = inner(certificate, SEQUENCE)?;
    if signed.first() == Some(&VERSION) {
        signed = next(signed)?.2;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        signed = next(signed)?.2;
    }
    let (validity, _) = inner(signed, SEQUENCE)?;
    let (tag, from, rest) = next(validity)?;
    let (other, until, _) = next(rest)?;
    Some(Validity {
        from: time(tag, from)?,
        until: time(other, until)?,
    })
}

fn inner(der: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = next(der)?;
    (tag == wanted).then_some((content, rest))
}

/// One DER element: tag, content, and the rest.
fn next(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x0f))?;
            let length = bytes
                .iter()
                .fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

fn time(tag: u8, content: &[u8]) -> Option<DateTime<Utc>> {
    let text = std::str::from_utf8(content).ok()?;
    let text = match tag {
        // Two-digit years mean 1950 to 2049.
        UTC_TIME if text.get(..2)?.parse::<u8>().ok()? < 50 => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = NaiveDateTime::parse_from_str(&text, "%Y%m%d%H%M%SZ").ok()?;
    Some(time.and_utc())
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    /// Made in 2024 by `openssl req -x509 -newkey ed25519 -nodes -subj /CN=x -days 9863`: the end year needs four
    /// digits.
    const PEM: &str = "-----BEGIN CERTIFICATE-----
MIIBLjCB4aADAgECAhRtLNHj1kBUZqQ2dy8BR5la1NCJVzAFBgMrZXAwDDEKMAgG
A1UEAwwBeDAgFw0yNDAxMDIwMzA0MDVaGA8yMDUxMDEwMzAzMDQwNVowDDEKMAgG
A1UEAwwBeDAqMAUGAytlcAMhAFRaQYzuGcPHlKSahyQw/qBr54SyTSljt6py5MRk
0xS6o1MwUTAdBgNVHQ4EFgQUMUO9eSlN6L4/84QNWFJun/3xLnwwHwYDVR0jBBgw
FoAUMUO9eSlN6L4/84QNWFJun/3xLnwwDwYDVR0TAQH/BAUwAwEB/zAFBgMrZXAD
QQAgOfpwW/4hI66jKekzVZbjc81ti0QjflDP59L/flr3AWvZuf/zr0DbdlZuCdof
tO0CcrCE55MM+fsqgjvO9zcO
-----END CERTIFICATE-----";

    #[test]
    fn both_time_encodings_are_parsed() {
        // Two-digit and four-digit years; every prefix is rejected without a panic.
        let der = CertificateDer::from_pem_slice(PEM.as_bytes()).unwrap();
        let validity = validity(&der).unwrap();
        assert_eq!(validity.from.to_rfc3339(), "2024-01-02T03:04:05+00:00");
        assert_eq!(validity.until.to_rfc3339(), "2051-01-03T03:04:05+00:00");
        for end in 0..der.len() {
            assert_eq!(super::validity(&der[..end]), None, "{end}");
        }
        assert_eq!(super::validity(b"no certificate at all"), None);
    }
}
