//! Links that set the time range of a page.

use domain::charts::range::{RangePreset, TimeRange};

use super::html_writer::Markup;
use crate::links;

/// `pairs`: the other URL parameters; a range among them is replaced.
pub fn range_links(range: TimeRange, path: &str, pairs: &[(String, String)]) -> Markup {
    let others: Vec<(&str, &str)> = pairs
        .iter()
        .filter(|(name, _)| !TimeRange::FIELDS.contains(&name.as_str()))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let mut it = Markup::new();
    it.wrap(
        "nav",
        &[("class", "ranges"), ("aria-label", "time range")],
        |it| {
            for last in RangePreset::ALL {
                if range == TimeRange::Last(last) {
                    it.text_element("b", &[("aria-current", "true")], last.word());
                    continue;
                }
                let pairs = others.iter().copied().chain([("range", last.as_str())]);
                let href = links::with_query(path, pairs);
                it.text_element("a", &[("class", "link"), ("href", &href)], last.word());
            }
            if matches!(range, TimeRange::Between { .. }) {
                it.text_element("b", &[("aria-current", "true")], &range.words());
            }
        },
    );
    it
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_keep_the_filters_and_replace_the_range() {
        let pairs = [("prefix", "a&b"), ("range", "6h"), ("from", "x")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let html = range_links(TimeRange::Last(RangePreset::SixHours), "/fencing", &pairs).into_string();
        assert!(
            html.contains(r#"<a class="link" href="/fencing?prefix=a%26b&amp;range=1h">1 h</a>"#),
            "{html}"
        );
        assert!(html.contains(r#"<b aria-current="true">6 h</b>"#) && !html.contains("range=6h"));
    }
}
