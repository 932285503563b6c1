//! Short digests in place of secret values. Pure.

use sha2::{Digest, Sha256};

/// SHA-256 of a value, shown in part.
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(super) fn from_value(value: &[u8]) -> Self {
        Self(Sha256::digest(value).into())
    }

    /// 8 hex digits: enough to distinguish owners, too few to recover a value.
    pub(super) fn owner(&self) -> String {
        self.text("fingerprint:", 4)
    }

    /// 32 hex digits: unique per value.
    pub(super) fn generation(&self, kind: &str) -> String {
        self.text(kind, 16)
    }

    fn text(&self, prefix: &str, bytes: usize) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(prefix.len() + 2 * bytes);
        text.push_str(prefix);
        for byte in &self.0[..bytes] {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_the_start_of_sha256_in_hex() {
        // Verifiable with `printf secret | sha256sum`.
        let print = Fingerprint::from_value(b"secret");
        assert_eq!(print.owner(), "fingerprint:2bb80d53");
        assert_eq!(
            print.generation("value:"),
            "value:2bb80d537b1da3e38bd30361aa855686"
        );
    }
}
