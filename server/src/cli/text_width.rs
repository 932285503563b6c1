//! Width of text on a terminal, and shortening to a width.

/// Columns of one character: combining marks 0, East Asian wide characters and emoji 2.
fn columns(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// At most `max` columns: removes the middle, because names differ at both ends.
pub(super) fn cut(text: &str, max: usize) -> String {
    if width(text) <= max {
        return text.to_owned();
    }
    let tail_max = max.saturating_sub(1) / 3;
    let head_max = max.saturating_sub(1) - tail_max;
    let head = take(text.chars(), head_max);
    let tail: String = take(text.chars().rev(), tail_max).chars().rev().collect();
    format!("{head}…{tail}")
}

fn take(chars: impl Iterator<Item = char>, max: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += columns(*c);
            used <= max
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cut_text_never_exceeds_its_width(text in "\\PC{0,60}", max in 1_usize..40) {
            prop_assert!(width(&cut(&text, max)) <= max);
        }
    }

    #[test]
    fn both_ends_of_a_name_survive_a_cut() {
        // The tenant is at the start, the month at the end.
        assert_eq!(
            cut("tenant_123:billing-close:2026-04", 20),
            "tenant_123:bi…026-04"
        );
        assert_eq!(cut("請求締め:2026-04", 40), "請求締め:2026-04");
        assert_eq!(width("請求締め"), 8);
    }
}
