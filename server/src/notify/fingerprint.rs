//! Fingerprint of an alert: equal labels give an equal fingerprint. FNV-1a over sorted names and values, as in
//! Prometheus.

use std::collections::BTreeMap;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;
/// Never part of UTF-8 text.
const SEPARATOR: u8 = 0xff;

/// Sixteen hex digits.
pub fn fingerprint(labels: &BTreeMap<String, String>) -> String {
    let texts = labels.iter().flat_map(|(name, value)| [name, value]);
    let bytes = texts.flat_map(|text| text.bytes().chain([SEPARATOR]));
    let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_boundaries_are_part_of_the_fingerprint() {
        // Equal labels; a letter moved from a name to its value; no labels, which gives the offset basis.
        let of = |pairs: &[(&str, &str)]| {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            fingerprint(&pairs.iter().map(owned).collect())
        };
        assert_eq!(of(&[("a", "b"), ("c", "d")]), of(&[("c", "d"), ("a", "b")]));
        assert_ne!(of(&[("ab", "c")]), of(&[("a", "bc")]));
        assert_eq!(of(&[]), "cbf29ce484222325");
        assert_eq!(of(&[("alertname", "X")]).len(), 16);
    }
}
