//! The name that a user types to confirm: compared byte by byte, so that no look-alike passes.

use crate::escape;
use crate::names::Resource;

/// The text to type: the text form, with invisible characters as `\u{…}`.
pub fn to_type(resource: &Resource) -> String {
    escape::visible(&resource.text()).into_owned()
}

/// Programs send the name as in the inventory; users type what they see.
pub fn is_the_name(typed: &str, resource: &Resource) -> bool {
    typed == resource.text() || typed == to_type(resource)
}

/// First difference between the typed text and the name, in words that distinguish look-alikes;
/// `None` if equal.
pub fn difference(typed: &str, resource: &Resource) -> Option<String> {
    if is_the_name(typed, resource) {
        return None;
    }
    let shown = to_type(resource);
    let pairs = typed.chars().zip(shown.chars());
    let common = pairs.take_while(|(one, other)| one == other).count();
    let at = common + 1;
    Some(match (typed.chars().nth(common), shown.chars().nth(common)) {
        (None, _) if typed.is_empty() => "nothing was typed".to_owned(),
        (None, _) => format!("it ends after character {common}, and the name goes on"),
        (Some(more), None) => format!(
            "the name ends after character {common}, and {} follows",
            describe_char(more)
        ),
        (Some(typed), Some(name)) => {
            format!(
                "character {at} is {}, and the name has {} there",
                describe_char(typed),
                describe_char(name)
            )
        }
    })
}

/// The character, unless it is invisible, and its code point.
fn describe_char(c: char) -> String {
    let number = format!("U+{:04X}", c as u32);
    let mut bytes = [0; 4];
    let text: &str = c.encode_utf8(&mut bytes);
    if c == ' ' || escape::visible(text) != text {
        return number;
    }
    format!("\u{201c}{c}\u{201d} ({number})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_position_and_code_point() {
        // A look-alike, a trailing space, a part, an empty text, a hidden character; and the
        // name itself.
        let name = Resource::from("jobs/close");
        let message = |typed: &str| difference(typed, &name).unwrap_or_default();
        assert_eq!(
            message("j\u{43e}bs/close"),
            "character 2 is \u{201c}\u{43e}\u{201d} (U+043E), and the name has \u{201c}o\u{201d} (U+006F) there"
        );
        assert_eq!(
            message("jobs/close "),
            "the name ends after character 10, and U+0020 follows"
        );
        assert_eq!(
            message("jobs/"),
            "it ends after character 5, and the name goes on"
        );
        assert_eq!(message(""), "nothing was typed");
        assert!(message("jobs\u{200b}/close").starts_with("character 5 is U+200B, "));
        assert_eq!(difference("jobs/close", &name), None);
    }

    #[test]
    fn only_the_exact_name_confirms() {
        // Case, space, a letter of another script, composed and decomposed, a part, an
        // invisible neighbour.
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
    fn invisible_characters_are_typed_as_escapes() {
        // A control character, a direction mark, bytes that are not UTF-8.
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
