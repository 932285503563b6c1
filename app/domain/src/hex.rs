//! Bytes as lower-case hexadecimal digits. Hand-written instead of `const-hex`: 20 lines, which also
//! the wasm uses, and no dependency.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

pub(crate) const fn byte_digits(byte: u8) -> [u8; 2] {
    [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]
}

/// Value of a digit; lower case only.
pub(crate) const fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

pub fn text(bytes: &[u8]) -> String {
    let mut digits = vec![0; 2 * bytes.len()];
    let (pairs, _) = digits.as_chunks_mut();
    for (two, byte) in pairs.iter_mut().zip(bytes) {
        *two = byte_digits(*byte);
    }
    // Always valid UTF-8.
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
