//! Names of users and tokens: shown in lists, typed in shells, compared by people.
//!
//! A name has letters of one script in normal form and no invisible characters, so that no name looks like another
//! one. Similar letters within one script, and names entirely in another script, are not detected.

use icu_properties::props::{DefaultIgnorableCodePoint, Script};
use icu_properties::{CodePointMapData, CodePointSetData};
use unicode_normalization::{UnicodeNormalization as _, is_nfkc};

use super::error::IdentityError;
use super::limits::NAME_BYTES_MAX;

/// Scripts that are used together.
const TOGETHER: [&[Script]; 3] = [
    &[Script::Han, Script::Hiragana, Script::Katakana],
    &[Script::Han, Script::Hangul],
    &[Script::Han, Script::Bopomofo],
];

/// Whether a text can be an id or a name in the store: Postgres rejects a query for text with NUL.
pub(super) fn is_storable(text: &str) -> bool {
    !text.contains('\0')
}

/// # Errors
/// Names the field, the violated rule and a valid form.
pub(super) fn check_name(name: &str) -> Result<(), IdentityError> {
    let invalid = |why: String| Err(IdentityError::invalid("name", why));
    if !(1..=NAME_BYTES_MAX).contains(&name.len()) || !name.chars().all(is_allowed) {
        return invalid(format!(
            "must have 1 to {NAME_BYTES_MAX} bytes of letters, digits and -_.@+"
        ));
    }
    if let Some(hidden) = name.chars().find(|c| is_hidden(*c)) {
        return invalid(format!(
            "must not contain invisible characters, but has U+{:04X}; remove it",
            hidden as u32
        ));
    }
    if !is_nfkc(name) {
        let plain: String = name.nfkc().collect();
        return invalid(format!("must be written in plain letters: {plain}"));
    }
    match find_foreign_script(name) {
        None => Ok(()),
        Some(letter) => invalid(format!(
            "must use letters of one script, because letters of several look alike; {letter:?} (U+{:04X}) is from \
             another script",
            letter as u32
        )),
    }
}

/// Converts a foreign name: invalid characters become `_`.
pub(super) fn sanitize_name(name: &str, bytes_max: usize) -> String {
    let mut name: String = name
        .nfkc()
        .map(|c| if is_allowed(c) && !is_hidden(c) { c } else { '_' })
        .collect();
    while name.len() > bytes_max {
        name.pop();
    }
    while let Some(letter) = find_foreign_script(&name) {
        name = name.replace(letter, "_");
    }
    name
}

fn is_allowed(c: char) -> bool {
    c.is_alphanumeric() || "-_.@+".contains(c)
}

fn is_hidden(c: char) -> bool {
    CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c) || domain::escape::is_hidden(c)
}

/// The first letter whose script does not match the ones before it.
fn find_foreign_script(name: &str) -> Option<char> {
    let scripts = CodePointMapData::<Script>::new();
    let mut seen: Vec<Script> = Vec::new();
    name.chars().find(|c| {
        let script = scripts.get(*c);
        if [Script::Common, Script::Inherited].contains(&script) || seen.contains(&script) {
            return false;
        }
        seen.push(script);
        let is_allowed_mix = TOGETHER
            .iter()
            .any(|set| seen.iter().all(|script| set.contains(script)));
        seen.len() > 1 && !is_allowed_mix
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_script_are_accepted() {
        for name in [
            "ada",
            "ada@example.com",
            "Ada_Lovelace+2",
            "józef",
            "Žižek",
            "анна",
            "Ελένη",
            "山田はなこ",
            "김철수7",
            "7",
            "-_.@+",
        ] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn mixed_scripts_and_invisible_letters_are_refused() {
        // Cyrillic and Greek letters in a Latin name, fillers, joiners, full-width and mathematical letters, an
        // empty name.
        for name in [
            "\u{430}dmin",
            "adm\u{456}n",
            "\u{3bf}ps",
            "admin\u{3164}",
            "admin\u{ffa0}",
            "\u{115f}admin",
            "ad\u{34f}min",
            "ad\u{200d}min",
            "\u{ff41}dmin",
            "\u{1d41a}dmin",
            "e\u{301}ve",
            "an apple",
            "",
        ] {
            let result = check_name(name);
            assert!(
                matches!(result, Err(IdentityError::Invalid { field: "name", .. })),
                "{name:?}"
            );
            assert!(
                check_name(&format!("7{}", sanitize_name(name, 40))).is_ok(),
                "{name:?}"
            );
        }
    }

    #[test]
    fn every_invisible_character_of_unicode_is_shown_as_a_number() {
        let hidden = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        for c in (0..=0x10_ffff_u32).filter_map(char::from_u32) {
            let shown = !domain::escape::is_hidden(c);
            assert!(!(shown && hidden.contains(c)), "U+{:04X}", c as u32);
        }
    }
}
