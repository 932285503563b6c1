//! The name that a person types to confirm: byte for byte, so that no look-alike passes.

use crate::escape;
use crate::names::Resource;

/// What is to be typed: the text form, with characters that cannot be seen as `\u{…}`.
pub fn to_type(resource: &Resource) -> String {
    escape::visible(&resource.text()).into_owned()
}

/// Programs send the name as the inventory has it; people type what they see.
pub fn is_the_name(typed: &str, resource: &Resource) -> bool {
    typed == resource.text() || typed == to_type(resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_name_confirms() {
        // Case, space, another script's letter, composed and decomposed, a part, an invisible neighbour.
        let name = Resource::from("jobs/billing-close/é");
        assert!(is_the_name("jobs/billing-close/é", &name));
        for other in [
            "",
            "jobs/billing-close",
            "jobs/billing-close/e\u{301}",
            "Jobs/billing-close/é",
            "jobs/billing-close/é ",
            "jоbs/billing-close/é",
            "jobs/billing\u{2011}close/é",
            "jobs/billing-close/é\u{200b}",
            "jobs/billing-close/*",
        ] {
            assert!(!is_the_name(other, &name), "{other:?}");
        }
    }

    #[test]
    fn what_cannot_be_typed_is_typed_as_it_is_shown() {
        // A control, a direction mark, bytes that are no text.
        for (bytes, shown) in [
            (&b"a\x07b"[..], r"a\u{7}b"),
            ("a\u{202e}b".as_bytes(), r"a\u{202e}b"),
            (b"a\xffb", r"a\xffb"),
        ] {
            let name = Resource::from_bytes(bytes);
            assert_eq!(to_type(&name), shown);
            assert!(is_the_name(shown, &name) && is_the_name(&name.text(), &name));
        }
    }
}
