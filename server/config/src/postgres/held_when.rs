//! `held_when`: one SQL expression, which is put into parentheses. The rule here refuses an expression
//! that could end these parentheses. The database checks its names and types.

use crate::value_parsers::{self, Rule};

const FITS: &str = "an SQL condition on the table's columns, such as \"locked_at IS NOT NULL\"";

pub(super) fn rule() -> Rule<'static, String> {
    value_parsers::checked(FITS, |text| check(text).map_err(str::to_owned))
}

fn check(text: &str) -> Result<(), &'static str> {
    if text.trim().is_empty() {
        return Err("is empty");
    }
    let mut chars = text.chars().peekable();
    let mut depth = 0_u32;
    while let Some(c) = chars.next() {
        match (c, chars.peek().copied()) {
            (';' | '\0' | '\\', _) => return Err("has a semicolon, a backslash or a NUL"),
            ('-', Some('-')) | ('/', Some('*')) => return Err("has a comment"),
            ('$', _) => return Err("has a dollar sign: write strings in single quotes"),
            ('(', _) => depth += 1,
            (')', _) => {
                depth = depth
                    .checked_sub(1)
                    .ok_or("closes a parenthesis that it does not open")?
            }
            // A doubled quote is a quote that ends, and one that begins.
            ('\'' | '"', _) if !chars.any(|other| other == c) => return Err("has a quote without an end"),
            _ => {}
        }
    }
    if depth == 0 {
        Ok(())
    } else {
        Err("has a parenthesis without an end")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_whole_expression_is_accepted() {
        // Quotes and parentheses in pairs; whatever could end the expression or hide the rest is refused.
        for good in [
            "locked_at IS NOT NULL",
            "state = 'active' AND (owner <> '' OR \"a)b\" = 1)",
            "note = 'it''s; -- (fine'",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            " ",
            "true; DROP TABLE locks",
            "true) OR (true",
            "(true",
            "true --",
            "true /* x",
            "a = 'x",
            "a = $$x$$",
            "a = E'\\''",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
