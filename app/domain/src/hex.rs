//! Bytes as lower-case hexadecimal digits: hashes, ids. Written by hand because formatting each byte by itself took two
//! hundredths of a lease's way through the server.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The two digits of a byte.
pub(crate) const fn pair(byte: u8) -> [u8; 2] {
    [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]
}

/// Two digits for each byte.
pub fn text(bytes: &[u8]) -> String {
    let mut digits = Vec::with_capacity(2 * bytes.len());
    for byte in bytes {
        digits.extend_from_slice(&pair(*byte));
    }
    // Digits are a text.
    String::from_utf8(digits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(text(&[]), "");
        // From `printf '\x00\x0f\xa0\xff' | xxd -p`.
        assert_eq!(text(&[0, 15, 160, 255]), "000fa0ff");
        for byte in 0..=u8::MAX {
            assert_eq!(text(&[byte]), format!("{byte:02x}"));
        }
    }
}
