//! Width of text on a terminal, and shortening to a width.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Columns: combining marks have none, East Asian wide characters and emoji two.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// At most `max` columns: removes the middle, because names differ at both ends. Cuts between characters as users see
/// them, never inside an emoji sequence.
pub(super) fn cut(text: &str, max: usize) -> String {
    if width(text) <= max {
        return text.to_owned();
    }
    let tail_max = max.saturating_sub(1) / 3;
    let head_max = max.saturating_sub(1) - tail_max;
    let head: String = take(text.graphemes(true), head_max).concat();
    let mut tail = take(text.graphemes(true).rev(), tail_max);
    tail.reverse();
    format!("{head}…{}", tail.concat())
}

fn take<'a>(characters: impl Iterator<Item = &'a str>, max: usize) -> Vec<&'a str> {
    let mut used = 0;
    characters
        .take_while(|character| {
            used += width(character);
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

    #[test]
    fn an_emoji_sequence_is_one_character_of_two_columns() {
        // A family joined by U+200D, and a heart with a variation selector.
        let (family, heart) = ("\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}", "\u{2764}\u{fe0f}");
        assert_eq!((width(family), width(heart)), (2, 2));
        assert_eq!(
            cut(&format!("jobs{family}{family}{family}"), 8),
            format!("jobs…{family}")
        );
    }
}
