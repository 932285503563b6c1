//! Quoting for a POSIX shell, for commands that pages offer to copy.

/// Quotes one word. Plain words are unchanged; control characters use `$'…'` of bash and zsh,
/// so that pasting a hostile name can neither run nor hide anything.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let hides =
        |c: char| c.is_control() || crate::escape::visible(c.encode_utf8(&mut [0; 4])).len() > c.len_utf8();
    if !word.chars().any(hides) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            c if hides(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    out.push_str(&format!("\\x{byte:02x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_quoted_only_when_needed() {
        // Plain, with spaces, with a quote, and one that would run a second command when
        // pasted.
        assert_eq!(quote("tenant_1:billing/2026"), "tenant_1:billing/2026");
        assert_eq!(quote("a b$(x)"), "'a b$(x)'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote("a\nrm -rf ~\n'"), r"$'a\x0arm -rf ~\x0a\''");
        assert_eq!(quote(""), "''");
    }

    proptest! {
        #[test]
        fn no_quoted_word_holds_a_control_character(word in any::<String>()) {
            prop_assert!(!quote(&word).chars().any(char::is_control));
        }

        #[test]
        fn bash_reads_back_the_same_word(word in "[^\\x00]{0,40}") {
            // Verified by a real shell.
            let printed = std::process::Command::new("bash").arg("-c").arg(format!("printf %s {}", quote(&word))).output().unwrap();
            prop_assert_eq!(printed.stdout, word.as_bytes());
        }
    }
}
