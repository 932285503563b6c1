//! The yardstick (`baseline.rs`) is frozen: ratios of different versions are comparable only against the same program. Its
//! hash is printed with the figures.

use domain::hex;
use sha2::{Digest as _, Sha256};

const YARDSTICK: &str = include_str!("baseline.rs");
/// Of the published figures. A change of the yardstick makes them incomparable: measure all of them again.
#[cfg(test)]
const PUBLISHED: &str = "57c85001f940";

/// The first digits of the SHA-256 of the yardstick's source.
pub(crate) fn yardstick_hash() -> String {
    hex::text(&Sha256::digest(YARDSTICK.as_bytes())[..6])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yardstick_is_that_of_the_published_figures() {
        assert_eq!(yardstick_hash(), PUBLISHED);
    }
}
