//! Short digests that stand for values which are secrets. Pure.

use sha2::{Digest, Sha256};

/// SHA-256 of a value, of which as much is shown as the purpose needs.
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(super) fn of(value: &[u8]) -> Self {
        Self(Sha256::digest(value).into())
    }

    /// 8 hex digits: enough to tell owners apart, too few to guess a value from.
    pub(super) fn owner(&self) -> String {
        self.text("fingerprint:", 4)
    }

    /// 32 hex digits: no two values share it.
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
        // Anyone can check one with `printf secret | sha256sum`.
        let print = Fingerprint::of(b"secret");
        assert_eq!(print.owner(), "fingerprint:2bb80d53");
        assert_eq!(
            print.generation("value:"),
            "value:2bb80d537b1da3e38bd30361aa855686"
        );
    }
}
